// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// terminating is a machine whose deletion was noticed a minute ago.
func terminating(changes ...change) machine.Observation {
	return after(append([]change{withID, leaving, phase(v1alpha1.MachineTerminating)}, changes...)...)
}

// answered is what DeleteMachine said so long ago.
func answered(s machine.Sighting, ago time.Duration) change {
	return vm(machine.VMView{Sighting: s, Asked: driver.OpDeleteMachine, SeenAt: now.Add(-ago)})
}

var (
	marked   = corev1.NodeCondition{Type: v1alpha1.NodeTerminationCondition, Status: corev1.ConditionTrue, Reason: v1alpha1.NodeScaledDown}
	nameless = spec(func(m *v1alpha1.Machine) { m.Spec.ProviderID, m.Labels = "", nil })
	// justNow is a deletion that was noticed ten seconds ago.
	justNow = spec(func(m *v1alpha1.Machine) {
		m.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)}
		m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-10 * time.Second))
	})
	// drained is a Node without pods and volumes.
	drained change = func(in *machine.Observation) {
		in.Drain, in.Attachments = machine.DrainView{Round: now, Done: true}, machine.AttachmentsView{Looked: true}
	}
	// byForce is a wish of a person.
	byForce = spec(func(m *v1alpha1.Machine) {
		m.Labels = maps.Clone(m.Labels)
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		m.Labels[v1alpha1.LabelKeyForceDeletion] = "true"
	})
	noSecret change = func(in *machine.Observation) { in.Class.Problem = "secret shoot/small does not exist" }
)

func TestAMachineLeaves(t *testing.T) {
	t.Parallel()
	gone := "update machine: no finalizer (Released)"
	begin := `record phase "Terminating", Delete Processing (Deleting: Set machine status to termination. Now, getting VM Status)`
	unsettled := "nothing (VMNotSettled: a VM that was made just before may not show yet); waits for provider: VMNotSettled: a VM that was made just before may not show yet"
	lookText := "Getting VM status failed due to - no quota. However, will re-try in the next resync. " + v1alpha1.GetVMStatus
	lookFailed := operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, lookText, "")
	calls := failure(driver.OpDeleteMachine, codes.Internal, time.Minute, machine.NotLooked)
	secretText := "VM deletion failed due to - no quota (secret shoot/small does not exist). However, will re-try in the next resync. Initiate VM deletion"
	told := func(ago time.Duration, text string) change {
		return spec(func(m *v1alpha1.Machine) {
			m.Status.LastOperation = v1alpha1.LastOperation{
				Type: v1alpha1.MachineOperationDelete, State: v1alpha1.MachineStateProcessing, Description: text, LastUpdateTime: metav1.NewTime(now.Add(-ago)),
			}
		})
	}
	begun := told(29*time.Second, v1alpha1.InitiateDrain)
	news := "record phase \"Terminating\", Delete Processing (Draining: Initiate node drain; waits for pod/a/b: Budget)"
	waiting := func(in *machine.Observation) {
		in.Drain = machine.DrainView{Round: now, NextCheck: now.Add(time.Second), Holds: []machinist.Hold{{Subject: "pod/a/b", Reason: "Budget", Until: now.Add(time.Second)}}}
	}
	fencing := func(since time.Duration) change {
		return func(in *machine.Observation) {
			in.Machine.DeletionTimestamp, in.Machine.Status.CurrentStatus.LastUpdateTime = new(metav1.NewTime(now.Add(-since))), metav1.Time{}
			in.Drain = machine.DrainView{Round: now, Holds: []machinist.Hold{{Subject: "node/n", Reason: "NotFenced"}}}
		}
	}
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"what may have joined has to be looked for":               {after(withID, leaving, unseen), "nothing (NodeNotObserved); waits for node/n: NodeNotObserved"},
		"nameless, that is a matter of the machine":               {after(leaving, unseen), "nothing (NodeNotObserved); waits for machine/m: NodeNotObserved"},
		"a machine that never had a class just goes (DM-36, M-6)": {after(leaving, noClass), gone},
		"also if that was written down":                           {after(leaving, noClass, operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, "no class", "")), gone},
		"not if nobody has looked for the class":                  {after(leaving, func(in *machine.Observation) { in.Class = machine.ClassView{} }), begin},
		"not if a VM was wanted":                                  {after(leaving, noClass, intended), begin},
		"not if a call has failed":                                {after(append(crashed, leaving, noClass)...), begin},
		"without a name for the Node the VM is asked":             {after(leaving, intended), "look for the VM (LookFirst)"},
		"also if a creation has failed":                           {after(append(crashed, leaving, failure(driver.OpCreateMachine, codes.Internal, 0, machine.NotLooked))...), "look for the VM (LookFirst)"},
		"and the name is written down":                            {after(leaving, intended, seen(machine.Present)), "update machine: node n (VMKnown)"},
		"a VM that names none is no obstacle":                     {after(leaving, intended, vm(machine.VMView{Sighting: machine.Present})), begin},
		"nor one that does not show":                              {after(leaving, intended, vm(machine.VMView{Sighting: machine.Absent})), begin},
		"a provider that fails is written down":                   {after(leaving, intended, failure(driver.OpGetMachineStatus, codes.Internal, 0, machine.NotLooked)), `record phase "Terminating", Delete Failed (Deleting: ` + lookText + ")"},
		"also if it says something else":                          {terminating(nameless, failure(driver.OpGetMachineStatus, codes.Internal, 0, machine.NotLooked)), `record phase "Terminating", Delete Failed (ProviderFailed: ` + lookText + ")"},
		"and waited for":                                          {terminating(nameless, lookFailed, failure(driver.OpGetMachineStatus, codes.Internal, 0, machine.NotLooked)), "nothing (ProviderFailed: no quota); waits for provider: ProviderFailed: no quota"},
		"and is asked again":                                      {terminating(nameless, lookFailed, failure(driver.OpGetMachineStatus, codes.Internal, 3*time.Minute, machine.NotLooked)), "look for the VM (LookFirst)"},
		"a Node that names the machine need not be looked for":    {after(leaving, intended, node()), "update machine: node n (VMKnown)"},
		"one that names nobody may be anybody's":                  {after(leaving, intended, node(), onNode(func(n *corev1.Node) { n.Labels = nil })), "look for the VM (LookFirst)"},
		"three times":                                             {after(leaving, intended, failure(driver.OpGetMachineStatus, codes.Internal, 0, machine.NotLooked), func(in *machine.Observation) { in.VM.Failure.Attempts = 3 }), begin},
		"a failed deletion tells nothing of the name":             {after(leaving, intended, failure(driver.OpDeleteMachine, codes.Internal, 0, machine.NotLooked)), begin},
		"nor a class that is missing":                             {after(leaving, intended, noClass), begin},
		"the Node is told (DM-16)":                                {after(withID, leaving, node(ready(corev1.ConditionTrue))), "set condition Terminating=True (ScaleDown) on node n (Deleting)"},
		"also why, if the machine had failed (DM-16)":             {after(withID, leaving, phase(v1alpha1.MachineFailed), node()), "set condition Terminating=True (Unhealthy) on node n (Deleting)"},
		"a condition that does not hold tells nothing":            {after(withID, leaving, node(corev1.NodeCondition{Type: v1alpha1.NodeTerminationCondition, Status: corev1.ConditionFalse})), "set condition Terminating=True (ScaleDown) on node n (Deleting)"},
		"then the phase changes":                                  {after(withID, leaving, phase(v1alpha1.MachineRunning), node(marked)), begin},
		"which is written down":                                   {terminating(node(marked), waiting), `record phase "Terminating", Delete Processing (Draining: Initiate node drain)`},
		"not if only the Node is waited for":                      {terminating(node(marked), fencing(29*time.Second)), "nothing (Draining); waits for node/n: NotFenced"},
		"unless that takes long":                                  {terminating(node(marked), fencing(30*time.Second)), `record phase "Terminating", Delete Processing (Draining: Initiate node drain)`},
		"but not if it waits for nobody":                          {terminating(node(marked), func(in *machine.Observation) { in.Drain.Round, in.Drain.NextCheck = now, now.Add(time.Second) }), "nothing (Draining); waits for node/n: Draining"},
		"and waits for pods":                                      {terminating(node(marked), waiting, begun), "nothing (Draining); waits for pod/a/b: Budget"},
		"if that takes long, it is written down (I-12)":           {terminating(node(marked), waiting, told(30*time.Second, v1alpha1.InitiateDrain)), news},
		"once": {terminating(node(marked), waiting, told(time.Hour, "Initiate node drain; waits for pod/a/b: Budget")), "nothing (Draining); waits for pod/a/b: Budget"},
		"and again if it waits for something else":               {terminating(node(marked), waiting, told(time.Hour, "Initiate node drain; waits for pod/a/c: Budget")), news},
		"but not at every change":                                {terminating(node(marked), waiting, told(29*time.Second, "Initiate node drain; waits for pod/a/c: Budget")), "nothing (Draining); waits for pod/a/b: Budget"},
		"a drain that says nothing waits for the Node":           {terminating(node(marked), begun, func(in *machine.Observation) { in.Drain.Round = now }), "nothing (Draining); waits for node/n: Draining"},
		"a failed creation is no reason to wait":                 {terminating(failure(driver.OpCreateMachine, codes.ResourceExhausted, 0, machine.NotLooked)), "delete the VM (Drained)"},
		"that there is no VM is believed of DeleteMachine alone": {terminating(vm(machine.VMView{Sighting: machine.Absent, Asked: driver.OpGetMachineStatus, SeenAt: now})), "delete the VM (Drained)"},
		"and not too early (M-1)":                                {terminating(justNow, answered(machine.Absent, time.Second)), unsettled},
		"but asked again later":                                  {terminating(answered(machine.Absent, 55*time.Second)), "delete the VM (Drained)"},
		"and then believed":                                      {terminating(answered(machine.Absent, time.Second)), gone},
		"that a known VM is deleted is believed at once":         {terminating(justNow, answered(machine.Deleted, time.Second)), gone},
		"of an unknown one it is not (M-1)":                      {terminating(justNow, nameless, answered(machine.Deleted, time.Second)), unsettled},
		"it is looked for, as its Node may have joined":          {terminating(nameless, answered(machine.Deleted, 55*time.Second)), "look for the VM (LookFirst)"},
		"and deleted a second time":                              {terminating(nameless, vm(machine.VMView{Sighting: machine.Absent, Asked: driver.OpGetMachineStatus, SeenAt: now})), "delete the VM (Drained)"},
		"without a cluster it is deleted at once":                {terminating(nameless, noTarget, answered(machine.Deleted, 55*time.Second)), "delete the VM (Drained)"},
		"and then believed too":                                  {terminating(nameless, answered(machine.Deleted, time.Second)), gone},
		"a Node without VM is not drained but deleted":           {terminating(node(marked), answered(machine.Deleted, 0)), "delete node n (VMGone)"},
		"a class nobody has looked for is waited for":            {terminating(func(in *machine.Observation) { in.Class = machine.ClassView{} }), "nothing (ClassMissing: nobody has looked); waits for machineclass/small: ClassMissing: nobody has looked"},
		"without the secret nobody looks for the VM":             {after(leaving, intended, noSecret), begin},
		"nor in between":                                         {terminating(nameless, noSecret, answered(machine.Deleted, 55*time.Second)), "delete the VM (Drained)"},
		"if the deletion fails without the secret, that is said": {terminating(calls, noSecret), `record phase "Terminating", Delete Failed (ProviderFailed: ` + secretText + ")"},
		"and named": {terminating(calls, noSecret, operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, secretText, "")),
			"nothing (ProviderFailed: no quota); waits for provider: ProviderFailed: no quota; waits for machineclass/small: ClassUnusable: secret shoot/small does not exist"},
		"once the VM is deleted no class is needed":                        {terminating(noClass, answered(machine.Deleted, 0)), gone},
		"text from an earlier marker does not rewind the deletion (DM-04)": {terminating(node(marked), drained, operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, v1alpha1.GetVMStatus, "")), "delete the VM (Drained)"},
	})
}

func TestADeletionIsForcedInTimeWhateverTheDrainWaitsFor(t *testing.T) {
	t.Parallel()
	in := terminating(node(marked), operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, v1alpha1.InitiateDrain, ""))
	in.Drain = machine.DrainView{Round: now.Add(-30 * time.Second)} // waits for a change
	p := machine.Policy{DrainTimeout: time.Minute + time.Second}
	d := lawful(t, in, p)
	require.Nil(t, d.Do)
	require.Equal(t, now.Add(time.Second), d.NextCheck)
	p.DrainTimeout = time.Minute
	require.Equal(t, machine.DrainNode{NodeName: "n", Mode: machine.DrainMode{
		Started: in.Machine.DeletionTimestamp.Time, ForceAt: now,
	}}, lawful(t, in, p).Do)
	in.Drain.Round = now
	require.Nil(t, lawful(t, in, p).Do, "once")
	require.Zero(t, lawful(t, in, machine.Policy{}).NextCheck, "the zero policy never forces")
}

func TestTheEndOfASettledWaitIsWhenItIsAskedAgain(t *testing.T) {
	t.Parallel()
	in := terminating(justNow, answered(machine.Absent, time.Second))
	require.Equal(t, now.Add(21*time.Second), lawful(t, in, machine.Policy{}).NextCheck)
	require.Equal(t, now.Add(6*time.Second), lawful(t, in, machine.Policy{Settle: 15 * time.Second}).NextCheck)
	require.Equal(t, machine.ReasonReleased, lawful(t, in, machine.Policy{Settle: -1}).Reason, "negative believes at once")
	in.Machine.Status.CurrentStatus.LastUpdateTime = metav1.Time{}
	require.Equal(t, machine.ReasonReleased, lawful(t, in, machine.Policy{}).Reason, "counted from the deletion timestamp")
}

func TestTheReleaseTakesOnlyOurFinalizer(t *testing.T) {
	t.Parallel()
	in := terminating(answered(machine.Deleted, 0), spec(func(m *v1alpha1.Machine) {
		m.Finalizers = []string{"a", v1alpha1.MCMFinalizerName, "b"}
	}))
	u := lawful(t, in, machine.Policy{}).Do.(machine.UpdateMachine)
	require.Equal(t, []string{"a", "b"}, u.Machine.Finalizers)
	require.Equal(t, "7", u.Machine.ResourceVersion)
}

func TestADeletionEndsAPreservation(t *testing.T) {
	t.Parallel()
	for _, p := range allPhases {
		if p == v1alpha1.MachineTerminating {
			continue // it has none any more
		}
		d := lawful(t, after(withID, leaving, phase(p), preserved), machine.DefaultPolicy())
		s := d.Do.(machine.UpdateStatus).Machine.Status.CurrentStatus
		require.Equal(t, v1alpha1.CurrentStatus{Phase: v1alpha1.MachineTerminating, LastUpdateTime: metav1.NewTime(now)}, s)
	}
}

func TestAMachineLeavesFromEveryPhase(t *testing.T) {
	t.Parallel()
	for _, p := range allPhases {
		want := []string{stepMark, stepBegin, stepDrain, stepVM, stepNode, stepRelease}
		switch p {
		case v1alpha1.MachineFailed:
			want[0] = "set condition Terminating=True (Unhealthy) on node n" // DM-16
		case v1alpha1.MachineTerminating:
			want = slices.Delete(want, 1, 2)
		}
		full := after(withID, leaving, phase(p), node(ready(corev1.ConditionTrue)), attached())
		require.Equal(t, want, newWorld(full).run(t).did, "phase %q", p)

		frozen(&full)
		require.Equal(t, want, newWorld(full).run(t).did, "phase %q, frozen", p)

		want = slices.DeleteFunc(want, func(s string) bool { return strings.Contains(s, "node n") })
		require.Equal(t, want, newWorld(after(withID, leaving, phase(p))).run(t).did, "phase %q, no Node", p)
	}
}

// DM-29: one key and one decision at a time, so a deletion simply wins.
func TestADeletionInTheMiddleOfAnUpdateInPlace(t *testing.T) {
	t.Parallel()
	selected := corev1.NodeCondition{Type: v1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: v1alpha1.ReadyForUpdate}
	x := newWorld(after(withID, leaving, phase(v1alpha1.MachineInPlaceUpdating), node(ready(corev1.ConditionTrue), selected), attached()))
	x.in.Drain = drainedBefore // which was the drain of the update
	require.Equal(t, []string{stepMark, stepBegin, stepDrain, stepVM, stepNode, stepRelease}, x.run(t).did)
}

func TestTheBootstrapTokenGoesFirstAndIsNotForgotten(t *testing.T) {
	t.Parallel()
	needs := func(in *machine.Observation) { in.Class.NeedsToken = true }
	has := func(in *machine.Observation) {
		token, err := machine.NewBootstrapToken(in.Machine, now.Add(time.Hour), nil, rand.NewChaCha8([32]byte{1}))
		require.NoError(t, err)
		in.Tokens = machine.TokensView{Looked: true, Secrets: []*corev1.Secret{token}}
	}
	deleted := answered(machine.Deleted, 0)
	unlooked := "nobody has looked for bootstrap tokens"
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"it goes before anything else":                          {after(withID, leaving, needs, has, unseen), "delete the bootstrap token (BootstrapToken: the machine does not need it any more)"},
		"also if the class needs none now":                      {terminating(deleted, has), "delete the bootstrap token (BootstrapToken: the machine does not need it any more)"},
		"a token nobody has looked for holds no VM":             {terminating(needs), "delete the VM (Drained)"},
		"but the machine, as nobody would look for it later on": {terminating(needs, deleted), "nothing (BootstrapToken: " + unlooked + "); waits for secrets/kube-system: BootstrapToken: " + unlooked},
		"by force not even that (I-18)":                         {terminating(needs, deleted, byForce), "update machine: no finalizer (Released)"},
		"a class without a place for a token needs no look":     {terminating(deleted), "update machine: no finalizer (Released)"},
	})
}

// §29: the reference system needs about 25 seconds for a machine without pods, as it
// waits five between its steps.
func TestAnEmptyMachineLeavesAtOnceWithFourWrites(t *testing.T) {
	t.Parallel()
	x := newWorld(after(withID, leaving, phase(v1alpha1.MachineRunning), node(ready(corev1.ConditionTrue)), attached()))
	require.Equal(t, []string{stepMark, stepBegin, stepDrain, stepVM, stepNode, stepRelease}, x.run(t).did)
	require.Equal(t, 4, x.writes, "condition, status, Node, finalizer; and one driver call")
	require.Equal(t, now, x.now, "no wait in between")

	x = newWorld(after(withID, leaving, phase(v1alpha1.MachineRunning), node(ready(corev1.ConditionTrue)), attached("csi-1"), byForce))
	x.run(t)
	require.Equal(t, 5, x.writes, "and the attachments")
	require.Equal(t, now, x.now)

	x = newWorld(after(leaving, noClass))
	require.Equal(t, []string{stepRelease}, x.run(t).did, "one for which nothing was begun")

	x = newWorld(after(leaving))
	require.Equal(t, []string{stepLook, stepName, stepBegin, stepVM, stepVM, stepRelease}, x.run(t).did, "one that may have a VM")
	require.Equal(t, now.Add(31*time.Second), x.now, "as the provider may not show it yet")
}

func TestDrainModeFor(t *testing.T) {
	t.Parallel()
	asked := now.Add(-time.Hour)
	m := func(label string, seconds int) *v1alpha1.Machine {
		m := newMachine("m")
		m.DeletionTimestamp = &metav1.Time{Time: asked}
		if label != "" {
			m.Labels = map[string]string{v1alpha1.LabelKeyForceDeletion: label}
		}
		if seconds != 0 {
			m.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: time.Duration(seconds) * time.Second}}
		}
		return m
	}
	with := func(kind corev1.NodeConditionType, s corev1.ConditionStatus, ago time.Duration) *corev1.Node {
		c := corev1.NodeCondition{Type: kind, Status: s}
		if ago != 0 {
			c.LastTransitionTime = metav1.NewTime(now.Add(-ago))
		}
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{c}}}
	}
	plain := machine.DrainMode{Started: asked, ForceAt: asked.Add(2 * time.Hour)}
	unreachable := func(since time.Duration) machine.DrainMode {
		mode := plain
		mode.NodeUnreachable, mode.UnreachableSince = true, now.Add(-since)
		return mode
	}
	p := machine.DefaultPolicy()
	for name, tc := range map[string]struct {
		machine *v1alpha1.Machine
		node    *corev1.Node
		policy  machine.Policy
		want    machine.DrainMode
	}{
		"a drain is forced after its timeout":                   {m("", 0), nil, p, plain},
		"the machine may say how long":                          {m("", 60), nil, p, machine.DrainMode{Started: asked, ForceAt: asked.Add(time.Minute)}},
		"the zero policy never forces":                          {m("", 0), nil, machine.Policy{}, machine.DrainMode{Started: asked}},
		"a negative timeout never forces":                       {m("", -5), nil, p, machine.DrainMode{Started: asked}},
		"the label forces at once":                              {m("true", 0), nil, p, machine.DrainMode{Started: asked, ForceAt: asked}},
		"also with the zero policy, as a person asked for it":   {m("T", 0), nil, machine.Policy{}, machine.DrainMode{Started: asked, ForceAt: asked}},
		"a label that says no does not":                         {m("false", 0), nil, p, plain},
		"nor one that says nothing":                             {m("really", 0), nil, p, plain},
		"a machine that is not deleted drains from now":         {newMachine("m"), nil, machine.Policy{}, machine.DrainMode{Started: now}},
		"a Node long not ready stops no pods":                   {m("", 0), with(corev1.NodeReady, corev1.ConditionUnknown, 6*time.Minute), p, unreachable(6 * time.Minute)},
		"one not ready for five minutes may":                    {m("", 0), with(corev1.NodeReady, corev1.ConditionFalse, 5*time.Minute), p, plain},
		"one not ready since when nobody knows may":             {m("", 0), with(corev1.NodeReady, corev1.ConditionFalse, 0), p, plain},
		"a ready one may":                                       {m("", 0), with(corev1.NodeReady, corev1.ConditionTrue, time.Hour), p, plain},
		"a read-only file system stops no pods":                 {m("", 0), with("ReadonlyFilesystem", corev1.ConditionTrue, time.Hour), p, unreachable(time.Hour)},
		"one that is not read-only does":                        {m("", 0), with("ReadonlyFilesystem", corev1.ConditionFalse, time.Hour), p, plain},
		"other conditions do not matter":                        {m("", 0), with("DiskPressure", corev1.ConditionTrue, time.Hour), p, plain},
		"a nil machine is drained without force":                {nil, with(corev1.NodeReady, corev1.ConditionFalse, time.Hour), p, machine.DrainMode{}},
		"a timeout beyond the end of time is no reason to fail": {m("", 0), nil, machine.Policy{DrainTimeout: 1<<63 - 1}, machine.DrainMode{Started: asked, ForceAt: asked.Add(1<<63 - 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := tc.want
			if !want.NodeUnreachable && tc.machine != nil && (want.ForceAt.IsZero() || want.ForceAt.After(now)) {
				want.Detach, want.DetachTimeout = true, tc.policy.DetachTimeout
			}
			require.Equal(t, want, machine.DrainModeFor(tc.machine, tc.node, tc.policy, now))
		})
	}
}

func TestADrainNamesAFewOfManyPods(t *testing.T) {
	t.Parallel()
	in := terminating(node(marked), spec(func(m *v1alpha1.Machine) {
		m.Status.LastOperation = v1alpha1.LastOperation{
			Type: v1alpha1.MachineOperationDelete, State: v1alpha1.MachineStateProcessing,
			Description: v1alpha1.InitiateDrain, LastUpdateTime: metav1.NewTime(now.Add(-time.Second)),
		}
	}))
	in.Drain = machine.DrainView{Round: now}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		in.Drain.Holds = append(in.Drain.Holds, machinist.Hold{Subject: "pod/n/" + name, Reason: "DisruptionBudget"})
	}
	d := machine.Decide(in, machine.DefaultPolicy(), now)
	require.Nil(t, d.Do)
	require.Equal(t, now.Add(29*time.Second), d.NextCheck, "when there is something to be told")
	d = machine.Decide(in, machine.DefaultPolicy(), d.NextCheck)
	require.IsType(t, machine.UpdateStatus{}, d.Do)
	require.Equal(t, "Initiate node drain; waits for pod/n/a: DisruptionBudget; pod/n/b: DisruptionBudget; pod/n/c: DisruptionBudget; and 2 more",
		d.Do.(machine.UpdateStatus).Machine.Status.LastOperation.Description)
}

func TestThatNoVMWasFoundBeforeTheDeletionIsAskedAgain(t *testing.T) {
	t.Parallel()
	unnamed := spec(func(m *v1alpha1.Machine) { m.Labels = nil })
	absent := func(ago time.Duration) change {
		return vm(machine.VMView{Sighting: machine.Absent, Asked: driver.OpGetMachineStatus, SeenAt: now.Add(-ago)})
	}
	entered := spec(func(m *v1alpha1.Machine) {
		m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-time.Minute))
	})
	before := lawful(t, terminating(unnamed, entered, absent(61*time.Second)), machine.DefaultPolicy())
	require.IsType(t, machine.LookForVM{}, before.Do, "it may show now, and its Node have joined")
	since := lawful(t, terminating(unnamed, entered, absent(time.Second)), machine.DefaultPolicy())
	require.IsType(t, machine.DeleteVM{}, since.Do)
}
