// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pods decides about each pod once, in order. Of several copies of a pod the
// newest counts, and of those the one that is treated with the most caution.
func (r *round) pods() []Row {
	pods := slices.DeleteFunc(slices.Clone(r.in.Pods.Items), func(pod *corev1.Pod) bool { return pod == nil })
	slices.SortFunc(pods, comparePods)
	var rows []Row
	if len(pods) > 0 {
		rows = make([]Row, 0, len(pods))
	}
	r.lookup.pods = make([]*corev1.Pod, 0, len(pods))
	for i, pod := range pods {
		row := r.pod(pod)
		row.Namespace, row.Name, row.UID = pod.Namespace, pod.Name, pod.UID
		last := len(rows) - 1
		switch {
		case last < 0 || !samePod(rows[last], row):
			rows = append(rows, row)
			r.lookup.pods = append(r.lookup.pods, pod)
		case pod.ResourceVersion != pods[i-1].ResourceVersion:
			pods[i] = pods[i-1] // superseded, like all that follow
		case compareRows(row, rows[last]) < 0:
			rows[last], r.lookup.pods[last] = row, pod
		}
	}
	return rows
}

// pod decides about one pod.
func (r *round) pod(pod *corev1.Pod) Row {
	if pod.Spec.NodeName != r.in.Node.Name {
		return Row{Verdict: Ignore, Reason: ReasonElsewhere}
	}
	if reason, left := leftAlone(pod); left {
		return Row{Verdict: Ignore, Reason: reason}
	}
	if pod.UID == "" || pod.Name == "" || pod.Namespace == "" {
		return Row{Verdict: Block, Reason: ReasonNoIdentity, Message: "it lacks a namespace, a name or a UID"}
	}
	row := Row{}
	if !r.protected(pod, &row) {
		wave := row.Wave
		row = r.request(pod)
		row.Wave = wave
	}
	if row.Verdict != Ignore && r.force.end == Proceed {
		return Row{Verdict: Ignore, Reason: ReasonAbandoned, Message: row.Message, Wave: row.Wave}
	}
	return row
}

// protected says whether the policy or a rule keeps a pod from being asked to go, and
// fills in the row. Once it is on its way out there is nothing left to protect.
func (r *round) protected(pod *corev1.Pod, row *Row) bool {
	row.Wave = r.wave(pod)
	if !pod.DeletionTimestamp.IsZero() || r.force.ignoreProtection {
		return false
	}
	switch {
	case !r.p.EvictUnmanaged && !managed(pod):
		row.Verdict, row.Reason, row.Message = Block, ReasonUnmanaged, "no controller would create it again"
	case !r.p.EvictLocalStorage && localStorage(pod):
		row.Verdict, row.Reason, row.Message = Block, ReasonLocalStorage, "its emptyDir volumes would be lost"
	default:
		return false
	}
	return true
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

// compareRows orders what could be done with one pod, the more cautious first.
func compareRows(a, b Row) int {
	return cmp.Or(
		cmp.Compare(a.Verdict.strength(), b.Verdict.strength()), cmp.Compare(a.Verdict, b.Verdict),
		cmp.Compare(a.Reason, b.Reason), a.Until.Compare(b.Until), cmp.Compare(a.Message, b.Message),
	)
}

func samePod(a, b Row) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name && a.UID == b.UID
}
