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
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// terminating returns a machine whose deletion was observed a minute ago.
func terminating(changes ...change) machine.Observation {
	return after(append([]change{withID, leaving, phase(v1alpha1.MachineTerminating)}, changes...)...)
}

// answered sets the result of a DeleteMachine some time ago.
func answered(s machine.Presence, ago time.Duration) change {
	return vm(machine.VMView{Presence: s, Asked: driver.OpDeleteMachine, SeenAt: now.Add(-ago)})
}

var (
	marked   = corev1.NodeCondition{Type: v1alpha1.NodeTerminationCondition, Status: corev1.ConditionTrue, Reason: v1alpha1.NodeScaledDown}
	nameless = spec(func(m *v1alpha1.Machine) { m.Spec.ProviderID, m.Labels = "", nil })
	// justNow is a deletion that was observed ten seconds ago.
	justNow = spec(func(m *v1alpha1.Machine) {
		m.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)}
		m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-10 * time.Second))
	})
	// drained sets a Node without pods and volumes.
	drained change = func(in *machine.Observation) {
		in.Drain, in.Attachments = machine.DrainView{Round: now, Done: true}, machine.AttachmentsView{Looked: true}
	}
	// byForce sets the label that forces the deletion.
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
	gone := "update machine m: no finalizer (Released)"
	begin := `update status of machine m: phase "Terminating", Delete Processing (Deleting: Set machine status to termination. Now, getting VM Status)`
	unsettled := "nothing (VMNotSettled: the provider may not list a VM that was created just before the deletion); waits for provider: VMNotSettled: the provider may not list a VM that was created just before the deletion"
	lookText := "Getting VM status failed due to - no quota. However, will re-try in the next resync. " + v1alpha1.GetVMStatus
	calls := failure(driver.OpDeleteMachine, codes.Internal, time.Minute, machine.NotLooked)
	secretText := "VM deletion failed due to - no quota (secret shoot/small does not exist). However, will re-try in the next resync. Initiate VM deletion"
	told := func(ago time.Duration, text string) change {
		return operationAgo(ago, v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, text)
	}
	begun := told(29*time.Second, v1alpha1.InitiateDrain)
	news := "update status of machine m: phase \"Terminating\", Delete Processing (Draining: Initiate node drain; waits for pod/a/b: Budget)"
	waiting := func(in *machine.Observation) {
		in.Drain = machine.DrainView{Round: now, NextCheck: now.Add(time.Second), Holds: []machinist.Hold{{Subject: "pod/a/b", Reason: "Budget", Until: now.Add(time.Second)}}}
	}
	blocked := func(in *machine.Observation) {
		in.Drain = machine.DrainView{Round: now, Holds: []machinist.Hold{
			{Subject: "pod/a/b", Reason: "Terminating"}, {Subject: "pod/a/c", Reason: drain.ReasonBudget, Message: "shop/web allows no disruption"},
		}}
	}
	const blockedText = "Initiate node drain; waits for pod/a/c: DisruptionBudget: shop/web allows no disruption; pod/a/b: Terminating" +
		" (since 2026-03-01T12:00:00Z; another pod of the PodDisruptionBudget has to become healthy)"
	cordoning := func(since time.Duration) change {
		return func(in *machine.Observation) {
			in.Machine.DeletionTimestamp, in.Machine.Status.CurrentStatus.LastUpdateTime = ptr.To(metav1.NewTime(now.Add(-since))), metav1.Time{}
			in.Drain = machine.DrainView{Round: now, Holds: []machinist.Hold{{Subject: "node/n", Reason: "NotCordoned"}}}
		}
	}
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"Node not read: waits":                                      {after(withID, leaving, unseen), "nothing (NotObserved); waits for node/n: NotObserved"},
		"no finalizer: left alone (DM-35)":                          {after(withID, leaving, unguarded), "nothing (Released)"},
		"class never existed: released (DM-36, M-6)":                {after(leaving, neverNamed, noClass), gone},
		"VM has a node name: records it":                            {after(leaving, intended, seen(machine.Present)), "update machine m: node n (VMKnown)"},
		"GetMachineStatus fails: records the error":                 {terminating(nameless, failure(driver.OpGetMachineStatus, codes.Internal, 0, machine.NotLooked)), `update status of machine m: phase "Terminating", Delete Failed (ProviderFailed: ` + lookText + ")"},
		"Node has the name of the machine: records it":              {after(leaving, intended, node()), "update machine m: node n (VMKnown)"},
		"Node has no machine name: looks for the VM":                {after(leaving, intended, node(), onNode(func(n *corev1.Node) { n.Labels = nil })), "look for the VM (LookFirst)"},
		"GetMachineStatus failed three times: begins":               {after(leaving, intended, failure(driver.OpGetMachineStatus, codes.Internal, 0, machine.NotLooked), func(in *machine.Observation) { in.VM.Failure.Attempts = 3 }), begin},
		"VM not found before the deletion: looks again":             {terminating(spec(func(m *v1alpha1.Machine) { m.Labels = nil }), notFound(61*time.Second)), "look for the VM (LookFirst)"},
		"VM not found since the deletion: deletes the VM":           {terminating(spec(func(m *v1alpha1.Machine) { m.Labels = nil }), notFound(time.Second)), "delete the VM (Drained)"},
		"Failed machine: condition with the reason (DM-16)":         {after(withID, leaving, phase(v1alpha1.MachineFailed), node()), "update status of node n: condition Terminating=True (Unhealthy) (Deleting)"},
		"condition False: is set":                                   {after(withID, leaving, node(corev1.NodeCondition{Type: v1alpha1.NodeTerminationCondition, Status: corev1.ConditionFalse})), "update status of node n: condition Terminating=True (ScaleDown) (Deleting)"},
		"waits for the cordon for 30s: recorded":                    {terminating(node(marked), cordoning(30*time.Second)), `update status of machine m: phase "Terminating", Delete Processing (Draining: Initiate node drain; waits for node/n: NotCordoned)`},
		"waits for a pod for 30s: recorded (I-12)":                  {terminating(node(marked), waiting, told(30*time.Second, v1alpha1.InitiateDrain)), news},
		"a budget for 2s: recorded first":                           {terminating(node(marked), blocked, told(2*time.Second, v1alpha1.InitiateDrain)), `update status of machine m: phase "Terminating", Delete Processing (Draining: ` + blockedText + ")"},
		"another budget for 2s: not recorded":                       {terminating(node(marked), blocked, told(2*time.Second, "Initiate node drain; waits for pod/a/d: DisruptionBudget: shop/db")), "nothing (Draining); waits for pod/a/b: Terminating; waits for pod/a/c: DisruptionBudget: shop/web allows no disruption"},
		"drain without holds: waits for the Node":                   {terminating(node(marked), begun, func(in *machine.Observation) { in.Drain.Round = now }), "nothing (Draining); waits for node/n: Draining"},
		"no VM, 10s after the deletion: waits (M-1)":                {terminating(justNow, answered(machine.Absent, time.Second)), unsettled},
		"no VM before the settle time: deletes again":               {terminating(answered(machine.Absent, 55*time.Second)), "delete the VM (Drained)"},
		"VM without provider ID deleted: waits (M-1)":               {terminating(justNow, nameless, answered(machine.Deleted, time.Second)), unsettled},
		"VM without provider ID deleted, settled: looks for the VM": {terminating(nameless, answered(machine.Deleted, 55*time.Second)), "look for the VM (LookFirst)"},
		"VM without provider ID, no target cluster: deletes again":  {terminating(nameless, noTarget, answered(machine.Deleted, 55*time.Second)), "delete the VM (Drained)"},
		"secret missing: looks for the VM":                          {after(leaving, intended, noSecret), "look for the VM (LookFirst)"},
		"secret missing, deletion fails: records both":              {terminating(calls, noSecret), `update status of machine m: phase "Terminating", Delete Failed (ProviderFailed: ` + secretText + ")"},
		"secret missing, recorded: holds have both": {terminating(calls, noSecret, operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, secretText, "")),
			"nothing (ProviderFailed: no quota); waits for provider: ProviderFailed: no quota; waits for machineclass/small: ClassUnusable: secret shoot/small does not exist"},
		"text of an earlier step: the deletion continues (DM-04)": {terminating(node(marked), drained, operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, v1alpha1.GetVMStatus, "")), "delete the VM (Drained)"},
	})
}

func TestDeletion_Settle_NextCheckIsItsEnd(t *testing.T) {
	in := terminating(justNow, answered(machine.Absent, time.Second))
	require.Equal(t, now.Add(21*time.Second), lawful(t, in, machine.Policy{}).NextCheck)
	require.Equal(t, now.Add(6*time.Second), lawful(t, in, machine.Policy{Settle: 15 * time.Second}).NextCheck)
	require.EqualValues(t, "Released", lawful(t, in, machine.Policy{Settle: -1}).Reason, "negative: no wait")
	in.Machine.Status.CurrentStatus.LastUpdateTime = metav1.Time{}
	require.EqualValues(t, "Released", lawful(t, in, machine.Policy{}).Reason, "counted from the deletion timestamp")
}

// endsWhenForced deletes a machine at the drain timeout of two hours, and by force, in which case it
// ends after a minute. It returns both worlds.
func endsWhenForced(t *testing.T, minutes float64, begin func(*world), changes ...change) []*world {
	t.Helper()
	plain, forced := newWorld(after(changes...)), newWorld(after(append(changes, byForce)...))
	for w, lasts := range map[*world]time.Duration{plain: 2 * time.Hour, forced: time.Minute} {
		w.in.Machine.DeletionTimestamp, w.policy.DrainTimeout = &metav1.Time{Time: now}, 2*time.Hour
		begin(w)
		w.run(t)
		require.True(t, w.released, "%q", w.did)
		require.InDelta(t, lasts.Minutes(), w.now.Sub(now).Minutes(), minutes, "%q", w.did)
	}
	return []*world{plain, forced}
}

// TestDeletion_TargetClusterAway_EndsWhenForced deletes machines whose Node is never read. A user's
// deletion passes each hold (I-18).
func TestDeletion_TargetClusterAway_EndsWhenForced(t *testing.T) {
	for _, w := range endsWhenForced(t, 1, func(w *world) { w.away = true }, withID, leaving, phase(v1alpha1.MachineRunning), unseen) {
		require.Contains(t, w.did, stepVM)
	}
}

func TestDeletion_EachPhase_Ends(t *testing.T) {
	for _, p := range append([]v1alpha1.MachinePhase{"Bogus"}, allPhases...) {
		want := []string{stepMark, stepBegin, stepDrain, stepVM, stepNode, stepRelease}
		switch p {
		case v1alpha1.MachineFailed:
			want[0] = "update status of node n: condition Terminating=True (Unhealthy)" // DM-16
		case v1alpha1.MachineTerminating:
			want = slices.Delete(want, 1, 2)
		}
		full := after(withID, leaving, phase(p), node(ready(corev1.ConditionTrue)), attached())
		x := newWorld(full).run(t)
		require.Equal(t, want, x.did, "phase %q", p)
		require.Equal(t, now, x.now, "no waits")
		require.LessOrEqual(t, x.writes, 4, "condition, status, Node, finalizer")

		frozen(&full)
		require.Equal(t, want, newWorld(full).run(t).did, "phase %q, frozen", p)

		want = slices.DeleteFunc(want, func(s string) bool { return strings.Contains(s, "node n") })
		require.Equal(t, want, newWorld(after(withID, leaving, phase(p))).run(t).did, "phase %q, no Node", p)

		x = newWorld(after(leaving, phase(p)))
		x.lookErr = status.Error(codes.NotFound, "none")
		require.True(t, x.run(t).released, "phase %q, nothing recorded, no VM: %s", p, x.log())
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
		"class needs no token: deleted":            {terminating(deleted, has), "delete secret bootstrap-token-nlthqp (BootstrapToken: the machine does not need it)"},
		"tokens not read, VM deleted: waits":       {terminating(needs, deleted), "nothing (BootstrapToken: " + unlooked + "); waits for secrets/kube-system: BootstrapToken: " + unlooked},
		"forced, token left: released":             {terminating(has, deleted, byForce), "update machine m: no finalizer (Released)"},
		"forced, tokens not read: released (I-18)": {terminating(needs, deleted, byForce), "update machine m: no finalizer (Released)"},
	})
}

// drains returns the drain of a decision as text.
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
		return config(&v1alpha1.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: d}, MaxEvictRetries: ptr.To(int32(1))})
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
		"deletion":                                                    {goes(), machine.DefaultPolicy(), plain},
		"deletion, timeout of the machine":                            {goes(timeout(time.Minute)), machine.DefaultPolicy(), "since 1h0m0s, forced after 1m0s"},
		"deletion, zero policy: no force":                             {goes(), zero, "since 1h0m0s, volumes 0s"},
		"deletion, negative timeout: no force":                        {goes(timeout(-5)), machine.DefaultPolicy(), "since 1h0m0s, volumes 2m0s"},
		"deletion, label force-deletion: forced at once":              {goes(label(force, "true")), machine.DefaultPolicy(), "since 1h0m0s, forced after 0s"},
		"deletion, label force-deletion, zero policy: forced at once": {goes(label(force, "T")), zero, "since 1h0m0s, forced after 0s"},
		"Node not ready for 6m: unreachable":                          {goes(with(corev1.NodeReady, corev1.ConditionUnknown, 6*time.Minute)), machine.DefaultPolicy(), deletion + ", unreachable since 6m0s"},
		"Node not ready for 5m: reachable":                            {goes(with(corev1.NodeReady, corev1.ConditionFalse, 5*time.Minute)), machine.DefaultPolicy(), plain},
		"read-only file system for 5m1s: unreachable":                 {goes(with(readOnly, corev1.ConditionTrue, 5*time.Minute+time.Second)), machine.DefaultPolicy(), deletion + ", unreachable since 5m1s"},
		"read-only file system for 4m59s: reachable":                  {goes(with(readOnly, corev1.ConditionTrue, 5*time.Minute-time.Second)), machine.DefaultPolicy(), plain},
		"longest timeout":                                             {goes(), machine.Policy{DrainTimeout: 1<<63 - 1}, "since 1h0m0s, forced after 2562047h47m16.854775807s, volumes 0s"},
		"in-place update":                                             {updated(), machine.DefaultPolicy(), update},
		"in-place update, label force-drain: forced at once":          {updated(label(forceDrain, "True")), machine.DefaultPolicy(), "since 1m0s, forced after 0s"},
		"in-place update, label force-deletion: no effect":            {updated(label(force, "true")), machine.DefaultPolicy(), update},
		"preservation: counts from the failure":                       {kept(since(&metav1.Time{Time: now.Add(-2 * time.Hour)})), machine.DefaultPolicy(), update + ", schedulable, unreachable since 1h0m0s"},
		"preservation, later taint: counts from the taint":            {kept(since(&metav1.Time{Time: now})), machine.DefaultPolicy(), "since 0s, forced after 2h0m0s, schedulable, unreachable since 1h0m0s"},
		"preservation, label force-drain: forced at once":             {kept(label(forceDrain, "True")), machine.DefaultPolicy(), "since 1m0s, forced after 0s, schedulable, unreachable since 1h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, drains(t, lawful(t, tc.in, tc.p)))
		})
	}
}

// keptNode sets the marks of a preservation on the Node of a Failed machine.
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
	require.NotNil(t, statusOf(d.Action))
	require.Equal(t, "Initiate node drain; waits for pod/n/a: DisruptionBudget; pod/n/b: DisruptionBudget; pod/n/c: DisruptionBudget; and 2 more"+
		" (since 2026-03-01T12:00:00Z; another pod of the PodDisruptionBudget has to become healthy)",
		written(d.Action).Status.LastOperation.Description)
}

var deletedAttachments change = func(in *machine.Observation) {
	for _, va := range in.Attachments.Attachments {
		va.DeletionTimestamp = &metav1.Time{Time: now}
	}
}

// TestDeletion_ForcedAndClusterSilent_ContinuesAfterAMinute asserts that a forced deletion waits at most
// a minute for the condition, and a minute for its drain.
func TestDeletion_ForcedAndClusterSilent_ContinuesAfterAMinute(t *testing.T) {
	p := machine.DefaultPolicy()
	in := terminating(node(), attached(), byForce)
	require.IsType(t, machine.DrainNode{}, machine.Decide(in, p, now).Action, "one minute after the deletion")
	require.NotEmpty(t, changedConditions(machine.Decide(in, p, now.Add(-time.Second)).Action))
	require.NotEmpty(t, changedConditions(machine.Decide(terminating(node(), attached()), p, now).Action), "without force")

	in = roundMade(t, terminating(node(marked), attached(), byForce), p, now)
	d := machine.Decide(in, p, now)
	require.Nil(t, d.Action)
	require.Equal(t, now.Add(time.Minute), d.NextCheck)
	require.Equal(t, driver.OpDeleteMachine, operationOf(machine.Decide(in, p, now.Add(time.Minute)).Action))
	in = roundMade(t, terminating(node(marked), attached()), p, now)
	require.IsType(t, machine.DrainNode{}, machine.Decide(in, p, now.Add(time.Hour)).Action, "without force")
}

// roundMade returns the observation after a pass of the decided drain. The next pass is an hour
// later.
func roundMade(t *testing.T, in machine.Observation, p machine.Policy, at time.Time) machine.Observation {
	t.Helper()
	a, ok := machine.Decide(in, p, at).Action.(machine.DrainNode)
	require.True(t, ok)
	in.Drain = in.Drain.AfterRound(a, machine.DrainView{NextCheck: now.Add(time.Hour)}, at)
	return in
}

// TestDeletion_ForceLabelDuringDrain_ForcesAtOnce asserts that the label has an effect during a
// drain (DM-17).
func TestDeletion_ForceLabelDuringDrain_ForcesAtOnce(t *testing.T) {
	in := roundMade(t, terminating(node(marked), attached()), machine.Policy{}, now.Add(-time.Second))
	require.Nil(t, machine.Decide(in, machine.Policy{}, now).Action)
	byForce(&in)
	in = roundMade(t, in, machine.Policy{}, now)
	require.Nil(t, machine.Decide(in, machine.Policy{}, now).Action, "one forced pass")
}

func TestDeletion_VolumeAttachments_DeletedByForceOnly(t *testing.T) {
	forced := func(changes ...change) machine.Observation {
		return terminating(append([]change{byForce, node(marked), drainedByForce}, changes...)...)
	}
	other := func(in *machine.Observation) { in.Attachments.Attachments[0].Spec.NodeName = "another" }
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"cluster not read: waits":                       {forced(unseen), "read node n from the API server (LookFirst: before the deletion continues without it)"},
		"attachments of the Node: deleted":              {forced(attached("csi-2", "csi-1")), "delete volume attachments csi-1, csi-2 (Detaching)"},
		"attachments of another Node: kept":             {forced(attached("csi-1"), other), "delete the VM (Drained)"},
		"attachments being deleted: no wait":            {forced(attached("csi-1"), deletedAttachments), "delete the VM (Drained)"},
		"attachments not read: waits":                   {forced(), "nothing (Detaching: its VolumeAttachments were not read); waits for node/n: Detaching: its VolumeAttachments were not read"},
		"drain of an in-place update: drains again":     {terminating(node(marked), attached(), func(in *machine.Observation) { in.Drain = drainedBefore }), "drain node n, by force from 2026-03-01T13:59:00Z (Draining)"},
		"attachments not deleted after 1m: left (I-18)": {forced(attached("csi-1"), func(in *machine.Observation) { in.Attachments.AskedAt = now.Add(-time.Minute) }), "delete the VM (Drained)"},
		"attachments not read after 1m: left (I-18)": {terminating(byForce, node(marked), func(in *machine.Observation) {
			in.Drain = machine.DrainView{Round: now, Done: true, DoneAt: now.Add(-time.Minute)}
		}), "delete the VM (Drained)"},
	})
}

var (
	drainedByForce change = func(in *machine.Observation) {
		started := in.Machine.DeletionTimestamp.Time
		in.Drain = machine.DrainView{Started: started, ForceAt: started, Round: now, Done: true, DoneAt: now, ForcedAt: now}
	}
	// drainedBefore is the drain of an in-place update.
	drainedBefore = machine.DrainView{Started: now.Add(-time.Hour), Round: now, Done: true, DoneAt: now}
)

func TestDeletion_VMGone_NodeIsDeleted(t *testing.T) {
	gone := answered(machine.Deleted, 0)
	deleting := func(finalizers ...string) change {
		return onNode(func(n *corev1.Node) { n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: now}, finalizers })
	}
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"Node not read: waits":                               {terminating(gone, unseen), "nothing (NotObserved); waits for node/n: NotObserved"},
		"Node being deleted: finalizer removed":              {terminating(gone, node(marked), deleting("x", v1alpha1.NodeFinalizerName)), "delete node n (VMGone)"},
		"Node being deleted with other finalizers: released": {terminating(gone, node(marked), deleting("x")), "update machine m: no finalizer (Released)"},
	})
	d := machine.Decide(terminating(gone, node(marked)), machine.DefaultPolicy(), now)
	require.EqualValues(t, "node-uid", d.Action.(machinist.Delete).Object.(*corev1.Node).UID, "precondition of the deletion")
	require.False(t, d.NextCheck.IsZero(), "a lost action is repeated")
}

// The following tests have a deletion without its class (DM-36, M-6).

const (
	noClassText = "machineclass/small: the VM cannot be deleted without it. Initiate VM deletion"
	noClassWait = "; waits for machineclass/small (since 2026-03-01T12:02:00Z; create the class)"
	leftText    = "machineclass/small does not exist: the deletion is forced and does not delete the VM, so simulated:///1 may be left. Initiate VM deletion"
)

func TestDeletion_ClassMissing_VMWaits(t *testing.T) {
	x := newWorld(after(withID, leaving, phase(v1alpha1.MachineRunning), node(), attached("csi-1"), noClass))
	for range 6 {
		require.True(t, x.next(t))
	}
	require.Equal(t, []string{stepMark, stepBegin, stepDrain, stepBegin, stepDrain, stepBegin}, x.did)
	require.Equal(t, noClassText+noClassWait, x.told[len(x.told)-1])
	d := machine.Decide(x.in, x.policy, x.now)
	require.Nil(t, d.Action)
	require.Equal(t, "machineclass/small", d.Holds[0].Subject)
	require.False(t, d.NextCheck.IsZero())
	x.in.Class.Class = class()
	require.Equal(t, driver.OpDeleteMachine, operationOf(machine.Decide(x.in, x.policy, x.now).Action), "class exists again")
}

func TestDeletion_ForcedWithoutClass_Ends(t *testing.T) {
	x := newWorld(after(withID, leaving, phase(running), node(), attached("csi-1"), noClass, byForce)).run(t)
	require.Equal(t, []string{stepBegin, stepMark, stepDrain, stepDetach, stepBegin, stepBegin, stepNode, stepRelease}, x.did)
	require.Equal(t, []string{v1alpha1.GetVMStatus, noClassText + strings.Replace(noClassWait, "12:02", "12:00", 1), leftText}, x.told)
	require.Equal(t, now.Add(time.Minute), x.now, "waits a minute for the class")

	waits := x.in.Machine.DeepCopy()
	waits.Status.LastOperation.Description, waits.Status.LastOperation.ErrorCode = noClassText, ""
	events := machine.Events(waits, x.in.Machine)
	require.Len(t, events, 1, "an Event reports the VM")
	require.Equal(t, "Warning FailedPrecondition Delete failed: "+leftText, events[0].String())
}

func TestDeletion_ForcedWithClass_WaitsForTheVM(t *testing.T) {
	since := func(ago time.Duration, text string) change {
		return operationAgo(ago, v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, text)
	}
	left := since(0, leftText)
	coded := spec(func(m *v1alpha1.Machine) { m.Status.LastOperation.ErrorCode = "FailedPrecondition" })
	wait := "nothing (ClassMissing: the VM cannot be deleted without it); waits for machineclass/small: ClassMissing: the VM cannot be deleted without it"
	unlooked := func(in *machine.Observation) { in.Class = machine.ClassView{} }
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"class missing for 59s: waits":                   {terminating(noClass, byForce, since(59*time.Second, noClassText)), wait},
		"class missing for 1m: recorded":                 {terminating(noClass, byForce, since(time.Minute, noClassText)), `update status of machine m: phase "Terminating", Delete Failed (ClassMissing: ` + leftText + ")"},
		"recorded, Node exists: deletes the Node":        {terminating(noClass, byForce, left, coded, node(markedAgo(time.Hour))), "delete node n (ClassMissing)"},
		"recorded, label removed: waits":                 {terminating(noClass, left, coded), `update status of machine m: phase "Terminating", Delete Failed (ClassMissing: ` + noClassText + ")"},
		"recorded, class not read: waits":                {terminating(byForce, left, coded, unlooked), "nothing (ClassMissing: the class was not read); waits for machineclass/small: ClassMissing: the class was not read"},
		"label force-deletion=false: waits":              {terminating(noClass, since(time.Hour, noClassText), spec(func(m *v1alpha1.Machine) { m.Labels = map[string]string{"force-deletion": "false"} })), wait},
		"class missing for 1m, no provider ID: recorded": {terminating(noClass, nameless, byForce, since(time.Minute, noClassText)), `update status of machine m: phase "Terminating", Delete Failed (ClassMissing: machineclass/small does not exist: the deletion is forced and does not delete the VM, so a VM may be left. Initiate VM deletion)`},
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

func TestDrain_ReattachTimeout_AppliesToDeletions(t *testing.T) {
	of := func(timeout time.Duration, changes ...change) time.Duration {
		p := machine.DefaultPolicy()
		p.ReattachTimeout = timeout
		d := lawful(t, terminating(append([]change{node(marked), attached("csi-1")}, changes...)...), p)
		return d.Action.(machine.DrainNode).Policy.Volumes.ReattachTimeout
	}
	require.Equal(t, 90*time.Second, of(90*time.Second))
	require.Zero(t, of(90*time.Second, byForce), "a forced drain waits for no volume")
	require.Zero(t, of(0))
	require.Zero(t, of(-1))
}

func TestDeletion_ClassNeverExisted_Ends(t *testing.T) {
	w := newWorld(after(old, noClass))
	w.mustRest(t)
	leaving(&w.in)
	neverNamed(&w.in)
	require.True(t, w.run(t).released)
}

func TestTakeOver_LaterCondition_NodeIsDrained(t *testing.T) {
	next := func(text string, ago time.Duration) machinist.Action {
		return machine.Decide(terminating(handed(text), attached(), node(markedAgo(ago))), machine.DefaultPolicy(), now).Action
	}
	for _, text := range []string{"Drain successful. ", "VM deletion failed due to - x. Aborting operation. "} {
		require.IsType(t, machine.DrainNode{}, next(text+v1alpha1.InitiateVMDeletion, 30*time.Second), text)
		require.Equal(t, driver.OpDeleteMachine, operationOf(next(text+v1alpha1.InitiateVMDeletion, 31*time.Second)), text)
	}
	gone := next("VM deletion was successful. "+v1alpha1.InitiateNodeDeletion, 0)
	require.Equal(t, driver.OpDeleteMachine, operationOf(gone), "a Node whose VM is gone is not drained")
}

func TestDrains_EachState_ReportsWhetherPodsMatter(t *testing.T) {
	said := func(message string) change {
		return onNode(func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.NodePreserved, Message: message})
		})
	}
	kept := ending(time.Hour)
	for name, tc := range map[string]struct {
		in   machine.Observation
		want bool
	}{
		"Running: no":                             {living(running, healthy), false},
		"being deleted without a Node: yes":       {living(running, leaving), true},
		"candidate for an update: no":             {living(running, healthy, updates(v1alpha1.CandidateForUpdate)), false},
		"selected for an update: yes":             {living(running, healthy, updates(v1alpha1.SelectedForUpdate)), true},
		"drained for an update: no":               {living(updating, healthy, updates(v1alpha1.DrainSuccessful)), false},
		"Failed: no":                              {living(failed, healthy), false},
		"Failed and preserved: yes":               {living(failed, healthy, kept), true},
		"Failed and preserved without a Node: no": {living(failed, kept), false},
		"Failed and preserved, drain failed: yes": {living(failed, healthy, kept, said("Preserved node could not be drained.")), true},
		"Failed and preserved, drained: no":       {living(failed, healthy, kept, said("Preserved node drained successfully. Machine preserved until x.")), false},
		"Running and preserved: no":               {living(running, healthy, kept), false},
	} {
		require.Equal(t, tc.want, facts.Drains(tc.in.Machine, tc.in.Node.Node), name)
	}
	require.False(t, facts.Drains(nil, nil))
}

func TestDrainView_After_KeepsTimes(t *testing.T) {
	drainOf := func(started, forceAt time.Time) machine.DrainNode {
		return machine.DrainNode{NodeName: "n", Started: started, Policy: drain.ForMachine(forceAt)}
	}
	hourAgo, a := now.Add(-time.Hour), drainOf(now.Add(-time.Hour), now)
	done := machine.DrainView{Done: true}
	var v machine.DrainView

	v = v.AfterRound(a, machine.DrainView{NextCheck: now}, now.Add(-time.Minute))
	require.Equal(t, machine.DrainView{Started: hourAgo, ForceAt: now, Round: now.Add(-time.Minute), NextCheck: now}, v)
	v = v.Again().AfterRound(a, done, now.Add(-30*time.Second))
	require.Equal(t, now.Add(-30*time.Second), v.DoneAt)
	require.Zero(t, v.ForcedAt, "before the time of force")
	v = v.Again().AfterRound(a, machine.DrainView{}, now)
	v = v.Again().AfterRound(a, done, now.Add(time.Second))
	require.Equal(t, machine.DrainView{
		Started: hourAgo, ForceAt: now, Round: now.Add(time.Second), Done: true, DoneAt: now.Add(-30 * time.Second), ForcedAt: now,
	}, v, "the first times are kept")
	require.Equal(t, machine.DrainView{Started: hourAgo, ForceAt: now, DoneAt: v.DoneAt, ForcedAt: now}, v.Again())

	require.Equal(t, machine.DrainView{Started: now, Round: now}, v.AfterRound(drainOf(now, time.Time{}), machine.DrainView{}, now), "another drain")
	kept := a
	kept.Policy.KeepSchedulable = true
	require.Zero(t, v.AfterRound(kept, machine.DrainView{}, now.Add(-time.Second)).DoneAt, "another drain with the same start, without cordon")
	require.Zero(t, v.AfterRound(drainOf(hourAgo, now.Add(time.Hour)), machine.DrainView{}, now).ForcedAt, "another drain with another time of force")
}
