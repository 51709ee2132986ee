// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// untouched says whether nothing is asked for a pod, and whether it is waited
// for. What a policy protects is protected from force, too; once it is on its
// way out there is nothing left to protect.
func untouched(pod *corev1.Pod, node *corev1.Node, p Policy) (Row, bool) {
	if node != nil && pod.Spec.NodeName != node.Name {
		return Row{Verdict: Ignore, Reason: ReasonElsewhere}, true
	}
	if reason, left := leftAlone(pod); left {
		return Row{Verdict: Ignore, Reason: reason}, true
	}
	leaving := !pod.DeletionTimestamp.IsZero()
	switch {
	case pod.UID == "" || pod.Name == "" || pod.Namespace == "":
		return Row{Verdict: Block, Reason: ReasonNoIdentity, Message: "it lacks a namespace, a name or a UID"}, true
	case !leaving && !p.EvictUnmanaged && !managed(pod):
		return Row{Verdict: Block, Reason: ReasonUnmanaged, Message: "no controller would create it again"}, true
	case !leaving && !p.EvictLocalStorage && localStorage(pod):
		return Row{Verdict: Block, Reason: ReasonLocalStorage, Message: "its emptyDir volumes would be lost"}, true
	}
	return Row{}, false
}

// leftAlone says whether a drain neither touches a pod nor waits for it, and
// why. DaemonSets are known by their kind in any group: those of other projects
// bring their pods back just the same.
func leftAlone(pod *corev1.Pod) (Reason, bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case mirror, owner != nil && owner.Kind == "Node":
		return ReasonMirror, true
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return ReasonFinished, true
	case owner != nil && owner.Kind == "DaemonSet":
		return ReasonDaemonSet, true
	}
	return "", false
}

// managed says whether a controller would create the pod again.
func managed(pod *corev1.Pod) bool { return metav1.GetControllerOfNoCopy(pod) != nil }

// localStorage says whether the pod keeps data in emptyDir volumes.
func localStorage(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil })
}

// deletedWithin says whether the pod was told to stop within that many seconds.
func deletedWithin(pod *corev1.Pod, seconds int64) bool {
	return !pod.DeletionTimestamp.IsZero() &&
		pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds <= seconds
}

// overdue says in words what a pod waits for that should have stopped.
func overdue(pod *corev1.Pod) string {
	s := "it should have stopped by " + formatTime(pod.DeletionTimestamp.Time)
	if len(pod.Finalizers) > 0 {
		s += " and has the finalizers " + strings.Join(pod.Finalizers, ", ")
	}
	return s
}

// comparePods orders pods by identity, and copies of one pod by resource version,
// the newest first. Resource versions are decimal numbers.
func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID),
		cmp.Compare(len(b.ResourceVersion), len(a.ResourceVersion)), cmp.Compare(b.ResourceVersion, a.ResourceVersion),
	)
}
