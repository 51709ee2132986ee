// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// criticalPriority is the lowest priority of system-cluster-critical and system-node-critical.
const criticalPriority = 2000000000

// waveOf returns the wave of a pod.
func (v *view) waveOf(pod *corev1.Pod) int32 {
	if wave := v.ruleOf(pod).Wave; wave != 0 {
		return wave
	}
	if !v.p.AllAtOnce && priority(pod) >= criticalPriority {
		return 1
	}
	return 0
}

// holdWaves holds the evictions of all waves after the first wave with pods left. It holds no
// deletions.
func holdWaves(rows []Row) {
	left := map[int32]int{}
	first, some := int32(0), false
	for i := range rows {
		if row := &rows[i]; row.Action != Ignore {
			left[row.Wave]++
			if !some || row.Wave < first {
				first, some = row.Wave, true
			}
		}
	}
	if len(left) < 2 {
		return
	}
	message := fmt.Sprintf("wave %d has %d pods left", first, left[first])
	if left[first] == 1 {
		message = fmt.Sprintf("wave %d has 1 pod left", first)
	}
	for i := range rows {
		if row := &rows[i]; row.Action == Evict && row.Wave > first {
			row.wait(reasonWave, joinMessages(message, row.Message), time.Time{})
		}
	}
}
