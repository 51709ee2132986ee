// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/internal/recorded"
)

const (
	// LastWave is the wave of the pods of DaemonSets that are evicted, unless a rule
	// says otherwise: what they do for other pods is needed until those have gone.
	LastWave int32 = math.MaxInt32
	// criticalPriority is the least priority of the two classes that Kubernetes keeps
	// for itself, system-cluster-critical and system-node-critical.
	criticalPriority = 2000000000
)

// CriticalLast puts the pods of Kubernetes' own two critical priority classes into
// wave 1, and all others into wave 0. A pod without priority has priority 0.
//
// With [Policy.EvictDaemonSets] there are three waves: normal pods, critical ones, and
// those of DaemonSets, in which normal ones are asked before critical ones. Karpenter has
// the normal pods of DaemonSets before the critical ones of others; a rule with an
// Order says so, where it is wanted.
func CriticalLast(pod *corev1.Pod) int32 {
	if pod != nil && priority(pod) >= criticalPriority {
		return 1
	}
	return 0
}

// AllAtOnce puts every pod into the same wave.
func AllAtOnce(*corev1.Pod) int32 { return 0 }

// RequestOrder orders rows as their requests are made: by wave, then the lower priority
// first, then by namespace, name and UID.
func RequestOrder(a, b Row) int {
	if c := cmp.Or(cmp.Compare(a.Wave, b.Wave), cmp.Compare(a.Priority, b.Priority)); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// wave returns the wave of a pod: what a rule says, or else the policy.
func (r *round) wave(pod *corev1.Pod, op Opinion) int32 {
	switch {
	case op.Order != nil:
		return *op.Order
	case ofDaemonSet(pod):
		return LastWave
	case r.p.Waves == nil:
		return CriticalLast(pod)
	default:
		return r.p.Waves(pod)
	}
}

// holdWaves holds the evictions of all waves after the one that is under way. A wave
// begins when all pods of the earlier ones have gone, or when the one before it had
// its time. Deletions are not held: they are what force asks for.
func (r *round) holdWaves(rows []Row) {
	wave, left := r.currentWave(rows)
	if left == 0 {
		return
	}
	var message string
	for i := range rows {
		row := &rows[i]
		if row.Verdict != Evict || row.Wave <= wave {
			continue
		}
		if message == "" {
			message = waveMessage(wave, left)
		}
		row.Verdict, row.Reason, row.Grace = Wait, ReasonWave, nil
		row.Message, row.Until = joinMessages(message, row.Message), r.waveEnd()
	}
}

// currentWave returns the wave that holds the later ones, and how many of its pods are
// left. It remembers since when that is so, and whether earlier ones were passed over.
// As long as a gate is closed, or the fence does not stand, the time of a wave does not
// begin.
func (r *round) currentWave(rows []Row) (wave int32, left int) {
	s := &r.s
	wave, some := nextWave(rows, math.MinInt32)
	if !some {
		s.Wave, s.WaveSince, s.WaveLate = 0, time.Time{}, false
		return 0, 0
	}
	if s.WaveSince.IsZero() || wave >= s.Wave {
		s.WaveLate = false
	}
	if s.WaveLate {
		if wave, some = nextWave(rows, s.Wave); !some {
			return s.Wave, 0
		}
	}
	held := r.closed != nil || r.open // nobody is asked, or could be
	if wave != s.Wave || !recorded.Known(s.WaveSince, r.now) || held {
		s.Wave, s.WaveSince = wave, r.now
	}
	if end := r.waveEnd(); !end.IsZero() && !end.After(r.now) && wave < LastWave {
		if later, some := nextWave(rows, wave+1); some {
			s.Wave, s.WaveSince, s.WaveLate = later, r.now, true
		}
	}
	for i := range rows {
		if rows[i].Verdict != Ignore && rows[i].Wave == s.Wave {
			left++
		}
	}
	return s.Wave, left
}

// waveEnd returns when the current wave had its time, or zero for never.
func (r *round) waveEnd() time.Time {
	if r.p.WaveTimeout <= 0 {
		return time.Time{}
	}
	return r.s.WaveSince.Add(r.p.WaveTimeout)
}

// nextWave returns the earliest wave with pods left, from one on.
func nextWave(rows []Row, from int32) (wave int32, some bool) {
	for i := range rows {
		if row := &rows[i]; row.Verdict != Ignore && row.Wave >= from && (!some || row.Wave < wave) {
			wave, some = row.Wave, true
		}
	}
	return wave, some
}

func waveMessage(wave int32, left int) string {
	if left == 1 {
		return fmt.Sprintf("wave %d has 1 pod left", wave)
	}
	return fmt.Sprintf("wave %d has %d pods left", wave, left)
}
