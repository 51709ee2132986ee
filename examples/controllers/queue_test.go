// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestLoop_ConflictJoinedWithAnotherError_ErrorIsReported checks that a conflict alone is not
// reported, and that an error joined with it is.
func TestLoop_ConflictJoinedWithAnotherError_ErrorIsReported(t *testing.T) {
	resource := schema.GroupResource{Resource: "machines"}
	conflict := apierrors.NewConflict(resource, "m", errors.New("later"))
	forbidden := apierrors.NewForbidden(resource, "m", errors.New("no"))
	for name, tt := range map[string]struct {
		err  error
		told bool
	}{
		"a conflict":                   {conflict, false},
		"a wrapped conflict":           {fmt.Errorf("status: %w", conflict), false},
		"conflicts":                    {errors.Join(conflict, fmt.Errorf("update: %w", conflict)), false},
		"a conflict of a cordon":       {fmt.Errorf("drain: cordon node n: %w", conflict), false},
		"forbidden":                    {forbidden, true},
		"a conflict, then forbidden":   {errors.Join(conflict, forbidden), true},
		"forbidden, then a conflict":   {errors.Join(forbidden, conflict), true},
		"forbidden, deep in the tree":  {fmt.Errorf("pass: %w", errors.Join(errors.Join(conflict), fmt.Errorf("%w: %w", conflict, forbidden))), true},
		"a conflict and another error": {errors.Join(conflict, errors.New("disk full")), true},
	} {
		t.Run(name, func(t *testing.T) {
			var told []error
			cfg := Config{Clock: clock.RealClock{}, Observe: func(n Note) { told = append(told, n.Err) }}
			cfg.newQueue = func(kind string) workqueue.TypedRateLimitingInterface[cache.ObjectName] {
				return newQueue(kind, cfg.Clock, nil)
			}
			l := newLoop(&cfg, "machine", func(context.Context, cache.ObjectName) (time.Time, error) { return time.Time{}, tt.err })
			defer l.queue.ShutDown()
			l.queue.Add(cache.NewObjectName("n", "m"))
			require.True(t, l.next(t.Context()))
			require.Equal(t, tt.told, len(told) == 1)
			require.Equal(t, 1, l.queue.NumRequeues(cache.NewObjectName("n", "m")))
			if tt.told {
				require.Equal(t, tt.err, told[0])
			}
		})
	}
}

// TestMachineDeployment_ApplyFails_LastIsTheFailedAction checks that a Node that cannot be written
// stops no other action, and that no Node is written after another failure.
func TestMachineDeployment_ApplyFails_LastIsTheFailedAction(t *testing.T) {
	_, machines := machinetest.New(draintest.Options{})
	target := draintest.New(draintest.Options{})
	var marks []machinist.Action
	for _, name := range []string{"node-1", "node-2"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.NoError(t, target.Add(node))
		edited := node.DeepCopy()
		edited.Labels = map[string]string{"a": "b"}
		marks = append(marks, machinist.Update{Before: node, Object: edited, Unchanged: true})
	}
	target.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "patch", Resource: "nodes", Times: 1})
	r := &machineDeploymentReconciler{cfg: &Config{SetClient: machines, Target: target.Client(), Clock: clock.RealClock{}, parallel: 1}}
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d", UID: "u"}}
	actions := append([]machinist.Action{machinist.Create{Object: &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}}}}, marks...)
	marked := func() (names []string) {
		nodes, err := target.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"})
		require.NoError(t, err)
		for _, n := range nodes.Items {
			names = append(names, n.Name)
		}
		return names
	}

	last, failed := r.apply(t.Context(), d, actions)
	require.Equal(t, marks[1], last)
	require.True(t, apierrors.IsConflict(failed), "%v", failed)
	require.Equal(t, []string{"node-2"}, marked())

	last, failed = r.apply(t.Context(), d, actions)
	require.Equal(t, actions[0], last)
	require.True(t, apierrors.IsAlreadyExists(failed), "%v", failed)
	require.False(t, onlyConflicts(failed))
	require.Equal(t, []string{"node-2"}, marked())
}

func TestCollectFor_Replicas_DelayGrowsWithThem(t *testing.T) {
	for replicas, want := range map[int32]time.Duration{
		-1: 0, 0: 0, 20: 20 * time.Millisecond, 300: 100 * time.Millisecond, 3000: time.Second,
	} {
		require.Equal(t, want, collectFor(&v1alpha1.MachineDeployment{Spec: v1alpha1.MachineDeploymentSpec{Replicas: replicas}}))
		require.Equal(t, want, collectFor(&v1alpha1.MachineSet{Status: v1alpha1.MachineSetStatus{Replicas: replicas}}), "machines that are deleted")
	}
	require.Zero(t, collectFor(nil))
}

// TestAddChanged_OnlyStatus_Waits changes one thing of a set at a time, and looks at whether its pass
// waits. A set of a hundred machines waits 100 ms.
func TestAddChanged_OnlyStatus_Waits(t *testing.T) {
	set := func(change func(*v1alpha1.MachineSet)) *v1alpha1.MachineSet {
		s := &v1alpha1.MachineSet{
			ObjectMeta: metav1.ObjectMeta{
				Name: "s", Generation: 1, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"},
				Finalizers: []string{"a"}, OwnerReferences: []metav1.OwnerReference{{UID: "a", Controller: new(true)}},
			},
			Spec: v1alpha1.MachineSetSpec{Replicas: 100},
		}
		change(s)
		return s
	}
	same := set(func(*v1alpha1.MachineSet) {})
	cases := map[string]struct {
		before, after *v1alpha1.MachineSet
		waits         time.Duration
	}{
		"created":     {nil, same, 0},
		"deleted":     {same, nil, 0},
		"status":      {same, set(func(s *v1alpha1.MachineSet) { s.Status.Replicas, s.ResourceVersion = 1, "2" }), 100 * time.Millisecond},
		"generation":  {same, set(func(s *v1alpha1.MachineSet) { s.Generation = 2 }), 0},
		"labels":      {same, set(func(s *v1alpha1.MachineSet) { s.Labels = nil }), 0},
		"annotations": {same, set(func(s *v1alpha1.MachineSet) { s.Annotations["a"] = "c" }), 0},
		"finalizers":  {same, set(func(s *v1alpha1.MachineSet) { s.Finalizers = nil }), 0},
		"owners":      {same, set(func(s *v1alpha1.MachineSet) { s.OwnerReferences[0].Controller = nil }), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &loop{queue: newQueue("machineset", clock.RealClock{}, nil)}
				defer l.queue.ShutDown()
				addChanged[*v1alpha1.MachineSet](l)(tc.before, tc.after)
				began := time.Now()
				_, _ = l.queue.Get()
				require.Equal(t, tc.waits, time.Since(began))
			})
		})
	}
}
