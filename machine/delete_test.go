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
func answered(s machine.Presence, ago time.Duration) change {
	return vm(machine.VMView{Presence: s, Asked: driver.OpDeleteMachine, SeenAt: now.Add(-ago)})
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

func TestDeletion_EachStep_Decision(t *testing.T) {
	gone := "update machine: no finalizer (Released)"
	begin := `record phase "Terminating", Delete Processing (Deleting: Set machine status to termination. Now, getting VM Status)`
	unsettled := "nothing (VMNotSettled: the provider may not list a VM that was created just before the deletion); waits for provider: VMNotSettled: the provider may not list a VM that was created just before the deletion"
	lookText := "Getting VM status failed due to - no quota. However, will re-try in the next resync. " + v1alpha1.GetVMStatus
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
	cordoning := func(since time.Duration) change {
		return func(in *machine.Observation) {
			in.Machine.DeletionTimestamp, in.Machine.Status.CurrentStatus.LastUpdateTime = new(metav1.NewTime(now.Add(-since))), metav1.Time{}
			in.Drain = machine.DrainView{Round: now, Holds: []machinist.Hold{{Subject: "node/n", Reason: "NotCordoned"}}}
		}
	}
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"what may have joined has to be looked for":               {after(withID, leaving, unseen), "nothing (NotObserved); waits for node/n: NotObserved"},
		"a machine that never had a class just goes (DM-36, M-6)": {after(leaving, noClass), gone},
		"not if the class was not read":                           {after(leaving, func(in *machine.Observation) { in.Class = machine.ClassView{} }), begin},
		"not if a VM was wanted":                                  {after(leaving, noClass, intended), begin},
		"without a name for the Node the VM is asked":             {after(leaving, intended), "look for the VM (LookFirst)"},
		"and the name is written down":                            {after(leaving, intended, seen(machine.Present)), "update machine: node n (VMKnown)"},
		"a VM that names none is no obstacle":                     {after(leaving, intended, vm(machine.VMView{Presence: machine.Present})), begin},
		"nor one that does not show":                              {after(leaving, intended, vm(machine.VMView{Presence: machine.Absent})), begin},
		"also if it says something else":                          {terminating(nameless, failure(driver.OpGetMachineStatus, codes.Internal, 0, machine.NotLooked)), `record phase "Terminating", Delete Failed (ProviderFailed: ` + lookText + ")"},
		"a Node that names the machine need not be looked for":    {after(leaving, intended, node()), "update machine: node n (VMKnown)"},
		"one without a machine name may belong to any machine":    {after(leaving, intended, node(), onNode(func(n *corev1.Node) { n.Labels = nil })), "look for the VM (LookFirst)"},
		"three times": {after(leaving, intended, failure(driver.OpGetMachineStatus, codes.Internal, 0, machine.NotLooked), func(in *machine.Observation) { in.VM.Failure.Attempts = 3 }), begin},
		"that none was found before the deletion is asked again": {terminating(spec(func(m *v1alpha1.Machine) { m.Labels = nil }), notFound(61*time.Second)), "look for the VM (LookFirst)"},
		"what was found since is believed":                       {terminating(spec(func(m *v1alpha1.Machine) { m.Labels = nil }), notFound(time.Second)), "delete the VM (Drained)"},
		"nor a class that is missing":                            {after(leaving, intended, noClass), begin},
		"also why, if the machine had failed (DM-16)":            {after(withID, leaving, phase(v1alpha1.MachineFailed), node()), "set condition Terminating=True (Unhealthy) on node n (Deleting)"},
		"a condition that does not hold tells nothing":           {after(withID, leaving, node(corev1.NodeCondition{Type: v1alpha1.NodeTerminationCondition, Status: corev1.ConditionFalse})), "set condition Terminating=True (ScaleDown) on node n (Deleting)"},
		"not if only the Node is waited for":                     {terminating(node(marked), cordoning(29*time.Second)), "nothing (Draining); waits for node/n: NotCordoned"},
		"unless that takes long":                                 {terminating(node(marked), cordoning(30*time.Second)), `record phase "Terminating", Delete Processing (Draining: Initiate node drain; waits for node/n: NotCordoned)`},
		"if that takes long, it is written down (I-12)":          {terminating(node(marked), waiting, told(30*time.Second, v1alpha1.InitiateDrain)), news},
		"once": {terminating(node(marked), waiting, told(time.Hour, "Initiate node drain; waits for pod/a/b: Budget")), "nothing (Draining); waits for pod/a/b: Budget"},
		"and again if it waits for something else":               {terminating(node(marked), waiting, told(time.Hour, "Initiate node drain; waits for pod/a/c: Budget")), news},
		"a drain that says nothing waits for the Node":           {terminating(node(marked), begun, func(in *machine.Observation) { in.Drain.Round = now }), "nothing (Draining); waits for node/n: Draining"},
		"that there is no VM is believed of DeleteMachine alone": {terminating(vm(machine.VMView{Presence: machine.Absent, Asked: driver.OpGetMachineStatus, SeenAt: now})), "delete the VM (Drained)"},
		"and not too early (M-1)":                                {terminating(justNow, answered(machine.Absent, time.Second)), unsettled},
		"but asked again later":                                  {terminating(answered(machine.Absent, 55*time.Second)), "delete the VM (Drained)"},
		"that a known VM is deleted is believed at once":         {terminating(justNow, answered(machine.Deleted, time.Second)), gone},
		"of an unknown one it is not (M-1)":                      {terminating(justNow, nameless, answered(machine.Deleted, time.Second)), unsettled},
		"it is looked for, as its Node may have joined":          {terminating(nameless, answered(machine.Deleted, 55*time.Second)), "look for the VM (LookFirst)"},
		"and deleted a second time":                              {terminating(nameless, vm(machine.VMView{Presence: machine.Absent, Asked: driver.OpGetMachineStatus, SeenAt: now})), "delete the VM (Drained)"},
		"without a cluster it is deleted at once":                {terminating(nameless, noTarget, answered(machine.Deleted, 55*time.Second)), "delete the VM (Drained)"},
		"a Node without VM is not drained but deleted":           {terminating(node(marked), answered(machine.Deleted, 0)), "delete node n (VMGone)"},
		"a class that was not read is waited for":                {terminating(func(in *machine.Observation) { in.Class = machine.ClassView{} }), "nothing (ClassMissing: the class was not read); waits for machineclass/small: ClassMissing: the class was not read"},
		"without the secret there is no look for the VM":         {after(leaving, intended, noSecret), begin},
		"if the deletion fails without the secret, that is said": {terminating(calls, noSecret), `record phase "Terminating", Delete Failed (ProviderFailed: ` + secretText + ")"},
		"and named": {terminating(calls, noSecret, operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, secretText, "")),
			"nothing (ProviderFailed: no quota); waits for provider: ProviderFailed: no quota; waits for machineclass/small: ClassUnusable: secret shoot/small does not exist"},
		"text from an earlier marker does not rewind the deletion (DM-04)": {terminating(node(marked), drained, operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, v1alpha1.GetVMStatus, "")), "delete the VM (Drained)"},
	})
}

func TestDeletion_Settle_NextCheckIsItsEnd(t *testing.T) {
	in := terminating(justNow, answered(machine.Absent, time.Second))
	require.Equal(t, now.Add(21*time.Second), lawful(t, in, machine.Policy{}).NextCheck)
	require.Equal(t, now.Add(6*time.Second), lawful(t, in, machine.Policy{Settle: 15 * time.Second}).NextCheck)
	require.Equal(t, machine.ReasonReleased, lawful(t, in, machine.Policy{Settle: -1}).Reason, "negative believes at once")
	in.Machine.Status.CurrentStatus.LastUpdateTime = metav1.Time{}
	require.Equal(t, machine.ReasonReleased, lawful(t, in, machine.Policy{}).Reason, "counted from the deletion timestamp")
}

func TestDeletion_EachPhase_Ends(t *testing.T) {
	for _, p := range allPhases {
		want := []string{stepMark, stepBegin, stepDrain, stepVM, stepNode, stepRelease}
		switch p {
		case v1alpha1.MachineFailed:
			want[0] = "set condition Terminating=True (Unhealthy) on node n" // DM-16
		case v1alpha1.MachineTerminating:
			want = slices.Delete(want, 1, 2)
		}
		full := after(withID, leaving, phase(p), node(ready(corev1.ConditionTrue)), attached())
		x := newWorld(full).run(t)
		require.Equal(t, want, x.did, "phase %q", p)
		require.Equal(t, now, x.now, "no wait in between")
		require.LessOrEqual(t, x.writes, 4, "condition, status, Node, finalizer; and one driver call")

		frozen(&full)
		require.Equal(t, want, newWorld(full).run(t).did, "phase %q, frozen", p)

		want = slices.DeleteFunc(want, func(s string) bool { return strings.Contains(s, "node n") })
		require.Equal(t, want, newWorld(after(withID, leaving, phase(p))).run(t).did, "phase %q, no Node", p)
	}
}

func TestDeletion_BootstrapToken_IsDeletedFirst(t *testing.T) {
	needs := func(in *machine.Observation) { in.Class.NeedsToken = true }
	has := func(in *machine.Observation) {
		token, err := machine.NewBootstrapToken(in.Machine, now.Add(time.Hour), nil, rand.NewChaCha8([32]byte{1}))
		require.NoError(t, err)
		in.Tokens = machine.TokensView{Looked: true, Secrets: []*corev1.Secret{token}}
	}
	deleted := answered(machine.Deleted, 0)
	unlooked := "the bootstrap tokens were not read"
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"it goes before anything else":                      {after(withID, leaving, needs, has, unseen), "delete the bootstrap token (BootstrapToken: the machine does not need it)"},
		"also if the class needs none now":                  {terminating(deleted, has), "delete the bootstrap token (BootstrapToken: the machine does not need it)"},
		"tokens that were not read hold no VM":              {terminating(needs), "delete the VM (Drained)"},
		"but the machine, since no later pass deletes them": {terminating(needs, deleted), "nothing (BootstrapToken: " + unlooked + "); waits for secrets/kube-system: BootstrapToken: " + unlooked},
		"nor by force one that cannot be deleted":           {terminating(has, deleted, byForce), "update machine: no finalizer (Released)"},
		"by force not even that (I-18)":                     {terminating(needs, deleted, byForce), "update machine: no finalizer (Released)"},
		"a class without a place for a token needs no look": {terminating(deleted), "update machine: no finalizer (Released)"},
	})
}

// drains returns the drain of a decision in words: since when it is wanted, when it is
// forced, whether the Node stays schedulable, whether volumes are waited for, and since
// when the Node is unreachable.
func drains(t *testing.T, d machine.Decision) string {
	t.Helper()
	a, ok := d.Action.(machine.DrainNode)
	require.True(t, ok, d.String())
	text := "since " + now.Sub(a.Started).String()
	if at := a.Policy.EscalateFrom; !at.IsZero() {
		text += ", forced after " + at.Sub(a.Started).String()
	}
	if a.Policy.KeepSchedulable {
		text += ", schedulable"
	}
	if v := a.Policy.Volumes; v.Wait {
		text += ", volumes " + v.DetachTimeout.String()
	}
	if a.Reachability.Unreachable {
		text += ", unreachable since " + now.Sub(a.Reachability.Since).String()
	}
	return text
}

func TestDrain_EachReason_ForceAndReachability(t *testing.T) {
	asked := spec(func(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Hour)} })
	timeout := func(d time.Duration) change {
		return config(&v1alpha1.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: d}, MaxEvictRetries: new(int32(1))})
	}
	label := func(key, value string) change {
		return spec(func(m *v1alpha1.Machine) { m.Labels[key] = value })
	}
	with := func(kind corev1.NodeConditionType, s corev1.ConditionStatus, ago time.Duration) change {
		return onNode(func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: s, LastTransitionTime: metav1.NewTime(now.Add(-ago))})
		})
	}
	since := func(at *metav1.Time) change { return onNode(func(n *corev1.Node) { n.Spec.Taints[0].TimeAdded = at }) }
	const (
		force, forceDrain = v1alpha1.LabelKeyForceDeletion, v1alpha1.LabelKeyForceDrain
		deletion          = "since 1h0m0s, forced after 2h0m0s"
		plain             = deletion + ", volumes 2m0s"
		update            = "since 1m0s, forced after 2h0m0s"
		readOnly          = corev1.NodeConditionType("ReadonlyFilesystem")
	)
	zero := machine.Policy{}
	goes := func(changes ...change) machine.Observation {
		return terminating(append([]change{asked, node(marked)}, changes...)...)
	}
	updated := func(changes ...change) machine.Observation {
		return living(v1alpha1.MachineRunning, append([]change{healthy, atStep(v1alpha1.SelectedForUpdate)}, changes...)...)
	}
	kept := func(changes ...change) machine.Observation {
		return living(v1alpha1.MachineFailed, append([]change{sick, keptNow, keptNode}, changes...)...)
	}
	for name, tc := range map[string]struct {
		in   machine.Observation
		p    machine.Policy
		want string
	}{
		"a deletion":                                  {goes(), machine.DefaultPolicy(), plain},
		"the machine may say how long":                {goes(timeout(time.Minute)), machine.DefaultPolicy(), "since 1h0m0s, forced after 1m0s"},
		"the zero policy never forces":                {goes(), zero, "since 1h0m0s, volumes 0s"},
		"nor does a negative timeout":                 {goes(timeout(-5)), machine.DefaultPolicy(), "since 1h0m0s, volumes 2m0s"},
		"the label forces at once":                    {goes(label(force, "true")), machine.DefaultPolicy(), "since 1h0m0s, forced after 0s"},
		"also with the zero policy":                   {goes(label(force, "T")), zero, "since 1h0m0s, forced after 0s"},
		"a label that says no does not":               {goes(label(force, "false")), machine.DefaultPolicy(), plain},
		"a Node long not ready stops no pods":         {goes(with(corev1.NodeReady, corev1.ConditionUnknown, 6*time.Minute)), machine.DefaultPolicy(), deletion + ", unreachable since 6m0s"},
		"one not ready for five minutes may":          {goes(with(corev1.NodeReady, corev1.ConditionFalse, 5*time.Minute)), machine.DefaultPolicy(), plain},
		"a read-only file system stops no pods":       {goes(with(readOnly, corev1.ConditionTrue, time.Hour)), machine.DefaultPolicy(), deletion + ", unreachable since 1h0m0s"},
		"one that is not read-only does":              {goes(with(readOnly, corev1.ConditionFalse, time.Hour)), machine.DefaultPolicy(), plain},
		"other conditions do not matter":              {goes(with("DiskPressure", corev1.ConditionTrue, time.Hour)), machine.DefaultPolicy(), plain},
		"a timeout beyond the end of time":            {goes(), machine.Policy{DrainTimeout: 1<<63 - 1}, "since 1h0m0s, forced after 2562047h47m16.854775807s, volumes 0s"},
		"an update in place":                          {updated(), machine.DefaultPolicy(), update},
		"its machine may say how long":                {updated(timeout(time.Second)), machine.DefaultPolicy(), "since 1m0s, forced after 1s"},
		"its label forces":                            {updated(label(forceDrain, "True")), machine.DefaultPolicy(), "since 1m0s, forced after 0s"},
		"the label of deletions does not":             {updated(label(force, "true")), machine.DefaultPolicy(), update},
		"the Node of an update may be unreachable":    {updated(with(readOnly, corev1.ConditionUnknown, 6*time.Minute)), machine.DefaultPolicy(), update + ", unreachable since 6m0s"},
		"a preservation, since the machine failed":    {kept(since(&metav1.Time{Time: now.Add(-2 * time.Hour)})), machine.DefaultPolicy(), update + ", schedulable, unreachable since 1h0m0s"},
		"or since the taint, which may come later":    {kept(since(&metav1.Time{Time: now})), machine.DefaultPolicy(), "since 0s, forced after 2h0m0s, schedulable, unreachable since 1h0m0s"},
		"a taint of an unknown time counts for none":  {kept(since(nil)), machine.DefaultPolicy(), update + ", schedulable, unreachable since 1h0m0s"},
		"the drain of a preservation is forced alike": {kept(label(forceDrain, "True")), machine.DefaultPolicy(), "since 1m0s, forced after 0s, schedulable, unreachable since 1h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, drains(t, lawful(t, tc.in, tc.p)))
		})
	}
}

// keptNode carries what a preservation puts on the Node of a Failed machine.
var keptNode = onNode(func(n *corev1.Node) {
	n.Annotations[disabledKey] = "true"
	n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNodePreserved, Effect: corev1.TaintEffectNoSchedule}}
})

func TestDrain_ManyPods_FewAreNamed(t *testing.T) {
	in := terminating(node(marked), handed(v1alpha1.InitiateDrain))
	in.Drain = machine.DrainView{Round: now}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		in.Drain.Holds = append(in.Drain.Holds, machinist.Hold{Subject: "pod/n/" + name, Reason: "DisruptionBudget"})
	}
	d := machine.Decide(in, machine.DefaultPolicy(), now)
	require.IsType(t, machine.UpdateStatus{}, d.Action)
	require.Equal(t, "Initiate node drain; waits for pod/n/a: DisruptionBudget; pod/n/b: DisruptionBudget; pod/n/c: DisruptionBudget; and 2 more",
		d.Action.(machine.UpdateStatus).Machine.Status.LastOperation.Description)
}

var deletedAttachments change = func(in *machine.Observation) {
	for _, va := range in.Attachments.Attachments {
		va.DeletionTimestamp = &metav1.Time{Time: now}
	}
}

// TestDeletion_ForceAndClusterSilent_GoesOnAfterAMinute asserts what a forced deletion does not
// wait for.
func TestDeletion_ForceAndClusterSilent_GoesOnAfterAMinute(t *testing.T) {
	p := machine.DefaultPolicy()
	// The condition is set first; by force it is not waited for more than a minute.
	in := terminating(node(), attached(), byForce)
	require.IsType(t, machine.DrainNode{}, machine.Decide(in, p, now).Action, "the deletion is a minute old")
	require.IsType(t, machine.SetNodeCondition{}, machine.Decide(in, p, now.Add(-time.Second)).Action)
	in = terminating(node(), attached())
	require.IsType(t, machine.SetNodeCondition{}, machine.Decide(in, p, now).Action, "without force it is")
	// A drain by force that does not end is given up after a minute.
	in = roundMade(t, terminating(node(marked), attached(), byForce), p, now)
	for at := now; at.Before(now.Add(time.Minute)); at = at.Add(5 * time.Second) {
		in.Drain.Round, in.Drain.NextCheck = at, at.Add(time.Hour)
		d := machine.Decide(in, p, at)
		require.Nil(t, d.Action)
		require.Equal(t, now.Add(time.Minute), d.NextCheck)
	}
	require.IsType(t, machine.DeleteVM{}, machine.Decide(in, p, now.Add(time.Minute)).Action)
	// Without force it goes on for ever.
	in = roundMade(t, terminating(node(marked), attached()), p, now)
	require.IsType(t, machine.DrainNode{}, machine.Decide(in, p, now.Add(time.Hour)).Action)
}

// roundMade returns the observation after a round of the drain that is decided, which
// asks for the next one an hour later.
func roundMade(t *testing.T, in machine.Observation, p machine.Policy, at time.Time) machine.Observation {
	t.Helper()
	a, ok := machine.Decide(in, p, at).Action.(machine.DrainNode)
	require.True(t, ok)
	in.Drain = in.Drain.AfterRound(a, machine.DrainView{NextCheck: now.Add(time.Hour)}, at)
	return in
}

// TestDeletion_ForceLabelDuringDrain_ForcesAtOnce asserts that a label that is set while a drain is
// under way has its effect at once (DM-17).
func TestDeletion_ForceLabelDuringDrain_ForcesAtOnce(t *testing.T) {
	in := roundMade(t, terminating(node(marked), attached()), machine.Policy{}, now.Add(-time.Second))
	require.Nil(t, machine.Decide(in, machine.Policy{}, now).Action)
	byForce(&in)
	in = roundMade(t, in, machine.Policy{}, now)
	require.Nil(t, machine.Decide(in, machine.Policy{}, now).Action, "once")
}

func TestDeletion_VolumeAttachments_DeletedByForceOnly(t *testing.T) {
	forced := func(changes ...change) machine.Observation {
		return terminating(append([]change{byForce, node(marked), drainedByForce}, changes...)...)
	}
	other := func(in *machine.Observation) { in.Attachments.Attachments[0].Spec.NodeName = "another" }
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a cluster that was not read is waited for":           {forced(unseen), "nothing (NotObserved); waits for node/n: NotObserved"},
		"a Node that is missing has no attachments":           {terminating(byForce, attached("csi-1")), "delete the VM (Drained)"},
		"live ones are deleted":                               {forced(attached("csi-2", "csi-1")), "delete volume attachments csi-1, csi-2 (Detaching)"},
		"those of other Nodes are not":                        {forced(attached("csi-1"), other), "delete the VM (Drained)"},
		"those that are going are not waited for":             {forced(attached("csi-1"), deletedAttachments), "delete the VM (Drained)"},
		"attachments that were not looked for are waited for": {forced(), "nothing (Detaching: its VolumeAttachments were not read); waits for node/n: Detaching: its VolumeAttachments were not read"},
		"after a drain without force they are not read":       {terminating(node(marked), drained, func(in *machine.Observation) { in.Attachments.Looked = false }), "delete the VM (Drained)"},
		"once the VM is gone, they are not":                   {terminating(node(marked), drained, attached("csi-1"), answered(machine.Deleted, 0)), "delete node n (VMGone)"},
		"a drain that was for something else does not count":  {terminating(node(marked), attached(), func(in *machine.Observation) { in.Drain = drainedBefore }), "drain node n, by force from 2026-03-01T13:59:00Z (Draining)"},
		"what cannot be deleted for a minute is left (I-18)":  {forced(attached("csi-1"), func(in *machine.Observation) { in.Attachments.AskedAt = now.Add(-time.Minute) }), "delete the VM (Drained)"},
		"what is not read within a minute is left too (I-18)": {terminating(byForce, node(marked), func(in *machine.Observation) {
			in.Drain = machine.DrainView{Round: now, Done: true, DoneAt: now.Add(-time.Minute)}
		}), "delete the VM (Drained)"},
	})
}

var (
	drainedByForce change = func(in *machine.Observation) {
		started := in.Machine.DeletionTimestamp.Time
		in.Drain = machine.DrainView{Started: started, ForceAt: started, Round: now, Done: true, DoneAt: now, ForcedAt: now}
	}
	// drainedBefore is the drain of an update in place.
	drainedBefore = machine.DrainView{Started: now.Add(-time.Hour), Round: now, Done: true, DoneAt: now}
)

func TestDeletion_VMGone_NodeIsDeleted(t *testing.T) {
	gone := answered(machine.Deleted, 0)
	deleting := func(finalizers ...string) change {
		return onNode(func(n *corev1.Node) { n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: now}, finalizers })
	}
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a Node that is missing is not waited for":       {terminating(gone), "update machine: no finalizer (Released)"},
		"a Node that was not read is waited for":         {terminating(gone, unseen), "nothing (NotObserved); waits for node/n: NotObserved"},
		"the Node is deleted":                            {terminating(gone, node(marked)), "delete node n (VMGone)"},
		"our finalizer goes also if it is being deleted": {terminating(gone, node(marked), deleting("x", v1alpha1.NodeFinalizerName)), "delete node n (VMGone)"},
		"those of others hold it, not the machine":       {terminating(gone, node(marked), deleting("x")), "update machine: no finalizer (Released)"},
	})
	d := machine.Decide(terminating(gone, node(marked)), machine.DefaultPolicy(), now)
	require.EqualValues(t, "node-uid", d.Action.(machine.DeleteNode).Node.UID, "a later Node of the same name is safe")
	require.False(t, d.NextCheck.IsZero(), "an effect that is lost is repeated")
}

// These are DM-36 and M-6: what a deletion needs may be gone before.

const (
	noClassText = "machineclass/small: the VM cannot be deleted without it. Initiate VM deletion"
	leftText    = "machineclass/small does not exist: the deletion is forced and does not delete the VM, so simulated:///1 may be left. Initiate VM deletion"
)

func TestDeletion_ClassMissing_VMWaits(t *testing.T) {
	x := newWorld(after(withID, leaving, phase(v1alpha1.MachineRunning), node(), attached("csi-1"), noClass))
	for range 6 {
		require.True(t, x.next(t))
	}
	require.Equal(t, []string{stepMark, stepBegin, stepDrain, stepBegin, stepDrain, stepBegin}, x.did)
	require.Equal(t, noClassText, x.told[len(x.told)-1])
	d := machine.Decide(x.in, x.policy, x.now)
	require.Nil(t, d.Action)
	require.Equal(t, "machineclass/small", d.Holds[0].Subject)
	require.False(t, d.NextCheck.IsZero())
	x.in.Class.Class = class()
	require.IsType(t, machine.DeleteVM{}, machine.Decide(x.in, x.policy, x.now).Action, "once it is back, it goes on at once")
}

func TestDeletion_ForcedWithoutClass_Ends(t *testing.T) {
	x := newWorld(after(withID, leaving, phase(v1alpha1.MachineRunning), node(), attached("csi-1"), noClass, byForce))
	x.run(t)
	require.Equal(t, []string{stepBegin, stepMark, stepDrain, stepDetach, stepBegin, stepBegin, stepNode, stepRelease}, x.did)
	require.Equal(t, []string{v1alpha1.GetVMStatus, noClassText, leftText}, x.told)
	require.Equal(t, now.Add(time.Minute), x.now, "a class that is about to be made again has its time")

	// People are told.
	waits, goes := x.in.Machine.DeepCopy(), x.in.Machine
	waits.Status.LastOperation.Description, waits.Status.LastOperation.ErrorCode = noClassText, ""
	events := machine.Events(waits, goes)
	require.Len(t, events, 1)
	require.Equal(t, "Warning FailedPrecondition Delete failed: "+leftText, events[0].String())
}

func TestDeletion_ForcedWithClass_WaitsForTheVM(t *testing.T) {
	since := func(ago time.Duration, text string) change {
		return spec(func(m *v1alpha1.Machine) {
			m.Status.LastOperation = v1alpha1.LastOperation{
				Type: v1alpha1.MachineOperationDelete, State: v1alpha1.MachineStateFailed, Description: text, LastUpdateTime: metav1.NewTime(now.Add(-ago)),
			}
		})
	}
	left := since(0, leftText)
	coded := spec(func(m *v1alpha1.Machine) { m.Status.LastOperation.ErrorCode = "FailedPrecondition" })
	wait := "nothing (ClassMissing: the VM cannot be deleted without it); waits for machineclass/small: ClassMissing: the VM cannot be deleted without it"
	unlooked := func(in *machine.Observation) { in.Class = machine.ClassView{} }
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a class is waited for, a minute long":         {terminating(noClass, byForce, since(59*time.Second, noClassText)), wait},
		"then it is written down":                      {terminating(noClass, byForce, since(time.Minute, noClassText)), `record phase "Terminating", Delete Failed (ClassMissing: ` + leftText + ")"},
		"then the machine goes":                        {terminating(noClass, byForce, left, coded), "update machine: no finalizer (Released)"},
		"and its Node":                                 {terminating(noClass, byForce, left, coded, node(markedAgo(time.Hour))), "delete node n (ClassMissing)"},
		"not if the label was removed":                 {terminating(noClass, left, coded), `record phase "Terminating", Delete Failed (ClassMissing: ` + noClassText + ")"},
		"nor if it was not read":                       {terminating(byForce, left, coded, unlooked), "nothing (ClassMissing: the class was not read); waits for machineclass/small: ClassMissing: the class was not read"},
		"a label that says no forces nothing":          {terminating(noClass, since(time.Hour, noClassText), spec(func(m *v1alpha1.Machine) { m.Labels = map[string]string{"force-deletion": "false"} })), wait},
		"a machine whose VM has no name that is known": {terminating(noClass, nameless, byForce, since(time.Minute, noClassText)), `record phase "Terminating", Delete Failed (ClassMissing: machineclass/small does not exist: the deletion is forced and does not delete the VM, so a VM may be left. Initiate VM deletion)`},
	})
}

func TestDeletion_InvalidClassOrMachine_Continues(t *testing.T) {
	whole := []string{stepMark, stepBegin, stepDrain, stepVM, stepNode, stepRelease}
	for name, c := range map[string]change{
		"no secret":              noSecret,
		"no finalizer":           func(in *machine.Observation) { in.Class.Class.Finalizers = nil },
		"no node template":       func(in *machine.Observation) { in.Class.Class.NodeTemplate = nil },
		"an empty node template": func(in *machine.Observation) { in.Class.Class.NodeTemplate = &v1alpha1.NodeTemplate{} },
		"class being deleted":    func(in *machine.Observation) { in.Class.Class.DeletionTimestamp = &metav1.Time{Time: now} },
		"another kind":           spec(func(m *v1alpha1.Machine) { m.Spec.Class.Kind = "Other" }),
		"no kind":                spec(func(m *v1alpha1.Machine) { m.Spec.Class.Kind = "" }),
		"needs a token":          func(in *machine.Observation) { in.Class.NeedsToken = true },
	} {
		in := after(withID, leaving, phase(v1alpha1.MachineRunning), node(), attached(), c)
		in.Tokens.Looked = true
		require.Equal(t, whole, newWorld(in).run(t).did, name)
	}
}

func TestDrain_AttachedVolumes_WaitsForTheDetachTimeout(t *testing.T) {
	x := newWorld(terminating(node(marked), attached("csi-1", "csi-2"), handed(v1alpha1.InitiateDrain)))
	x.run(t)
	require.Equal(t, stepRelease, x.did[len(x.did)-1])
	require.NotContains(t, x.did, stepDetach)
	require.Equal(t, now.Add(2*time.Minute), x.now)
	require.Contains(t, x.told[0], v1alpha1.InitiateDrain+"; waits for volumeattachment/csi-1: Detaching; volumeattachment/csi-2: Detaching")
}

func TestDeletion_ClassNeverExisted_Ends(t *testing.T) {
	w := newWorld(after(old, noClass))
	w.mustRest(t)
	leaving(&w.in)
	require.Equal(t, stepRelease, w.run(t).did[len(w.did)-1])
}
