// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/nodeops"
)

var update = flag.Bool("update", false, "write the golden files anew")

// goldenStory is the text of a drain, step by step. With progress it also has holds and progress.
type goldenStory struct {
	s        drain.State
	p        drain.Policy
	text     strings.Builder
	progress bool
	last     drain.Decision
}

// at makes the step at a time after the start, and adds its text.
func (g *goldenStory) at(after time.Duration, title string, in drain.Observation) drain.Decision {
	at := now.Add(after)
	if !g.progress {
		in.DaemonSets = drain.All(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "owner", UID: "uid-DaemonSet"}})
	}
	var plan drain.Decision
	g.s, plan = drain.Step(g.s, in, g.p, at)
	fmt.Fprintf(&g.text, "# %s %s\n%s", at.Format(time.TimeOnly), title, goldenText(plan))
	if g.progress {
		goldenLines(&g.text, "hold: ", plan.Holds())
		goldenLines(&g.text, "progress: ", drain.Compare(g.last, plan, in.Results, at))
	}
	g.last = plan
	fmt.Fprintln(&g.text)
	return plan
}

// goldenText returns a decision with a line for each thing.
func goldenText(d drain.Decision) string {
	var b strings.Builder
	if d.Reason != "" {
		fmt.Fprintf(&b, "nothing (%s)\n", d.Reason)
	} else if d.Message != "" {
		fmt.Fprintln(&b, d.Message)
	}
	if d.Cordon != nil {
		fmt.Fprintln(&b, d.Cordon)
	}
	goldenLines(&b, "", d.Gates)
	goldenLines(&b, "", d.Rows)
	goldenLines(&b, "", d.Volumes)
	goldenLines(&b, "not evaluated: ", d.NotEvaluated)
	goldenLines(&b, "reached: ", d.Rungs)
	if d.Next != "" {
		fmt.Fprintln(&b, "next:", d.Next, "at", d.NextAt.Format(time.RFC3339))
	}
	if d.Over() {
		fmt.Fprintln(&b, d.Outcome)
	} else {
		fmt.Fprintln(&b, "until something changes, or", d.NextCheck.Format(time.RFC3339))
	}
	return b.String()
}

// goldenLines adds a line for each value.
func goldenLines[T any](b *strings.Builder, prefix string, values []T) {
	for _, value := range values {
		fmt.Fprintf(b, "%s%v\n", prefix, value)
	}
}

// check compares the story with the file of its name.
func (g *goldenStory) check(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(g.text.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), g.text.String())
}

func goldenLabeled(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
}

func goldenCovering(app string) func(*policyv1.PodDisruptionBudget) {
	return selecting(&metav1.LabelSelector{MatchLabels: map[string]string{"app": app}})
}

// goldenRefused returns the results of the requests for these pods.
func goldenRefused(plan drain.Decision, err error, pods ...string) []drain.Result {
	var results []drain.Result
	for _, row := range plan.Rows {
		for _, name := range pods {
			if row.Name == name {
				results = append(results, drain.Result{Row: row, Err: err})
			}
		}
	}
	return results
}

// TestDecide_FourPolicies_ReadAsText has one Node with a pod of every kind and four policies.
func TestDecide_FourPolicies_ReadAsText(t *testing.T) {
	for name, p := range map[string]drain.Policy{
		"cautious":    {Ladder: drain.Ladder{{After: time.Hour, Action: drain.Proceed}}},
		"forced":      drain.ForMachine(now.Add(-time.Second)),
		"unreachable": drain.ForMachine(time.Time{}),
		"cordoned":    {Cordon: nodeops.Cordon{Owner: "drainer", Taint: "example.com/drain", ExcludeFromLoadBalancers: true}},
	} {
		t.Run(name, func(t *testing.T) {
			in := observed(
				newPod("web-1"), newPod("web-2"), newPod("web-3", terminating(20*time.Second, 30)),
				newPod("stuck", withFinalizer, terminating(-time.Hour, 30)), newPod("deaf", terminating(-time.Hour, 1)),
				newPod("debug", unmanaged), newPod("cache", emptyDir), newPod("done", inPhase("Succeeded")),
				newPod("agent", ownedBy("DaemonSet")), newPod("static", mirror), newPod("dns", withPriority(2000000000)),
			)
			in.Node = openNode()
			if name == "unreachable" {
				in.Reachability = drain.NodeReachability{Unreachable: true, Since: now.Add(-time.Hour)}
			}
			g := &goldenStory{p: p}
			plan := g.at(0, "the Node is not cordoned, and budgets were not observed", in)
			in.Node = newNode()
			in.Node.Spec.Taints = []corev1.Taint{{Key: "example.com/drain", Effect: corev1.TaintEffectNoSchedule}}
			in.Results = goldenRefused(plan, budgetRefusal("The disruption budget web needs 3 healthy pods and has 3 currently", 0), "web-2")
			if name == "forced" || name == "unreachable" {
				in.Results = goldenRefused(plan, apierrors.NewTooManyRequests("busy", 7), "web-2")
			}
			g.at(3*time.Second, "the API server refused web-2", in)
			g.check(t, name)
		})
	}
}

func TestStep_Budgets_ReadAsText(t *testing.T) {
	var pods []*corev1.Pod
	for _, name := range []string{"web-1", "web-2", "db-0", "api-1", "api-2", "job-1", "cron-1", "mail-1", "free-1"} {
		app, _, _ := strings.Cut(name, "-")
		pods = append(pods, newPod(name, goldenLabeled(app)))
	}
	pods = append(pods, newPod("mail-2", goldenLabeled("mail"), notReady), newPod("api-3", goldenLabeled("api"), notReady))
	in := observed(pods...)
	in.Budgets = drain.All(
		newBudget("web", 1, goldenCovering("web")),
		exhausted("api", goldenCovering("api"), healthy(1, 2)),
		newBudget("db", 0, goldenCovering("db"), maxUnavailable(intstr.FromInt32(0))),
		newBudget("jobs", 1, goldenCovering("job")), newBudget("batch", 1, selecting(&metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"job"}}},
		})),
		exhausted("cron", goldenCovering("cron"), syncFailed),
		newBudget("mail", 1, goldenCovering("mail"), outdated),
	)
	g := &goldenStory{p: drain.Policy{Ladder: drain.Ladder{{After: 2 * time.Hour, Action: drain.IgnoreBudgets}}}}
	plan := g.at(0, "budgets of all kinds", in)
	in.Results = goldenRefused(plan, nil, "web-1", "free-1", "mail-2")
	g.at(time.Second, "the requests were accepted", in)
	in.Results = nil
	in.Pods.Items = pods[1:8]
	in.Budgets.Items[0] = newBudget("web", 1, goldenCovering("web"), ofVersion("9"))
	g.at(time.Minute, "web-1 has been replaced elsewhere", in)
	g.at(2*time.Hour, "budgets are ignored", in)
	in.Pods.Items = nil
	g.at(2*time.Hour+time.Minute, "all pods are gone", in)
	g.check(t, "budgets")
}

func TestStep_Waves_ReadAsText(t *testing.T) {
	web, dns := newPod("web-1"), newPod("dns-1", withPriority(2000000000))
	in := observed(web, dns, newPod("agent", ownedBy("DaemonSet")))
	in.Budgets = drain.All(newBudget("web", 1))
	g := &goldenStory{p: drain.Policy{}}
	plan := g.at(0, "workloads, then the pods of the system", in)
	in.Results = goldenRefused(plan, nil, "web-1")
	terminating(31*time.Second, 30)(web)
	g.at(time.Second, "the pod of the first wave is terminating", in)
	in.Results = nil
	in.Pods = drain.All(in.Pods.Items[1:]...)
	g.at(32*time.Second, "the first wave is gone", in)
	g.check(t, "waves")
}

func TestStep_Rules_ReadAsText(t *testing.T) {
	drained := func(value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels["cluster.x-k8s.io/drain"] = value }
	}
	in := observed(newPod("web"), newPod("precious", doNotDisrupt("true")), newPod("typo", doNotDisrupt("ture")),
		newPod("tool", drained("skip")), newPod("train", drained("wait-completed")))
	in.Budgets = drain.All[*policyv1.PodDisruptionBudget]()
	rules := map[string]drain.Rule{
		"self": {Action: drain.Ignore, Reason: "Self", Message: "it runs this drain"}, "job": {Action: drain.Wait, Reason: "JobRuns", Until: now.Add(10 * time.Minute)},
		"db": {Wave: 2, Message: "databases go last"}, "fixed": {Action: drain.Block}, "wrong": {Action: drain.Evict}, "quick": {SkipEnd: true},
	}
	for name := range rules {
		in.Pods.Items = append(in.Pods.Items, newPod(name))
	}
	in.Pods.Items = append(in.Pods.Items, newPod("slow", terminating(time.Minute, 60)))
	rules["slow"] = drain.Rule{SkipEnd: true}
	g := &goldenStory{p: drain.Policy{Rules: func(pod *corev1.Pod) drain.Rule { return rules[pod.Name] }, ClusterAPILabels: true, DoNotDisrupt: true, PodSelector: "app", Ladder: drain.Ladder{{After: time.Hour, Action: drain.Proceed}}}}
	in.Pods.Items = append(in.Pods.Items, newPod("other", func(p *corev1.Pod) { p.Labels = nil }))
	for _, rule := range drain.Rules() {
		require.False(t, reflect.ValueOf(g.p).FieldByName(rule).IsZero(), "the story does not apply %s", rule)
	}
	g.at(0, "the rules "+strings.Join(drain.Rules(), ", "), in)
	g.at(time.Hour, "the end", in)
	g.check(t, "rules")
}

func TestStep_Ladders_ReadAsText(t *testing.T) {
	web := newPod("web")
	in := observed(web, newPod("debug", unmanaged))
	in.Budgets = drain.All(newBudget("web", 0))
	g := &goldenStory{p: drain.Policy{
		EscalateFrom: now,
		Ladder: drain.Ladder{
			{After: 10 * time.Minute, Action: drain.IgnoreBudgets},
			{After: 20 * time.Minute, Action: drain.IgnoreBudgets, Grace: 5 * time.Second},
			{After: 40 * time.Minute, Action: drain.ForceDeletePods},
			{After: 50 * time.Minute, Action: drain.GiveUp},
		},
	}}
	g.at(0, "nothing is forced", in)
	g.at(10*time.Minute, "budgets are ignored", in)
	terminating(10*time.Minute+30*time.Second, 30)(web)
	g.at(20*time.Minute, "grace is capped", in)
	g.at(40*time.Minute, "pods are force-deleted", in)
	g.at(50*time.Minute, "the drain gives up", in)
	g.check(t, "ladder")
}

func TestStep_Volumes_ReadAsText(t *testing.T) {
	in := observed(newPod("db-0", volumesOf("data-0")), newPod("db-1", volumesOf("data-1")), newPod("agent", ownedBy("DaemonSet"), volumesOf("spool")))
	in.Budgets = drain.All[*policyv1.PodDisruptionBudget]()
	in.Claims, in.Volumes, in.Attachments = drain.All[*corev1.PersistentVolumeClaim](), drain.All(volumeCSI("pv-data-0", "0"), volumeCSI("pv-data-1", "1")), drain.All[*storagev1.VolumeAttachment]()
	for _, name := range []string{"data-0", "data-1", "spool"} {
		in.Claims.Items = append(in.Claims.Items, volumeClaim(name, "pv-"+name))
		va := volumeAttached("pv-"+name, "node-1")
		va.Name = "csi-" + name
		in.Attachments.Items = append(in.Attachments.Items, va)
	}
	g := &goldenStory{p: drain.Policy{Volumes: drain.VolumePolicy{Wait: true, DetachTimeout: 2 * time.Minute, ReattachTimeout: time.Minute}}}
	plan := g.at(0, "one pod with volumes at a time", in)
	in.Results = goldenRefused(plan, nil, "db-0")
	in.Pods.Items = in.Pods.Items[1:]
	g.at(30*time.Second, "db-0 is gone, its volume is attached", in)
	in.Results = nil
	in.Attachments.Items = in.Attachments.Items[1:]
	g.at(35*time.Second, "its volume is detached", in)
	in.Pods.Items = in.Pods.Items[1:]
	g.at(70*time.Second, "db-1 is gone", in)
	g.at(190*time.Second, "its volume is not detached for two minutes", in)
	g.check(t, "volumes")
}

func TestCompare_Progress_ReadsAsText(t *testing.T) {
	in := onOpenNode(newPod("web-1"), newPod("web-2"), newPod("web-3"), newPod("web-4"), newPod("nameless", func(p *corev1.Pod) { p.Name = "" }))
	g := &goldenStory{progress: true, p: drain.Policy{Volumes: drain.VolumePolicy{Wait: true}, Ladder: drain.Ladder{
		{After: time.Hour, Action: drain.IgnoreBudgets}, {After: 2 * time.Hour, Action: drain.Proceed},
	}}}
	plan := g.at(0, "the first decision, without optional lists", in)
	in.Node = newNode()
	in.Results = slices.Concat(goldenRefused(plan, nil, "web-1"),
		goldenRefused(plan, apierrors.NewForbidden(podsResource, "web-2", errors.New("no right")), "web-2"),
		goldenRefused(plan, errors.New("no"), "web-3"),
		goldenRefused(plan, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web-4", nil), "web-4"))
	g.at(time.Second, "the Node is cordoned, and requests have responses", in)
	in.Results, in.Pods = nil, drain.All(in.Pods.Items[1:4]...)
	g.at(time.Minute, "web-1 is gone", in)
	g.at(time.Hour, "a rung is reached", in)
	g.at(2*time.Hour, "the ladder ends the drain", in)
	g.check(t, "progress")
}

func TestStep_Ends_ReadAsText(t *testing.T) {
	g := &goldenStory{p: drain.Policy{}}
	g.at(0, "nothing was observed", drain.Observation{})
	g.at(time.Second, "the Node is gone", drain.Observation{Looked: true})
	g.at(3*time.Second, "there are no pods", observed())
	in := observed(newPod("web"))
	in.Budgets = drain.All[*policyv1.PodDisruptionBudget]()
	in.Node = openNode()
	g.at(4*time.Second, "a user uncordoned the Node", in)
	g.p.Reassert = true
	g.at(5*time.Second, "the policy cordons it again", in)
	g.p.Ladder = drain.Ladder{{Action: drain.GiveUp}, {Action: drain.Proceed}}
	g.at(6*time.Second, "the ladder contradicts itself", in)

	g.p, in.Node = drain.Policy{Ladder: drain.Ladder{{After: time.Hour, Action: drain.Proceed}}, EvictUnmanaged: true}, newNode()
	in.Pods.Items = nil
	for i := range 40 {
		in.Pods.Items = append(in.Pods.Items, newPod(fmt.Sprintf("web-%02d", i+1), func(p *corev1.Pod) { p.UID = types.UID(p.Name) }))
	}
	g.s = drain.State{}
	drainTo := func(left int) { in.Pods.Items = in.Pods.Items[:left] }
	in.Budgets = drain.All(newBudget("web", 1))
	g.s, _ = drain.Step(g.s, in, g.p, now.Add(10*time.Second))
	drainTo(2)
	in.Budgets = drain.All(exhausted("web"))
	g.at(30*time.Second, "38 of 40 pods are gone", in)
	g.at(time.Hour+10*time.Second, "the drain ends with two pods left", in)
	g.check(t, "ends")
}

func TestDecision_JSON_NoZeroTimesAndNoInternals(t *testing.T) {
	in := observed(newPod("web"))
	in.Budgets = drain.All(exhausted("web"))
	policy := drain.Policy{Ladder: drain.Ladder{{After: time.Hour, Action: drain.IgnoreBudgets}}}
	data, err := json.Marshal(drain.Decide(in, policy, now))
	require.NoError(t, err)
	require.JSONEq(t, `{
		"node": "node-1", "feasible": true, "cordonedAt": "2026-03-01T12:00:00Z", "started": "2026-03-01T12:00:00Z",
		"notEvaluated": ["daemonsets"],
		"pods": [{
			"namespace": "shop", "name": "web", "uid": "uid-web", "action": "wait", "reason": "DisruptionBudget", "message": "budget shop/web allows 0 disruptions: 2 of 3 healthy, 2 desired",
			"budgets": [{"namespace": "shop", "name": "web", "allowed": 0, "healthy": 2, "desired": 2, "expected": 3}],
			"since": "2026-03-01T12:00:00Z", "until": "2026-03-01T12:01:00Z", "next": "IgnoreBudgets", "nextAt": "2026-03-01T13:00:00Z"
		}],
		"ladder": ["after 1h0m0s IgnoreBudgets"], "next": "IgnoreBudgets", "nextAt": "2026-03-01T13:00:00Z", "nextCheck": "2026-03-01T12:01:00Z"
	}`, string(data))

	data, err = json.Marshal(drain.Decision{})
	require.NoError(t, err)
	require.JSONEq(t, `{"node": "", "pods": [], "feasible": true}`, string(data))
}
