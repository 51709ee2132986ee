// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// large is a deployment in the middle of a rollout, with as many sets that share so many
// machines. Of each old set a tenth is not healthy.
func large(d *v1alpha1.MachineDeployment, sets int) deployment.Observation {
	d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
	in := deployment.Observation{Deployment: d, Complete: true, Proven: true, Nodes: map[string]*corev1.Node{}}
	for i := range sets {
		each := d.Spec.Replicas / int32(sets)
		s := rollSet(d, fmt.Sprint("c", i+1), each, each, each-each/10)
		s.CreationTimestamp = metav1.NewTime(rollNow.Add(time.Duration(i) * time.Minute))
		in.Sets = append(in.Sets, s)
		for j := range each {
			phase := v1alpha1.MachineRunning
			if j%10 == 0 && sets > 1 {
				phase = v1alpha1.MachineUnknown
			}
			m := rollMachine(s, fmt.Sprintf("%s-%05d", s.Name, (j*7919)%each), phase)
			in.Machines = append(in.Machines, m)
			in.Nodes["node-"+m.Name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + m.Name, Labels: map[string]string{candKey: "true"}, Annotations: map[string]string{v1alpha1.MachineUIDAnnotation: string(m.UID)}}}
		}
	}
	return in
}

// BenchmarkPlan measures a pass that finds nothing to do, which is the common one.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int32{500, 5_000, 50_000} {
		held := deployment.Policy{HoldAutoscaler: true}
		for name, c := range map[string]struct {
			in     deployment.Observation
			policy deployment.Policy
		}{
			"rolling":  {large(rolling(n, n/10, n/20), 10), rollPolicy},
			"at rest":  {large(rolling(n/10, n/10, n/20), 1), rollPolicy},
			"in place": {large(rollDeployment(n, kindInPlace, intstr.FromInt32(0), intstr.FromString("10%")), 2), rollPolicy},
			"marks":    {large(rolling(n, n/10, n/20), 2), held},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					deployment.Decide(c.in, c.policy, rollNow)
				}
			})
		}
	}
}

// TestDecide_CostOfAPass_IsLinearInMachines asserts that the machines of all sets are sorted out
// once, however many sets there are.
func TestDecide_CostOfAPass_IsLinearInMachines(t *testing.T) {
	allocations := func(machines int32, sets int) float64 {
		in := large(rolling(machines, 1, 0), sets)
		return testing.AllocsPerRun(3, func() { deployment.Decide(in, deployment.Policy{}, rollNow) })
	}
	few, many := allocations(100, 10), allocations(1000, 10)
	require.Less(t, many, 2*few+1000)
	require.Less(t, allocations(1000, 100), 8*many, "ten times as many sets, and the same machines")
}
