// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// FuzzDecide throws texts at everything that is parsed, and numbers at everything
// that is counted.
func FuzzDecide(f *testing.F) {
	f.Add("1", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "now", "", "Failed", int32(1), int32(1), int64(5), "42m")
	f.Add("x", "", "x", "junk", "now", "Running", int32(-1), int32(-5), int64(-1), "soon")
	f.Add("-9223372036854775809", "2026-02-30T00:00:00Z", "", "auto-preserved", "false", "", int32(1<<30), int32(3), int64(1)<<62, "")
	f.Fuzz(func(t *testing.T, priority, marked, scaled, preserve, ofNode, phase string, replicas, maxPreserved int32, age int64, timeout string) {
		set := newSet(replicas)
		set.Spec.AutoPreserveFailedMachineMax = maxPreserved
		set.Annotations = map[string]string{
			v1alpha1.LastDeploymentReplicaChangeByScalerTime: scaled, v1alpha1.EffectiveCreationTimeout: timeout,
		}
		m := newMachine("m", v1alpha1.MachinePhase(phase))
		m.Labels[v1alpha1.NodeLabelKey] = "n"
		m.Annotations = map[string]string{
			v1alpha1.MachinePriority: priority, v1alpha1.MarkedForDeletionTime: marked,
			v1alpha1.PreserveMachineAnnotationKey: preserve, v1alpha1.EffectiveCreationTimeout: timeout,
		}
		in := machineset.Observation{
			Set: set, Machines: []*v1alpha1.Machine{m, nil}, Complete: true,
			InFlight: machineset.InFlight{}.Creating(phase, now.Add(time.Duration(age))).Deleting(preserve, types.UID(marked), now),
			Nodes:    map[string]machineset.NodeView{"n": {Found: true, Preserve: ofNode}},
		}
		d := machineset.Decide(in, machineset.Policy{Burst: int(maxPreserved), Unseen: time.Duration(age)}, now)
		require.LessOrEqual(t, created(d)+len(deleted(d)), max(machineset.DefaultBurst, int(maxPreserved)))
		require.True(t, d.NextCheck.IsZero() || d.NextCheck.After(now))
		require.NotEmpty(t, d.Reason)
		for _, a := range d.Actions {
			if s, ok := a.(machineset.Sync); ok {
				next := s.Apply(m)
				_, again := machineset.SyncFromTemplate(set, next)
				require.False(t, again, "one write is enough")
			}
		}
	})
}
