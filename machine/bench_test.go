// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var sink machine.Decision

// settledMachine is a Running machine whose Node has ten conditions.
func settledMachine() machine.Observation {
	conditions := []corev1.NodeCondition{ready(corev1.ConditionTrue)}
	for i := range 9 {
		conditions = append(conditions, condition(fmt.Sprint("Condition", i), corev1.ConditionFalse))
	}
	return living(v1alpha1.MachineRunning, node(conditions...), copied)
}

func BenchmarkDecideRunning(b *testing.B) {
	withTaint := settledMachine()
	withTaint.Machine.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	withTaint.Node.Node = machine.Decide(withTaint, machine.Policy{}, now).Do.(machine.UpdateNode).Node
	withTaint.Node.Node.Status = settledMachine().Node.Node.Status
	plain := settledMachine()
	plain.Machine.Spec.NodeTemplateSpec = v1alpha1.NodeTemplateSpec{}
	plain.Node.Node.Annotations = nil
	for name, in := range map[string]machine.Observation{"plain": plain, "label": settledMachine(), "label+taint": withTaint} {
		b.Run(name, func(b *testing.B) {
			p := machine.DefaultPolicy()
			if d := machine.Decide(in, p, now); d.Reason != machine.ReasonNodeReady || d.Do != nil {
				b.Fatal(d)
			}
			b.ReportAllocs()
			for b.Loop() {
				sink = machine.Decide(in, p, now)
			}
		})
	}
}

func BenchmarkDecideCreate(b *testing.B) {
	in, p := after(intended, vm(machine.VMView{Sighting: machine.Absent})), machine.DefaultPolicy()
	b.ReportAllocs()
	for b.Loop() {
		sink = machine.Decide(in, p, now)
	}
}

func BenchmarkDecidePhaseChange(b *testing.B) {
	in, p := settledMachine(), machine.DefaultPolicy()
	in.Machine.Status.CurrentStatus.Phase = v1alpha1.MachineUnknown
	b.ReportAllocs()
	for b.Loop() {
		sink = machine.Decide(in, p, now)
	}
}

func BenchmarkDecideClass(b *testing.B) {
	in := machine.ClassObservation{Class: class(), Complete: true}
	for i := range 1000 {
		m := newMachine(fmt.Sprint("m-", i))
		m.ObjectMeta = metav1.ObjectMeta{Namespace: "shoot", Name: m.Name}
		m.Spec.Class.Name = "other"
		in.Machines = append(in.Machines, m)
	}
	b.ReportAllocs()
	for b.Loop() {
		sink = machine.DecideClass(in, now)
	}
}
