// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
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
	longUnknown = spec(func(m *v1alpha1.Machine) {
		m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-10 * time.Minute))
	})
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

func TestAMachineLives(t *testing.T) {
	t.Parallel()
	const (
		running = v1alpha1.MachineRunning
		pending = v1alpha1.MachinePending
		unknown = v1alpha1.MachineUnknown
		failed  = v1alpha1.MachineFailed
	)
	toFailed := `record phase "Failed", Create Failed (CreationTimeout: ` + timedOut + ")"
	waitsForOwner := "nothing (Failed: waits to be replaced by its owner); waits for machine/m: Failed: waits to be replaced by its owner"
	rejoined := `record phase "Running", HealthCheck Successful (NodeReady: Machine m successfully re-joined the cluster)`
	sickText := "the node is unhealthy: [Ready=Unknown (Kubelet)]"
	health := `record phase "Failed",  Failed (HealthTimeout: Machine m health checks failing since last 10m0s. Updating machine phase to Failed. Node Conditions: [Ready=Unknown (Kubelet)])`
	take := "take one of 1 permits of shoot/pool (Permit)"
	refused := "nothing (ReplacementLimit: no permit is free); waits for machinedeployment/pool: ReplacementLimit: no permit is free"
	flapped := spec(func(m *v1alpha1.Machine) { m.Status.Conditions = nil })
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a machine whose finalizer somebody took is guarded again":   {living(running, unguarded, healthy), "update machine: finalizer (New)"},
		"without a cluster there is nothing to watch":                {living(v1alpha1.MachineAvailable, noTarget), "nothing (Available)"},
		"but a failed machine waits for its owner":                   {living(failed, noTarget), waitsForOwner},
		"an incomplete view proves nothing":                          {living(running, unseen), "nothing (NodeNotObserved); waits for node/n: NodeNotObserved"},
		"a healthy machine joins":                                    {living(pending, intended, healthy), `record phase "Running", Create Successful (NodeReady: Machine m successfully joined the cluster in 5m0s)`},
		"also late":                                                  {living(pending, intended, old, healthy), `record phase "Running", Create Successful (NodeReady: Machine m successfully joined the cluster in 20m0s)`},
		"not before its critical components":                         {living(pending, healthy, taint, copied), "nothing (CriticalComponentsNotReady: critical components are not ready); waits for node/n: CriticalComponentsNotReady: critical components are not ready"},
		"whose taint fails it in the end":                            {living(pending, old, healthy, taint, copied), toFailed},
		"a taint of another effect does not count":                   {living(pending, healthy, taint, onNode(func(n *corev1.Node) { n.Spec.Taints[0].Effect = corev1.TaintEffectPreferNoSchedule })), rejoined},
		"a Node that has not joined is waited for":                   {living(pending), "nothing (WaitingForNode: the node has not joined yet); waits for node/n: WaitingForNode: the node has not joined yet"},
		"but not for ever":                                           {living(pending, old), toFailed},
		"a Node that is not ready too":                               {living(pending, sick, copied), "nothing (WaitingForNode: the node is not ready: [Ready=Unknown (Kubelet)]); waits for node/n: WaitingForNode: the node is not ready: [Ready=Unknown (Kubelet)]"},
		"a Node without Ready too (DM-30)":                           {living(pending, node()), "nothing (WaitingForNode: the node is not ready: [no Ready condition]); waits for node/n: WaitingForNode: the node is not ready: [no Ready condition]"},
		"changed conditions do not put off a timeout (DM-34)":        {living(pending, old, sick), toFailed},
		"a healthy running machine rests":                            {living(running, healthy, copied), "nothing (NodeReady)"},
		"changed conditions are copied":                              {living(running, node(ready(corev1.ConditionTrue), corev1.NodeCondition{Type: "A", Status: "True"})), `record phase "Running",   (ConditionsChanged)`},
		"a running machine that is sick is doubted":                  {living(running, sick), `record phase "Unknown", HealthCheck Processing (NodeUnhealthy: Machine m is unhealthy - changing MachinePhase to Unknown. Node conditions: [Ready=Unknown (Kubelet)])`},
		"so is one whose Node is gone":                               {living(running), `record phase "Unknown", HealthCheck Processing (NodeGone: Node object went missing. Machine m is unhealthy - changing MachinePhase to Unknown)`},
		"an unknown machine may recover":                             {living(unknown, healthy), rejoined},
		"it has time for that":                                       {living(unknown, sick, copied, looked), "nothing (NodeUnhealthy: " + sickText + "); waits for node/n: NodeUnhealthy: " + sickText},
		"also without Node":                                          {living(unknown, looked), "nothing (NodeGone: the node does not exist); waits for node/n: NodeGone: the node does not exist"},
		"without a time when it began, it begins now":                {living(unknown, sick, copied, spec(func(m *v1alpha1.Machine) { m.Status.CurrentStatus.LastUpdateTime = metav1.Time{} })), `record phase "Unknown",   (NodeUnhealthy)`},
		"then it fails":                                              {living(unknown, longUnknown, sick, copied), health},
		"also if conditions flap (DM-34)":                            {living(unknown, longUnknown, sick, flapped), health},
		"also without Node (M-2)":                                    {living(unknown, longUnknown), `record phase "Failed",  Failed (HealthTimeout: Machine m health checks failing since last 10m0s. Updating machine phase to Failed. Node Conditions: [no Ready condition])`},
		"not while the others are not known":                         {living(unknown, longUnknown, inPool), "nothing (ReplacementLimit: the other machines are not known); waits for machinedeployment/pool: ReplacementLimit: the other machines are not known"},
		"not while another is replaced":                              {living(unknown, longUnknown, inPool, siblings(true, running, pending)), "nothing (ReplacementLimit: 1 being replaced >= 1 allowed); waits for machinedeployment/pool: ReplacementLimit: 1 being replaced >= 1 allowed"},
		"the others being healthy or unknown it wants a permit":      {living(unknown, longUnknown, sick, inPool, siblings(true, running, unknown)), take},
		"which may be refused":                                       {living(unknown, longUnknown, sick, copied, inPool, siblings(true), permit(machine.PermitView{Asked: true})), refused},
		"with one it fails":                                          {living(unknown, longUnknown, sick, inPool, siblings(true, running, unknown), held(1)), health},
		"a failed machine waits for its owner":                       {living(failed, sick, copied), waitsForOwner},
		"also if it recovers (DM-31)":                                {living(failed, healthy, copied), waitsForOwner},
		"also if its Node is gone":                                   {living(failed), waitsForOwner},
		"a machine that is updated in place is left alone":           {living(v1alpha1.MachineInPlaceUpdating, sick, atStep(v1alpha1.ReadyForUpdate), copied), "nothing (InPlaceUpdate: it is ready for its update in place); waits for node/n: InPlaceUpdate: it is ready for its update in place"},
		"one Available joins when there is a cluster":                {living(v1alpha1.MachineAvailable, healthy), rejoined},
		"until then nothing but its Node can help":                   {living(v1alpha1.MachineAvailable, old, sick, copied), "nothing (WaitingForNode: the node is not ready: [Ready=Unknown (Kubelet)]); waits for node/n: WaitingForNode: the node is not ready: [Ready=Unknown (Kubelet)]"},
		"one Terminating that is not deleted lives (DM-01)":          {living(v1alpha1.MachineTerminating, healthy), rejoined},
		"whoever deletes the Node deletes the machine":               {living(running, healthy, onNode(func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: now} })), "delete machine m (NodeDeleted)"},
		"a Node that others delete without us is watched until then": {living(running, healthy, copied, onNode(func(n *corev1.Node) { n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: now}, []string{"other"} })), "nothing (NodeReady)"},
	})
	check(t, machine.Policy{}, map[string]decisionCase{
		"the zero policy waits for ever for a Node": {living(pending, spec(func(m *v1alpha1.Machine) { m.CreationTimestamp = metav1.NewTime(now.Add(-1e6 * time.Hour)) })), "nothing (WaitingForNode: the node has not joined yet); waits for node/n: WaitingForNode: the node has not joined yet"},
		"and for a recovery":                        {living(unknown, sick, copied, longUnknown, looked), "nothing (NodeUnhealthy: " + sickText + "); waits for node/n: NodeUnhealthy: " + sickText},
	})
	many := machine.DefaultPolicy()
	many.MaxReplacements = 2
	check(t, many, map[string]decisionCase{
		"a higher limit lets more fail":                {living(unknown, longUnknown, sick, copied, inPool, siblings(true, pending)), take},
		"one that is terminating counts twice":         {living(unknown, longUnknown, inPool, siblings(true, v1alpha1.MachineTerminating)), "nothing (ReplacementLimit: 2 being replaced >= 2 allowed); waits for machinedeployment/pool: ReplacementLimit: 2 being replaced >= 2 allowed"},
		"a machine of its own may switch timeouts off": {living(unknown, longUnknown, sick, copied, looked, config(&v1alpha1.MachineConfiguration{DisableHealthTimeout: new(true)})), "nothing (NodeUnhealthy: " + sickText + "); waits for node/n: NodeUnhealthy: " + sickText},
	})
}

func config(c *v1alpha1.MachineConfiguration) change {
	return spec(func(m *v1alpha1.Machine) { m.Spec.MachineConfiguration = c })
}

// A label that somebody removes is no reason to replace a machine.
func TestTheNameOfANodeThatWasLostIsAskedFor(t *testing.T) {
	t.Parallel()
	lost := spec(func(m *v1alpha1.Machine) { m.Labels = nil })
	blind := "nothing (NodeNotObserved: the name of its node is not known); waits for machine/m: NodeNotObserved: the name of its node is not known"
	absent := func(ago time.Duration) change {
		return vm(machine.VMView{Sighting: machine.Absent, Asked: driver.OpGetMachineStatus, SeenAt: now.Add(-ago)})
	}
	fails := func(ago time.Duration) change {
		return failure(driver.OpGetMachineStatus, codes.Internal, ago, machine.NotLooked)
	}
	gone := `record phase "Failed",  Failed (HealthTimeout: Machine m health checks failing since last 10m0s. Updating machine phase to Failed. Node Conditions: [no Ready condition]. The VM simulated:///1 is not found at the provider)`
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"the VM is asked":                      {living(v1alpha1.MachineRunning, lost), "look for the VM (LookFirst)"},
		"and the name is written down":         {living(v1alpha1.MachineRunning, lost, seen(machine.Present)), "update machine: node n (VMKnown)"},
		"a provider that fails is waited for":  {living(v1alpha1.MachineRunning, lost, fails(time.Minute)), "nothing (ProviderFailed: no quota); waits for provider: ProviderFailed: no quota"},
		"also one that fails for long":         {living(v1alpha1.MachineRunning, lost, fails(time.Minute), func(in *machine.Observation) { in.VM.Failure.Attempts = 3 }), blind},
		"which is asked all the same":          {living(v1alpha1.MachineRunning, lost, fails(time.Hour), func(in *machine.Observation) { in.VM.Failure.Attempts = 3 }), "look for the VM (LookFirst)"},
		"and asked again":                      {living(v1alpha1.MachineRunning, lost, fails(3*time.Minute)), "look for the VM (LookFirst)"},
		"so is one that finds nothing":         {living(v1alpha1.MachineRunning, lost, absent(time.Second)), blind},
		"but a timeout that runs goes on":      {living(v1alpha1.MachineUnknown, longUnknown, lost, absent(time.Second)), gone},
		"which is asked again too":             {living(v1alpha1.MachineUnknown, lost, absent(time.Minute)), "look for the VM (LookFirst)"},
		"without a class nobody can be asked":  {living(v1alpha1.MachineRunning, lost, noClass), blind},
		"a Pending machine fails in the end":   {living(v1alpha1.MachinePending, old, lost, seen(machine.Present)), `record phase "Failed", Create Failed (CreationTimeout: ` + timedOut + ")"},
		"one that has failed waits":            {living(v1alpha1.MachineFailed, lost), "nothing (Failed: waits to be replaced by its owner); waits for machine/m: Failed: waits to be replaced by its owner"},
		"a Pending machine has until its time": {living(v1alpha1.MachinePending, lost, noClass), blind},
	})
}

// Every write of the phase keeps what else stands beside it (DM-14).
func TestEveryChangeOfPhaseKeepsThePreservation(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]machine.Observation{
		"joins":          living(v1alpha1.MachinePending, healthy, keptNow),
		"recovers":       living(v1alpha1.MachineUnknown, healthy, keptNow),
		"is doubted":     living(v1alpha1.MachineRunning, sick, keptNow),
		"loses its Node": living(v1alpha1.MachineRunning, keptNow),
		"fails":          living(v1alpha1.MachineUnknown, longUnknown, keptNow),
		"times out":      living(v1alpha1.MachinePending, old, keptNow),
		"crashes":        after(append(crashed[1:], keptNow, withID, failure("CreateMachine", 13, 0, machine.NotLooked))...),
		"is found":       after(intended, keptNow, withID, seen(machine.Present)),
	} {
		c, _, m := nextPhase(t, 0, deepCopy(in), machine.DefaultPolicy())
		require.NotNil(t, m, name)
		require.Equal(t, in.Machine.Status.CurrentStatus.PreserveExpiryTime, m.Status.CurrentStatus.PreserveExpiryTime, name)
		require.NotEqual(t, c.from, c.to, name)
		require.Equal(t, metav1.NewTime(now), m.Status.CurrentStatus.LastUpdateTime, name)
	}
}

func TestAConditionThatStandsTwiceIsNotCopiedForEver(t *testing.T) {
	t.Parallel()
	in := living(v1alpha1.MachineRunning, node(ready(corev1.ConditionTrue), corev1.NodeCondition{Type: "A", Status: "True"}, corev1.NodeCondition{Type: "A", Status: "False"}))
	u := lawful(t, in, machine.Policy{}).Do.(machine.UpdateStatus)
	in.Machine = u.Machine
	require.Equal(t, machine.ReasonNodeReady, lawful(t, in, machine.Policy{}).Reason)
}

func TestANodeIsKeptAsTheMachineWantsIt(t *testing.T) {
	t.Parallel()
	bad := onNode(func(n *corev1.Node) { n.Annotations[v1alpha1.LastAppliedALTAnnotation] = "{" })
	badCapacity := onNode(func(n *corev1.Node) { n.Annotations[v1alpha1.LastAppliedVirtualCapacityAnnotation] = "{" })
	capacity := func(in *machine.Observation) {
		in.Class.Class.NodeTemplate = &v1alpha1.NodeTemplate{VirtualCapacity: corev1.ResourceList{"x.io/gpu": resource.MustParse("2")}}
	}
	check(t, machine.Policy{}, map[string]decisionCase{
		"a finalizer that is missing is added":    {living(v1alpha1.MachineRunning, healthy, copied, onNode(func(n *corev1.Node) { n.Finalizers = nil })), "update node: finalizer (NodeOutOfSync)"},
		"not to a Node that is deleted":           {living(v1alpha1.MachineRunning, healthy, copied, onNode(func(n *corev1.Node) { n.Finalizers, n.DeletionTimestamp = nil, &metav1.Time{Time: now} })), "nothing (NodeReady)"},
		"so is the name of the machine":           {living(v1alpha1.MachineRunning, healthy, copied, onNode(func(n *corev1.Node) { delete(n.Labels, v1alpha1.MachineNameLabelKey) })), "update node: machine name (NodeOutOfSync)"},
		"and a label of the template":             {living(v1alpha1.MachineRunning, healthy, copied, onNode(func(n *corev1.Node) { delete(n.Labels, "pool") })), "update node: set labels pool (NodeOutOfSync)"},
		"what was applied is recorded (DM-23)":    {living(v1alpha1.MachineRunning, healthy, copied, onNode(func(n *corev1.Node) { n.Annotations = nil })), "update node: record what was applied (NodeOutOfSync)"},
		"a record that cannot be read stops it":   {living(v1alpha1.MachineRunning, healthy, copied, bad), "nothing (NodeTemplateUnreadable: annotation node.machine.sapcloud.io/last-applied-anno-labels-taints cannot be read: unexpected end of JSON input); waits for node/n: NodeTemplateUnreadable: annotation node.machine.sapcloud.io/last-applied-anno-labels-taints cannot be read: unexpected end of JSON input"},
		"the class may add capacity (DM-21)":      {living(v1alpha1.MachineRunning, healthy, copied, capacity), "update node: virtual capacity (NodeOutOfSync: set x.io/gpu=2; record what was applied)"},
		"a record of that may be unreadable too":  {living(v1alpha1.MachineRunning, healthy, copied, capacity, badCapacity), "nothing (NodeTemplateUnreadable: annotation node.machine.sapcloud.io/last-applied-virtual-capacity cannot be read: unexpected end of JSON input); waits for node/n: NodeTemplateUnreadable: annotation node.machine.sapcloud.io/last-applied-virtual-capacity cannot be read: unexpected end of JSON input"},
		"a class without template has no opinion": {living(v1alpha1.MachineRunning, healthy, copied, badCapacity), "nothing (NodeReady)"},
		"nor has a class that is missing":         {living(v1alpha1.MachineRunning, healthy, copied, noClass), "nothing (NodeReady)"},
		"a failed machine's Node is kept as well": {living(v1alpha1.MachineFailed, healthy, onNode(func(n *corev1.Node) { delete(n.Labels, "pool") })), "update node: set labels pool (NodeOutOfSync)"},
	})
}

// synced carries out the writes of a Node until there are none.
func synced(t *testing.T, in machine.Observation) (*corev1.Node, int) {
	t.Helper()
	for writes := range 10 {
		switch a := lawful(t, in, machine.Policy{}).Do.(type) {
		case machine.UpdateNode:
			require.Equal(t, "9", a.Node.ResourceVersion)
			in.Node.Node = a.Node
		case machine.UpdateNodeCapacity:
			in.Node.Node = a.Node
		default:
			return in.Node.Node, writes
		}
	}
	t.Fatal("the Node is written again and again")
	return nil, 0
}

func TestTheTemplateMayNotRenameTheMachine(t *testing.T) {
	t.Parallel()
	in := living(v1alpha1.MachineRunning, healthy, copied, spec(func(m *v1alpha1.Machine) {
		m.Spec.NodeTemplateSpec.Labels = map[string]string{v1alpha1.MachineNameLabelKey: "other", "a": "b"}
	}))
	n, writes := synced(t, in)
	require.Equal(t, 1, writes)
	require.Equal(t, map[string]string{v1alpha1.MachineNameLabelKey: "m", "a": "b"}, n.Labels)
}

func TestANodeIsInSyncAfterTwoWrites(t *testing.T) {
	t.Parallel()
	added := metav1.NewTime(now)
	in := living(v1alpha1.MachineRunning, healthy, copied, spec(func(m *v1alpha1.Machine) {
		m.Spec.NodeTemplateSpec = v1alpha1.NodeTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"x": "y"}},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}}},
		}
	}), onNode(func(n *corev1.Node) {
		n.ObjectMeta = metav1.ObjectMeta{Name: "n", ResourceVersion: "9"}
		n.Spec.Taints = []corev1.Taint{{Key: "foreign", Effect: corev1.TaintEffectNoSchedule}}
	}), func(in *machine.Observation) {
		in.Class.Class.NodeTemplate = &v1alpha1.NodeTemplate{VirtualCapacity: corev1.ResourceList{"x.io/gpu": resource.MustParse("2")}}
	})
	n, writes := synced(t, in)
	require.Equal(t, 2, writes)
	require.Len(t, n.Spec.Taints, 2)
	require.Equal(t, []string{v1alpha1.NodeFinalizerName}, n.Finalizers)
	require.Equal(t, "y", n.Annotations["x"])
	require.Equal(t, "m", n.Labels[v1alpha1.MachineNameLabelKey])
}

func TestReleaseNodeTakesOnlyOurFinalizer(t *testing.T) {
	t.Parallel()
	patch, needed := machine.ReleaseNode(nil)
	require.Nil(t, patch)
	require.False(t, needed)
	in := &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "1", Finalizers: []string{"a", v1alpha1.NodeFinalizerName, "b"}}}
	patch, needed = machine.ReleaseNode(in)
	require.True(t, needed)
	require.JSONEq(t, `{"metadata":{"uid":"1","$deleteFromPrimitiveList/finalizers":["node.machine.sapcloud.io/machine-controller"]}}`, string(patch))
	released := patched(in)
	require.Equal(t, []string{"a", "b"}, released.Finalizers)
	require.Len(t, in.Finalizers, 3)
	_, needed = machine.ReleaseNode(released)
	require.False(t, needed)
	patch, _ = machine.ReleaseNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{v1alpha1.NodeFinalizerName}}})
	require.NotContains(t, string(patch), "uid")
}

// patched returns the Node as the API server has it after the patch of ReleaseNode.
func patched(node *corev1.Node) *corev1.Node {
	patch, needed := machine.ReleaseNode(node)
	if !needed {
		return node
	}
	before, err := json.Marshal(node)
	if err != nil {
		panic(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, &corev1.Node{})
	if err != nil {
		panic(err)
	}
	released := &corev1.Node{}
	if err := json.Unmarshal(after, released); err != nil {
		panic(err)
	}
	return released
}

func TestCandidatesStandInTheOrderOfTheirMachines(t *testing.T) {
	t.Parallel()
	got := machine.Candidates([]*v1alpha1.Machine{nil, living(v1alpha1.MachineRunning).Machine})
	require.Len(t, got, 2)
	require.Zero(t, got[0])
	require.Equal(t, "m", got[1].Name)
	require.Equal(t, "n", got[1].NodeName)
	require.Equal(t, "simulated:///1", got[1].ProviderID)
}
