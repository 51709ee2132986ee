// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain"
)

// dice turns bytes into choices: those of a fuzzer, or of a seed. When they run
// out every choice is the first.
type dice struct{ bytes []byte }

func (d *dice) roll(n int) int {
	if len(d.bytes) == 0 {
		return 0
	}
	b := d.bytes[0]
	d.bytes = d.bytes[1:]
	return int(b) % n
}

func (d *dice) yes() bool { return d.roll(2) == 1 }

func pick[T any](d *dice, of ...T) T { return of[d.roll(len(of))] }

// when is a time around now, or none.
func (d *dice) when() time.Time {
	return pick(d, time.Time{}, now.Add(-time.Hour), now.Add(-3*time.Second), now, now.Add(1), now.Add(10*time.Second), now.Add(time.Hour))
}

func (d *dice) policy() drain.Policy {
	return drain.Policy{
		ForceAt: d.when(), NodeUnreachable: d.roll(4) == 1, EvictUnmanaged: d.yes(), EvictLocalStorage: d.yes(),
		RetryEvery: pick(d, 0, time.Second, -time.Second, time.Hour),
	}
}

func (d *dice) observation() drain.Observation {
	in := drain.Observation{Looked: d.roll(8) != 1, PodsComplete: d.roll(8) != 1, Answers: drain.Answers{}}
	if d.roll(4) != 1 {
		in.Node = newNode()
		in.Node.Spec.Unschedulable = d.yes()
	}
	for range d.roll(12) {
		in.Pods = append(in.Pods, d.pod())
	}
	for range d.roll(6) {
		in.Answers[types.UID("uid-"+pick(d, "a", "b", "c", "d", ""))] = drain.Answer{
			Asked: pick(d, drain.Evict, drain.Delete, drain.ForceDelete, ""), Reason: pick(d, drain.ReasonBudget, ""), Until: d.when(),
		}
	}
	return in
}

func (d *dice) pod() *corev1.Pod {
	if d.roll(16) == 1 {
		return nil
	}
	pod := newPod(pick(d, "a", "b", "c", "d", "e"))
	pod.ResourceVersion = pick(d, "10", "9", "")
	for _, edit := range []func(*corev1.Pod){
		unmanaged, emptyDir, mirror, ownedBy("DaemonSet"), ownedBy("Node"), inPhase(corev1.PodFailed), withFinalizer,
		func(p *corev1.Pod) { p.UID = pick[types.UID](d, "uid-successor", "") },
		func(p *corev1.Pod) { p.Spec.NodeName = "node-2" },
	} {
		if d.roll(5) == 1 {
			edit(pod)
		}
	}
	if d.roll(3) == 1 {
		leaving(pick(d, -time.Hour, -time.Second, 0, time.Minute), int64(pick(d, 0, 1, 30, -1)))(pod)
		if d.roll(5) == 1 {
			pod.DeletionGracePeriodSeconds = nil
		}
	}
	return pod
}
