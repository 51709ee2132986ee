// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	policyv1client "k8s.io/client-go/kubernetes/typed/policy/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	fleet    = 4         // machines of a deployment that is upgraded
	fleetApp = 2 * fleet // pods on their Nodes
)

// upgrade is the world of a deployment that managers of two versions roll, one after the other.
type upgrade struct {
	*env.Env
	t     *testing.T
	rolls int
	old   []types.UID // pods when the last roll began
	seen  <-chan drivertest.EventKind
	lost  *unevicted
}

// begin sets the environment.
func begin(t *testing.T, prefix string, o env.Options) *upgrade {
	t.Helper()
	o.Bounds.Steady = true
	u := &upgrade{Env: cluster.Set(t, prefix, o), t: t}
	u.seen, u.lost = watchCloud(t, u.Env), watchPods(t, u.Env)
	return u
}

// populate creates the deployment and its pods, once a manager runs.
func (u *upgrade) populate() {
	u.t.Helper()
	deploy(u.t, u.Env, u.Deployment("workers", "first", fleet, 1, 1))
	_, err := u.Client.AppsV1().ReplicaSets(u.Namespace).Create(u.t.Context(), u.ReplicaSet("app", fleetApp), metav1.CreateOptions{})
	require.NoError(u.t, err)
	u.Wait(u.t, patience, "the pods are ready", ready(u.Env, "app", fleetApp))
}

// roll begins a roll to another class.
func (u *upgrade) roll(class string) {
	u.t.Helper()
	for len(u.seen) > 0 {
		<-u.seen
	}
	u.rolls++
	u.old = u.present()
	roll(u.t, u.Env, "workers", class)
}

// moments begin a roll to another class, and return where its manager is to be replaced.
var moments = map[string]func(u *upgrade, class string){
	"in creation": func(u *upgrade, class string) {
		u.roll(class)
		await(u.t, u.seen, drivertest.VMDeleted) // of the first old machine
		await(u.t, u.seen, drivertest.VMCreated)
	},
	// No budget ever allows an eviction: the API server would count one that is cut off for two minutes.
	"in drain": func(u *upgrade, class string) {
		_, err := u.budgets().Create(u.t.Context(), u.Budget("app", fleetApp), metav1.CreateOptions{})
		require.NoError(u.t, err)
		u.roll(class)
		u.Wait(u.t, patience, "a drain waits for the budget", func(ctx context.Context) (string, error) {
			for _, m := range machines(u.t, u.Env) {
				n, err := u.Client.CoreV1().Nodes().Get(ctx, u.NodeName(m.Name), metav1.GetOptions{})
				if err == nil && m.DeletionTimestamp != nil && n.Spec.Unschedulable && len(podsOn(u.t, u.Env, n.Name)) > 0 {
					return "", nil
				}
			}
			return "no drain", nil
		})
	},
}

func (u *upgrade) budgets() policyv1client.PodDisruptionBudgetInterface {
	return u.Client.PolicyV1().PodDisruptionBudgets(u.Namespace)
}

// interrupt replaces one manager by the next in the middle of a roll.
func (u *upgrade) interrupt(is, next *env.Manager, class, moment string, how replacement) {
	u.t.Helper()
	was := holder(u.t, u.Env)
	if how.overlap {
		u.Start(u.t, next) // it stands by
		require.Equal(u.t, was, holder(u.t, u.Env), "one leads")
	}
	moments[moment](u, class)
	if how.killed {
		is.Kill()
	} else {
		stop(u.t, is)
	}
	u.unfinished()
	if !how.overlap {
		u.Start(u.t, next)
	}
	u.Wait(u.t, patience, "the other version leads", ledAfter(u.Env, was))
}

// unfinished asserts that a roll has not ended.
func (u *upgrade) unfinished() {
	u.t.Helper()
	missing, err := u.Complete("workers")(u.t.Context())
	require.NoError(u.t, err)
	require.NotEmpty(u.t, missing, "the roll was over before the other version led")
}

// rolled lets all pods be evicted, waits for the end of a roll, and asserts that each machine was replaced once and each pod evicted.
func (u *upgrade) rolled() {
	u.t.Helper()
	require.NoError(u.t, u.budgets().DeleteCollection(u.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	u.Wait(u.t, patience, "rolled", u.Complete("workers"))
	u.Wait(u.t, patience, "the old machines are deleted", allRun(u.Env, fleet))
	u.Wait(u.t, patience, "the pods are ready", ready(u.Env, "app", fleetApp))
	u.counts()
	require.Empty(u.t, u.lost.all(), "pods without an eviction")
	require.Len(u.t, u.old, fleetApp)
	for _, p := range u.present() {
		require.NotContains(u.t, u.old, p, "its machine was replaced")
	}
}

// counts asserts that so many VMs were created and deleted, and machines with them, as the rolls need.
func (u *upgrade) counts() {
	u.t.Helper()
	vms := map[drivertest.EventKind]int{}
	for _, e := range u.Cloud.History() {
		vms[e.Kind]++
	}
	created, deleted := fleet*(1+u.rolls), fleet*u.rolls
	require.Equal(u.t, created, vms[drivertest.VMCreated], "created VMs")
	require.Equal(u.t, deleted, vms[drivertest.VMDeletionBegan], "deleted VMs")
	require.Len(u.t, arrivals(u.Env), created)
	require.Len(u.t, departures(u.Env), deleted)
}

// present returns the UIDs of the pods of the app.
func (u *upgrade) present() (all []types.UID) {
	u.t.Helper()
	pods, err := u.Client.CoreV1().Pods(u.Namespace).List(u.t.Context(), metav1.ListOptions{})
	require.NoError(u.t, err)
	for _, p := range pods.Items {
		all = append(all, p.UID)
	}
	return all
}

// replacement is how one manager is replaced by another.
type replacement struct {
	killed  bool // with kill -9, and not with SIGTERM
	overlap bool // the next manager runs before
}

// TestUpgrade_InMidRoll_FinishedByTheOtherVersion lets the manager of the last release begin a roll and this one finish it,
// and the other way round with the next roll. The fleet ends like one that only this version has rolled.
func TestUpgrade_InMidRoll_FinishedByTheOtherVersion(t *testing.T) {
	t.Parallel()
	buildPrevious(t)
	want := rolledTwice(t)
	for _, c := range []struct {
		name     string
		how      replacement
		up, down string // moments of the upgrade and the downgrade
	}{
		{"killed", replacement{killed: true}, "in creation", "in drain"},
		{"stopped", replacement{}, "in drain", "in creation"},
		{"beside the next one", replacement{killed: true, overlap: true}, "in drain", "in creation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := withShortLease(fastOptions())
			u := begin(t, "upgrade", o)
			before, now := u.Program(env.Previous+env.Controllers, "previous", o.Flags...), u.Manager("manager")
			u.Start(t, before)
			u.populate()

			u.interrupt(before, now, "second", c.up, c.how)
			u.rolled()
			u.Wait(t, patience, "the fleet is as after a roll by one version", looks(u.Env, want[0]))

			u.interrupt(now, before, "third", c.down, c.how)
			u.rolled()

			was := holder(t, u.Env)
			stop(t, before)
			u.Start(t, now)
			u.Wait(t, patience, "this version leads", ledAfter(u.Env, was))
			u.Wait(t, patience, "the fleet is as after rolls by one version", looks(u.Env, want[1]))
			u.counts()
			removeAll(t, u.Env)
		})
	}
}

// previous builds the programs of the last release once.
var previous = sync.OnceValues(func() (string, error) { return cluster.Previous(context.Background()) })

func buildPrevious(t *testing.T) {
	t.Helper()
	revision, err := previous()
	require.NoError(t, err)
	t.Logf("the last release is %s", revision)
}

// TestUpgrade_ProgramsOfTwoVersions_RollTogether replaces the two programs at different times.
func TestUpgrade_ProgramsOfTwoVersions_RollTogether(t *testing.T) {
	t.Parallel()
	buildPrevious(t)
	o := fastOptions()
	u := begin(t, "skewed", o)
	versions := []string{env.Previous, ""}
	var machines, sets []*env.Manager
	for i, version := range versions {
		machines = append(machines, u.Program(version+manifests.MachineController, fmt.Sprint("machines-", i), o.Flags...))
		sets = append(sets, u.Program(version+manifests.MachineControllerManager, fmt.Sprint("sets-", i)))
	}
	u.Start(t, machines[0])
	u.Start(t, sets[0])
	u.populate()
	replace := func(is, next *env.Manager) {
		stop(t, is)
		u.unfinished()
		u.Start(t, next)
	}

	moments["in drain"](u, "second")
	replace(sets[0], sets[1])
	u.rolled()

	moments["in creation"](u, "third")
	replace(machines[0], machines[1])
	u.rolled()

	moments["in drain"](u, "fourth")
	replace(sets[1], sets[0])
	u.rolled()
	removeAll(t, u.Env)
}

// rolledTwice returns how a fleet looks after the first and after the second roll, both by this version.
func rolledTwice(t *testing.T) (after []string) {
	t.Helper()
	u := begin(t, "rolled", fastOptions())
	u.StartManager(t, "manager")
	u.populate()
	for _, class := range []string{"second", "third"} {
		u.roll(class)
		u.rolled()
		u.Wait(t, patience, "no Node has a mark of the roll", unmarked(u.Env))
		var text string
		u.Wait(t, patience, "no Node has a taint", func(ctx context.Context) (missing string, err error) {
			if text, err = look(ctx, u.Env); strings.Contains(text, `"effect"`) {
				return text, err
			}
			return "", err
		})
		after = append(after, text)
	}
	removeAll(t, u.Env)
	return after
}

// looks holds when the objects of a fleet have the look of another.
func looks(s *env.Env, want string) env.Condition {
	differ := "not known"
	return func(ctx context.Context) (string, error) {
		have, err := look(ctx, s)
		if err == nil { // at the end of ctx the last difference is told
			differ = cmp.Diff(want, have)
		}
		return differ, err
	}
}

// joinHeld is the annotation of a machine that is created while a roll holds its Nodes against the cluster autoscaler.
const joinHeld = "machinist.dev/scale-down-disabled-on-join"

// look returns what the objects of a fleet say, without names, times and texts for people: one text for all that say
// the same.
func look(ctx context.Context, s *env.Env) (string, error) {
	texts := map[string]bool{}
	add := func(kind string, of metav1.Object, status any) {
		annotations := maps.Clone(of.GetAnnotations())
		maps.DeleteFunc(annotations, func(key, _ string) bool {
			return ofCluster(key) ||
				key == v1alpha1.MachineUIDAnnotation || // versions before it did not write it, and its absence is no reason to write
				key == joinHeld // the last machines lack it if no old one is left when they are created
		})
		for key := range annotations {
			if !strings.HasPrefix(key, "deployment.kubernetes.io/") {
				annotations[key] = "any" // names, durations and what was applied
			}
		}
		labels := slices.DeleteFunc(slices.Sorted(maps.Keys(of.GetLabels())), ofCluster)
		texts[kind+" "+text(map[string]any{
			"annotations": annotations, "labels": labels, "finalizers": of.GetFinalizers(), "status": status,
		})] = true
	}
	api, all := s.Machines.MachineV1alpha1(), metav1.ListOptions{}
	d, err := api.MachineDeployments(s.Namespace).Get(ctx, "workers", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	add("deployment", d, d.Status)
	sets, err := api.MachineSets(s.Namespace).List(ctx, all)
	if err != nil {
		return "", err
	}
	for i := range sets.Items {
		add("set of "+sets.Items[i].Spec.Template.Spec.Class.Name, &sets.Items[i], sets.Items[i].Status)
	}
	list, err := api.Machines(s.Namespace).List(ctx, all)
	if err != nil {
		return "", err
	}
	for i := range list.Items {
		add("machine", &list.Items[i], list.Items[i].Status)
	}
	nodes, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: env.Label + "=" + s.Namespace})
	if err != nil {
		return "", err
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		add("node", n, map[string]any{"conditions": n.Status.Conditions, "taints": n.Spec.Taints, "unschedulable": n.Spec.Unschedulable})
	}
	return strings.Join(slices.Sorted(maps.Keys(texts)), "\n"), nil
}

// ofCluster reports whether a key of a Node is of a controller of Kubernetes, which sets it at any time.
func ofCluster(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return slices.Contains([]string{"kubernetes.io", "beta.kubernetes.io", "node.alpha.kubernetes.io", "volumes.kubernetes.io"}, domain)
}

// text returns the JSON of a value without the fields that differ between two runs.
func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		return err.Error()
	}
	data, err = json.MarshalIndent(blank(plain), "", " ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// differs are the fields that differ between two runs. The state of a driver is missing where the answer to the creation of a
// VM was lost.
var differs = []string{"lastUpdateTime", "lastTransitionTime", "lastHeartbeatTime", "observedGeneration", "message", "description", "lastKnownState", "addresses"}

// blank removes these fields, and sorts lists.
func blank(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if v[key] = blank(inner); slices.Contains(differs, key) {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			v[i] = blank(v[i])
		}
		slices.SortFunc(v, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return value
}

// unevicted are the pods of an environment that are gone without an eviction.
type unevicted struct {
	mu   sync.Mutex
	pods []string
}

// watchPods watches the pods of an environment from now on.
func watchPods(t *testing.T, s *env.Env) *unevicted {
	t.Helper()
	l := &unevicted{}
	events, err := s.Client.CoreV1().Pods(s.Namespace).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var watching sync.WaitGroup
	watching.Go(func() {
		for e := range events.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && e.Type == apiwatch.Deleted {
				l.note(p)
			}
		}
	})
	t.Cleanup(func() { events.Stop(); watching.Wait() })
	return l
}

func (l *unevicted) note(p *corev1.Pod) {
	if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Reason == "EvictionByEvictionAPI"
	}) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods = append(l.pods, p.Name+" on "+p.Spec.NodeName)
}

// all returns the pods so far.
func (l *unevicted) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.pods)
}
