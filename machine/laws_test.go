// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// moment is a time around the present.
func moment(r *rand.Rand) time.Time {
	return pick(r, time.Time{}, now, now.Add(-time.Nanosecond), now.Add(-time.Second), now.Add(-5*time.Minute),
		now.Add(-20*time.Minute), now.Add(-3*time.Hour), now.Add(time.Minute),
		now.Add(3*time.Second), now.Add(30*time.Minute), now.AddDate(173, 0, 0), time.Unix(0, 0))
}

// anything is an observation of any kind, also of kinds that make no sense.
func anything(r *rand.Rand) machine.Observation {
	m := newMachine("m")
	m.ResourceVersion, m.CreationTimestamp = "7", metav1.NewTime(moment(r))
	m.Finalizers = pick(r, nil, []string{v1alpha1.MCMFinalizerName}, []string{v1alpha1.MCMFinalizerName}, []string{"x"})
	m.Labels = pick(r, nil, map[string]string{v1alpha1.NodeLabelKey: "n"}, map[string]string{v1alpha1.NodeLabelKey: "n", v1alpha1.LabelKeyMachineDeploymentName: "pool"})
	m.Annotations = pick(r, nil, map[string]string{v1alpha1.EffectiveCreationTimeout: "7m"})
	m.Spec.ProviderID = pick(r, "", "simulated:///1")
	m.Spec.Class.Name = pick(r, "small", "small", "")
	if r.IntN(3) == 0 {
		m.DeletionTimestamp = &metav1.Time{Time: moment(r)}
	}
	m.Status = v1alpha1.MachineStatus{
		LastOperation: v1alpha1.LastOperation{
			Type:        pick(r, "", v1alpha1.MachineOperationCreate, v1alpha1.MachineOperationDelete, v1alpha1.MachineOperationHealthCheck),
			State:       pick(r, "", v1alpha1.MachineStateFailed, v1alpha1.MachineStateProcessing),
			Description: pick(r, "", v1alpha1.InitiateDrain, `machine class "small" does not exist`),
		},
		CurrentStatus: v1alpha1.CurrentStatus{
			Phase: pick(r, "", v1alpha1.MachinePending, v1alpha1.MachineRunning, v1alpha1.MachineUnknown, v1alpha1.MachineFailed,
				v1alpha1.MachineCrashLoopBackOff, v1alpha1.MachineTerminating, v1alpha1.MachineAvailable, v1alpha1.MachineInPlaceUpdating, "Strange"),
			LastUpdateTime:     metav1.NewTime(moment(r)),
			PreserveExpiryTime: pick(r, nil, &metav1.Time{Time: now}),
		},
		LastKnownState: pick(r, "", "step 1"),
		Addresses:      []corev1.NodeAddress{{Type: "InternalIP", Address: "1"}},
	}
	in := machine.Observation{Machine: m, Frozen: r.IntN(10) == 0}
	in.Class = machine.ClassView{Looked: r.IntN(4) > 0, Class: pick(r, nil, class(), class()), Problem: pick(r, "", "", "no secret")}
	if in.Class.Class != nil && r.IntN(4) == 0 {
		in.Class.Class.Finalizers = nil
	}
	in.Node = machine.NodeView{Looked: r.IntN(4) > 0, NoTarget: r.IntN(6) == 0, AsOf: pick(r, time.Time{}, moment(r), now, now, now), Unanswered: r.IntN(6) == 0}
	if r.IntN(2) == 0 {
		in.Node.Node = anyNode(r)
	}
	in.VM = anyView(r)
	in.ProviderID = machine.ProviderIDView{Compared: r.IntN(6) > 0, ListedFor: pick(r, "", "", "m")}
	if r.IntN(6) == 0 {
		in.ProviderID.Others = []*v1alpha1.Machine{sharer("b")}
	}
	in.Drain = machine.DrainView{Done: r.IntN(3) == 0, Round: moment(r), NextCheck: moment(r), Holds: pick(r, nil, []machinist.Hold{{Subject: "pod/a/b", Reason: "Budget"}})}
	in.Siblings = machine.Siblings{Complete: r.IntN(2) == 0, Machines: pick(r, nil, []*v1alpha1.Machine{nil, m}, []*v1alpha1.Machine{newMachine("s")})}
	return in
}

func anyNode(r *rand.Rand) *corev1.Node {
	in := after(node(pick(r,
		[]corev1.NodeCondition{ready(corev1.ConditionTrue)}, []corev1.NodeCondition{ready(corev1.ConditionFalse)},
		[]corev1.NodeCondition{ready(corev1.ConditionTrue), marked}, nil,
	)...))
	n := in.Node.Node
	n.Finalizers = pick(r, nil, n.Finalizers, []string{"x"})
	n.Labels = pick(r, nil, n.Labels)
	n.Annotations = pick(r, nil, n.Annotations, map[string]string{v1alpha1.LastAppliedALTAnnotation: "{"})
	if r.IntN(5) == 0 {
		n.DeletionTimestamp = &metav1.Time{Time: now}
	}
	return n
}

func anyView(r *rand.Rand) machine.VMView {
	v := machine.VMView{
		Sighting: machine.Sighting(r.IntN(6)), ProviderID: pick(r, "", "simulated:///1", "simulated:///2"), NodeName: pick(r, "", "n"),
		SeenAt: moment(r), Asked: pick(r, driver.Operations()...), Initialized: r.IntN(2) == 0,
		LastKnownState: pick(r, "", "step 2"), Addresses: []corev1.NodeAddress{{Type: "InternalIP", Address: "2"}},
	}
	if r.IntN(2) == 0 {
		v.Failure = machine.CallFailure{Operation: pick(r, driver.Operations()...), Code: pick(r, codes.All()...), Message: "no", At: moment(r), Attempts: r.IntN(5) - 1}
	}
	return v
}

func anyPolicy(r *rand.Rand) machine.Policy {
	return pick(r, machine.Policy{}, machine.DefaultPolicy(), machine.DefaultPolicy(), machine.Policy{
		CreationTimeout: -1, HealthTimeout: time.Nanosecond, DrainTimeout: time.Nanosecond, MaxReplacements: -1, Settle: -1,
	})
}

// TestDecisionsOfAnythingAreLawful asserts on observations of any kind what the
// documentation of Decide, Observation and Policy promises.
func TestDecisionsOfAnythingAreLawful(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 3))
		in, p := anything(r), anyPolicy(r)
		if seed%20 == 0 {
			lawful(t, in, p) // all laws, slowly
		}
		d := machine.Decide(in, p, now)
		if err := laws(in, p, d); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, d)
		}
	}
}

// laws returns which promise a decision breaks.
func laws(in machine.Observation, p machine.Policy, d machine.Decision) error {
	m := in.Machine
	if err := decisionLaws(d, now); err != nil && len(in.Drain.Holds) == 0 { // the holds of a drain are not ours
		return err
	}
	deleting := !m.DeletionTimestamp.IsZero()
	guarded := len(m.Finalizers) == 1 && m.Finalizers[0] == v1alpha1.MCMFinalizerName
	intent := m.Status.LastOperation.Type == v1alpha1.MachineOperationCreate && m.Status.LastOperation.State == v1alpha1.MachineStateProcessing ||
		m.Status.CurrentStatus.Phase == v1alpha1.MachineCrashLoopBackOff
	switch d.Do.(type) {
	case machine.LookForVM, machine.CreateVM, machine.InitializeVM, machine.DeleteVM, machine.DrainNode, machine.DeleteNode:
		if !guarded {
			return fmt.Errorf("an effect for a machine without our finalizer")
		}
	}
	blind := !in.Node.Looked && !in.Node.NoTarget
	switch a := d.Do.(type) {
	case machine.CreateVM:
		if deleting || in.Frozen || !intent || m.Spec.ProviderID != "" || in.VM.Sighting != machine.Absent || in.Class.Class == nil || in.Class.Problem != "" {
			return fmt.Errorf("a VM is made without all that it takes")
		}
	case machine.LookForVM:
		if in.Class.Class == nil || in.Class.Problem != "" {
			return fmt.Errorf("a call without a class")
		}
	case machine.InitializeVM:
		if deleting || m.Spec.ProviderID == "" || in.Class.Class == nil || in.Class.Problem != "" {
			return fmt.Errorf("a VM is initialised that is not known")
		}
	case machine.SetNodeCondition:
		if !deleting && a.Condition.Type == v1alpha1.NodeTerminationCondition {
			return fmt.Errorf("a machine that is not deleted is led out")
		}
	case machine.DeleteAttachments:
		if !deleting {
			return fmt.Errorf("a machine that is not deleted is led out")
		}
	case machine.DeleteVM, machine.DeleteNode, machine.DrainNode:
		if !deleting || blind || in.Class.Class == nil && a == any(machine.DeleteVM{}) {
			return fmt.Errorf("something destructive on a view that is not complete")
		}
	case machine.UpdateNode, machine.UpdateNodeCapacity:
		if !guarded {
			return fmt.Errorf("a Node is written for a machine without our finalizer")
		}
	case machine.DeleteMachine:
		if blind || in.Frozen || in.Node.Node.DeletionTimestamp.IsZero() {
			return fmt.Errorf("a machine is deleted of its own accord")
		}
	case machine.UpdateMachine:
		return identityLaws(in, a.Machine)
	case machine.UpdateStatus:
		return statusLaws(in, p, a.Machine)
	}
	return nil
}

func identityLaws(in machine.Observation, m *v1alpha1.Machine) error {
	old := in.Machine
	switch {
	case old.Spec.ProviderID != "" && m.Spec.ProviderID != old.Spec.ProviderID:
		return fmt.Errorf("the provider ID changes")
	case old.Labels[v1alpha1.NodeLabelKey] != "" && m.Labels[v1alpha1.NodeLabelKey] != old.Labels[v1alpha1.NodeLabelKey]:
		return fmt.Errorf("the node changes")
	case len(m.Finalizers) >= len(old.Finalizers):
		return nil
	case old.DeletionTimestamp.IsZero() || !in.Node.Looked && !in.Node.NoTarget:
		return fmt.Errorf("a machine is let go too early")
	}
	confirmed := in.VM.Asked == driver.OpDeleteMachine && in.VM.Failure.Code == codes.OK &&
		(in.VM.Sighting == machine.Deleted || in.VM.Sighting == machine.Absent)
	unbegun := in.Class.Looked && in.Class.Class == nil && old.Spec.ProviderID == "" && old.Status.CurrentStatus.Phase == ""
	if !confirmed && !unbegun {
		return fmt.Errorf("a machine is let go whose VM is not known to be gone")
	}
	return nil
}

func statusLaws(in machine.Observation, p machine.Policy, m *v1alpha1.Machine) error {
	was, is := in.Machine.Status.CurrentStatus.Phase, m.Status.CurrentStatus.Phase
	if is == v1alpha1.MachineFailed && was != is {
		waits := was == v1alpha1.MachinePending || was == v1alpha1.MachineUnknown || was == v1alpha1.MachineInPlaceUpdateFailed
		if stale := in.Node.AsOf.IsZero() || !in.Node.Looked; waits && stale && !in.Node.NoTarget && !strings.Contains(m.Status.LastOperation.Description, "old node obj") {
			return fmt.Errorf("a machine is failed on evidence of unknown age")
		}
		zero := p.CreationTimeout <= 0 && p.HealthTimeout <= 0 && in.Machine.Annotations == nil
		switch {
		case zero:
			return fmt.Errorf("the zero policy fails a machine")
		case in.Frozen:
			return fmt.Errorf("a machine fails while frozen")
		case was == v1alpha1.MachineUnknown && in.Machine.Spec.ProviderID != "" && !in.Node.Looked:
			return fmt.Errorf("an incomplete view fails a machine")
		}
	}
	if is == v1alpha1.MachineTerminating && was != is && in.Machine.DeletionTimestamp.IsZero() {
		return fmt.Errorf("a machine that is not deleted is led out")
	}
	if m.ResourceVersion != in.Machine.ResourceVersion {
		return fmt.Errorf("a write that cannot conflict")
	}
	return nil
}
