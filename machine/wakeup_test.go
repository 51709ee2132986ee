// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// anyLife is an observation of any kind, with more of what health, replacement and
// updates in place read than anything has.
func anyLife(r *rand.Rand) machine.Observation {
	in := anything(r)
	m := in.Machine
	m.Status.CurrentStatus.Phase = pick(r, allPhases...)
	if r.IntN(2) == 0 {
		m.Finalizers, m.DeletionTimestamp, in.Freeze.Frozen = []string{v1alpha1.MCMFinalizerName}, nil, false
	}
	if r.IntN(2) == 0 {
		m.Labels = map[string]string{v1alpha1.NodeLabelKey: "n"}
		m.Spec.ProviderID = "simulated:///1"
	}
	if r.IntN(4) == 0 {
		m.Labels = map[string]string{v1alpha1.NodeLabelKey: "n", v1alpha1.LabelKeyMachineDeploymentName: "pool"}
	}
	if r.IntN(3) == 0 {
		m.Spec.MachineConfiguration = pick(r, &v1alpha1.MachineConfiguration{DisableHealthTimeout: new(true)},
			&v1alpha1.MachineConfiguration{NodeConditions: new("A,B")},
			&v1alpha1.MachineConfiguration{MachineHealthTimeout: &metav1.Duration{Duration: time.Minute}})
	}
	in.Permit = pick(r, machine.PermitView{}, machine.PermitView{Asked: true, Refused: machinist.Hold{Until: moment(r)}}, machine.PermitView{Held: true},
		machine.PermitView{Asked: r.IntN(4) > 0, Refused: machinist.Hold{Subject: "s", Reason: "Held", Until: moment(r)}},
		machine.PermitView{Asked: true, Held: true, Within: r.IntN(3)})
	if r.IntN(5) == 0 {
		keptNow(&in)
	}
	in.Siblings.Complete = r.IntN(4) > 0
	for range r.IntN(3) {
		s := newMachine(fmt.Sprint("s", r.IntN(3)))
		s.Status.CurrentStatus.Phase = pick(r, allPhases...)
		in.Siblings.Machines = append(in.Siblings.Machines, s)
	}
	if n := in.Node.Node; n != nil {
		anyStep(r, m, n)
	}
	return in
}

// anyStep gives a Node what updates in place and foreign Nodes show.
func anyStep(r *rand.Rand, m *v1alpha1.Machine, n *corev1.Node) {
	n.CreationTimestamp, n.Spec.ProviderID = metav1.NewTime(moment(r)), pick(r, "", "", m.Spec.ProviderID, "simulated:///9")
	label := func(key, value string) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[key] = value
	}
	if r.IntN(4) == 0 {
		label(v1alpha1.MachineNameLabelKey, pick(r, "m", "other", ""))
	}
	if r.IntN(3) == 0 {
		label(v1alpha1.LabelKeyNodeCandidateForUpdate, "true")
		if r.IntN(2) == 0 {
			label(v1alpha1.LabelKeyNodeSelectedForUpdate, "true")
		}
	}
	if r.IntN(3) == 0 {
		label(v1alpha1.LabelKeyNodeUpdateResult, pick(r, v1alpha1.LabelValueNodeUpdateSuccessful, v1alpha1.LabelValueNodeUpdateFailed))
	}
	if r.IntN(2) == 0 {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: v1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(moment(r)),
			Reason: pick(r, v1alpha1.CandidateForUpdate, v1alpha1.SelectedForUpdate, v1alpha1.DrainSuccessful, v1alpha1.ReadyForUpdate,
				v1alpha1.UpdateSuccessful, v1alpha1.UpdateFailed),
		})
	}
	if r.IntN(2) == 0 {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: "A", Status: pick(r, corev1.ConditionTrue, corev1.ConditionFalse), LastTransitionTime: metav1.NewTime(moment(r)),
		})
	}
	if r.IntN(3) == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule}}
	}
	if r.IntN(2) == 0 {
		m.Status.Conditions = n.DeepCopy().Status.Conditions
	}
}

var allPhases = []v1alpha1.MachinePhase{
	"", v1alpha1.MachinePending, v1alpha1.MachineAvailable, v1alpha1.MachineRunning, v1alpha1.MachineUnknown, v1alpha1.MachineFailed,
	v1alpha1.MachineCrashLoopBackOff, v1alpha1.MachineTerminating, v1alpha1.MachineInPlaceUpdating,
	v1alpha1.MachineInPlaceUpdateSuccessful, v1alpha1.MachineInPlaceUpdateFailed, "Strange",
}

// TestNextCheck_NothingHappensBefore asserts that a decision that waits has a next check: until
// then, or until the observation changes, the decision stays the same.
func TestNextCheck_NothingHappensBefore(t *testing.T) {
	t.Parallel()
	waits := 0
	for seed := range uint64(8000) {
		r := rand.New(rand.NewPCG(seed, 5))
		in, p := anyLife(r), anyPolicy(r)
		d := machine.Decide(in, p, now)
		if d.Action != nil {
			continue
		}
		waits++
		last := now.Add(1000 * time.Hour)
		if !d.NextCheck.IsZero() {
			last = d.NextCheck.Add(-1)
		}
		for _, at := range []time.Time{now.Add(1), now.Add(last.Sub(now) / 2), now.Add(time.Duration(r.Int64N(int64(last.Sub(now)) + 1))), last} {
			if at.After(last) {
				continue
			}
			later := machine.Decide(in, p, at)
			require.Nil(t, later.Action, "seed %d: %s, to be asked again at %s, but at %s: %s", seed, d, d.NextCheck, at, later)
			require.Equal(t, d.Reason, later.Reason, "seed %d", seed)
		}
	}
	require.Greater(t, waits, 1500)
}
