// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"testing"

	"github.com/machinist-dev/machinist/safety"
)

// BenchmarkStep compares 100,000 listed VMs, three of them orphans, with 100,000 machines.
func BenchmarkStep(b *testing.B) {
	w := world{}
	for i := range 100_000 {
		name := fmt.Sprintf("machine-%06d", i)
		w.vms = append(w.vms, vm(name))
		w.machines = append(w.machines, machine("shoot", name, id(name)))
	}
	for i := range 3 {
		w.vms[i*30_000] = vm(fmt.Sprint("lost-", i))
	}
	in := w.at(start)
	p := safety.DefaultPolicy()
	b.ReportAllocs()
	for b.Loop() {
		_, d := safety.Step(old, in, p, start)
		if len(d.Holds) != 3 {
			b.Fatal(d)
		}
	}
}
