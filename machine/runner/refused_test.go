// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// shown is a Reader of its objects, with any index.
type shown []machinist.Object

func (s shown) Get(_ context.Context, o machinist.Object) (machinist.Object, error) {
	for _, own := range s {
		if reflect.TypeOf(own) == reflect.TypeOf(o) && own.GetName() == o.GetName() {
			return own, nil
		}
	}
	return nil, nil
}

func (s shown) List(_ context.Context, o machinist.Object, _, _ string) (all []machinist.Object, _ error) {
	for _, own := range s {
		if reflect.TypeOf(own) == reflect.TypeOf(o) {
			all = append(all, own)
		}
	}
	return all, nil
}

// unhealthy returns a machine in a phase, with a set and a Node that has not been ready for three hours.
func unhealthy(phase v1alpha1.MachinePhase) (*v1alpha1.Machine, *corev1.Node, *v1alpha1.MachineSet) {
	long := metav1.NewTime(time.Now().Add(-3 * time.Hour).Truncate(time.Second))
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "s"}, Spec: v1alpha1.MachineSetSpec{Replicas: 1}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "node", UID: "node", Labels: map[string]string{v1alpha1.MachineNameLabelKey: "m"}, Annotations: map[string]string{v1alpha1.MachineUIDAnnotation: "u"},
	}}
	node.Spec.ProviderID = "cloud:///1"
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: long}}
	m := newMachine()
	m.Finalizers, m.Spec.ProviderID, m.ResourceVersion, m.CreationTimestamp = []string{v1alpha1.MCMFinalizerName}, "cloud:///1", "1", long
	m.Labels, m.Annotations = map[string]string{v1alpha1.NodeLabelKey: "node"}, map[string]string{v1alpha1.MachinePriority: "3"}
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))}
	m.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: long}
	m.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateProcessing, LastUpdateTime: long}
	return m, node, set
}

// TestReconcile_NodeCannotBeWritten_HealthIsJudged has a webhook that refuses the finalizer of a Node.
func TestReconcile_NodeCannotBeWritten_HealthIsJudged(t *testing.T) {
	for phase, want := range map[v1alpha1.MachinePhase]v1alpha1.MachinePhase{
		v1alpha1.MachineRunning: v1alpha1.MachineUnknown, v1alpha1.MachinePending: v1alpha1.MachineFailed,
	} {
		m, node, set := unhealthy(phase)
		clients, target := fake.NewClientset(m), draintest.New(draintest.Options{})
		require.NoError(t, target.Add(node))
		target.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "patch", Resource: "nodes"})
		executor := &Executor{
			Reader: shown{m, node, set}, Requests: client.New(clients, target.Client()), Driver: drivertest.NewCloud(drivertest.CloudOptions{}), Policy: machine.DefaultPolicy(),
		}
		_, err := executor.Reconcile(t.Context(), key)
		require.ErrorContains(t, err, "update node node: finalizer")
		stored, err := clients.MachineV1alpha1().Machines("n").Get(t.Context(), "m", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, want, stored.Status.CurrentStatus.Phase)
	}
}

// permissive is a Guard that permits everything.
type permissive struct{ asked, revoked int }

func (g *permissive) Settle(context.Context, *v1alpha1.Machine, bool) {}
func (g *permissive) Revoke(*v1alpha1.Machine)                        { g.revoked++ }
func (g *permissive) Ask(context.Context, *v1alpha1.Machine, bool, []*v1alpha1.Machine) machinist.Hold {
	g.asked++
	return machinist.Hold{}
}

// TestPermit_FailureIsNotWritten_ReturnedWithTheRecovery has a machine whose Node recovers after the write of phase
// Failed was lost.
func TestPermit_FailureIsNotWritten_ReturnedWithTheRecovery(t *testing.T) {
	m, node, set := unhealthy(v1alpha1.MachineUnknown)
	node.Finalizers, m.Status.Conditions = []string{v1alpha1.NodeFinalizerName}, node.Status.Conditions
	clients, target, guard, lost := fake.NewClientset(m), draintest.New(draintest.Options{}), &permissive{}, true
	require.NoError(t, target.Add(node))
	clients.PrependReactor("update", "machines", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		return lost, nil, context.DeadlineExceeded
	})
	executor := &Executor{Reader: shown{m, node, set}, Requests: client.New(clients, target.Client()), Driver: drivertest.NewCloud(drivertest.CloudOptions{}), Guard: guard}
	executor.Policy = machine.DefaultPolicy()
	_, err := executor.Reconcile(t.Context(), key)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Positive(t, guard.asked)
	group := executor.memory.Get(m).permit
	require.NotEmpty(t, group)

	lost, node.Status.Conditions = false, []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = executor.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, 1, guard.revoked)
	_, refused := executor.permits().AcquireWithin(1, group, "another", time.Now())
	require.Nil(t, refused)
}

func TestPermit_ReaderShowsTheFailure_IsForgotten(t *testing.T) {
	m := newMachine()
	m.Status.CurrentStatus.Phase = v1alpha1.MachineFailed
	executor, _ := newExecutor(m)
	executor.memory.Change(m, func(kept *memory) { kept.permit = "group" })
	_, err := executor.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, executor.memory.Get(m).permit)
}

// uncreated are Requests whose Create returns its argument with an error, as those of controller-runtime leave it.
type uncreated struct{ machinist.Requests }

func (uncreated) Create(_ context.Context, o machinist.Object) (machinist.Object, error) {
	return o, errors.New("forbidden")
}

func TestToken_CreationFails_NoVMGetsIt(t *testing.T) {
	m, cloud := newMachine(), drivertest.NewCloud(drivertest.CloudOptions{})
	m.Finalizers = []string{v1alpha1.MCMFinalizerName}
	class, secret := cloud.MachineClass("n", "c"), cloud.Secret("n", "c")
	class.Finalizers = []string{v1alpha1.MCMFinalizerName}
	clients := fake.NewClientset(m)
	for range 4 {
		stored, err := clients.MachineV1alpha1().Machines("n").Get(t.Context(), "m", metav1.GetOptions{})
		require.NoError(t, err)
		executor := &Executor{Reader: shown{stored, class, secret}, Requests: uncreated{client.New(clients, draintest.New(draintest.Options{}).Client())}, Driver: cloud, Policy: machine.DefaultPolicy()}
		for range 2 {
			_, err = executor.Reconcile(t.Context(), key)
		}
		require.ErrorContains(t, err, "forbidden")
	}
	require.Empty(t, cloud.Snapshot().VMs)
}

// silent are Requests that return neither an object nor an error.
type silent struct{ machinist.Requests }

func (silent) Get(context.Context, machinist.Object) (machinist.Object, error) { return nil, nil }
func (silent) Update(context.Context, machinist.Object, string) (machinist.Object, error) {
	return nil, nil
}
func (silent) Delete(context.Context, machinist.Object, bool) error { return nil }

func TestRequests_NoObject_Error(t *testing.T) {
	executor, _ := newExecutor(newMachine())
	executor.Requests = silent{}
	_, err := executor.Reconcile(t.Context(), key)
	require.Error(t, err)
	p := &pass{Executor: executor}
	p.observe(t.Context(), newMachine())
	_, err = p.unchanged(t.Context())
	require.Error(t, err)
	require.Error(t, p.delete(t.Context(), machinist.Delete{Object: newMachine()}))
}

func TestDelete_CreatedAgainAtOnce_PassEnds(t *testing.T) {
	executor, clients := newExecutor(newMachine())
	clients.PrependReactor("get", "machines", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		again := newMachine()
		again.UID = "again"
		return true, again, nil
	})
	p := &pass{Executor: executor, key: key}
	p.observe(t.Context(), newMachine())
	require.NoError(t, p.delete(t.Context(), machinist.Delete{Object: newMachine()}))
	require.Nil(t, p.in.Machine, "its VM is another one")
}

// TestFinalizers_UserThatTheReaderLacks_LookedForAgain has a machine that no event may ever show: it may be deleted
// while a watch is broken.
func TestFinalizers_UserThatTheReaderLacks_LookedForAgain(t *testing.T) {
	class := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "c", UID: "c", Finalizers: []string{v1alpha1.MCMFinalizerName}, DeletionTimestamp: &metav1.Time{Time: time.Now()},
	}}
	f := &Finalizers{Reader: shown{class}, Requests: client.New(fake.NewClientset(class, newMachine()), nil)}
	next, err := f.ReconcileClass(t.Context(), types.NamespacedName{Namespace: "n", Name: "c"})
	require.NoError(t, err)
	require.NotZero(t, next)
}

// TestShard_ClassAndMachineLeave_ObserversForgetThem tells who keeps the holds of an object that they are over.
func TestShard_ClassAndMachineLeave_ObserversForgetThem(t *testing.T) {
	class, m, forgotten := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}, newMachine(), 0
	f := &Finalizers{Reader: shown{class}, Requests: silent{}, Shard: "blue", Decided: func(_ types.NamespacedName, o metav1.Object, _ machine.Decision) {
		if o, _ := o.(*v1alpha1.MachineClass); o == nil {
			forgotten++
		}
	}}
	_, err := f.ReconcileClass(t.Context(), types.NamespacedName{Namespace: "n", Name: "c"})
	require.NoError(t, err)
	executor, _ := newExecutor(m)
	executor.Shard, executor.Decided = "blue", func(_ types.NamespacedName, m *v1alpha1.Machine, _ machine.Decision, _ error) {
		if m == nil {
			forgotten++
		}
	}
	executor.memory.Change(m, func(kept *memory) { kept.permit = "group" })
	_, err = executor.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, executor.memory.Get(m).permit)
	require.Equal(t, 2, forgotten)
}
