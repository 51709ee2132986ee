// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestTheDefaultPolicyIsThatOfTheReferenceSystem(t *testing.T) {
	t.Parallel()
	p := machine.DefaultPolicy()
	require.Equal(t, 20*time.Minute, p.CreationTimeout)
	require.Equal(t, 10*time.Minute, p.HealthTimeout)
	require.Equal(t, 2*time.Hour, p.DrainTimeout)
	require.Equal(t, 1, p.MaxReplacements)
	p.HealthRules[0].Type = "changed"
	require.NotEqual(t, p.HealthRules[0].Type, machine.DefaultPolicy().HealthRules[0].Type)
}

// until returns when a Pending machine is asked again, counted from its creation.
func until(p machine.Policy, changes ...change) time.Duration {
	in := living(v1alpha1.MachinePending, append([]change{noClass, spec(func(m *v1alpha1.Machine) { m.CreationTimestamp = metav1.NewTime(now) })}, changes...)...)
	d := machine.Decide(in, p, now)
	if u, ok := d.Do.(machine.UpdateStatus); ok { // that something is wrong is told first
		in.Machine = u.Machine
		d = machine.Decide(in, p, now)
	}
	if d.NextCheck.IsZero() {
		return 0
	}
	return d.NextCheck.Sub(now)
}

func TestTheCreationTimeoutIsThatOfAnnotationThenSpecThenPolicy(t *testing.T) {
	t.Parallel()
	own := config(&v1alpha1.MachineConfiguration{MachineCreationTimeout: &metav1.Duration{Duration: time.Minute}})
	annotated := func(text string) change {
		return spec(func(m *v1alpha1.Machine) { m.Annotations = map[string]string{v1alpha1.EffectiveCreationTimeout: text} })
	}
	p := machine.DefaultPolicy()
	require.Equal(t, 20*time.Minute, until(p))
	require.Equal(t, time.Minute, until(p, own))
	require.Equal(t, time.Minute, until(machine.Policy{}, own), "also if the policy would wait for ever")
	require.Equal(t, time.Hour, until(p, own, annotated("1h")))
	require.Equal(t, time.Minute, until(p, own, annotated("soon")), "what is no duration is passed over")
	require.Equal(t, time.Minute, until(p, own, annotated("")))
	require.Zero(t, until(p, annotated("0s")), "zero means for ever")
	require.Zero(t, until(p, annotated("-1s")), "as does less")
}

func TestTheOverridesOfAMachineCount(t *testing.T) {
	t.Parallel()
	p := machine.DefaultPolicy()
	disk := node(ready(corev1.ConditionTrue), corev1.NodeCondition{Type: "DiskPressure", Status: corev1.ConditionTrue})
	list := func(text string) change { return config(&v1alpha1.MachineConfiguration{NodeConditions: &text}) }
	reason := func(in machine.Observation) machinist.Reason { return lawful(t, in, p).Reason }
	require.Equal(t, machine.ReasonNodeUnhealthy, reason(living(v1alpha1.MachineRunning, disk, copied)))
	require.Equal(t, machine.ReasonNodeReady, reason(living(v1alpha1.MachineRunning, disk, copied, list(""))))
	require.Equal(t, machine.ReasonNodeReady, reason(living(v1alpha1.MachineRunning, disk, copied, list("KernelDeadlock"))))
	require.Equal(t, machine.ReasonNodeUnhealthy, reason(living(v1alpha1.MachineRunning, disk, copied, list("KernelDeadlock, DiskPressure ,"))), "entries are trimmed (DM-30)")

	short := config(&v1alpha1.MachineConfiguration{MachineHealthTimeout: &metav1.Duration{Duration: time.Minute}, DisableHealthTimeout: new(false)})
	require.Equal(t, machine.ReasonHealthTimeout, reason(living(v1alpha1.MachineUnknown, short)))
	require.Equal(t, machine.ReasonNodeGone, reason(living(v1alpha1.MachineUnknown)))
}

func FuzzAMachineOfAnyShapeIsDecidedAbout(f *testing.F) {
	f.Add("1h", "KernelDeadlock, ,Ready", "MachineClass", "small", "true", "Pending", `{"metadata":{}}`, false)
	f.Add("-9223372036854775808ns", ",", "", "", "", "Failed", "{", true)
	f.Add("1e9h", strings.Repeat("a,", 100), "x", "", "1", "", "null", true)
	f.Fuzz(func(t *testing.T, timeout, conditions, kind, name, force, p, applied string, deleting bool) {
		in := after(withID, phase(v1alpha1.MachinePhase(p)), healthy,
			config(&v1alpha1.MachineConfiguration{NodeConditions: &conditions}),
			spec(func(m *v1alpha1.Machine) {
				m.Spec.Class = v1alpha1.ClassSpec{Kind: kind, Name: name}
				m.Annotations = map[string]string{v1alpha1.EffectiveCreationTimeout: timeout}
				m.Labels[v1alpha1.LabelKeyForceDeletion] = force
			}),
			onNode(func(n *corev1.Node) { n.Annotations[v1alpha1.LastAppliedALTAnnotation] = applied }))
		if deleting {
			leaving(&in)
		}
		lawful(t, in, machine.DefaultPolicy())
		errs := machine.Validate(in.Machine)
		fields := make([]string, len(errs))
		for i, err := range errs {
			fields[i] = err.Field
		}
		require.Equal(t, kind != v1alpha1.MachineClassKind, slices.Contains(fields, "spec.class.kind"))
		require.Equal(t, name == "", slices.Contains(fields, "spec.class.name"))
	})
}
