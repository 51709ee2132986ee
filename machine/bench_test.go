// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var sink machine.Decision

// BenchmarkDecideHealth measures the most frequent decision: nothing has changed for a Running
// machine of a worker pool.
func BenchmarkDecideHealth(b *testing.B) {
	in, p := realisticMachine(), machine.DefaultPolicy()
	if d := machine.Decide(in, p, now); d.Reason != "NodeReady" || d.Action != nil {
		b.Fatal(d)
	}
	b.ReportAllocs()
	for b.Loop() {
		sink = machine.Decide(in, p, now)
	}
}

// realisticMachine returns a settled machine with a template and a class as in a production
// cluster.
func realisticMachine() machine.Observation {
	conditions := []corev1.NodeCondition{ready(corev1.ConditionTrue)}
	for i := range 9 {
		conditions = append(conditions, condition(fmt.Sprint("Condition", i), corev1.ConditionFalse))
	}
	in := living(v1alpha1.MachineRunning, node(conditions...), copied)
	in.Machine.Labels[v1alpha1.LabelKeyMachineDeploymentName] = "pool"
	in.Machine.Annotations = map[string]string{v1alpha1.MachinePriority: "3"}
	in.Machine.Spec.NodeTemplateSpec = v1alpha1.NodeTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{
				"node.kubernetes.io/role": "node", "worker.gardener.cloud/pool": "a", "worker.gardener.cloud/cri-name": "containerd",
				"worker.gardener.cloud/system-components": "true", "networking.gardener.cloud/node-local-dns-enabled": "false",
			},
			Annotations: map[string]string{"worker.gardener.cloud/config": "a8f2"},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule}}},
	}
	in.Class.Class.NodeTemplate = &v1alpha1.NodeTemplate{
		InstanceType: "m5.large", Region: "r", Zone: "z",
		Capacity:        corev1.ResourceList{"cpu": resource.MustParse("2"), "gpu": resource.MustParse("0"), "memory": resource.MustParse("8Gi")},
		VirtualCapacity: corev1.ResourceList{"subdomain.domain.com/resource": resource.MustParse("1")},
	}
	conditions = in.Node.Node.Status.Conditions
	for machine.Decide(in, machine.Policy{}, now).Action != nil {
		if !carriedOut(&in, machine.Decide(in, machine.Policy{}, now).Action) {
			break
		}
	}
	in.Node.Node.Status.Conditions = conditions
	for i := range 5 {
		in.Node.Node.Labels[fmt.Sprint("kubernetes.io/label-", i)] = "value"
	}
	return in
}

func BenchmarkRouting(b *testing.B) {
	in := realisticMachine()
	m, n := in.Machine.DeepCopy(), in.Node.Node.DeepCopy()
	for name, route := range map[string]func(){
		"machine": func() { machine.Changed(in.Machine, m) },
		"node":    func() { machine.Changed(in.Node.Node, n) },
		"pod":     func() { machine.Drains(in.Machine, in.Node.Node) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				route()
			}
		})
	}
}
