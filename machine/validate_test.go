// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

func TestValidate_ClassReference_Errors(t *testing.T) {
	m := newMachine("m")
	m.Spec.Class = v1alpha1.ClassSpec{Kind: strings.Repeat("é", 5000)}
	errs := machine.Validate(m)
	require.Len(t, errs, 2)
	require.Equal(t, "spec.class.kind Unsupported value", errs[0].Field+" "+errs[0].Type.String())
	require.Equal(t, "spec.class.name Required value", errs[1].Field+" "+errs[1].Type.String())
	require.Less(t, len(errs[0].Error()), 200, "it is cut")
	require.Len(t, machine.Validate(nil), 1)
}

// verdict returns our own condition of a machine, or nil.
func verdict(m *v1alpha1.Machine) *corev1.NodeCondition {
	return facts.ConditionOf(m.Status.Conditions, v1alpha1.MachineValid)
}

// write carries out the write of a status that is decided.
func write(t *testing.T, in *machine.Observation) machine.Decision {
	t.Helper()
	d := lawful(t, *in, machine.DefaultPolicy())
	require.NotNil(t, statusOf(d.Action), "%s", d)
	in.Machine = written(d.Action)
	return d
}

func TestValid_InvalidMachine_OneWrite(t *testing.T) {
	in := after(spec(func(m *v1alpha1.Machine) { m.Spec.Class.Kind = "Other" }))
	before := in.Machine
	d := write(t, &in)
	require.EqualValues(t, "Invalid", d.Reason)
	want := `spec.class.kind: Unsupported value: "Other": supported values: "MachineClass"`
	require.Equal(t, want, operationText(in.Machine))
	require.Equal(t, v1alpha1.MachineStateFailed, in.Machine.Status.LastOperation.State)
	require.Empty(t, cmp.Diff(&corev1.NodeCondition{
		Type: v1alpha1.MachineValid, Status: corev1.ConditionFalse, Reason: "Invalid", Message: want,
		LastTransitionTime: metav1.NewTime(now), LastHeartbeatTime: metav1.NewTime(now),
	}, verdict(in.Machine)))
	require.Equal(t, []machinist.Event{{Type: "Warning", Reason: "Invalid", Message: want}}, machine.Events(before, in.Machine), "it is told once")
	require.Empty(t, machine.Events(in.Machine, in.Machine))

	d = lawful(t, in, machine.DefaultPolicy())
	require.Equal(t, "nothing (Invalid: "+want+"); waits for machine/m: Invalid: "+want, d.String())

	then := now.Add(-time.Minute)
	verdict(in.Machine).LastTransitionTime = metav1.NewTime(then)
	in.Machine.Spec.Class.Kind = ""
	before = in.Machine.DeepCopy()
	write(t, &in)
	require.Equal(t, metav1.NewTime(then), verdict(in.Machine).LastTransitionTime, "it is as invalid as before")
	require.Equal(t, "spec.class.kind: Required value: Kind is required", verdict(in.Machine).Message)
	require.Len(t, machine.Events(before, in.Machine), 1, "for another reason, which is news")

	in.Machine.Spec.Class.Kind = v1alpha1.MachineClassKind
	before = in.Machine
	write(t, &in)
	require.Equal(t, machine.CallDriver{Operation: driver.OpGetMachineStatus}, lawful(t, in, machine.DefaultPolicy()).Action, "repaired, it goes on")
	require.Nil(t, verdict(in.Machine))
	require.Empty(t, machine.Events(before, in.Machine))
}

func TestValid_RunningMachine_StaysRunning(t *testing.T) {
	in := living(v1alpha1.MachineRunning, healthy, copied, spec(func(m *v1alpha1.Machine) { m.Spec.Class = v1alpha1.ClassSpec{} }))
	require.EqualValues(t, "Invalid", write(t, &in).Reason)
	require.Equal(t, v1alpha1.MachineRunning, in.Machine.Status.CurrentStatus.Phase)
	require.Equal(t, "nothing (NodeReady)", lawful(t, in, machine.DefaultPolicy()).String())

	sick(&in)
	seen(machine.Present)(&in)
	write(t, &in)
	require.Equal(t, v1alpha1.MachineUnknown, in.Machine.Status.CurrentStatus.Phase)
	require.Equal(t, "Invalid", verdict(in.Machine).Reason, "the conditions of the Node do not wipe it")
	require.Len(t, in.Machine.Status.Conditions, len(in.Node.Node.Status.Conditions)+2, "that, and what it waits for")
	require.Nil(t, lawful(t, in, machine.DefaultPolicy()).Action, "nor does it look like a change of theirs")

	healthy(&in)
	write(t, &in)
	require.Equal(t, v1alpha1.MachineRunning, in.Machine.Status.CurrentStatus.Phase)
	require.NotNil(t, verdict(in.Machine))

	leaving(&in)
	require.NotContains(t, lawful(t, in, machine.DefaultPolicy()).String(), "Invalid", "a deletion does not care")
}

func TestValid_InvalidTemplate_MachineRuns(t *testing.T) {
	in := living(v1alpha1.MachinePending, healthy, spec(func(m *v1alpha1.Machine) {
		m.Spec.NodeTemplateSpec = v1alpha1.NodeTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": "a", "b c": "x", "d": "e f"}, Annotations: map[string]string{"ok": "any text", "not ok": ""}},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Effect: "NoSchedule"}, {Key: "k", Effect: "Never"}}},
		}
	}))
	w := newWorld(in)
	w.mustRest(t)
	in = w.in
	require.Equal(t, 1, strings.Count(w.log().String(), "update node"))
	n := in.Node.Node
	require.Equal(t, []corev1.Taint{{Key: "k", Effect: "NoSchedule"}}, n.Spec.Taints)
	require.Equal(t, "any text", n.Annotations["ok"])
	require.NotContains(t, n.Annotations, "not ok")
	require.Equal(t, map[string]string{"pool": "a", v1alpha1.MachineNameLabelKey: "m"}, n.Labels)
	require.Equal(t, v1alpha1.MachineRunning, in.Machine.Status.CurrentStatus.Phase)
	require.Equal(t, "PartlyIgnored", verdict(in.Machine).Reason)
}

// FuzzValidation asserts that each error of a machine is reported once, in few words, and that the
// text does not change by itself.
func FuzzValidation(f *testing.F) {
	f.Add("MachineClass", "small", "20m", "now", "true", "k", "v", "NoSchedule", int64(0), false)
	f.Add("", "", "", "", "", "", "", "", int64(-1), true)
	f.Add("x\xff", "y", "9999999999h", "Now", "T ", "a/b/c", "é", "never", int64(1)<<62, false)
	f.Fuzz(func(t *testing.T, kind, name, timeout, preserve, force, key, value, effect string, d int64, target bool) {
		m := &metav1.Duration{Duration: time.Duration(d)}
		in := living(v1alpha1.MachineRunning, healthy, copied, config(&v1alpha1.MachineConfiguration{MachineDrainTimeout: m, MachinePreserveTimeout: m}), spec(func(m *v1alpha1.Machine) {
			m.Spec.Class = v1alpha1.ClassSpec{Kind: kind, Name: name}
			m.Annotations = map[string]string{v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout: timeout, v1alpha1.MachinePriority: preserve}
			m.Labels = map[string]string{v1alpha1.LabelKeyForceDeletion: force, v1alpha1.LabelKeyForceDrain: force, v1alpha1.NodeLabelKey: "n"}
			m.Spec.NodeTemplateSpec.Labels = map[string]string{key: value}
			m.Spec.NodeTemplateSpec.Annotations = map[string]string{key: value}
			m.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}}
		}))
		if !target {
			in.Node = machine.NodeView{NoTarget: true}
		}
		wrong := machine.Validate(in.Machine)
		n := in.Machine.Spec.NodeTemplateSpec
		_, ignored := facts.Acceptable(nodeops.Template{Labels: n.Labels, Annotations: n.Annotations, Taints: n.Spec.Taints})
		all := slices.Concat(wrong, ignored)
		for _, err := range all {
			require.Less(t, len(err.Error()), 2000)
		}
		var last *corev1.NodeCondition
		for range 10 {
			d := lawful(t, in, machine.DefaultPolicy())
			if m := statusOf(d.Action); m != nil {
				if c := verdict(m); c != nil && last != nil {
					require.Equal(t, last, c, "it is told once")
				}
				in.Machine = m
				last = verdict(m)
			}
			if node, ok := objectOf[*corev1.Node](d.Action); ok {
				in.Node.Node = node
			}
		}
		c := verdict(in.Machine)
		require.Equal(t, len(all) > 0, c != nil)
		if c != nil {
			require.LessOrEqual(t, len(c.Message), 1024)
			require.Equal(t, len(wrong) > 0, c.Reason == "Invalid")
		}
	})
}

// FuzzPolicy_CreationTimeout asserts that an invalid duration is ignored.
func FuzzPolicy_CreationTimeout(f *testing.F) {
	for _, text := range []string{"20m", "", "0", "-1h", "1h30m", "1e3s", "9223372036854775807ns", "9223372036854775808ns", "20 m", "µs", ".5h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, err := time.ParseDuration(text)
		if err != nil {
			want = 20 * time.Minute
		}
		got := until(machine.DefaultPolicy(), mayTake(text))
		require.Equal(t, max(want, 0), got, "for ever is zero")
	})
}

// until returns when a Pending machine is asked again, counted from its creation.
func until(p machine.Policy, changes ...change) time.Duration {
	in := living(v1alpha1.MachinePending, append([]change{noClass, spec(func(m *v1alpha1.Machine) { m.CreationTimestamp = metav1.NewTime(now) })}, changes...)...)
	d := machine.Decide(in, p, now)
	if m := statusOf(d.Action); m != nil { // that something is wrong is told first
		in.Machine = m
		d = machine.Decide(in, p, now)
	}
	if d.NextCheck.IsZero() {
		return 0
	}
	return d.NextCheck.Sub(now)
}

func TestPolicy_CreationTimeout_AnnotationBeforeSpec(t *testing.T) {
	own := config(&v1alpha1.MachineConfiguration{MachineCreationTimeout: &metav1.Duration{Duration: time.Minute}})
	p := machine.DefaultPolicy()
	require.Equal(t, time.Minute, until(p, own))
	require.Equal(t, time.Minute, until(machine.Policy{}, own), "also if the policy would wait for ever")
	require.Equal(t, time.Hour, until(p, own, mayTake("1h")))
	require.Equal(t, time.Minute, until(p, own, mayTake("soon")), "what is no duration is passed over")
}

func TestPolicy_Overrides_Apply(t *testing.T) {
	disk := node(ready(corev1.ConditionTrue), corev1.NodeCondition{Type: "DiskPressure", Status: corev1.ConditionTrue})
	conditions := func(list string) change { return config(&v1alpha1.MachineConfiguration{NodeConditions: &list}) }
	short := config(&v1alpha1.MachineConfiguration{MachineHealthTimeout: &metav1.Duration{Duration: time.Minute}, DisableHealthTimeout: ptr.To(false)})
	for name, tc := range map[string]struct {
		in   machine.Observation
		want machinist.Reason
	}{
		"conditions of the policy":              {living(running, disk, copied), "NodeUnhealthy"},
		"no conditions":                         {living(running, disk, copied, conditions("")), "NodeReady"},
		"other conditions, are trimmed (DM-30)": {living(running, disk, copied, conditions("KernelDeadlock, DiskPressure ,")), "NodeUnhealthy"},
		"health timeout of the machine":         {living(unknown, short), "HealthTimeout"},
	} {
		require.Equal(t, tc.want, lawful(t, tc.in, machine.DefaultPolicy()).Reason, name)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add("1h", "KernelDeadlock, ,Ready", "MachineClass", "small", "true", "Pending", `{"metadata":{}}`, false)
	f.Add("-9223372036854775808ns", ",", "", "", "", "Failed", "{", true)
	f.Add("1e9h", strings.Repeat("a,", 100), "x", "", "1", "", "null", true)
	f.Fuzz(func(t *testing.T, timeout, conditions, kind, name, force, p, applied string, deleting bool) {
		in := after(withID, phase(v1alpha1.MachinePhase(p)), healthy,
			config(&v1alpha1.MachineConfiguration{NodeConditions: &conditions}),
			mayTake(timeout), spec(func(m *v1alpha1.Machine) {
				m.Spec.Class = v1alpha1.ClassSpec{Kind: kind, Name: name}
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
