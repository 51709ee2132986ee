// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// scalings is a deployment that its user scales at any time.
func scalings(rng *rand.Rand) *rollout {
	r := rolling(rng.Int32N(6), rng.Int32N(2), 0)
	span := []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute}[rng.IntN(3)]
	for range 6 {
		r.changes = append(r.changes, change{time.Duration(rng.Int64N(int64(span))), fmt.Sprintf(`{"spec":{"replicas":%d}}`, rng.IntN(6))})
	}
	return r
}

// TestOvershoot_ScaledAtAnyTime_IsNeverFrozen scales deployments while events are late, calls fail
// and processes crash. Sets then often have surplus machines, but never create more.
func TestOvershoot_ScaledAtAnyTime_IsNeverFrozen(t *testing.T) {
	t.Parallel()
	fewerCollections(t)
	count := 200
	if testing.Short() {
		count = 20
	}
	synctest.Test(t, func(t *testing.T) {
		seen, faults := 0, 0
		for seed := range uint64(count) {
			rng := rand.New(rand.NewPCG(seed, 15))
			w := play(scenario{name: "scaled", joins: true, deployment: true, rollout: scalings(rng), cloud: anyCloud(rng)}, rng, randomFaults(rng), false)
			require.Empty(t, w.violations, "seed %d: %s", seed, w.scenario)
			seen, faults = seen+w.tooMany, faults+w.fault
		}
		t.Logf("%d looks at a set that has too many machines, %d faults", seen, faults)
		require.Greater(t, seen, count)
	})
}

// TestOvershoot_MachinesAddedByUser_SetIsFrozen proves that the check of the schedules can fail: a
// user adds machines to a set.
func TestOvershoot_MachinesAddedByUser_SetIsFrozen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := scenario{name: "surplus machines", joins: true, deployment: true, rollout: rolling(1, 0, 0)}
		w := newWorld(s, nil, noFaults, false)
		w.later(5*time.Minute, func() {
			set := all[*v1alpha1.MachineSet](w.control, "machinesets")[0]
			for i := range 4 {
				m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
					Namespace: ns, Name: fmt.Sprint("byhand-", i), Labels: set.Spec.Template.Labels,
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))},
				}, Spec: machineSpec()}
				_, err := w.machines.MachineV1alpha1().Machines(ns).Create(ofOthers, m, metav1.CreateOptions{})
				must(err)
			}
		})
		w.run()
		require.Contains(t, strings.Join(w.violations, "\n"), "sets created too many machines: update machineset ")
		w.process.cancel()
	})
}
