// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// change is one way in which a case differs from the observation that it starts
// from.
type change func(*machine.Observation)

// after returns how a machine looks five minutes after its creation, guarded and
// with its class, on a complete view of a cluster without its Node.
func after(changes ...change) machine.Observation {
	m := newMachine("m")
	m.ResourceVersion = "7"
	m.CreationTimestamp = metav1.NewTime(now.Add(-5 * time.Minute))
	m.Finalizers = []string{v1alpha1.MCMFinalizerName}
	in := machine.Observation{
		Machine: m,
		Class:   machine.ClassView{Looked: true, Class: class()},
		Node:    machine.NodeView{Looked: true, AsOf: now},

		ProviderID: machine.ProviderIDView{Compared: true},
	}
	for _, c := range changes {
		c(&in)
	}
	return in
}

func spec(change func(*v1alpha1.Machine)) change {
	return func(in *machine.Observation) { change(in.Machine) }
}

// phase is a phase that was entered a minute ago.
func phase(p v1alpha1.MachinePhase) change {
	return spec(func(m *v1alpha1.Machine) {
		m.Status.CurrentStatus.Phase = p
		m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-time.Minute))
	})
}

func operation(t v1alpha1.MachineOperationType, s v1alpha1.MachineState, description, code string) change {
	return spec(func(m *v1alpha1.Machine) {
		m.Status.LastOperation = v1alpha1.LastOperation{Type: t, State: s, Description: description, ErrorCode: code}
	})
}

var (
	unguarded = spec(func(m *v1alpha1.Machine) { m.Finalizers = nil })
	intended  = operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateProcessing, v1alpha1.CreatingMachine, "")
	withID    = spec(func(m *v1alpha1.Machine) {
		m.Spec.ProviderID = "simulated:///1"
		m.Labels = map[string]string{v1alpha1.NodeLabelKey: "n"}
	})
	old       = spec(func(m *v1alpha1.Machine) { m.CreationTimestamp = metav1.NewTime(now.Add(-20 * time.Minute)) })
	preserved = spec(func(m *v1alpha1.Machine) {
		m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now.Add(time.Hour)}
	})
	noTarget change = func(in *machine.Observation) { // and so without the label of a Node
		in.Node = machine.NodeView{NoTarget: true}
		in.Machine.Labels = maps.Clone(in.Machine.Labels)
		delete(in.Machine.Labels, v1alpha1.NodeLabelKey)
	}
	unseen  change = func(in *machine.Observation) { in.Node.Looked = false }
	frozen  change = func(in *machine.Observation) { in.Frozen = true }
	noClass change = func(in *machine.Observation) { in.Class.Class = nil }
)

// leaving is a deletion that was asked for a minute ago.
var leaving = spec(func(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)} })

func vm(v machine.VMView) change { return func(in *machine.Observation) { in.VM = v } }

// seen is a VM that the provider has named. One that is Present is initialised.
func seen(s machine.Sighting) change {
	return vm(machine.VMView{Sighting: s, ProviderID: "simulated:///1", NodeName: "n", SeenAt: now, Initialized: s == machine.Present})
}

func ready(s corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: s, Reason: "Kubelet", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}
}

// node is a Node that has all that the machine wants it to have.
func node(conditions ...corev1.NodeCondition) change {
	return func(in *machine.Observation) {
		in.Node = machine.NodeView{Looked: true, AsOf: now, Node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: "n", UID: "node-uid", ResourceVersion: "9", Finalizers: []string{v1alpha1.NodeFinalizerName},
				Labels:      map[string]string{v1alpha1.MachineNameLabelKey: "m", "pool": "a"},
				Annotations: map[string]string{v1alpha1.LastAppliedALTAnnotation: `{"metadata":{"labels":{"pool":"a"}},"spec":{}}`},
			},
			Status: corev1.NodeStatus{Conditions: conditions},
		}}
	}
}

func onNode(change func(*corev1.Node)) change {
	return func(in *machine.Observation) { change(in.Node.Node) }
}

// copied has the conditions of the Node recorded already.
func copied(in *machine.Observation) {
	in.Machine.Status.Conditions = in.Node.Node.DeepCopy().Status.Conditions
}

// one case of a table: what is observed, and the decision as text.
type decisionCase struct {
	in   machine.Observation
	want string
}

// check walks a table. Besides what each case wants, it asserts the laws of all
// decisions: that the input is neither changed nor referred to, that the
// same input gives the same decision, and that nothing is waited for silently.
func check(t *testing.T, p machine.Policy, table map[string]decisionCase) {
	t.Helper()
	for name, tc := range table {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, lawful(t, tc.in, p).String())
		})
	}
}

// lawful returns what is decided and asserts the laws.
func lawful(t *testing.T, in machine.Observation, p machine.Policy) machine.Decision {
	t.Helper()
	before := deepCopy(in)
	d := machine.Decide(in, p, now)
	require.NoError(t, decisionLaws(d, now))
	require.Empty(t, cmp.Diff(d, machine.Decide(in, p, now)), "not a function of its input")
	scribble(machine.Decide(in, p, now))
	require.Empty(t, cmp.Diff(before, in), "the input has changed")
	return d
}

func deepCopy(in machine.Observation) machine.Observation {
	in.Machine, in.Class.Class, in.Node.Node = in.Machine.DeepCopy(), in.Class.Class.DeepCopy(), in.Node.Node.DeepCopy()
	in.VM.Addresses, in.Drain.Holds = slices.Clone(in.VM.Addresses), slices.Clone(in.Drain.Holds)
	in.Attachments.Attachments = slices.Clone(in.Attachments.Attachments)
	for i, va := range in.Attachments.Attachments {
		in.Attachments.Attachments[i] = va.DeepCopy()
	}
	in.Siblings.Machines = slices.Clone(in.Siblings.Machines)
	for i := range in.Siblings.Machines {
		in.Siblings.Machines[i] = in.Siblings.Machines[i].DeepCopy()
	}
	return in
}

// scribble writes over everything that a decision refers to.
func scribble(d machine.Decision) {
	for i := range d.Holds {
		d.Holds[i] = machinist.Hold{}
	}
	meta := func(o *metav1.ObjectMeta) {
		for _, m := range []map[string]string{o.Labels, o.Annotations} {
			clear(m)
		}
		clear(o.Finalizers)
	}
	switch a := d.Do.(type) {
	case machine.UpdateMachine:
		meta(&a.Machine.ObjectMeta)
	case machine.UpdateStatus:
		meta(&a.Machine.ObjectMeta)
		clear(a.Machine.Status.Addresses)
		clear(a.Machine.Status.Conditions)
		if e := a.Machine.Status.CurrentStatus.PreserveExpiryTime; e != nil {
			*e = metav1.Time{}
		}
	case machine.UpdateNode:
		meta(&a.Node.ObjectMeta)
		clear(a.Node.Spec.Taints)
		clear(a.Node.Status.Conditions)
	case machine.DeleteAttachments:
		clear(a.Attachments)
	case machine.UpdateNodeCapacity:
		meta(&a.Node.ObjectMeta)
		clear(a.Node.Status.Capacity)
	}
}

func TestNothingIsDecidedOfAWorldNobodyHasLookedAt(t *testing.T) {
	t.Parallel()
	for _, p := range []machine.Policy{{}, machine.DefaultPolicy()} {
		require.Equal(t, machine.Decision{Reason: machine.ReasonNotObserved}, machine.Decide(machine.Observation{}, p, now))
	}
	require.Equal(t, machine.Decision{Reason: machine.ReasonNotObserved}, machine.DecideClass(machine.ClassObservation{}, now))
	require.Equal(t, machine.Decision{Reason: machine.ReasonNotObserved}, machine.DecideSecret(machine.SecretObservation{}, now))
}

func TestAFrozenControllerOnlyLetsMachinesGo(t *testing.T) {
	t.Parallel()
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a new machine waits":          {after(frozen, unguarded), "nothing (Frozen); waits for api-server: Frozen"},
		"an unhealthy machine waits":   {after(frozen, withID, phase(v1alpha1.MachineUnknown)), "nothing (Frozen); waits for api-server: Frozen"},
		"a machine being deleted goes": {after(frozen, withID, leaving), `record phase "Terminating", Delete Processing (Deleting: ` + v1alpha1.GetVMStatus + ")"},
	})
}
