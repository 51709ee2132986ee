// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// deploymentNamed returns a deployment as it is.
func deploymentNamed(t *testing.T, s *env.Env, name string) *v1alpha1.MachineDeployment {
	t.Helper()
	d, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return d
}

// setOf returns the only set whose machines get a class.
func setOf(t *testing.T, s *env.Env, class string) *v1alpha1.MachineSet {
	t.Helper()
	list, err := s.Machines.MachineV1alpha1().MachineSets(s.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	sets := slices.DeleteFunc(list.Items, func(set v1alpha1.MachineSet) bool { return set.Spec.Template.Spec.Class.Name != class })
	require.Len(t, sets, 1, "sets with class %s", class)
	return &sets[0]
}

// patchSet patches a set.
func patchSet(t *testing.T, s *env.Env, name, patch string) {
	t.Helper()
	_, err := s.Machines.MachineV1alpha1().MachineSets(s.Namespace).Patch(t.Context(), name, mergePatch, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

// deploymentIs holds when a deployment fits.
func deploymentIs(s *env.Env, name string, fits func(*v1alpha1.MachineDeployment) bool) env.Condition {
	return func(ctx context.Context) (string, error) {
		d, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || !fits(d) {
			return fmt.Sprintf("deployment %s does not fit: %+v", name, d), err
		}
		return "", nil
	}
}

// halfway says that a roll-out has new machines, and some old ones.
func halfway(d *v1alpha1.MachineDeployment) bool {
	st := d.Status
	return observed(d) && st.UpdatedReplicas > 0 && st.Replicas-st.UpdatedReplicas > 1
}

// observed says that the status of a deployment is of its present spec.
func observed(d *v1alpha1.MachineDeployment) bool {
	return d.Status.ObservedGeneration >= d.Generation
}

// progressIs says that a roll-out has come to a status for a reason.
func progressIs(status v1alpha1.ConditionStatus, reason string) func(*v1alpha1.MachineDeployment) bool {
	return func(d *v1alpha1.MachineDeployment) bool {
		return slices.ContainsFunc(d.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
			return c.Type == v1alpha1.MachineDeploymentProgressing && c.Status == status && c.Reason == reason
		})
	}
}

// allRun holds when there are so many machines, and all run.
func allRun(s *env.Env, n int) env.Condition {
	return func(ctx context.Context) (string, error) {
		list, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "the machines", err
		}
		if len(list.Items) != n || slices.ContainsFunc(list.Items, func(m v1alpha1.Machine) bool {
			return m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase != v1alpha1.MachineRunning
		}) {
			return fmt.Sprintf("%d machines, and not %d that run", len(list.Items), n), nil
		}
		return "", nil
	}
}

// allOf requires that there are so many machines, and that one set has them all.
func allOf(t *testing.T, s *env.Env, set *v1alpha1.MachineSet, n int) {
	t.Helper()
	all := machines(t, s)
	require.Len(t, all, n)
	for _, m := range all {
		require.Equal(t, set.UID, controller(&m), "machine %s", m.Name)
	}
}

// controller returns who controls an object.
func controller(o metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.UID
	}
	return ""
}

// arrivals returns the machines in the order of their creation, as a client saw that
// looked on. Each is as it was first.
func arrivals(s *env.Env) []*v1alpha1.Machine {
	return firsts(s, func(*v1alpha1.Machine) bool { return true })
}

// departures returns the machines in the order in which their deletion began. Each
// is as it was then.
func departures(s *env.Env) []*v1alpha1.Machine {
	return firsts(s, func(m *v1alpha1.Machine) bool { return m.DeletionTimestamp != nil })
}

// firsts returns how machines were when they first were so.
func firsts(s *env.Env, so func(*v1alpha1.Machine) bool) (all []*v1alpha1.Machine) {
	seen := map[types.UID]bool{}
	for _, c := range s.AuditLog().Changes {
		if m, ok := c.Object.(*v1alpha1.Machine); ok && so(m) && !seen[m.UID] {
			seen[m.UID] = true
			all = append(all, m)
		}
	}
	return all
}

// namesOf returns the names of machines.
func namesOf(machines []*v1alpha1.Machine) (names []string) {
	for _, m := range machines {
		names = append(names, m.Name)
	}
	return names
}

// lookedAt is for how long a scenario looks whether something happens that must not.
const lookedAt = 2 * time.Second

// passed holds when a time has passed.
func passed(d time.Duration) env.Condition {
	until := time.Now().Add(d)
	return func(context.Context) (string, error) {
		if time.Now().Before(until) {
			return "time", nil
		}
		return "", nil
	}
}

// beheld is what was seen on the Nodes of an environment, by name.
type beheld struct {
	mu          sync.Mutex
	discouraged map[string]bool // it has ever had the taint by which pods go elsewhere if they can
	held        map[string]bool // it has the annotation by which the autoscaler keeps away
	holds       map[string]int  // how often it has got that
}

// behold watches the Nodes of an environment from now on.
func behold(t *testing.T, s *env.Env) *beheld {
	t.Helper()
	b := &beheld{discouraged: map[string]bool{}, held: map[string]bool{}, holds: map[string]int{}}
	events, err := s.Client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{LabelSelector: env.Label + "=" + s.Namespace})
	require.NoError(t, err)
	var watching sync.WaitGroup
	watching.Go(func() {
		for e := range events.ResultChan() {
			if n, ok := e.Object.(*corev1.Node); ok {
				b.note(n)
			}
		}
	})
	t.Cleanup(func() { events.Stop(); watching.Wait() })
	return b
}

func (b *beheld) note(n *corev1.Node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if discouraged(n) {
		b.discouraged[n.Name] = true
	}
	if protected(n) && !b.held[n.Name] {
		b.holds[n.Name]++
	}
	b.held[n.Name] = protected(n)
}

// seen returns whether a Node was ever discouraged, and how often the autoscaler was
// told to keep away.
func (b *beheld) seen(node string) (discouraged bool, holds int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.discouraged[node], b.holds[node]
}

func discouraged(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == v1alpha1.PreferNoScheduleKey && t.Effect == corev1.TaintEffectPreferNoSchedule
	})
}

// unmarked holds when no Node of an environment bears a mark of a roll-out.
func unmarked(s *env.Env) env.Condition {
	return func(ctx context.Context) (string, error) {
		nodes, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: env.Label + "=" + s.Namespace})
		if err != nil {
			return "the nodes", err
		}
		for _, n := range nodes.Items {
			if protected(&n) || discouraged(&n) {
				return fmt.Sprintf("node %s has taints %v and annotations %v", n.Name, n.Spec.Taints, n.Annotations), nil
			}
		}
		return "", nil
	}
}
