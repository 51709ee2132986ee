// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	createFailed = "Cloud provider message - no quota"
	timedOut     = "Machine m failed to join the cluster in 20m0s."
	incomplete   = `the response is incomplete: provider ID "", node name "n"`
	unnamed      = `the response is incomplete: provider ID "simulated:///1", node name ""`
)

// failure adds a call that failed some time ago.
func failure(op driver.Operation, code codes.Code, ago time.Duration, s machine.Presence) change {
	return func(in *machine.Observation) {
		in.VM.Presence, in.VM.Asked, in.VM.SeenAt = s, op, now.Add(-ago)
		in.VM.Failure = machine.CallFailure{Operation: op, Code: code, Message: "no quota", At: now.Add(-ago), Attempts: 1}
	}
}

// found is a VM of which the provider has returned the name, and not whether it is initialized.
var found = vm(machine.VMView{Presence: machine.Present, ProviderID: "simulated:///1", NodeName: "n", SeenAt: now})

var crashed = []change{phase(v1alpha1.MachineCrashLoopBackOff), operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, createFailed, "ResourceExhausted")}

func TestCreation_EachStep_Decision(t *testing.T) {
	pending := `update status of machine m: phase "Pending", Create Processing (VMCreated: Creating machine on cloud provider)`
	noZone := func(in *machine.Observation) {
		capacity := corev1.ResourceList{"cpu": {}, "gpu": {}, "memory": {}}
		in.Class.Class.NodeTemplate = &v1alpha1.NodeTemplate{Capacity: capacity, InstanceType: "t", Region: "r"}
	}
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"VM found: records the provider ID first (M-1)":                  {after(intended, seen(machine.Uninitialized)), "update machine m: provider ID simulated:///1 (VMKnown)"},
		"VM not listed: is initialized (DM-40, DM-49)":                   {after(intended, withID, seen(machine.Absent)), "initialize the VM (VMVanished)"},
		"VM found: is initialized (DM-40)":                               {after(intended, withID, found), "initialize the VM (VMUninitialized)"},
		"VM exists after the creation timeout: Pending":                  {after(intended, old, withID, seen(machine.Present)), pending},
		"Failed: no second creation (DM-02)":                             {after(intended, phase(v1alpha1.MachineFailed), absent), "nothing (Failed: waits until its MachineSet replaces it); waits for machine/m: Failed: waits until its MachineSet replaces it"},
		"creation timeout: Failed":                                       {after(intended, old), `update status of machine m: phase "Failed", Create Failed (CreationTimeout: ` + timedOut + ")"},
		"creation timeout, class never existed: not Failed":              {after(old, noClass), `update status of machine m: phase "", Create Failed (ClassMissing: machine class "small" does not exist)`},
		"response without node name: a failure after the ID is recorded": {after(intended, withID, spec(func(m *v1alpha1.Machine) { m.Labels = nil }), vm(machine.VMView{Presence: machine.Present, ProviderID: "simulated:///1", SeenAt: now})), `update status of machine m: phase "CrashLoopBackOff", Create Failed (ProviderFailed: Cloud provider message - ` + unnamed + ")"},
		"no target cluster: no node name is needed":                      {after(intended, withID, noTarget, spec(func(m *v1alpha1.Machine) { m.Labels = nil }), vm(machine.VMView{Presence: machine.Present, ProviderID: "simulated:///1", Initialized: true})), `update status of machine m: phase "Available", Create Successful (VMCreated: Created machine on cloud provider)`},
		"class not read: waits":                                          {after(func(in *machine.Observation) { in.Class = machine.ClassView{} }), "nothing (ClassMissing: the class was not read); waits for machineclass/small: ClassMissing: the class was not read"},
		"class without finalizer, creation timeout: waits":               {after(withID, old, func(in *machine.Observation) { in.Class.Class.Finalizers = nil }), `update status of machine m: phase "CrashLoopBackOff", Create Failed (ClassUnusable: machine class "small" has no finalizer)`},
		"class missing: is recorded (DM-47)":                             {after(noClass), `update status of machine m: phase "", Create Failed (ClassMissing: machine class "small" does not exist)`},
		"class without zone: is recorded":                                {after(noZone), `update status of machine m: phase "", Create Failed (ClassUnusable: nodeTemplate.zone: Required value: is required in a node template)`},
		"class without zone, Running: nothing":                           {living(v1alpha1.MachineRunning, healthy, copied, noZone), "nothing (NodeReady)"},
		"class missing and recorded: waits":                              {after(noClass, requested(corev1.ConditionFalse, "ClassMissing"), operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, `machine class "small" does not exist`, "")), `nothing (ClassMissing: machine class "small" does not exist); waits for machineclass/small: ClassMissing: machine class "small" does not exist`},
		"never requested, no VM: the intent is recorded":                 {after(absent), `update status of machine m: phase "", Create Processing (NoVM: Creating machine on cloud provider)`},
	})
}

func TestLastKnownState_EachCall_IsStored(t *testing.T) {
	state := func(in *machine.Observation) { in.VM.LastKnownState = "step 2" }
	told := operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed,
		"VM deletion failed due to - no quota. However, will re-try in the next resync. Initiate VM deletion", "")
	for name, in := range map[string]machine.Observation{
		"with a recorded failure (DM-33)": after(append(crashed, failure(driver.OpCreateMachine, codes.ResourceExhausted, time.Minute, machine.NotLooked), state)...),
		"with the complete VM (DM-33)":    after(intended, withID, seen(machine.Present), state),
		"with a deletion":                 after(intended, withID, leaving, seen(machine.Present), noTarget, state),
		"with a failed deletion":          terminating(told, failure(driver.OpDeleteMachine, codes.Internal, time.Second, machine.NotLooked), state),
	} {
		m := statusOf(lawful(t, in, machine.DefaultPolicy()).Action)
		require.NotNil(t, m, name)
		require.Equal(t, "step 2", m.Status.LastKnownState, name)
	}
	call := lawful(t, after(intended, withID, seen(machine.Uninitialized), state), machine.DefaultPolicy()).Action
	require.Equal(t, machine.CallDriver{Operation: driver.OpInitializeMachine, LastKnownState: "step 2"}, call, "the next request has it")
}

// TestCreation_ExistingVM_IsAdopted asserts that a VM whose creation had no response is found,
// adopted and initialized. No second one is created.
func TestCreation_ExistingVM_IsAdopted(t *testing.T) {
	in := after(intended, needsToken, tokens(newToken(1, now.Add(time.Hour))), absent)
	w := newWorld(in)
	w.create = []error{status.Error(codes.AlreadyExists, "it is there")}
	w.initialize = []error{status.Error(codes.Unimplemented, "")}
	for w.in.Machine.Status.CurrentStatus.Phase != v1alpha1.MachinePending {
		require.True(t, w.next(t), w.log())
	}
	for _, call := range []machinist.Action{machine.CallDriver{Operation: driver.OpCreateMachine}, machine.CallDriver{Operation: driver.OpGetMachineStatus}, machine.CallDriver{Operation: driver.OpInitializeMachine}} {
		require.Equal(t, 1, strings.Count(strings.Join(w.did, "\n"), call.String()), w.log())
	}
	require.Equal(t, "simulated:///1", w.in.Machine.Spec.ProviderID)
	require.Equal(t, 5*time.Second, w.now.Sub(now), "the VM is looked for after 5s")
}

func TestDecide_NoTargetCluster_NoNodeActions(t *testing.T) {
	labeled := spec(func(m *v1alpha1.Machine) { m.Labels = map[string]string{v1alpha1.NodeLabelKey: "n"} })
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"bootstrap token: none, the placeholder stays": {after(intended, needsToken, noTarget, absent), "create the VM (NoVM)"},
		"provider ID: required":                        {after(intended, noTarget, vm(machine.VMView{Presence: machine.Present, SeenAt: now})), `update status of machine m: phase "CrashLoopBackOff", Create Failed (ProviderFailed: Cloud provider message - the response is incomplete: provider ID "", node name "")`},
		"label node: ignored (DM-46)":                  {living(v1alpha1.MachineAvailable, noTarget, labeled), "nothing (Available)"},
		"observed Node: ignored":                       {living(v1alpha1.MachineAvailable, sick, func(in *machine.Observation) { in.Node.NoTarget = true }, labeled), "nothing (Available)"},
	})
}

func TestStatus_NoTargetCluster_AddressesAndReadyRecorded(t *testing.T) {
	address := func(ip string) []corev1.NodeAddress {
		return []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
	}
	two := append(address("10.0.0.2"), address("10.0.0.1")...)
	in := after(intended, withID, noTarget)
	in.Machine.Status.Addresses = address("10.0.0.9")
	in.VM = in.VM.After(machine.CallResult{Operation: driver.OpCreateMachine, ProviderID: "simulated:///1", NodeName: "n", Addresses: address("10.0.0.2")}, now, 0)
	in.VM = in.VM.After(machine.CallResult{Operation: driver.OpInitializeMachine, Addresses: two}, now, 0)
	want := slices.Concat([]corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "n"}}, address("10.0.0.1"), address("10.0.0.2"), address("10.0.0.9"))
	s := written(lawful(t, in, machine.DefaultPolicy()).Action).Status
	require.Equal(t, want, s.Addresses)
	require.Len(t, s.Conditions, 1, "Ready, for kubectl wait")
	c := s.Conditions[0]
	require.Equal(t, "Ready True VMCreated", fmt.Sprint(c.Type, " ", c.Status, " ", c.Reason))
	in.Node, in.Machine.Labels = machine.NodeView{Looked: true, AsOf: now}, map[string]string{v1alpha1.NodeLabelKey: "n"}
	s = written(lawful(t, in, machine.DefaultPolicy()).Action).Status
	require.Equal(t, address("10.0.0.9"), s.Addresses, "with a target cluster: the addresses of the Node")
	require.Equal(t, "WaitingForNode node/n", s.Conditions[0].Message)
}

func TestProviderID_Lost_IsFoundAgain(t *testing.T) {
	lost := spec(func(m *v1alpha1.Machine) { m.Spec.ProviderID = "" })
	runs := func(changes ...change) machine.Observation {
		return after(append([]change{withID, lost, old, phase(v1alpha1.MachineRunning), node(ready(corev1.ConditionTrue)), copied}, changes...)...)
	}
	waits := "nothing (NotObserved: its provider ID is not known); waits for machine/m: NotObserved: its provider ID is not known"
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"looks for the VM":               {runs(), "look for the VM (LookFirst)"},
		"VM found: records the ID again": {runs(seen(machine.Present)), "update machine m: provider ID simulated:///1 (VMKnown)"},
		"VM not found: none is created":  {runs(vm(machine.VMView{Presence: machine.Absent, SeenAt: now})), waits},
		"Node gone: Unknown": {
			after(withID, lost, old, phase(v1alpha1.MachineRunning), vm(machine.VMView{Presence: machine.Absent, SeenAt: now})),
			`update status of machine m: phase "Unknown", HealthCheck Processing (NodeGone: Node object went missing. Machine m is unhealthy - changing MachinePhase to Unknown)`,
		},
		"Failed: waits for its MachineSet": {runs(phase(v1alpha1.MachineFailed)), "nothing (Failed: waits until its MachineSet replaces it); waits for machine/m: Failed: waits until its MachineSet replaces it"},
	})
}

func TestNodeToDelete_ByProviderID(t *testing.T) {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	node := func(name string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.MachineNameLabelKey: name}}}
	}
	own, other, sameID := node("m"), node("n"), node("m")
	for name, tc := range map[string]struct{ named, sameID, want *corev1.Node }{
		"the named Node is the machine's":           {own, sameID, own},
		"the named Node is another machine's":       {other, sameID, sameID},
		"the named Node does not exist":             {nil, sameID, sameID},
		"no Node has the provider ID":               {other, nil, other},
		"the Node with the ID is another machine's": {own, other, own},
		"both Nodes are another machine's":          {other, node("n"), other},
		"only the Node of another machine exists":   {nil, other, nil},
	} {
		require.Same(t, tc.want, machine.VMView{}.NodeToDelete(m, tc.named, tc.sameID, now), name)
	}
	require.Nil(t, machine.VMView{}.NodeToDelete(nil, nil, nil, now))
}

func TestDecide_FinalizerMissing_LooksAgainAtTheCreationTimeout(t *testing.T) {
	in := after(func(in *machine.Observation) { in.Class.Class.Finalizers = nil })
	in.Machine.CreationTimestamp = metav1.NewTime(now.Add(2*time.Second - 20*time.Minute))
	d := lawful(t, in, machine.DefaultPolicy())
	require.Equal(t, now.Add(2*time.Second), d.NextCheck)
}

// requested records a condition VMRequested.
func requested(status corev1.ConditionStatus, reason machinist.Reason) change {
	return func(in *machine.Observation) {
		in.Machine.Status.Conditions = append(in.Machine.Status.Conditions, corev1.NodeCondition{
			Type: v1alpha1.MachineVMRequested, Status: status, Reason: string(reason), LastTransitionTime: metav1.NewTime(now),
		})
	}
}

// requestOf returns the condition VMRequested of a machine, or nil.
func requestOf(m *v1alpha1.Machine) *corev1.NodeCondition {
	return facts.ConditionOf(m.Status.Conditions, v1alpha1.MachineVMRequested)
}

// sharedCause keeps every machine of a class from having a VM.
type sharedCause struct {
	// begin lets the cause begin, and end lets it end.
	begin, end func(w *world)
	// says is a part of the message for the user.
	says string
	// asked means that the provider was asked for a VM.
	asked bool
}

// ofView is a cause in the view of the class.
func ofView(says string, begin, end func(in *machine.Observation)) sharedCause {
	return sharedCause{begin: func(w *world) { begin(&w.in) }, end: func(w *world) { end(&w.in) }, says: says}
}

// ofCall is a cause that the provider returns.
func ofCall(code codes.Code, errs func(w *world) *[]error, asked bool) sharedCause {
	return sharedCause{
		begin: func(w *world) { *errs(w) = slices.Repeat([]error{status.Error(code, "no such flavor")}, 3000) },
		end:   func(w *world) { *errs(w) = nil },
		says:  "no such flavor", asked: asked,
	}
}

// sharedCauses are the causes for which no machine may fail.
func sharedCauses() map[string]sharedCause {
	usable := func(in *machine.Observation) { in.Class.Class, in.Class.Problem = class(), "" }
	all := map[string]sharedCause{
		"class missing": ofView(`machine class "small" does not exist`, noClass, usable),
		"class without finalizer": ofView(`machine class "small" has no finalizer`, func(in *machine.Observation) {
			in.Class.Class.Finalizers, in.Class.Class.DeletionTimestamp = nil, &metav1.Time{Time: now}
		}, usable),
		"Secret missing": ofView("secret shoot/small does not exist", noSecret, usable),
		"class of another kind": ofView("spec.class.kind", func(in *machine.Observation) { in.Machine.Spec.Class.Kind = "AWSMachineClass" },
			func(in *machine.Observation) { in.Machine.Spec.Class.Kind = v1alpha1.MachineClassKind }),
		"node template incomplete": ofView("nodeTemplate.zone", func(in *machine.Observation) {
			in.Class.Class.NodeTemplate = &v1alpha1.NodeTemplate{InstanceType: "m5", Region: "r"}
		}, usable),
	}
	for _, code := range []codes.Code{codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.NotFound, codes.Unimplemented} {
		all[code.String()+" of CreateMachine"] = ofCall(code, func(w *world) *[]error { return &w.create }, true)
		if code == codes.NotFound || code == codes.Unimplemented {
			continue // another call means something else by it
		}
		all[code.String()+" of GetMachineStatus"] = ofCall(code, func(w *world) *[]error { return &w.look }, false)
		all[code.String()+" of InitializeMachine"] = ofCall(code, func(w *world) *[]error { return &w.initialize }, true)
	}
	return all
}

// newMachineWorld returns a world with a new machine whose VM does not exist and whose Node never
// joins.
func newMachineWorld() *world {
	w := newWorld(after(func(in *machine.Observation) {
		in.Machine.CreationTimestamp, in.FirstSeen = metav1.NewTime(now), now
		in.Node.Node = nil
	}))
	w.absent = true
	return w
}

// lasts lets time pass, and calls each after each step.
func (w *world) lasts(t *testing.T, d time.Duration, each func()) {
	t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		acted, err := w.step()
		require.NoError(t, err, w.log())
		each()
		switch at := w.last.NextCheck; {
		case w.released:
			return
		case acted:
		case at.IsZero() || at.After(end):
			w.now = end
		default:
			w.now = at.UTC()
		}
	}
}

func (w *world) phase() v1alpha1.MachinePhase { return w.in.Machine.Status.CurrentStatus.Phase }

// restart loses what a process keeps of a machine.
func (w *world) restart() {
	w.in.VM, w.in.FirstSeen = machine.VMView{}, w.now
}

// TestSharedCause_24Hours_MachineWaitsAndGoesOn asserts that no machine fails for a cause that its
// replacement would share, that its status names the cause, and that the creation timeout begins
// when the cause ends, whatever process decides (I-22).
func TestSharedCause_24Hours_MachineWaitsAndGoesOn(t *testing.T) {
	t.Parallel()
	for name, cause := range sharedCauses() {
		for _, restarts := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newMachineWorld()
				cause.begin(w)
				w.lasts(t, 24*time.Hour, func() {
					require.NotEqual(t, v1alpha1.MachineFailed, w.phase(), "after %s", w.now.Sub(now))
				})
				c := requestOf(w.in.Machine)
				require.NotNil(t, c)
				require.Equal(t, cause.asked, c.Status == corev1.ConditionUnknown)
				require.Contains(t, c.Message, cause.says)
				require.Contains(t, w.in.Machine.Status.LastOperation.Description, cause.says)
				require.Contains(t, w.last.String(), cause.says, "the hold names it")
				require.Less(t, w.writes, 20, "nothing new is written")

				if restarts {
					w.restart()
				}
				cause.end(w)
				ended := w.now
				w.lasts(t, 15*time.Minute, func() {
					require.NotEqual(t, v1alpha1.MachineFailed, w.phase(), "%s after the end", w.now.Sub(ended))
				})
				require.Equal(t, v1alpha1.MachinePending, w.phase(), w.log())
				if restarts {
					w.restart()
				}
				w.lasts(t, 30*time.Minute, func() {})
				require.Equal(t, v1alpha1.MachineFailed, w.phase(), "its Node has not joined")
				require.WithinRange(t, w.in.Machine.Status.CurrentStatus.LastUpdateTime.Time, ended.Add(20*time.Minute-time.Second), ended.Add(35*time.Minute))
			})
		}
	}
}

// TestSharedCause_Deleted_NoVMWasRequested_GoneAtOnce asserts that a machine for which no VM was
// requested is deleted without class, Secret and provider, and without a view of the Nodes.
func TestSharedCause_Deleted_NoVMWasRequested_GoneAtOnce(t *testing.T) {
	t.Parallel()
	for name, cause := range sharedCauses() {
		for _, after := range []time.Duration{0, time.Second, 24 * time.Hour} {
			t.Run(name+" "+after.String(), func(t *testing.T) {
				t.Parallel()
				w := newMachineWorld()
				cause.begin(w)
				w.lasts(t, after, func() {})
				w.restart()
				if after == 0 { // nothing is recorded
					w.deletion = slices.Repeat([]error{status.Error(codes.Unauthenticated, "no")}, 100)
				}
				w.did, w.in.Machine.DeletionTimestamp = nil, &metav1.Time{Time: w.now}
				w.lasts(t, time.Minute, func() {})
				require.True(t, w.released, w.log())
				if after > 0 && !cause.asked {
					require.Equal(t, []string{"update machine m: no finalizer"}, w.did)
				}
			})
		}
	}
}

// TestSharedCause_AnotherFailureFollows_TimeoutBegins asserts that a failure of the machine alone
// has the creation timeout, which counts from its begin.
func TestSharedCause_AnotherFailureFollows_TimeoutBegins(t *testing.T) {
	t.Parallel()
	for name, errs := range map[string]func(w *world) *[]error{
		"no VM was requested": func(w *world) *[]error { return &w.look },
		"a VM was requested":  func(w *world) *[]error { return &w.create },
	} {
		w := newMachineWorld()
		ofCall(codes.Unauthenticated, errs, true).begin(w)
		w.lasts(t, 5*time.Hour, func() {})
		ofCall(codes.Unavailable, errs, true).begin(w)
		w.lasts(t, 19*time.Minute, func() { require.NotEqual(t, v1alpha1.MachineFailed, w.phase(), name) })
		w.lasts(t, 20*time.Minute, func() {})
		require.Equal(t, v1alpha1.MachineFailed, w.phase(), "%s: %s", name, w.log())
	}
}

// TestRequest_FailuresOfTheMachine_NoNewTimeout asserts that other failures do not postpone the
// creation timeout.
func TestRequest_FailuresOfTheMachine_NoNewTimeout(t *testing.T) {
	t.Parallel()
	w := newMachineWorld()
	w.look = slices.Repeat([]error{status.Error(codes.Unavailable, "away")}, 5)
	w.create = slices.Repeat([]error{status.Error(codes.ResourceExhausted, "no quota")}, 3000)
	w.lasts(t, time.Hour, func() {
		if w.now.Before(now.Add(20 * time.Minute)) {
			require.NotEqual(t, v1alpha1.MachineFailed, w.phase())
		}
	})
	require.Equal(t, v1alpha1.MachineFailed, w.phase())
	require.WithinDuration(t, now.Add(20*time.Minute), w.in.Machine.Status.CurrentStatus.LastUpdateTime.Time, time.Minute)
	require.False(t, slices.ContainsFunc(w.did, func(s string) bool { return strings.Contains(s, "token") }))
}

// TestRequest_NodeJoins_ConditionIsRemoved asserts that the condition stays while the machine is
// Pending, also with the conditions of its Node, and not longer.
func TestRequest_NodeJoins_ConditionIsRemoved(t *testing.T) {
	in := living(v1alpha1.MachinePending, sick, requested(corev1.ConditionTrue, "NoVM"))
	write(t, &in)
	require.NotNil(t, requestOf(in.Machine), "the conditions of the Node were copied")
	healthy(&in)
	write(t, &in)
	require.Equal(t, v1alpha1.MachineRunning, in.Machine.Status.CurrentStatus.Phase)
	require.Nil(t, requestOf(in.Machine))
}
