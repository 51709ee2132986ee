// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// FuzzDecide throws texts at everything that is parsed, and numbers at everything
// that is counted.
func FuzzDecide(f *testing.F) {
	f.Add("1", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "now", "", "Failed", int32(1), int32(1), int64(5), "42m", "m", int32(0))
	f.Add("x", "", "x", "junk", "now", "Running", int32(-1), int32(-5), int64(-1), "soon", ",,m,m,", int32(30))
	f.Add("-9223372036854775809", "2026-02-30T00:00:00Z", "", "auto-preserved", "false", "", int32(1<<30), int32(3), int64(1)<<62, "", " n ", int32(-1<<31))
	f.Add("1", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "", "", "Available", int32(0), int32(0), int64(0), "-1s", "uid-ms", int32(1<<31-1))
	f.Fuzz(func(t *testing.T, priority, marked, scaled, preserve, ofNode, phase string, replicas, maxPreserved int32, age int64, timeout, victims string, settle int32) {
		set := newSet(replicas)
		set.Spec.AutoPreserveFailedMachineMax, set.Spec.MinReadySeconds = maxPreserved, settle
		set.Annotations = map[string]string{
			v1alpha1.LastDeploymentReplicaChangeByScalerTime: scaled, v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout: timeout,
			victimsAnnotation: victims,
		}
		m := newMachine("m", v1alpha1.MachinePhase(phase))
		m.Labels[v1alpha1.NodeLabelKey] = "n"
		m.Annotations = map[string]string{
			v1alpha1.MachinePriority: priority, v1alpha1.MarkedForDeletionTime: marked,
			v1alpha1.PreserveMachineAnnotationKey: preserve, v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout: timeout,
		}
		m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(time.Duration(age)))
		released := newMachine("n", v1alpha1.MachineRunning)
		released.OwnerReferences, released.Annotations[releasedAnnotation] = nil, victims
		in := machineset.Observation{
			Set: set, Machines: []*v1alpha1.Machine{m, nil, newMachine("o", v1alpha1.MachineRunning)}, Complete: true, Proven: true,
			Released:     []*v1alpha1.Machine{nil, released},
			Expectations: machine.Expectations{}.Creating(machine.KindMachine, phase, now.Add(time.Duration(age))).Deleting(machine.KindMachine, preserve, types.UID(marked), now),
			Nodes:        map[string]machine.NodeView{"n": nodeSaying(ofNode)},
		}
		p := machineset.Policy{Burst: int(maxPreserved), Order: orderOf([]byte(phase)[:min(8, len(phase))])}
		d := machineset.Decide(in, p, now)
		require.LessOrEqual(t, created(d)+len(deleted(d)), max(100, int(maxPreserved)))
		require.True(t, d.NextCheck.IsZero() || d.NextCheck.After(now))
		require.NotEmpty(t, d.Reason)
		if s, _ := machineset.Status(in, machineset.Failure{}, now); set.Spec.Replicas >= 0 {
			require.LessOrEqual(t, s.AvailableReplicas, s.Replicas)
		}
		for _, a := range d.Actions {
			if u, ok := a.(machinist.Update); ok && u.Object.GetName() == m.Name {
				_, again := syncOf(set, machineOf(u))
				require.False(t, again, "one write is enough")
			}
		}
	})
}
