// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// stub is a Reader of one machine and no Node. It has no class and no set.
type stub struct {
	machine *v1alpha1.Machine
	target  bool
	classes error // that reading a class returns
}

func (s *stub) Get(_ context.Context, o machinist.Object) (machinist.Object, error) {
	switch o.(type) {
	case *v1alpha1.Machine:
		if s.machine != nil {
			return s.machine, nil
		}
	case *v1alpha1.MachineClass:
		return nil, s.classes
	case *corev1.Node:
		if !s.target {
			return nil, machine.ErrNoTarget
		}
	}
	return nil, nil
}

func (s *stub) List(_ context.Context, o machinist.Object, _, _ string) ([]machinist.Object, error) {
	if _, machines := o.(*v1alpha1.Machine); machines {
		return nil, nil
	}
	return nil, machine.ErrNoTarget
}

func newMachine() *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m", UID: "u"},
		Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "c"}},
	}
}

// key is the key of newMachine.
var key = types.NamespacedName{Namespace: "n", Name: "m"}

// newExecutor returns an Executor that reads one machine, and the clientset to which it writes. The
// clientset has the machine.
func newExecutor(m *v1alpha1.Machine) (*Executor, *fake.Clientset) {
	clients := fake.NewClientset(m)
	return &Executor{Reader: &stub{machine: m}, Requests: client.New(clients, nil), Driver: drivertest.NewCloud(drivertest.CloudOptions{})}, clients
}

// TestReconcile_WriteWithoutEffect_EndsWithAnError has an API server that accepts the finalizer of a
// machine and does not store it, so that every decision has the same action.
func TestReconcile_WriteWithoutEffect_EndsWithAnError(t *testing.T) {
	stored, writes := newMachine(), 0
	executor, clients := newExecutor(stored)
	clients.PrependReactor("*", "machines", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
		if a.GetVerb() == "update" || a.GetVerb() == "patch" {
			writes++
		}
		return true, stored.DeepCopy(), nil
	})
	_, err := executor.Reconcile(t.Context(), key)
	require.ErrorIs(t, err, errNotSettled)
	require.Equal(t, maxSteps, writes)
}

// endingDriver ends the context of its caller in a deletion.
type endingDriver struct {
	driver.Driver
	end context.CancelFunc
}

func (d endingDriver) DeleteMachine(context.Context, *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	d.end()
	return &driver.DeleteMachineResponse{}, nil
}

// TestCall_ContextEndsInTheDeletionOfTheVM_FinalizerStays has a process that ends while a VM is deleted. The
// Node may have joined during the call: the next process looks for it.
func TestCall_ContextEndsInTheDeletionOfTheVM_FinalizerStays(t *testing.T) {
	m := newMachine()
	m.Spec.ProviderID, m.Finalizers, m.DeletionTimestamp = "cloud:///1", []string{v1alpha1.MCMFinalizerName}, &metav1.Time{Time: time.Now()}
	m.Status.CurrentStatus.Phase, m.CreationTimestamp = v1alpha1.MachineTerminating, metav1.NewTime(time.Now().Add(-time.Hour))
	ctx, end := context.WithCancel(t.Context())
	executor, clients := newExecutor(m)
	executor.Driver = endingDriver{end: end}
	p := &pass{Executor: executor}
	p.observe(ctx, m)
	p.in.Class = machine.ClassView{Looked: true, Class: &v1alpha1.MachineClass{}}
	require.Error(t, p.call(ctx, machine.CallDriver{Operation: driver.OpDeleteMachine}))
	for _, a := range clients.Actions() {
		require.Equal(t, "get", a.GetVerb())
	}
	u, _ := machine.Decide(p.in, machine.Policy{}, time.Now()).Action.(machinist.Update)
	require.Empty(t, u.Object.(*v1alpha1.Machine).Finalizers, "it would have been removed") //nolint:forcetypeassert // only in a test
}

// TestRemember_MachineIsGone_TokenIsNotKept ends a pass after the Reader has lost its machine. The memory
// with the bootstrap token must not come back.
func TestRemember_MachineIsGone_TokenIsNotKept(t *testing.T) {
	reader, m := &stub{machine: newMachine()}, newMachine()
	p := &pass{Executor: &Executor{Reader: reader}, in: machine.Observation{Machine: m}, kept: memory{token: &corev1.Secret{}}}
	p.remember(t.Context(), m)
	require.NotNil(t, p.memory.Get(m).token)
	reader.machine = nil
	p.remember(t.Context(), m)
	require.Nil(t, p.memory.Get(m).token)
}

// forgotten is a DrainObserver that records the Nodes whose drain has ended before its outcome.
type forgotten []string

func (*forgotten) Observe(drain.Progress) {}

func (f *forgotten) Forget(node string) { *f = append(*f, node) }

// TestReconcile_OtherMachineOfTheName_DrainAndPermitEnd has a machine that was deleted and created again
// without a pass in between.
func TestReconcile_OtherMachineOfTheName_DrainAndPermitEnd(t *testing.T) {
	executor, _ := newExecutor(newMachine())
	before, drains := newMachine(), &forgotten{}
	before.UID, executor.Drains = "before", drains
	_, refused := executor.permits().AcquireWithin(1, "group", "before", time.Now())
	require.Nil(t, refused)
	executor.memory.Change(before, func(kept *memory) {
		kept.permit, kept.drain = "group", &drainMemory{reported: drain.Decision{Node: "node"}}
	})
	_, err := executor.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, forgotten{"node"}, *drains)
	_, refused = executor.permits().AcquireWithin(1, "group", "another", time.Now())
	require.Nil(t, refused)
}

// TestReconcile_NoDrain_NothingIsKeptOfIt asserts that a fleet of machines that run keeps no memory of drains, which
// is most of the memory of a machine.
func TestReconcile_NoDrain_NothingIsKeptOfIt(t *testing.T) {
	m := newMachine()
	executor, _ := newExecutor(m)
	for _, drain := range []*drainMemory{nil, {asked: time.Unix(1, 0)}} {
		executor.memory.Change(m, func(kept *memory) { kept.drain = drain })
		_, err := executor.Reconcile(t.Context(), key)
		require.NoError(t, err)
		require.NotZero(t, executor.memory.Get(m).first)
		require.Equal(t, drain, executor.memory.Get(m).drain)
	}
}

// TestReconcile_Panics_MemoryIsDropped checks that what may have caused a panic is not used again. A lost
// drain state is found again.
func TestReconcile_Panics_MemoryIsDropped(t *testing.T) {
	m := newMachine()
	executor, _ := newExecutor(m)
	executor.Decided = func(types.NamespacedName, *v1alpha1.Machine, machine.Decision, error) { panic("bad") }
	executor.memory.Change(m, func(kept *memory) { kept.drain = &drainMemory{asked: time.Unix(1, 0)} })
	require.Panics(t, func() { _, _ = executor.Reconcile(t.Context(), key) })
	require.Zero(t, executor.memory.Get(m).drain)
}

// TestObserveNode_MissingInTheCache_IsReadBeforeTheDeletion asserts that a deletion finds a Node which joined
// just before it.
func TestObserveNode_MissingInTheCache_IsReadBeforeTheDeletion(t *testing.T) {
	target := draintest.New(draintest.Options{})
	require.NoError(t, target.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}))
	p := &pass{Executor: &Executor{Reader: &stub{target: true}, Requests: client.New(nil, target.Client())}}
	m := newMachine()
	m.Labels = map[string]string{v1alpha1.NodeLabelKey: "node"}
	require.Nil(t, p.observeNode(t.Context(), m).Node, "the cache is enough for a machine that stays")
	m.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	view := p.observeNode(t.Context(), m)
	require.NotNil(t, view.Node)
	require.True(t, view.Looked)
}

// TestDrain_NewDrain_StartsWithEmptyState checks that the state of a drain is not used for another drain.
func TestDrain_NewDrain_StartsWithEmptyState(t *testing.T) {
	cluster, node := draintest.New(draintest.Options{}), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	require.NoError(t, cluster.Add(node))
	p := &pass{Executor: &Executor{Reader: drainrunner.NewClient(cluster.Client()), Target: cluster.Client()}}
	now := time.Now()
	before := now.Add(-time.Hour)
	p.in = machine.Observation{
		Node: machine.NodeView{Looked: true, Node: node}, Drain: machine.DrainView{Started: before, State: drain.State{Started: before}},
	}
	do := machine.DrainNode{NodeName: "n", Started: before}
	require.NoError(t, p.drain(t.Context(), do))
	require.Equal(t, before, p.in.Drain.State.Started)
	do.Started = now
	require.NoError(t, p.drain(t.Context(), do))
	require.True(t, p.in.Drain.State.Started.After(before))
	require.Equal(t, now, p.in.Drain.Started)
}

func TestExecutor_NothingSet_Error(t *testing.T) {
	_, err := new(Executor).Reconcile(t.Context(), key)
	require.ErrorContains(t, err, "no Driver")
	_, err = new(Finalizers).ReconcileClass(t.Context(), key)
	require.ErrorContains(t, err, "no Reader")
	_, err = new(Finalizers).ReconcileSecret(t.Context(), key)
	require.ErrorContains(t, err, "no Reader")
	_, err = Observe(t.Context(), nil, key)
	require.ErrorContains(t, err, "no Reader")
	_, err = NewInformers(Factories{})
	require.ErrorContains(t, err, "no Control")
	require.Empty(t, Affected(t.Context(), nil, nil, nil))
	require.Empty(t, AffectedClasses(t.Context(), nil, nil, nil))
	require.Empty(t, AffectedSecrets(t.Context(), nil, nil, nil))
	require.Zero(t, new(Executor).SiblingsOf(t.Context(), nil))
	_, exists := new(Executor).Latest(nil)
	require.False(t, exists)
	require.Error(t, new(Informers).OnChange(nil))
	none, err := Trim((*corev1.Pod)(nil))
	require.NoError(t, err)
	require.Nil(t, none)
}

// TestNodes_DeletedForAMachine_TheNextOfItsNameKnows has a Reader that still has the Node of a deleted machine
// when a machine of its name is created. That Node is not the one of another VM.
func TestNodes_DeletedForAMachine_TheNextOfItsNameKnows(t *testing.T) {
	node := func(name string, uid types.UID, version string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, ResourceVersion: version}}
	}
	executor := &Executor{Reader: &stub{target: true}}
	first, next := &pass{Executor: executor}, &pass{Executor: executor}
	first.in.Node.Node = node("m", "1", "1")
	first.nodeGone()
	require.Nil(t, next.newest(node("m", "1", "1")))
	require.NotNil(t, next.newest(node("m", "2", "3")), "the Node of its own VM")

	first.wroteNode(node("n", "3", "7"))
	late := node("n", "3", "6")
	require.Equal(t, "7", next.newest(late).ResourceVersion)
	executor.forget(t.Context(), key) // the Reader has no Node
	require.Equal(t, late, next.newest(late), "nothing is kept of a Node that does not exist")
}

// settled is a Guard that counts the passes.
type settled struct {
	Guard
	passes int
}

func (s *settled) Settle(context.Context, *v1alpha1.Machine, bool) { s.passes++ }

// TestReconcile_OtherShard_OnlyTheGuardKnows asserts that a machine of another shard counts for the guard, and
// costs no request.
func TestReconcile_OtherShard_OnlyTheGuardKnows(t *testing.T) {
	m, guard := newMachine(), &settled{}
	m.Labels = map[string]string{v1alpha1.ShardLabelKey: "green"}
	executor, clients := newExecutor(m)
	executor.Guard, executor.Shard = guard, "blue"
	_, err := executor.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, 1, guard.passes)
	require.Empty(t, clients.Actions())
}

// TestReconcile_HoldLastsTwoSeconds_IsInTheStatus has a hold that no decision records by itself. The Executor
// remembers since when it lasts.
func TestReconcile_HoldLastsTwoSeconds_IsInTheStatus(t *testing.T) {
	m, clock := newMachine(), clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	m.Finalizers, m.Status.LastOperation.Type = []string{v1alpha1.MCMFinalizerName}, v1alpha1.MachineOperationCreate
	executor, clients := newExecutor(m)
	executor.Reader, executor.Clock = &stub{machine: m, classes: errIncomplete}, clock
	for _, want := range []int{0, 1} {
		_, err := executor.Reconcile(t.Context(), key)
		require.NoError(t, err)
		stored, err := clients.MachineV1alpha1().Machines("n").Get(t.Context(), "m", metav1.GetOptions{})
		require.NoError(t, err)
		require.Len(t, stored.Status.Conditions, want, "after %s", clock.Now())
		clock.Step(2 * time.Second)
	}
}
