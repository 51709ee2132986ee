// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset/runner"
)

// lateCache is a Reader that has sets, and no machine yet.
type lateCache []*v1alpha1.MachineSet

func (c lateCache) Get(_ context.Context, o machinist.Object) (machinist.Object, error) {
	switch o.(type) {
	case *v1alpha1.MachineSet:
		for _, set := range c {
			if set.Namespace == o.GetNamespace() && set.Name == o.GetName() {
				return set, nil
			}
		}
	case *corev1.Node:
		return nil, machine.ErrNoTarget
	}
	return nil, nil
}

func (c lateCache) List(_ context.Context, o machinist.Object, _, _ string) (all []machinist.Object, _ error) {
	if _, ok := o.(*v1alpha1.MachineSet); ok {
		for _, set := range c {
			all = append(all, set)
		}
	}
	return all, nil
}

// TestReconcile_CreateResponseUncertain_NoSurplusMachine answers a creation with 503 and Retry-After, or
// AlreadyExists, although it was carried out. client-go repeats such a POST.
func TestReconcile_CreateResponseUncertain_NoSurplusMachine(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "machines"}
	for name, answer := range map[string]error{
		"unavailable":    apierrors.NewServiceUnavailable("503"),
		"already exists": apierrors.NewAlreadyExists(resource, "m"),
		"quota":          apierrors.NewForbidden(resource, "m", fmt.Errorf("exceeded quota")),
		"throttled":      apierrors.NewTooManyRequests("later", 1),
	} {
		for _, happened := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, carried out %t", name, happened), func(t *testing.T) {
				t.Parallel()
				set := workers(3)
				requests, answered := fake.NewSimpleClientset(set), false
				requests.PrependReactor("create", "machines", func(a clienttesting.Action) (bool, runtime.Object, error) {
					if answered {
						return false, nil, nil
					}
					answered = true
					if happened {
						require.NoError(t, requests.Tracker().Add(a.(clienttesting.CreateAction).GetObject().(*v1alpha1.Machine))) //nolint:forcetypeassert // a creation
					}
					return true, nil, answer
				})
				executor := &runner.Executor{Reader: lateCache{set}, Requests: client.New(requests, nil)}
				for range 5 {
					_, _ = executor.Reconcile(t.Context(), keyOf("s"))
				}
				list, err := requests.MachineV1alpha1().Machines("n").List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				require.Len(t, list.Items, 3)
			})
		}
	}
}

// TestReconcile_DeletedSetIsInvalid_MachinesOfTheServerCount has a cache without the machine of a set that is
// being deleted, and whose selector does not select the machine.
func TestReconcile_DeletedSetIsInvalid_MachinesOfTheServerCount(t *testing.T) {
	t.Parallel()
	for name, selector := range map[string]*metav1.LabelSelector{
		"others": {MatchLabels: map[string]string{"app": "other"}}, "unreadable": {MatchLabels: map[string]string{"a b": "c"}}, "none": nil,
	} {
		set := workers(1)
		set.Spec.Selector, set.DeletionTimestamp = selector, &metav1.Time{Time: time.Now()}
		m := worker(set)
		m.Labels = set.Spec.Template.Labels
		requests := fake.NewSimpleClientset(set, m)
		executor := &runner.Executor{Reader: lateCache{set}, Requests: client.New(requests, nil)}
		for range 5 {
			_, err := executor.Reconcile(t.Context(), keyOf("s"))
			require.NoError(t, err, name)
		}
		left, err := requests.MachineV1alpha1().MachineSets("n").Get(t.Context(), "s", metav1.GetOptions{})
		require.NoError(t, err, name)
		require.NotEmpty(t, left.Finalizers, name)
	}
}

func keyOf(set string) types.NamespacedName { return types.NamespacedName{Namespace: "n", Name: set} }

// worker returns a machine of a set.
func worker(set *v1alpha1.MachineSet) *v1alpha1.Machine {
	owner := metav1.NewControllerRef(set, v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m", UID: "uid-m"}}
	m.OwnerReferences = []metav1.OwnerReference{*owner}
	return m
}

// workers returns a set.
func workers(replicas int32) *v1alpha1.MachineSet {
	labels := map[string]string{"app": "w"}
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "s", UID: "uid-s", Generation: 1, Finalizers: []string{v1alpha1.MCMFinalizerName}, Annotations: map[string]string{"a": "b"},
	}}
	set.Spec = v1alpha1.MachineSetSpec{Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}}
	set.Spec.Template = v1alpha1.MachineTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}},
	}
	return set
}

// TestAffected_OnlyStatus_ChangesAreCollected changes one thing of a set at a time. A set of a hundred
// machines collects the changes of its status for 100 ms.
func TestAffected_OnlyStatus_ChangesAreCollected(t *testing.T) {
	same := workers(100)
	with := func(change func(*v1alpha1.MachineSet)) *v1alpha1.MachineSet {
		set := workers(100)
		change(set)
		return set
	}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.MachineSet
		want          time.Duration
	}{
		"created":     {nil, same, 0},
		"deleted":     {same, nil, 0},
		"status":      {same, with(func(s *v1alpha1.MachineSet) { s.Status.Replicas, s.ResourceVersion = 1, "2" }), 100 * time.Millisecond},
		"generation":  {same, with(func(s *v1alpha1.MachineSet) { s.Generation = 2 }), 0},
		"labels":      {same, with(func(s *v1alpha1.MachineSet) { s.Labels = map[string]string{"a": "b"} }), 0},
		"annotations": {same, with(func(s *v1alpha1.MachineSet) { s.Annotations["a"] = "c" }), 0},
		"finalizers":  {same, with(func(s *v1alpha1.MachineSet) { s.Finalizers = nil }), 0},
		"owners":      {same, with(func(s *v1alpha1.MachineSet) { s.OwnerReferences = []metav1.OwnerReference{{UID: "a"}} }), 0},
	} {
		require.Equal(t, map[types.NamespacedName]time.Duration{keyOf("s"): tc.want}, runner.Affected(t.Context(), lateCache{same}, tc.before, tc.after), name)
	}
}

func TestAffected_Machine_ItsSetOrThoseThatMayAdoptIt(t *testing.T) {
	sets := lateCache{workers(20), workers(300)}
	sets[1].Name, sets[1].UID = "s2", "uid-s2"
	first, second := keyOf("s"), keyOf("s2")
	owned := worker(sets[0])
	free := owned.DeepCopy()
	free.OwnerReferences = nil
	require.Equal(t, map[types.NamespacedName]time.Duration{first: 20 * time.Millisecond, second: 150 * time.Millisecond}, runner.Affected(t.Context(), sets, nil, free))
	require.Equal(t, map[types.NamespacedName]time.Duration{first: 20 * time.Millisecond}, runner.Affected(t.Context(), sets, owned, nil))
	require.Len(t, runner.Affected(t.Context(), sets, free, owned), 2)
	heartbeat := owned.DeepCopy()
	heartbeat.ResourceVersion = "2"
	require.Empty(t, runner.Affected(t.Context(), sets, owned, heartbeat))
	owned.OwnerReferences[0].Name = "gone"
	require.Empty(t, runner.Affected(t.Context(), sets, nil, owned))
}

// TestReconcile_RetryOfASettledSet_ListsBeforeTheFirstCreation asserts that a write of the set which is not its
// first proves nothing about the machines of an earlier process.
func TestReconcile_RetryOfASettledSet_ListsBeforeTheFirstCreation(t *testing.T) {
	set := workers(0)
	set.Annotations[v1alpha1.RetryNowAnnotation] = ""
	set.Status.ObservedGeneration = set.Generation // nothing else needs a list
	requests := fake.NewSimpleClientset(set)
	cached := lateCache{set}
	executor := &runner.Executor{Reader: cached, Requests: client.New(requests, nil)}
	_, err := executor.Reconcile(t.Context(), keyOf("s"))
	require.NoError(t, err)
	stored, err := requests.MachineV1alpha1().MachineSets("n").Get(t.Context(), "s", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotContains(t, stored.Annotations, v1alpha1.RetryNowAnnotation)

	grown := stored.DeepCopy()
	grown.Spec.Replicas, grown.Generation, grown.ResourceVersion = 1, 2, "1000"
	require.NoError(t, requests.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("machinesets"), grown, "n"))
	cached[0] = grown
	requests.ClearActions()
	_, err = executor.Reconcile(t.Context(), keyOf("s"))
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(requests.Actions(), func(a clienttesting.Action) bool { return a.Matches("list", "machines") }))
}

func TestExecutor_NothingSet_Error(t *testing.T) {
	_, err := new(runner.Executor).Reconcile(t.Context(), types.NamespacedName{})
	require.ErrorContains(t, err, "no Reader")
	_, err = runner.Observe(t.Context(), nil, types.NamespacedName{})
	require.ErrorContains(t, err, "no Reader")
	_, err = runner.NewInformers(nil, nil)
	require.ErrorContains(t, err, "no factory")
	require.Empty(t, runner.Affected(t.Context(), nil, nil, nil))
}

// staleReader shows what the test sets. Some reads of a machine by its name fail.
type staleReader struct {
	set      *v1alpha1.MachineSet
	machines []*v1alpha1.Machine
	fails    int
}

func (r *staleReader) Get(_ context.Context, o machinist.Object) (machinist.Object, error) {
	switch o.(type) {
	case *v1alpha1.MachineSet:
		return r.set, nil
	case *v1alpha1.Machine:
		if r.fails > 0 {
			r.fails--
			return nil, errors.New("timeout")
		}
		if i := slices.IndexFunc(r.machines, func(m *v1alpha1.Machine) bool { return m.Name == o.GetName() }); i >= 0 {
			return r.machines[i], nil
		}
	case *corev1.Node:
		return nil, machine.ErrNoTarget
	}
	return nil, nil
}

func (r *staleReader) List(_ context.Context, o machinist.Object, _, key string) (all []machinist.Object, _ error) {
	if _, ok := o.(*v1alpha1.Machine); ok && key == "n/uid-s" {
		for _, m := range r.machines {
			all = append(all, m)
		}
	}
	return all, nil
}

// settledSet returns a set whose generation is observed, with n machines that run.
func settledSet(replicas int32, n int) (*v1alpha1.MachineSet, []*v1alpha1.Machine, *fake.Clientset) {
	set := workers(replicas)
	set.Status.ObservedGeneration = 1
	stored, all := []runtime.Object{set}, []*v1alpha1.Machine(nil)
	for i := range n {
		m := worker(set)
		m.Name, m.UID, m.ResourceVersion = fmt.Sprint("m", i), types.UID(fmt.Sprint("uid-m", i)), fmt.Sprint(10+i)
		m.Labels, m.Spec, m.Finalizers = map[string]string{"app": "w"}, set.Spec.Template.Spec, []string{v1alpha1.MCMFinalizerName}
		m.Annotations, m.Status.CurrentStatus.Phase = map[string]string{v1alpha1.MachinePriority: "3"}, v1alpha1.MachineRunning
		stored, all = append(stored, m), append(all, m)
	}
	return set, all, fake.NewSimpleClientset(stored...)
}

// requested returns the names of the machines for which a request was made.
func requested(c *fake.Clientset, verb string) (names []string) {
	for _, a := range c.Actions() {
		if d, ok := a.(interface{ GetName() string }); ok && a.Matches(verb, "machines") {
			names = append(names, d.GetName())
		}
	}
	return names
}

// TestReconcile_OneMachineCannotBeWritten_TheRestIsDone has a webhook that refuses to update a machine to the template.
func TestReconcile_OneMachineCannotBeWritten_TheRestIsDone(t *testing.T) {
	t.Parallel()
	for _, deleted := range []bool{false, true} {
		set, machines, requests := settledSet(2, 1)
		if deleted {
			set.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		machines[0].Spec.NodeTemplateSpec.Labels = map[string]string{"old": "template"}
		set.Annotations = map[string]string{v1alpha1.RetryNowAnnotation: ""}
		requests.PrependReactor("update", "machines", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(v1alpha1.Resource("machines"), "m0", errors.New("a webhook says no"))
		})
		executor := &runner.Executor{Reader: &staleReader{set: set, machines: machines}, Requests: client.New(requests, nil)}
		for range 3 {
			_, err := executor.Reconcile(t.Context(), keyOf("s"))
			require.ErrorContains(t, err, "a webhook says no")
		}
		list, err := requests.MachineV1alpha1().Machines("n").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		stored, err := requests.MachineV1alpha1().MachineSets("n").Get(t.Context(), "s", metav1.GetOptions{})
		require.NoError(t, err)
		require.Contains(t, stored.Annotations, v1alpha1.RetryNowAnnotation, "it is not done yet")
		if deleted {
			require.Equal(t, []string{"m0"}, requested(requests, "delete"))
		} else {
			require.Len(t, list.Items, 2)
		}
	}
}

// TestReconcile_ReadByNameFails_ExpectationStays has a cache that does not show a deletion yet, and a failed read of the
// deleted machine, again and again, when another one becomes the first to delete.
func TestReconcile_ReadByNameFails_ExpectationStays(t *testing.T) {
	t.Parallel()
	set, machines, requests := settledSet(3, 4)
	reader := &staleReader{set: set, machines: machines}
	executor := &runner.Executor{Reader: reader, Requests: client.New(requests, nil)}
	reconcile := func() {
		for range 4 {
			_, err := executor.Reconcile(t.Context(), keyOf("s"))
			require.NoError(t, err)
		}
	}
	reconcile()
	deleted := requested(requests, "delete")
	require.Len(t, deleted, 1)
	other := slices.IndexFunc(machines, func(m *v1alpha1.Machine) bool { return m.Name != deleted[0] })
	machines[other] = machines[other].DeepCopy()
	machines[other].Annotations[v1alpha1.MachinePriority] = "1"
	reader.fails = 1000
	reconcile()
	require.Equal(t, deleted, requested(requests, "delete"))
}

// TestReconcile_SetLeavesItsShardAndComesBack_ListsAgain has a set for which the other shard has created a machine.
func TestReconcile_SetLeavesItsShardAndComesBack_ListsAgain(t *testing.T) {
	t.Parallel()
	set, machines, requests := settledSet(1, 2)
	require.NoError(t, requests.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("machines"), "n", "m1"))
	reader := &staleReader{set: set, machines: machines[:1:1]}
	executor := &runner.Executor{Reader: reader, Requests: client.New(requests, nil)}
	reconcile := func(change func(*v1alpha1.MachineSet)) {
		next := reader.set.DeepCopy()
		change(next)
		next.Generation++
		next.ResourceVersion = fmt.Sprint(1000 + next.Generation)
		require.NoError(t, requests.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("machinesets"), next, "n"))
		reader.set = next
		for range 3 {
			_, err := executor.Reconcile(t.Context(), keyOf("s"))
			require.NoError(t, err)
		}
	}
	reconcile(func(*v1alpha1.MachineSet) {})
	reconcile(func(s *v1alpha1.MachineSet) { s.Labels = map[string]string{v1alpha1.ShardLabelKey: "blue"} })
	require.NoError(t, requests.Tracker().Add(machines[1]))
	reconcile(func(s *v1alpha1.MachineSet) { s.Labels, s.Spec.Replicas = nil, 2 })
	list, err := requests.MachineV1alpha1().Machines("n").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 2)
}
