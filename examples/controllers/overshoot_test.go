// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety/runner"
)

// overshootHarness runs only the loop that freezes sets, over a set, its deployment, and machines that tests
// create.
type overshootHarness struct {
	*concernHarness
	made    int
	mayFail bool
}

func newOvershootHarness(t *testing.T) *overshootHarness {
	t.Helper()
	r := &overshootHarness{concernHarness: newConcernHarness(t)}
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "d", UID: "d"}, Spec: v1alpha1.MachineDeploymentSpec{Replicas: 2}}
	d.Spec.Strategy.Type = v1alpha1.RecreateMachineDeploymentStrategyType
	controlled := []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "MachineDeployment", Name: "d", UID: "d", Controller: ptr.To(true)}}
	require.NoError(t, r.control.Add(d,
		&v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s", UID: "s", OwnerReferences: controlled}, Spec: v1alpha1.MachineSetSpec{Replicas: 2}},
		&v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "other", UID: "other", OwnerReferences: controlled}}))
	return r
}

func (r *overshootHarness) start() (stop func()) {
	stop = r.concernHarness.start(runner.Overshoot)
	time.Sleep(20 * time.Second) // in the time of the bubble, like all sleeps here
	return stop
}

func (r *overshootHarness) create(n int) {
	for range n {
		r.made++
		_, err := r.cfg.Machines.MachineV1alpha1().Machines(ns).Create(r.t.Context(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
			Name:            fmt.Sprint("m-", r.made),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "MachineSet", Name: "s", UID: "s", Controller: ptr.To(true)}},
		}}, metav1.CreateOptions{})
		require.NoError(r.t, err)
	}
}

func (r *overshootHarness) delete(name string) {
	require.NoError(r.t, r.cfg.Machines.MachineV1alpha1().Machines(ns).Delete(r.t.Context(), name, metav1.DeleteOptions{}))
}

// requireFrozen requires the label and the condition of set and deployment to agree, and that no pass has failed
// unless it may.
func (r *overshootHarness) requireFrozen(frozen bool, when string) {
	r.t.Helper()
	if _, failed := r.told(); !r.mayFail {
		require.Empty(r.t, failed, when)
	}
	api := r.cfg.Machines.MachineV1alpha1()
	s, err := api.MachineSets(ns).Get(r.t.Context(), "s", metav1.GetOptions{})
	require.NoError(r.t, err)
	d, err := api.MachineDeployments(ns).Get(r.t.Context(), "d", metav1.GetOptions{})
	require.NoError(r.t, err)
	for _, o := range []metav1.Object{s, d} {
		require.Equal(r.t, frozen, o.GetLabels()[v1alpha1.FreezeLabelKey] == "True", "%s: label of %s", when, o.GetName())
		require.NotContains(r.t, o.GetAnnotations(), v1alpha1.UnfreezeAnnotation, when)
	}
	require.Equal(r.t, frozen, slices.ContainsFunc(s.Status.Conditions, func(c v1alpha1.MachineSetCondition) bool {
		return c.Type == v1alpha1.MachineSetFrozen && c.Status == v1alpha1.ConditionTrue
	}), "%s: condition of the set", when)
	require.Equal(r.t, frozen, slices.ContainsFunc(d.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
		return c.Type == v1alpha1.MachineDeploymentFrozen && c.Status == v1alpha1.ConditionTrue
	}), "%s: condition of the deployment", when)
}

// requireEvents requires these Events since the last call.
func (r *overshootHarness) requireEvents(events ...string) {
	r.t.Helper()
	var told []string
	for len(r.events.Events) > 0 {
		told = append(told, <-r.events.Events)
	}
	require.Equal(r.t, events, told)
}

// ask annotates the set or the deployment.
func (r *overshootHarness) ask(kind string) {
	patch, api := []byte(`{"metadata":{"annotations":{"safety.machine.sapcloud.io/unfreeze":"true"}}}`), r.cfg.Machines.MachineV1alpha1()
	var err error
	if kind == "set" {
		_, err = api.MachineSets(ns).Patch(r.t.Context(), "s", types.MergePatchType, patch, metav1.PatchOptions{})
	} else {
		_, err = api.MachineDeployments(ns).Patch(r.t.Context(), "d", types.MergePatchType, patch, metav1.PatchOptions{})
	}
	require.NoError(r.t, err)
}

var (
	frozeBoth = []string{
		"Normal FrozeMachineSet SafetyController: Froze MachineSet s due to replica overshooting",
		"Normal FrozeMachineDeployment SafetyController: Froze MachineDeployment d: The number of machines backing MachineSet: s is 4 >= 4 which is the Max-ScaleUp-Limit",
	}
	unfrozeBoth = []string{"Normal UnfrozeMachineSet SafetyController: Unfroze MachineSet s", "Normal UnfrozeMachineDeployment SafetyController: Unfroze MachineDeployment d"}
)

func TestOvershoot_TooManyCreated_FrozenSoonAndUnfrozenOnceRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newOvershootHarness(t)
		r.start()
		r.create(3)
		time.Sleep(2 * time.Minute)
		r.requireFrozen(false, "one more than the replicas")
		r.create(1)
		time.Sleep(5 * time.Second)
		r.requireFrozen(true, "two more than the replicas")
		r.requireEvents(frozeBoth...)
		time.Sleep(5 * time.Minute)
		r.requireEvents()

		r.delete("m-1")
		time.Sleep(2 * time.Minute)
		r.requireFrozen(false, "repaired")
		r.requireEvents(unfrozeBoth...)
	})
}

func TestOvershoot_UnfreezeAnnotation_StaysUntilAnotherMachineIsCreated(t *testing.T) {
	for _, kind := range []string{"set", "deployment"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newOvershootHarness(t)
				stop := r.start()
				r.create(4)
				time.Sleep(5 * time.Second)
				r.requireFrozen(true, "at first")
				r.requireEvents(frozeBoth...)
				r.ask(kind)
				time.Sleep(5 * time.Second)
				r.requireFrozen(false, "an annotation asks for it")
				r.requireEvents(unfrozeBoth...)
				time.Sleep(time.Hour)
				r.requireFrozen(false, "60 looks later")
				stop()
				r.start()
				time.Sleep(time.Hour)
				r.requireFrozen(false, "after a restart")
				r.create(1)
				time.Sleep(5 * time.Second)
				r.requireFrozen(true, "another machine")
			})
		})
	}
}

// TestOvershoot_RequestFails_NextPassCompletes fails each request of a freeze and of its end, one
// at a time, with and without effect.
func TestOvershoot_RequestFails_NextPassCompletes(t *testing.T) {
	for _, fault := range []draintest.FaultKind{draintest.Conflict, draintest.InternalError, draintest.TimeoutAfterEffect} {
		for failing := range 8 {
			t.Run(fmt.Sprint(fault, failing), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newOvershootHarness(t)
					r.mayFail = fault != draintest.Conflict
					r.control.Inject(draintest.Fault{Kind: fault, Verb: "update", Skip: failing, Times: 1})
					r.start()
					r.create(4)
					time.Sleep(2 * time.Minute)
					r.requireFrozen(true, "frozen")
					r.ask("deployment")
					time.Sleep(2 * time.Minute)
					r.requireFrozen(false, "unfrozen")
				})
			})
		}
	}
}

func TestOvershoot_StatusWriteRefused_LabelFreezes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newOvershootHarness(t)
		r.mayFail = true
		r.control.Inject(draintest.Fault{Kind: draintest.InternalError, Subresource: "status"})
		r.start()
		r.create(4)
		time.Sleep(5 * time.Second)
		s, err := r.cfg.Machines.MachineV1alpha1().MachineSets(ns).Get(t.Context(), "s", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "True", s.Labels[v1alpha1.FreezeLabelKey])
		r.control.ClearFaults()
		time.Sleep(2 * time.Minute)
		r.requireFrozen(true, "the status is written")
	})
}

func TestOvershoot_ManyMachinesAdded_OnePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newOvershootHarness(t)
		r.start()
		before, _ := r.told()
		for range 3 {
			r.create(1)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		passes, failed := r.told()
		require.Equal(t, before+1, passes)
		require.Empty(t, failed)
	})
}

func TestOvershoot_CacheShowsOldReplicas_ReadsThemBeforeAFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newOvershootHarness(t)
		ctx, cancel := context.WithCancel(t.Context())
		c := newCaches(r.cfg)
		l := only(r.cfg, c, runner.Overshoot)
		require.NoError(t, c.start(ctx))
		_, err := l.pass(ctx, types.NamespacedName{})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		r.create(9)
		synctest.Wait()
		sets := c.machines.Machine().V1alpha1().MachineSets()
		old, err := sets.Lister().MachineSets(ns).Get("s")
		require.NoError(t, err)
		_, err = r.cfg.Machines.MachineV1alpha1().MachineSets(ns).Patch(ctx, "s", types.MergePatchType, []byte(`{"spec":{"replicas":9}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, sets.Informer().GetIndexer().Update(old)) // it has not heard of the replicas
		_, err = l.pass(ctx, types.NamespacedName{})
		require.NoError(t, err)
		r.requireFrozen(false, "the replicas are as many")
		r.requireEvents()
		l.queue.ShutDown()
		cancel()
		c.shutdown()
	})
}
