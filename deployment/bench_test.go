// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// rollLarge is a deployment in the middle of a roll-out, with ten sets that share
// so many machines.
func rollLarge(machines int) deployment.Observation {
	n := int32(machines)
	d := rolling(n, n/10, n/20)
	d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
	in := deployment.Observation{Deployment: d, Complete: true}
	for i := range 10 {
		class := fmt.Sprint("o", i)
		if i == 0 {
			class = "c1"
		}
		each := n / 10
		s := rollSet(d, class, each, each, each-each/10)
		s.CreationTimestamp = metav1.NewTime(rollNow.Add(time.Duration(i) * time.Minute))
		in.Sets = append(in.Sets, s)
		for j := range each {
			phase := v1alpha1.MachineRunning
			if j%10 == 0 {
				phase = v1alpha1.MachineUnknown
			}
			in.Machines = append(in.Machines, rollMachine(s, fmt.Sprintf("%s-%05d", s.Name, (j*7919)%each), phase))
		}
	}
	return in
}

func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{500, 5_000, 50_000} {
		in := rollLarge(n)
		if lines := rollLines(deployment.Decide(in, rollPolicy, rollNow)); len(lines) == 0 {
			b.Fatal("nothing is planned")
		}
		b.Run(fmt.Sprint(n, "Machines"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				deployment.Decide(in, rollPolicy, rollNow)
			}
		})
	}
}

// A pass that finds nothing to do is the common one.
func BenchmarkPlanAtRest(b *testing.B) {
	for _, n := range []int{500, 5_000, 50_000} {
		in := rollLarge(n)
		in.Sets = in.Sets[:1]
		in.Machines = in.Machines[:n/10]
		in.Deployment.Spec.Replicas = int32(n / 10)
		b.Run(fmt.Sprint(n/10, "Machines"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				deployment.Decide(in, rollPolicy, rollNow)
			}
		})
	}
}
