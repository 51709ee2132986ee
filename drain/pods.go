// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
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
		row.Namespace, row.Name, row.UID, row.Priority = pod.Namespace, pod.Name, pod.UID, priority(pod)
		last := len(rows) - 1
		switch {
		case last < 0 || rows[last].key() != row.key():
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

// pod decides about one pod. What is left alone whatever the policy says comes first,
// then rules, then what the policy protects.
func (r *round) pod(pod *corev1.Pod) Row {
	if reason, left := r.leftAlone(pod); left {
		return Row{Verdict: Ignore, Reason: reason}
	}
	if pod.UID == "" || pod.Name == "" || pod.Namespace == "" {
		return Row{Verdict: Block, Reason: ReasonNoIdentity, Message: "it lacks a namespace, a name or a UID"}
	}
	op, notes := r.opinion(pod)
	row, stays := r.protected(pod, op)
	if !stays {
		row = r.request(pod)
	}
	row.Message = joinMessages(cmp.Or(row.Message, op.Message), notes)
	row.Wave = r.wave(pod, op)
	if row.Verdict != Ignore {
		row = r.limit(pod, row)
	}
	return row
}

// protected says whether the policy or a rule keeps a pod from being asked to go, and
// the row that this makes. Once it is on its way out there is nothing left to protect.
func (r *round) protected(pod *corev1.Pod, op Opinion) (Row, bool) {
	switch {
	case op.Behavior == BehaviorSkip:
		return op.row(), true
	case op.Behavior == BehaviorDrain, !pod.DeletionTimestamp.IsZero(), r.leewayFor(pod).ignoreProtection:
		return Row{}, false
	case op.Behavior != BehaviorNote:
		return op.row(), true
	}
	lonely, data := !r.p.EvictUnmanaged && !managed(pod), !r.p.EvictLocalStorage && localStorage(pod)
	row := Row{Verdict: Block, Reason: ReasonUnmanaged, Message: "no controller would create it again"}
	switch {
	case lonely && data:
		row.Message = "no controller would create it again, and its emptyDir volumes would be lost"
	case data:
		row.Reason, row.Message = ReasonLocalStorage, "its emptyDir volumes would be lost"
	}
	return row, lonely || data
}

// limit looks again at a pod that does not stop when the policy stops waiting for it.
func (r *round) limit(pod *corev1.Pod, row Row) Row {
	if end := r.abandonAt(pod); end.After(r.now) {
		row.Until = machinist.Earliest(row.Until, end)
	}
	return row
}

// leftAlone says whether a drain neither touches a pod nor waits for it, whatever rules
// say of it, and why.
func (r *round) leftAlone(pod *corev1.Pod) (machinist.Reason, bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case pod.Spec.NodeName != r.in.Node.Name:
		return ReasonElsewhere, true
	case mirror, owner != nil && owner.Kind == "Node":
		return ReasonMirror, true
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return ReasonFinished, true
	case owner != nil && owner.Kind == daemonSetKind:
		if r.comesBack(pod, owner) {
			return ReasonDaemonSet, true
		}
	case r.p.Fence.Taint != "" && r.toleratesFence(pod):
		return ReasonTolerates, true
	case r.recurs(pod):
		return ReasonRecurring, true
	}
	return ReasonAbandoned, r.abandoned(pod)
}

const daemonSetKind = "DaemonSet"

// comesBack says whether a DaemonSet brings a pod of it back to the Node, or is to be
// left alone. DaemonSets are known by their kind in any group: those of other projects
// bring their pods back just the same. Only those of Kubernetes itself can be known to be gone.
func (r *round) comesBack(pod *corev1.Pod, owner *metav1.OwnerReference) bool {
	known := r.in.DaemonSets.Complete && owner.UID != "" && strings.HasPrefix(owner.APIVersion, appsv1.GroupName+"/")
	if known && !r.knowsDaemonSet(pod.Namespace, owner.UID) {
		return false
	}
	return !r.p.EvictDaemonSets || r.toleratesFence(pod)
}

// abandonAt returns when the policy stops waiting for a pod, or zero.
func (r *round) abandonAt(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp.IsZero() || r.p.SkipTerminatingAfter <= 0 {
		return time.Time{}
	}
	return pod.DeletionTimestamp.Add(r.p.SkipTerminatingAfter)
}

// abandoned says whether a pod should have stopped so long ago that it is not waited
// for any more. If pods may be taken off the API, it is first.
func (r *round) abandoned(pod *corev1.Pod) bool {
	end := r.abandonAt(pod)
	return !end.IsZero() && !end.After(r.now) && (!r.force.forceDelete || deletedWithin(pod, 0))
}

// managed says whether a controller would create the pod again.
func managed(pod *corev1.Pod) bool { return metav1.GetControllerOfNoCopy(pod) != nil }

// ofDaemonSet says whether a DaemonSet made the pod, of whatever group.
func ofDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == daemonSetKind
}

// priority of a pod; one without has 0.
func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

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
// the newest first. Copies that claim to be of
// the same version are ordered by what they say, so that their order does not matter.
func comparePods(a, b *corev1.Pod) int {
	if a == b {
		return 0
	}
	c := cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	if c != 0 {
		return c
	}
	c = compareVersions(b.ResourceVersion, a.ResourceVersion)
	if c != 0 {
		return c
	}
	return bytes.Compare(contents(a), contents(b))
}

// contents is what a pod says, in an order that is always the same.
func contents(pod *corev1.Pod) []byte {
	text, err := json.Marshal(pod)
	if err != nil {
		return nil
	}
	return text
}

// compareRows orders what could be done with one pod, the more cautious first.
func compareRows(a, b Row) int {
	return cmp.Or(
		cmp.Compare(a.Verdict.strength(), b.Verdict.strength()), cmp.Compare(a.Verdict, b.Verdict),
		cmp.Compare(a.Reason, b.Reason), a.Until.Compare(b.Until), cmp.Compare(a.Message, b.Message),
	)
}
