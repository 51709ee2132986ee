// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// claimed is a machine whose label names a Node, or whose provider ID is that of the Node. A user
// has written both. The Node is older than the machine, and has no record of it.
func claimed(label, id string, node *corev1.Node, changes ...change) machine.Observation {
	return after(append([]change{func(in *machine.Observation) {
		in.Machine.Spec.ProviderID = id
		if label != "" {
			in.Machine.Labels = map[string]string{v1alpha1.NodeLabelKey: label}
		}
		in.Node = machine.NodeView{Looked: true, AsOf: now, Name: node.Name, Node: node.DeepCopy()}
		in.Attachments.Looked = true
	}}, changes...)...)
}

// nodeOfOthers returns a Node of another owner, which is Ready.
func nodeOfOthers(name, id, machineName string) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "node-uid", CreationTimestamp: metav1.NewTime(now.Add(-1000 * time.Hour)), Labels: map[string]string{"pool": "a"}},
		Spec:       corev1.NodeSpec{ProviderID: id}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{ready(corev1.ConditionTrue)}},
	}
	if machineName != "" {
		n.Labels[v1alpha1.MachineNameLabelKey] = machineName
	}
	return n
}

// younger makes the Node younger than the machine.
func younger(n *corev1.Node) *corev1.Node {
	n.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
	return n
}

// rival is a machine of another namespace with the name and the provider ID, which is an hour older.
func rival(id string) change {
	return func(in *machine.Observation) {
		o := newMachine(in.Machine.Name)
		o.Namespace, o.UID, o.Spec.ProviderID = "victim", "uid-victim", id
		o.CreationTimestamp = metav1.NewTime(in.Machine.CreationTimestamp.Add(-time.Hour))
		in.ProviderID.Others = append(in.ProviderID.Others, in.Machine, o)
	}
}

// TestProof_NodeOfOthers_IsNeverWritten plays machines that users have written, until nothing
// happens for a day, and until they are deleted. No action touches the Node (I-21).
func TestProof_NodeOfOthers_IsNeverWritten(t *testing.T) {
	own := func(in *machine.Observation) {
		in.VM.Named = machine.NamedVM{AskedAt: now, ProviderID: "simulated:///1", NodeName: "n"}
	}
	for name, tc := range map[string]struct {
		in  machine.Observation
		why string
	}{
		"A: the label names a Node without a provider ID":     {claimed("cp-a", "", nodeOfOthers("cp-a", "", "")), `the provider has no VM for the machine name "m"`},
		"C: the provider ID is that of the Node":              {claimed("", "kind:///cp-a", nodeOfOthers("cp-a", "kind:///cp-a", "")), `the provider has no VM for the machine name "m"`},
		"D: both":                                             {claimed("cp-a", "kind:///cp-a", nodeOfOthers("cp-a", "kind:///cp-a", "")), `the provider has no VM for the machine name "m"`},
		"E: the name of a machine of another namespace":       {claimed("cp-a", "", nodeOfOthers("cp-a", "kind:///cp-a", "m"), rival("kind:///cp-a")), `the provider has no VM for the machine name "m"`},
		"E: and the provider has its VM for this name":        {claimed("cp-a", "simulated:///1", nodeOfOthers("cp-a", "simulated:///1", "m"), rival("simulated:///1"), own), "machine victim/m has the same name and the better claim"},
		"H: the label names a Node with a provider ID, no VM": {claimed("cp-a", "", nodeOfOthers("cp-a", "kind:///cp-a", "")), `the provider has no VM for the machine name "m"`},
		"its own VM, and the label of a Node without an ID":   {claimed("cp-a", "simulated:///1", nodeOfOthers("cp-a", "", ""), own), `the provider has the Node "n" for the machine`},
		"its own VM, and the ID of another":                   {claimed("cp-a", "kind:///cp-a", nodeOfOthers("cp-a", "kind:///cp-a", ""), own), `its provider ID is "kind:///cp-a", and the provider has the VM "simulated:///1" for the machine`},
		"fa: the Node name came back with another VM":         {claimed("n", "simulated:///1", younger(nodeOfOthers("n", "simulated:///2", ""))), `its provider ID is "simulated:///2", and that of the machine is "simulated:///1"`},
		"fb: the VM of a sibling":                             {claimed("n", "simulated:///1", younger(nodeOfOthers("n", "simulated:///2", "")), own), `its provider ID is "simulated:///2", and the provider has the VM "simulated:///1" for the machine`},
		"a scale set of another pool":                         {claimed("n", "azure:///vmss/a/virtualMachines/0", younger(nodeOfOthers("n", "azure:///vmss/b/virtualMachines/0", ""))), "and that of the machine is"},
		"the record of another machine": {claimed("n", "", func() *corev1.Node {
			n := nodeOfOthers("n", "kind:///n", "")
			n.Annotations = map[string]string{v1alpha1.MachineUIDAnnotation: "uid-x"}
			return n
		}()), "the provider has no VM"},
		"the node template claims to be the record of the machine": {claimed("cp-a", "", nodeOfOthers("cp-a", "", ""), spec(func(m *v1alpha1.Machine) {
			m.Spec.NodeTemplateSpec.Annotations = map[string]string{v1alpha1.MachineUIDAnnotation: string(m.UID)}
		})), "the provider has no VM"},
	} {
		for _, deleting := range []bool{false, true} {
			for _, p := range allPhases {
				in := tc.in
				in.Machine = tc.in.Machine.DeepCopy()
				phase(p)(&in)
				if deleting {
					in.Machine.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)}
				}
				w := newWorld(in)
				w.lookErr = status.Error(codes.NotFound, "none")
				for range 20 {
					w.create = append(w.create, status.Error(codes.ResourceExhausted, "no quota"))
				}
				before := in.Node.Node.DeepCopy()
				for range 60 {
					goesOn := w.next(t)
					switch w.last.Action.(type) {
					case machinist.Update, machine.DrainNode, machinist.Delete, machine.DeleteAttachments:
						require.Truef(t, isMachine(w.last.Action), "the Node is written: %s, phase %q, deleting %v: %q", name, p, deleting, w.did)
					}
					if !goesOn {
						break
					}
				}
				require.Empty(t, cmp.Diff(before, w.in.Node.Node), "%s, phase %q", name, p)
				if deleting {
					require.True(t, w.released, "%s, phase %q: the deletion ends without the Node: %q", name, p, w.did)
				}
				require.NotEqual(t, v1alpha1.MachineRunning, map[bool]v1alpha1.MachinePhase{true: w.in.Machine.Status.CurrentStatus.Phase}[p != v1alpha1.MachineRunning], "%s, phase %q: %q", name, p, w.did)
				told := facts.ConditionOf(w.in.Machine.Status.Conditions, v1alpha1.MachineValid)
				if p == v1alpha1.MachineRunning { // the Node is written in no phase, and judged in this one
					require.NotNil(t, told, "%s: %q", name, w.did)
					require.Contains(t, told.Message, "is neither changed nor drained nor deleted: ", name)
					require.Contains(t, told.Message, tc.why, name)
				}
			}
		}
	}
}

func TestProof_OwnNode_OneCallInTheLifeOfAProcess(t *testing.T) {
	withNodeID := func(id string) change { return onNode(func(n *corev1.Node) { n.Spec.ProviderID = id }) }
	whole := []string{stepMark, stepBegin, stepDrain, stepVM, stepNode, stepRelease}
	asks := []string{stepLook, stepMark, stepBegin, "update node n: UID of the machine", stepDrain, stepVM, stepNode, stepRelease}
	byName := []string{stepLook, stepMark, stepBegin, stepDrain, "delete the VM that has the name of the machine", stepNode, stepRelease}
	for name, tc := range map[string]struct {
		change change
		id     string // of the Node
		steps  []string
	}{
		"another form of the ID":               {healthy, "simulated:///zone/1", whole},
		"no record":                            {unproven, "simulated:///1", asks},
		"no record and no ID":                  {unproven, "", asks},
		"a record of before a restored backup": {onNode(func(n *corev1.Node) { n.Annotations[v1alpha1.MachineUIDAnnotation] = "uid-before" }), "simulated:///1", asks},
		"a user changed the provider ID":       {spec(func(m *v1alpha1.Machine) { m.Spec.ProviderID = "simulated:///9" }), "simulated:///1", byName},
	} {
		in := living(running, leaving, healthy, attached(), tc.change, withNodeID(tc.id))
		in.VM = machine.VMView{}
		require.Equal(t, tc.steps, newWorld(in).run(t).did, name)
	}
	require.Equal(t, "nothing (NodeReady)", lawful(t, living(running, healthy, copied, unproven), machine.DefaultPolicy()).String(), "a settled machine")
}

// TestProof_CrashAfterTheDeletionOfTheVM_NodeIsDeleted loses the memory after each step of a
// deletion. The provider names no deleted VM, and the record on the Node proves it.
func TestProof_CrashAfterTheDeletionOfTheVM_NodeIsDeleted(t *testing.T) {
	for crash := range 9 {
		w := newWorld(living(running, leaving, healthy, attached(), unproven))
		w.in.VM = machine.VMView{}
		for i := 0; i < 40 && w.next(t); i++ {
			if i == crash {
				w.in.VM = machine.VMView{}
			}
			if len(w.did) > 0 && w.did[len(w.did)-1] == stepVM {
				w.lookErr = status.Error(codes.NotFound, "deleted")
			}
		}
		require.True(t, w.released, "%q", w.did)
		require.Nil(t, w.in.Node.Node, "crash after step %d: %q", crash, w.did)
	}
}

// TestProof_TakenOverAfterTheVM_NodeIsDeleted continues a deletion of MCM whose VM is deleted.
func TestProof_TakenOverAfterTheVM_NodeIsDeleted(t *testing.T) {
	w := newWorld(terminating(healthy, attached(), unproven, handed("VM deletion was successful. "+v1alpha1.InitiateNodeDeletion)))
	w.in.VM = machine.VMView{}
	w.lookErr = status.Error(codes.NotFound, "deleted")
	w.run(t)
	require.True(t, w.released)
	require.Nil(t, w.in.Node.Node, "%q", w.did)
}

// TestProof_ProviderFails_DeletionWaits holds a deletion while the provider does not answer, at most
// until a minute after the drain is forced. The Node is then not touched.
func TestProof_ProviderFails_DeletionWaits(t *testing.T) {
	down := func(w *world) { w.lookErr = status.Error(codes.Internal, "down") }
	for _, w := range endsWhenForced(t, 2, down, withID, phase(running), healthy, attached(), unproven) {
		require.NotNil(t, w.in.Node.Node)
	}
}

// byName is a driver that has VMs by name, some only in its list.
type byName struct {
	driver.Driver
	get, list map[string]string
	getErr    error
	asked     []string
}

func (d *byName) GetMachineStatus(_ context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	if id := req.Machine.Spec.ProviderID; id != "" {
		d.asked = append(d.asked, "get by ID")
		return &driver.GetMachineStatusResponse{ProviderID: id, NodeName: "echo"}, nil
	}
	d.asked = append(d.asked, "get by name")
	if d.getErr != nil {
		return nil, d.getErr
	}
	if id := d.get[req.Machine.Name]; id != "" {
		return &driver.GetMachineStatusResponse{ProviderID: id, NodeName: "n"}, nil
	}
	return nil, status.Error(codes.NotFound, "none")
}

func (d *byName) ListMachines(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	d.asked = append(d.asked, "list")
	if d.list == nil {
		return nil, status.Error(codes.Unimplemented, "")
	}
	if d.list["error"] != "" {
		return nil, status.Error(codes.Internal, "list failed")
	}
	return &driver.ListMachinesResponse{MachineList: d.list}, nil
}

// TestCall_LookForVM_AsksByName asserts that an echo of the recorded provider ID names no VM.
func TestCall_LookForVM_AsksByName(t *testing.T) {
	for name, tc := range map[string]struct {
		d     byName
		id    string // recorded
		asked []string
		named machine.NamedVM
		code  codes.Code
	}{
		"found by name":               {byName{get: map[string]string{"m": "c:///1"}}, "c:///1", []string{"get by name"}, machine.NamedVM{ProviderID: "c:///1", NodeName: "n"}, codes.OK},
		"another VM has the name":     {byName{get: map[string]string{"m": "c:///1"}}, "c:///cp", []string{"get by name"}, machine.NamedVM{ProviderID: "c:///1", NodeName: "n"}, codes.OK},
		"only in the list":            {byName{list: map[string]string{"c:///1": "m", "c:///2": "x"}}, "c:///1", []string{"get by name", "list"}, machine.NamedVM{ProviderID: "c:///1"}, codes.OK},
		"two in the list":             {byName{list: map[string]string{"c:///1": "m", "c:///2": "m"}}, "c:///2", []string{"get by name", "list"}, machine.NamedVM{ProviderID: "c:///2"}, codes.OK},
		"two by name":                 {byName{getErr: status.Error(codes.OutOfRange, "two"), list: map[string]string{"c:///1": "m", "c:///2": "m"}}, "c:///2", []string{"get by name", "list"}, machine.NamedVM{ProviderID: "c:///2"}, codes.OK},
		"two in the list, none is it": {byName{list: map[string]string{"c:///1": "m", "c:///2": "m"}}, "c:///cp", []string{"get by name", "list", "get by ID"}, machine.NamedVM{}, codes.OK},
		"an echo":                     {byName{list: map[string]string{"c:///cp": "x"}}, "c:///cp", []string{"get by name", "list", "get by ID"}, machine.NamedVM{}, codes.OK},
		"no list":                     {byName{}, "c:///cp", []string{"get by name", "list", "get by ID"}, machine.NamedVM{}, codes.OK},
		"the list fails":              {byName{list: map[string]string{"error": "yes"}}, "c:///1", []string{"get by name", "list"}, machine.NamedVM{}, codes.Internal},
		"no ID is recorded":           {byName{}, "", []string{"get by name"}, machine.NamedVM{}, codes.NotFound},
	} {
		m := newMachine("m")
		m.Spec.ProviderID = tc.id
		r, err := machine.Call(t.Context(), &tc.d, machine.CallDriver{Operation: driver.OpGetMachineStatus}, m, class(), &corev1.Secret{})
		require.NoError(t, err, name)
		require.Equal(t, tc.asked, tc.d.asked, name)
		require.Equal(t, tc.code, codes.Of(r.Err), name)
		v := machine.VMView{}.After(r, now, 0)
		require.Equal(t, tc.code == codes.Internal, v.Named.AskedAt.IsZero(), name)
		v.Named.AskedAt = time.Time{}
		require.Equal(t, tc.named, v.Named, name)
		require.Equal(t, tc.id, m.Spec.ProviderID, "the machine is not changed")
	}
}

// TestCreation_VMOfTheOlderMachineWithItsName_IsNotAdopted finds the VM of the older machine of
// another namespace under the name of a new machine. Nothing is recorded, initialized or deleted.
func TestCreation_VMOfTheOlderMachineWithItsName_IsNotAdopted(t *testing.T) {
	w := newWorld(after(intended, rival("simulated:///1"))).run(t)
	require.Empty(t, w.in.Machine.Spec.ProviderID, "%q", w.did)
	require.Contains(t, strings.Join(w.told, "\n"), "belongs to machine victim/m")
	require.NotContains(t, w.did, "initialize the VM")
	w.in.Machine.DeletionTimestamp = &metav1.Time{Time: w.now}
	require.True(t, w.run(t).released)
	require.NotContains(t, strings.Join(w.did, "\n"), "delete the VM", "%q", w.did)
}

// sharer is another machine with the same provider ID, spelled in another way.
func sharer(name string) *v1alpha1.Machine {
	m := newMachine(name)
	m.UID, m.Spec.ProviderID = machineUID("uid-"+name), "Simulated:///1/"
	return m
}

// shared returns machine m, which is being deleted, beside one with its provider ID. The provider
// has the VM with the ID vmOfName for its name. The Node has the name of a machine, if that is not
// empty, and no mark.
func shared(nodeNames, vmOfName string, changes ...change) machine.Observation {
	in := after(withID, phase(v1alpha1.MachineTerminating), node(ready(corev1.ConditionTrue)))
	in.Machine.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)}
	in.Node.Node.Spec.ProviderID = "simulated:///1"
	unmark(in.Node.Node).Labels = map[string]string{v1alpha1.MachineNameLabelKey: nodeNames}
	in.ProviderID = machine.ProviderIDView{Compared: true, Others: []*v1alpha1.Machine{nil, in.Machine, sharer("b"), newMachine("c")}}
	in.VM.Named = machine.NamedVM{AskedAt: now, ProviderID: vmOfName}
	in.Attachments.Looked = true
	for _, c := range changes {
		c(&in)
	}
	return in
}

// unproven removes the record of the proof from the Node.
var unproven = onNode(func(n *corev1.Node) { unmark(n) })

// unmark removes the record of the proof from a Node, and returns the Node.
func unmark(n *corev1.Node) *corev1.Node {
	n.Annotations = maps.Clone(n.Annotations)
	delete(n.Annotations, v1alpha1.MachineUIDAnnotation)
	return n
}

// outcome carries out what comes first, and returns what is decided of the VM.
func outcome(t *testing.T, in machine.Observation) (machine.Decision, machine.Observation) {
	t.Helper()
	w := newWorld(in)
	for range 8 {
		goesOn, err := w.step()
		require.NoError(t, err)
		if operationOf(w.last.Action) == driver.OpDeleteMachine || !goesOn {
			break
		}
	}
	return w.last, w.in
}

func TestSharedProviderID_Deletion_OnlyByOwner(t *testing.T) {
	const byID, byName = "delete the VM", "delete the VM that has the name of the machine"
	blind := func(in *machine.Observation) { in.VM.Blind = true }
	mark := onNode(func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.MachineUIDAnnotation: "uid-m"} })
	for name, tc := range map[string]struct {
		in   machine.Observation
		want string // Empty if it waits.
	}{
		"the VM of its name":                            {shared("", "simulated:///1"), byID},
		"the VM of its name, and another's on the Node": {shared("b", "simulated:///1"), byID},
		"another VM has its name":                       {shared("m", "simulated:///3"), byName},
		"no VM has its name":                            {shared("m", ""), byName},
		"a mark on the Node":                            {shared("b", "", mark), byID},
		"the provider cannot say":                       {shared("m", "", blind), ""},
		"the provider cannot say, and force":            {shared("m", "", blind, byForce), byName},
		"the node of another VM proves none":            {shared("m", "", mark, otherNode), byName},
		"the provider IDs were not compared":            {shared("m", "simulated:///1", func(in *machine.Observation) { in.ProviderID = machine.ProviderIDView{} }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := outcome(t, tc.in)
			if tc.want != "" {
				require.NotNil(t, d.Action, d.String())
				require.Equal(t, tc.want, d.Action.String())
				return
			}
			require.Nil(t, d.Action, d.String())
			require.EqualValues(t, "ProviderIDShared", d.Reason)
			require.NotZero(t, d.NextCheck)
		})
	}
	d, _ := outcome(t, shared("m", "", blind))
	require.Equal(t, "machine/b", d.Holds[0].Subject)
}

// otherNode gives the Node the provider ID of another VM.
var otherNode change = func(in *machine.Observation) {
	in.Node.Node = in.Node.Node.DeepCopy()
	in.Machine.Spec.ProviderID = "simulated:///2"
	other := sharer("b")
	other.Spec.ProviderID = "simulated:///2"
	in.ProviderID.Others = []*v1alpha1.Machine{other}
}

func TestSharedProviderID_BothMachines_ConditionAndEvent(t *testing.T) {
	in := living(running, healthy, copied)
	in.ProviderID.Others = []*v1alpha1.Machine{sharer("b"), sharer("a")}
	before := in.Machine
	require.EqualValues(t, "ProviderIDShared", write(t, &in).Reason)
	events := machine.Events(before, in.Machine)
	require.Len(t, events, 1)
	require.EqualValues(t, "ProviderIDShared", events[0].Reason)
	require.Contains(t, events[0].Message, "it is also the provider ID of machine a, b")
	require.EqualValues(t, "NodeReady", lawful(t, in, machine.DefaultPolicy()).Reason, "else it lives as before")
	in.ProviderID.Others = nil
	require.EqualValues(t, "ConditionsChanged", lawful(t, in, machine.DefaultPolicy()).Reason, "it is over")
}

// TestSharedProviderID_Law_NoDeletionWithoutProof asserts that whatever is known, no machine
// deletes by its provider ID a VM that is not proved to be its own.
func TestSharedProviderID_Law_NoDeletionWithoutProof(t *testing.T) {
	t.Parallel()
	deletions := 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 6))
		in := anyExit(r)
		in.Machine.Spec.ProviderID = "simulated:///1"
		in.ProviderID = machine.ProviderIDView{Compared: r.IntN(4) > 0, Others: []*v1alpha1.Machine{sharer("b")}}
		in.VM.Named = machine.NamedVM{AskedAt: now, ProviderID: pick(r, "", "simulated:///1", "simulated:///3")}
		if node := in.Node.Node; node != nil {
			node.Spec.ProviderID = pick(r, "", "simulated:///1", "simulated:///2")
			node.Labels = map[string]string{v1alpha1.MachineNameLabelKey: pick(r, "", in.Machine.Name, "b")}
			node.Annotations = map[string]string{v1alpha1.MachineUIDAnnotation: pick(r, "", string(in.Machine.UID), "uid-b")}
		}
		d, in := outcome(t, in)
		if a, ok := d.Action.(machine.CallDriver); ok && a.Operation == driver.OpDeleteMachine && !a.ByName {
			deletions++
			node, named := in.Node.Node, in.VM.Named.ProviderID
			marked := node != nil && node.Spec.ProviderID == "simulated:///1" && node.Annotations[v1alpha1.MachineUIDAnnotation] == string(in.Machine.UID)
			require.True(t, in.ProviderID.Compared && (named == "simulated:///1" || named == "" && marked), "seed %d: %s", seed, d)
		}
	}
	require.Greater(t, deletions, 20)
}
