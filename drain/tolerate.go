// SPDX-License-Identifier: Apache-2.0

package drain

import (
	corev1 "k8s.io/api/core/v1"
)

// fenceTaint returns the taint that keeps new pods off the Node: that of the fence or,
// for a Node that is marked unschedulable, the one that stands for the mark. There is
// none that the drain knows of if something else keeps pods away.
func (p *Policy) fenceTaint() (corev1.Taint, bool) {
	switch {
	case p.Fence.Taint != "":
		return corev1.Taint{Key: p.Fence.Taint, Effect: corev1.TaintEffectNoSchedule}, true
	case p.KeepSchedulable:
		return corev1.Taint{}, false
	default:
		return corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, true
	}
}

// tolerates says whether a pod tolerates the taint of a fence, by the rules of the
// scheduler.
func tolerates(pod *corev1.Pod, taint corev1.Taint) bool {
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			continue
		}
		switch t.Operator {
		case corev1.TolerationOpExists:
			return true
		case corev1.TolerationOpEqual, "":
			if t.Value == taint.Value {
				return true
			}
		default: // the others compare numbers, and a fence has none
		}
	}
	return false
}

// toleratesFence says whether nothing that the drain knows of keeps a pod off the Node.
func (r *round) toleratesFence(pod *corev1.Pod) bool {
	taint, known := r.p.fenceTaint()
	return !known || tolerates(pod, taint)
}

// recurs says whether a pod is one that its controller put onto the Node after it was
// cordoned, and would again.
func (r *round) recurs(pod *corev1.Pod) bool {
	return !r.s.FencedAt.IsZero() && pod.CreationTimestamp.After(r.s.FencedAt) && managed(pod) && r.toleratesFence(pod)
}
