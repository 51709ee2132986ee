// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// living is a machine with a VM, in a phase that was entered a minute ago.
func living(p v1alpha1.MachinePhase, changes ...change) machine.Observation {
	return after(append([]change{withID, phase(p)}, changes...)...)
}

var (
	healthy = node(ready(corev1.ConditionTrue))
	sick    = node(ready(corev1.ConditionUnknown))
	taint   = onNode(func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule}}
	})
	longUnknown = entered(10 * time.Minute)
	// looked is a VM that was found just now.
	looked = seen(machine.Present)
	inPool = spec(func(m *v1alpha1.Machine) { m.Labels[v1alpha1.LabelKeyMachineDeploymentName] = "pool" })
)

func permit(p machine.PermitView) change { return func(in *machine.Observation) { in.Permit = p } }

// held is a permit that was given in this pass.
func held(within int) change {
	return permit(machine.PermitView{Asked: true, Held: true, Within: within})
}

func siblings(complete bool, phases ...v1alpha1.MachinePhase) change {
	return func(in *machine.Observation) {
		in.Siblings = machine.Siblings{Complete: complete, Machines: []*v1alpha1.Machine{in.Machine, nil}}
		for _, p := range phases {
			m := newMachine("s")
			m.Status.CurrentStatus.Phase = p
			in.Siblings.Machines = append(in.Siblings.Machines, m)
		}
	}
}

func TestWatch_EachState_Decision(t *testing.T) {
	toFailed := `update status of machine m: phase "Failed", Create Failed (CreationTimeout: ` + timedOut + ")"
	waitsForOwner := "nothing (Failed: waits until its MachineSet replaces it); waits for machine/m: Failed: waits until its MachineSet replaces it"
	rejoined := `update status of machine m: phase "Running", HealthCheck Successful (NodeReady: Machine m successfully re-joined the cluster)`
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a machine whose finalizer was removed gets it again":        {living(running, unguarded, healthy), "update machine m: finalizer (New)"},
		"a failed machine without finalizer waits for its owner":     {living(failed, noTarget), waitsForOwner},
		"an incomplete view proves nothing":                          {living(running, unseen), "nothing (NotObserved); waits for node/n: NotObserved"},
		"a taint of another effect does not count":                   {living(pending, healthy, taint, onNode(func(n *corev1.Node) { n.Spec.Taints[0].Effect = corev1.TaintEffectPreferNoSchedule })), rejoined},
		"a Node without Ready is not ready (DM-30)":                  {living(pending, node()), "nothing (WaitingForNode: the node is not ready: [no Ready condition]); waits for node/n: WaitingForNode: the node is not ready: [no Ready condition]"},
		"changed conditions do not put off a timeout (DM-34)":        {living(pending, old, sick), toFailed},
		"without a time when it began, it begins now":                {living(unknown, sick, copied, spec(func(m *v1alpha1.Machine) { m.Status.CurrentStatus.LastUpdateTime = metav1.Time{} })), `update status of machine m: phase "Unknown",   (NodeUnhealthy)`},
		"one that had no cluster before is judged by its Node":       {living(v1alpha1.MachineAvailable, old, sick, copied), `update status of machine m: phase "Unknown", HealthCheck Processing (NodeUnhealthy: Machine m is unhealthy - changing MachinePhase to Unknown. Node conditions: [Ready=Unknown (Kubelet)])`},
		"an annotated Node deletes the machine":                      {living(running, healthy, onNode(func(n *corev1.Node) { n.Annotations[v1alpha1.TriggerDeletionByMCM] = "true" })), "delete machine m (Deleting)"},
		"a Node that others delete without us is watched until then": {living(running, healthy, copied, onNode(func(n *corev1.Node) { n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: now}, []string{"other"} })), "nothing (NodeReady)"},
	})
}

func config(c *v1alpha1.MachineConfiguration) change {
	return spec(func(m *v1alpha1.Machine) { m.Spec.MachineConfiguration = c })
}

// TestNodeName_Lost_IsFoundAgain asserts that a machine is not replaced because a client
// removed its label.
func TestNodeName_Lost_IsFoundAgain(t *testing.T) {
	lost := spec(func(m *v1alpha1.Machine) { m.Labels = nil })
	blind := "nothing (NotObserved: the name of its node is not known); waits for machine/m: NotObserved: the name of its node is not known"
	fails := func(ago time.Duration) change {
		return failure(driver.OpGetMachineStatus, codes.Internal, ago, machine.NotLooked)
	}
	gone := `update status of machine m: phase "Failed",  Failed (HealthTimeout: Machine m health checks failing since last 10m0s. Updating machine phase to Failed. Node Conditions: [no Ready condition]. The VM simulated:///1 is not found at the provider)`
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a lost name is written down again":    {living(v1alpha1.MachineRunning, lost, seen(machine.Present)), "update machine m: node n (VMKnown)"},
		"a provider that fails is waited for":  {living(v1alpha1.MachineRunning, lost, fails(time.Minute)), "nothing (ProviderFailed: no quota); waits for provider: ProviderFailed: no quota"},
		"also one that fails for long":         {living(v1alpha1.MachineRunning, lost, fails(time.Minute), func(in *machine.Observation) { in.VM.Failure.Attempts = 3 }), blind},
		"but a timeout that runs goes on":      {living(v1alpha1.MachineUnknown, longUnknown, lost, notFound(time.Second)), gone},
		"and the provider is asked again":      {living(v1alpha1.MachineUnknown, lost, notFound(time.Minute)), "look for the VM (LookFirst)"},
		"a Pending machine has until its time": {living(v1alpha1.MachinePending, lost, noClass), blind},
	})
}

func TestNode_OutOfSync_IsWritten(t *testing.T) {
	bad := onNode(func(n *corev1.Node) { n.Annotations[v1alpha1.LastAppliedALTAnnotation] = "{" })
	badCapacity := onNode(func(n *corev1.Node) { n.Annotations[v1alpha1.LastAppliedVirtualCapacityAnnotation] = "{" })
	capacity := func(in *machine.Observation) {
		in.Class.Class.NodeTemplate = &v1alpha1.NodeTemplate{VirtualCapacity: corev1.ResourceList{"x.io/gpu": resource.MustParse("2")}}
	}
	rolling := func(in *machine.Observation) {
		metav1.SetMetaDataAnnotation(&in.Machine.ObjectMeta, facts.JoinHeldAnnotation, "true")
	}
	joins := onNode(func(n *corev1.Node) { n.Finalizers = nil })
	ofUser := onNode(func(n *corev1.Node) {
		n.Annotations[v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey] = "false"
	})
	check(t, machine.Policy{}, map[string]decisionCase{
		"a Node that joins in a rollout is held":  {living(v1alpha1.MachinePending, healthy, copied, joins, rolling), "update node n: finalizer, scale-down by the cluster autoscaler is disabled (NodeOutOfSync)"},
		"not against a user":                      {living(v1alpha1.MachinePending, healthy, copied, joins, rolling, ofUser), "update node n: finalizer (NodeOutOfSync)"},
		"a finalizer that is missing is added":    {living(v1alpha1.MachineRunning, healthy, copied, onNode(func(n *corev1.Node) { n.Finalizers = nil })), "update node n: finalizer (NodeOutOfSync)"},
		"before the machine runs":                 {living(v1alpha1.MachinePending, healthy, copied, onNode(func(n *corev1.Node) { n.Finalizers = nil })), "update node n: finalizer (NodeOutOfSync)"},
		"not to a Node that is deleted":           {living(v1alpha1.MachineRunning, healthy, copied, onNode(func(n *corev1.Node) { n.Finalizers, n.DeletionTimestamp = nil, &metav1.Time{Time: now} })), "nothing (NodeReady)"},
		"what was applied is recorded (DM-23)":    {living(v1alpha1.MachineRunning, healthy, copied, onNode(func(n *corev1.Node) { delete(n.Annotations, v1alpha1.LastAppliedALTAnnotation) })), "update node n: record what was applied (NodeOutOfSync)"},
		"a record that cannot be read stops it":   {living(v1alpha1.MachineRunning, healthy, copied, bad), "nothing (NodeOutOfSync: annotation node.machine.sapcloud.io/last-applied-anno-labels-taints cannot be read: unexpected end of JSON input); waits for node/n: NodeOutOfSync: annotation node.machine.sapcloud.io/last-applied-anno-labels-taints cannot be read: unexpected end of JSON input"},
		"the class may add capacity (DM-21)":      {living(v1alpha1.MachineRunning, healthy, copied, capacity), "update status of node n: virtual capacity (NodeOutOfSync: set x.io/gpu=2; record what was applied)"},
		"a record of that may be unreadable too":  {living(v1alpha1.MachineRunning, healthy, copied, capacity, badCapacity), "nothing (NodeOutOfSync: annotation node.machine.sapcloud.io/last-applied-virtual-capacity cannot be read: unexpected end of JSON input); waits for node/n: NodeOutOfSync: annotation node.machine.sapcloud.io/last-applied-virtual-capacity cannot be read: unexpected end of JSON input"},
		"a class that is missing has no opinion":  {living(v1alpha1.MachineRunning, healthy, copied, noClass), "nothing (NodeReady)"},
		"a failed machine's Node is kept as well": {living(v1alpha1.MachineFailed, healthy, onNode(func(n *corev1.Node) { delete(n.Labels, "pool") })), "update node n: set labels pool (NodeOutOfSync)"},
	})
}

func TestReleaseNode_Patch_OnlyTheFinalizer(t *testing.T) {
	in := &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "1", Finalizers: []string{"a", v1alpha1.NodeFinalizerName, "b"}}}
	patch, needed := facts.ReleaseNode(in)
	require.True(t, needed)
	require.JSONEq(t, `{"metadata":{"uid":"1","$deleteFromPrimitiveList/finalizers":["node.machine.sapcloud.io/machine-controller"]}}`, string(patch))
	in.UID = ""
	patch, _ = facts.ReleaseNode(in)
	require.NotContains(t, string(patch), "uid")
	for _, node := range []*corev1.Node{nil, {ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"a"}}}} {
		_, needed = facts.ReleaseNode(node)
		require.False(t, needed)
	}
}

// notFound is a VM that the provider did not find so long ago.
func notFound(ago time.Duration) change {
	return vm(machine.VMView{Presence: machine.Absent, Asked: driver.OpGetMachineStatus, SeenAt: now.Add(-ago)})
}

func TestVM_Vanished_IsRecordedOnly(t *testing.T) {
	text := "Machine m is unhealthy. The VM simulated:///1 is not found at the provider"
	told := operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing, text, "")
	pendingText := v1alpha1.CreatingMachine + ". The VM simulated:///1 is not found at the provider"
	gone := "nothing (NodeGone: the node does not exist); waits for node/n: NodeGone: the node does not exist"
	provider := "; waits for provider: VMVanished: the VM simulated:///1 is not found"
	longPending := entered(6 * time.Minute)
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a machine that is doubted has its VM looked for": {living(unknown), "look for the VM (NodeGone: the node does not exist)"},
		"one that is not is told":                         {living(unknown, notFound(0)), `update status of machine m: phase "Unknown", HealthCheck Processing (VMVanished: ` + text + ")"},
		"once":                                            {living(unknown, notFound(0), told), gone + provider},
		"and looked for again after a while":              {living(unknown, longUnknown, notFound(5*time.Minute), told, patient), "look for the VM (NodeGone: the node does not exist)"},
		"it fails when its time is over, and tells why":   {living(unknown, longUnknown, notFound(time.Minute), told), `update status of machine m: phase "Failed", HealthCheck Failed (HealthTimeout: Machine m health checks failing since last 10m0s. Updating machine phase to Failed. Node Conditions: [no Ready condition]. The VM simulated:///1 is not found at the provider)`},
		"and is looked for after a while":                 {living(pending, longPending), "look for the VM (WaitingForNode: the node has not joined yet)"},
		"it is told of, and nothing is made in its place": {living(pending, notFound(0)), `update status of machine m: phase "Pending", Create Processing (VMVanished: ` + pendingText + ")"},
		"who waits for components is not looked for":      {living(pending, longPending, healthy, taint, copied), "nothing (CriticalComponentsNotReady: critical components are not ready); waits for node/n: CriticalComponentsNotReady: critical components are not ready"},
		"a provider that cannot tell is not asked":        {living(unknown, vm(machine.VMView{Presence: machine.Absent, Blind: true, SeenAt: now.Add(-time.Hour)})), gone},
		"without a class there is no call":                {living(unknown, noClass), gone},
		"a provider that fails is asked no more often":    {living(unknown, failure(driver.OpGetMachineStatus, codes.Internal, time.Second, machine.NotLooked)), gone},
	})
}

func TestNode_OfAnotherMachine_CountsAsMissing(t *testing.T) {
	older := func(id string) change {
		return onNode(func(n *corev1.Node) {
			n.CreationTimestamp, n.Spec.ProviderID = metav1.NewTime(now.Add(-time.Hour)), id
			delete(unmark(n).Labels, v1alpha1.MachineNameLabelKey)
		})
	}
	namedBy := func(name string) change {
		return onNode(func(n *corev1.Node) { n.Labels[v1alpha1.MachineNameLabelKey] = name })
	}
	failed := `update status of machine m: phase "Failed", Create Failed (StaleNode: VM using old node obj)`
	tells := func(p v1alpha1.MachinePhase, why string) string {
		return fmt.Sprintf(`update status of machine m: phase %q,   (NodeUnproven: metadata.labels[node]: Invalid value: "n": the Node is not that of the machine, `+
			`and is neither changed nor drained nor deleted: %s)`, p, why)
	}
	asks, other := "look for the VM (LookFirst: before node/n is written)", `its label node.gardener.cloud/machine-name is "other"`
	joined := func(ago time.Duration) change {
		return onNode(func(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(now.Add(-ago)) })
	}
	noneFor := func(ago time.Duration) change {
		return func(in *machine.Observation) { in.VM.Named = machine.NamedVM{AskedAt: now.Add(-ago)} }
	}
	byItsName := func(in *machine.Observation) {
		in.Machine.Labels[v1alpha1.NodeLabelKey], in.Node.Node.Name = "m", "m"
	}
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"another form of the provider ID is the same VM":          {living(v1alpha1.MachinePending, healthy, older("simulated:///zone/1")), asks},
		"another VM fails it, also with the machine's name":       {living(v1alpha1.MachinePending, intended, healthy, older("other:///9"), namedBy("m")), failed},
		"a Node that came after the answer of the provider":       {living(v1alpha1.MachinePending, healthy, older(""), joined(30*time.Second), noneFor(time.Minute)), asks},
		"not one that came before it":                             {living(v1alpha1.MachinePending, healthy, older(""), joined(time.Minute), noneFor(30*time.Second)), tells(v1alpha1.MachinePending, `the provider has no VM for the machine name "m"`)},
		"a Node that came before its machine may be its own":      {living(v1alpha1.MachinePending, healthy, older("simulated:///1"), byItsName), "look for the VM (LookFirst: before node/m is written)"},
		"a machine waits for its own Node":                        {living(v1alpha1.MachineUnknown, healthy, ofAnother, looked), tells(v1alpha1.MachineUnknown, other)},
		"an update in place of another's Node is none of its own": {living(v1alpha1.MachineInPlaceUpdating, healthy, ofAnother, labeled("successful")), tells(v1alpha1.MachineInPlaceUpdating, other)},
	})
}

// TestNodeName_AnyName_LabelsAreValid answers with Node names
// of every length and spelling. No write of the machine carries a label that the API
// server refuses, and the provider ID is among the first.
func TestNodeName_AnyName_LabelsAreValid(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for length := range 254 {
		name := strings.Repeat("a", length)
		if length > 2 && r.IntN(2) == 0 {
			name = name[:length-2] + ".b"
		}
		if length > 0 && r.IntN(4) == 0 {
			name = "-" + name[1:] // valid nowhere
		}
		in := after(intended, phase(""), seen(machine.Uninitialized))
		in.VM.NodeName = name
		d := lawful(t, in, machine.DefaultPolicy())
		m, ok := objectOf[*v1alpha1.Machine](d.Action)
		require.True(t, ok, "%q: %s", name, d)
		require.NotEmpty(t, m.Spec.ProviderID)
		for key, value := range m.Labels {
			require.Empty(t, validation.IsValidLabelValue(value), key)
		}
		require.Equal(t, len(validation.IsValidLabelValue(name)) == 0, m.Labels[v1alpha1.NodeLabelKey] == name, name)
	}
}

func TestNodeName_Over63Characters_NoLabel(t *testing.T) {
	in := living(v1alpha1.MachineRunning, healthy, copied)
	delete(in.Machine.Labels, v1alpha1.NodeLabelKey)
	in.Node.Node.Name, in.Node.Name = longName("m"), longName("m")
	before := in.Machine
	d := write(t, &in)
	require.EqualValues(t, "PartlyIgnored", d.Reason, "the cause is on the object")
	require.Contains(t, d.Message, "metadata.labels[node]")
	require.Contains(t, d.Message, "65 characters")
	require.Len(t, machine.Events(before, in.Machine), 1, "and in an Event")
	require.EqualValues(t, "NodeReady", lawful(t, in, machine.DefaultPolicy()).Reason, "else it is watched as others")

	in.VM.NodeName, in.Node = longName("m"), machine.NodeView{Looked: true}
	d = lawful(t, in, machine.DefaultPolicy())
	require.Nil(t, d.Action, "it was not looked for under its name: %s", d)
	require.Equal(t, machine.ReasonNotObserved, d.Reason)
	in.Node.Name = longName("m")
	require.EqualValues(t, "NodeGone", lawful(t, in, machine.DefaultPolicy()).Reason)
}

// readyAt is a Node that became Ready so long before now.
func readyAt(ago time.Duration) change {
	c := ready(corev1.ConditionTrue)
	c.LastTransitionTime = metav1.NewTime(now.Add(-ago))
	return node(c)
}

func TestFailed_NodeReadyAgain_RunsAgain(t *testing.T) {
	again, minuteAgo := readyAt(30*time.Second), entered(time.Minute)
	creation := operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, "", "")
	withCondition := func(c corev1.NodeCondition) change {
		return onNode(func(n *corev1.Node) { n.Status.Conditions = append(n.Status.Conditions, c) })
	}
	for name, tc := range map[string]struct {
		changes []change
		want    string
	}{
		"it had failed to join in time":        {[]change{again, minuteAgo, creation}, "Running Create Successful false"},
		"Ready in the second in which it did":  {[]change{readyAt(time.Minute), minuteAgo}, stays},
		"failed by a clock that is far behind": {[]change{again, entered(-time.Hour)}, stays},
		"Ready, but bad otherwise":             {[]change{again, minuteAgo, withCondition(corev1.NodeCondition{Type: "KernelDeadlock", Status: corev1.ConditionTrue})}, stays},
		"Ready without critical components":    {[]change{again, minuteAgo, taint}, stays},
		"the Node belongs to another machine":  {[]change{again, minuteAgo, ofAnother}, stays},
		"the Node is updated in place":         {[]change{again, minuteAgo, withCondition(corev1.NodeCondition{Type: v1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: v1alpha1.UpdateFailed})}, stays},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, nextStatus(t, living(v1alpha1.MachineFailed, append(tc.changes, copied)...)))
		})
	}
	in := living(v1alpha1.MachineFailed, readyAt(-time.Second), minuteAgo, copied)
	require.Equal(t, now.Add(time.Second), lawful(t, in, machine.DefaultPolicy()).NextCheck, "it is looked at again then")
}

// asOf is how long ago the API server of the Node said what is known of it; ago 0 and
// above.
func asOf(ago time.Duration) change {
	return func(in *machine.Observation) { in.Node.AsOf = now.Add(-ago) }
}

func TestEvidence_OlderThanTheTimeout_FailsNoMachine(t *testing.T) {
	unknown := func(changes ...change) machine.Observation { // its time was over 5 minutes ago
		return living(v1alpha1.MachineUnknown, append([]change{sick, copied, entered(15 * time.Minute)}, changes...)...)
	}
	pending := func(changes ...change) machine.Observation { // so was its
		return living(v1alpha1.MachinePending, append([]change{intended, looked, spec(func(m *v1alpha1.Machine) {
			m.CreationTimestamp.Time = now.Add(-25 * time.Minute)
		})}, changes...)...)
	}
	ageless := func(in *machine.Observation) { in.Node.AsOf = time.Time{} }
	silent := func(in *machine.Observation) { in.Node.AsOf, in.Node.Unanswered = time.Time{}, true }
	const (
		reads = "read node n from the API server (LookFirst: before the machine fails)"
		away  = "the API server does not answer, so the state of node/n is not known: the machine does not fail"
		waits = "nothing (TargetUnreachable: " + away + "); waits for target-cluster: TargetUnreachable: " + away
		limit = "ReplacementLimit: machines being replaced: 1, limit: 1"
	)
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"unknown, and the age is not known":      {unknown(ageless), reads},
		"unknown, heard just then":               {unknown(asOf(5 * time.Minute)), `update status of machine m: phase "Failed",  Failed (HealthTimeout: Machine m health checks failing since last 10m0s. Updating machine phase to Failed. Node Conditions: [Ready=Unknown (Kubelet)])`},
		"one of a deployment, before its permit": {unknown(ageless, inPool, siblings(true)), reads},
		"and no permit without room for it":      {unknown(ageless, inPool, siblings(true, v1alpha1.MachineFailed)), "nothing (" + limit + "); waits for machinedeployment/pool: " + limit},
		"pending, and nothing was heard since":   {pending(asOf(5*time.Minute + time.Second)), reads},
		"pending, and no answer":                 {pending(silent), waits},
		"pending, the label lost":                {pending(ageless, unlabeled), "list each node from the API server (LookFirst: before the machine fails)"},
		"one that has recovered meanwhile runs":  {unknown(asOf(0), healthy), `update status of machine m: phase "Running", HealthCheck Successful (NodeReady: Machine m successfully re-joined the cluster)`},
	})
	for _, in := range []machine.Observation{unknown(silent), pending(silent)} {
		require.NotZero(t, lawful(t, in, machine.DefaultPolicy()).NextCheck)
	}
}

// unlabeled takes the label node away, and what the provider says of the Node.
var unlabeled change = func(in *machine.Observation) {
	in.Machine.Labels = nil
	in.VM = machine.VMView{Presence: machine.Present, ProviderID: in.Machine.Spec.ProviderID, SeenAt: now}
	in.Node.Node = (*corev1.Node)(nil)
}

// TestReplacementLimit_Siblings_CountOfReplaced asserts the number of machines being replaced in
// the message of a policy with the limit 0.
func TestReplacementLimit_Siblings_CountOfReplaced(t *testing.T) {
	const failed, unknown, failedUpdate, leaves = v1alpha1.MachineFailed, v1alpha1.MachineUnknown, v1alpha1.MachineInPlaceUpdateFailed, v1alpha1.MachineTerminating
	of := func(uid string, p v1alpha1.MachinePhase, preserved bool) *v1alpha1.Machine {
		m := newMachine("s")
		m.UID, m.Status.CurrentStatus.Phase = machineUID(uid), p
		if preserved {
			m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now}
		}
		return m
	}
	type list = []*v1alpha1.Machine
	updates := list{of("me", failedUpdate, false), of("a", failedUpdate, false), of("b", failed, false)}
	for name, tc := range map[string]struct {
		phase    v1alpha1.MachinePhase
		siblings list
		want     int
	}{
		"nil: not counted":                                               {unknown, list{nil}, 0},
		"the machine itself: not counted (DM-08)":                        {unknown, list{of("me", failed, false)}, 0},
		"other phases: counted":                                          {unknown, list{of("a", "", false), of("b", failed, false), of("c", v1alpha1.MachinePending, false)}, 3},
		"Terminating: counted twice":                                     {unknown, list{of("a", leaves, false)}, 2},
		"Terminating and preserved: counted once":                        {unknown, list{of("a", leaves, true)}, 1},
		"no UID: counted":                                                {unknown, list{of("", failed, false)}, 1},
		"InPlaceUpdateFailed does not count InPlaceUpdateFailed (DM-08)": {failedUpdate, updates, 1},
		"InPlaceUpdateFailed: counted for other machines":                {unknown, updates, 2},
	} {
		t.Run(name, func(t *testing.T) {
			in := living(tc.phase, longUnknown, sick, labeled("failed"), copied, inPool)
			in.Machine.UID, in.Siblings = "me", machine.Siblings{Complete: true, Machines: tc.siblings}
			require.Equal(t, fmt.Sprintf("machines being replaced: %d, limit: 0", tc.want), lawful(t, in, limited(0)).Message)
		})
	}
}

func FuzzParseHealthConditions(f *testing.F) {
	for _, list := range []string{"", ",", "A", "KernelDeadlock,ReadonlyFilesystem", " A , B ,A", "a,\x00,é"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		types := machine.ParseHealthConditions(list)
		var texts []string
		for _, kind := range types {
			text := string(kind)
			require.Equal(t, strings.TrimSpace(text), text)
			require.NotEmpty(t, text)
			require.NotContains(t, texts, text)
			require.Contains(t, list, text)
			texts = append(texts, text)
		}
		require.Equal(t, types, machine.ParseHealthConditions(strings.Join(texts, ",")))
	})
}

func TestPreservation_FailsAgainAfterRecovery_IsDrainedAgain(t *testing.T) {
	r, drains := newWorld(living(failed, sick, copied, asks("now", "-", "-"))), 0
	r.drained = func(machine.DrainNode) machine.DrainView {
		drains++
		return machine.DrainView{Done: true}
	}
	becomes := func(s corev1.ConditionStatus, after time.Duration) {
		c := &r.in.Node.Node.Status.Conditions[0]
		c.Status, c.LastTransitionTime = s, metav1.NewTime(r.now)
		r.mustRest(t)
		r.pass(after)
		r.mustRest(t)
	}
	r.mustRest(t)
	becomes(corev1.ConditionTrue, time.Minute)
	require.Equal(t, running, r.phase())
	require.NotContains(t, r.condition(v1alpha1.NodePreserved).Message, "drained")
	becomes(corev1.ConditionUnknown, 11*time.Minute)
	require.Equal(t, failed, r.phase())
	require.Equal(t, 2, drains)
	require.Contains(t, r.condition(v1alpha1.NodePreserved).Message, "drained successfully")
}
