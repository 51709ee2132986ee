// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
)

// view is the input of one step. The step does not change it.
type view struct {
	in  *Observation
	p   *Policy
	now time.Time
	// s is the state before the decisions of this step, allow what the ladders allow now.
	s     State
	allow *allowances
	// selector is the pod selector of the policy.
	selector labels.Selector
	// daemonSets are the namespaces of the DaemonSets by UID, or nil if the list is incomplete.
	daemonSets map[types.UID]string
}

func newView(s State, in *Observation, p *Policy, allow *allowances, now time.Time) *view {
	v := &view{in: in, p: p, now: now, s: s, allow: allow, selector: labels.Everything(), daemonSets: daemonSetsOf(in.DaemonSets)}
	if selector, err := labels.Parse(p.PodSelector); err == nil {
		v.selector = selector
	}
	return v
}

// selectPods returns the pods in order, and their rows. Of several copies of a pod the newest counts.
func selectPods(v *view) ([]*corev1.Pod, []Row) {
	pods := slices.DeleteFunc(slices.Clone(v.in.Pods.Items), func(pod *corev1.Pod) bool { return pod == nil })
	slices.SortFunc(pods, comparePods)
	pods = slices.CompactFunc(pods, func(a, b *corev1.Pod) bool { return a.Namespace == b.Namespace && a.Name == b.Name && a.UID == b.UID })
	if len(pods) == 0 {
		return nil, nil
	}
	rows := make([]Row, len(pods))
	for i, pod := range pods {
		row := v.selectPod(pod)
		row.Namespace, row.Name, row.UID, row.Priority = pod.Namespace, pod.Name, pod.UID, priority(pod)
		rows[i] = row
	}
	return pods, rows
}

// daemonSetsOf returns the namespaces of DaemonSets by UID, or nil if the list is incomplete.
func daemonSetsOf(list List[*appsv1.DaemonSet]) map[types.UID]string {
	if !list.Complete {
		return nil
	}
	known := make(map[types.UID]string, len(list.Items))
	for _, ds := range list.Items {
		if ds != nil {
			known[ds.UID] = ds.Namespace
		}
	}
	return known
}

// selectPod returns the row of one pod. Pods that every policy ignores come first, then rules, then
// pods that the policy protects.
func (v *view) selectPod(pod *corev1.Pod) Row {
	if row, left := v.leftAlone(pod); left {
		return row
	}
	if field := missingField(pod); field != "" {
		return Row{Action: Block, Reason: reasonNotEvaluated, Message: field + " is empty"}
	}
	row, keeps, notes := v.ruled(pod)
	terminating := !pod.DeletionTimestamp.IsZero()
	if keeps && terminating && row.Action != Ignore { // there is nothing left to protect
		keeps, row.Message = false, ""
	}
	if !keeps && !terminating {
		row, keeps = v.protected(pod)
	}
	if !keeps {
		row = v.request(pod)
	}
	row.Message, row.Wave = joinMessages(row.Message, notes), v.waveOf(pod)
	if end := v.abandonAt(pod); row.Action != Ignore && end.After(v.now) {
		row.Until = machinist.Earliest(row.Until, end)
	}
	return row
}

// idOf returns the UID of a pod. Fake API servers give none: it is then the namespace and name.
func idOf(pod *corev1.Pod) types.UID { return identity(pod.UID, pod.Namespace, pod.Name) }

// id returns the [idOf] the pod of a row, or "" for a row without a pod.
func (r *Row) id() types.UID { return identity(r.UID, r.Namespace, r.Name) }

func identity(uid types.UID, namespace, name string) types.UID {
	if uid == "" && name != "" {
		return types.UID(namespace + "/" + name)
	}
	return uid
}

// missingField returns the first empty field of the identity of a pod, or "".
func missingField(pod *corev1.Pod) string {
	switch {
	case pod.Namespace == "":
		return "metadata.namespace"
	case pod.Name == "":
		return "metadata.name"
	default:
		return ""
	}
}

// protected returns the row of a pod that the policy protects.
func (v *view) protected(pod *corev1.Pod) (Row, bool) {
	lonely, data := v.losses(pod)
	lonely, data = lonely && !v.p.EvictUnmanaged, data && !v.p.EvictLocalStorage
	row := Row{Action: Block, Reason: ReasonUnmanaged, Message: lossText(lonely, data)}
	if !lonely {
		row.Reason = ReasonLocalStorage
	}
	return row, lonely || data
}

// losses reports whether no controller would create a pod again, and whether it would lose local data.
func (v *view) losses(pod *corev1.Pod) (lonely, data bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner == nil || v.gone(owner, pod.Namespace),
		slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil })
}

// lossText returns what is lost with a pod, as text.
func lossText(lonely, data bool) string {
	switch {
	case lonely && data:
		return "no controller would create it again, and its emptyDir volumes would be lost"
	case lonely:
		return "no controller would create it again"
	case data:
		return "its emptyDir volumes would be lost"
	default:
		return ""
	}
}

// warn adds to each request what is lost with the pod.
func (v *view) warn(rows []Row, pods []*corev1.Pod) {
	for i := range rows {
		if row := &rows[i]; row.Action.IsRequest() {
			row.Message = joinMessages(lossText(v.losses(pods[i])), row.Message)
		}
	}
}

// gone reports whether the controller of a pod is a DaemonSet that does not exist. It is false if that is not
// known, and for DaemonSets of other API groups, which recreate their pods, too.
func (v *view) gone(owner *metav1.OwnerReference, namespace string) bool {
	if v.daemonSets == nil || owner.Kind != "DaemonSet" || owner.UID == "" || !strings.HasPrefix(owner.APIVersion, appsv1.GroupName+"/") {
		return false
	}
	in, exists := v.daemonSets[owner.UID]
	return !exists || in != namespace
}

// leftAlone returns the row of a pod that a drain ignores.
func (v *view) leftAlone(pod *corev1.Pod) (Row, bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	row := Row{Action: Ignore, Reason: reasonStays}
	switch {
	case pod.Spec.NodeName != v.in.Node.Name:
		row.Reason, row.Message = reasonGone, "it is on another Node"
	case mirror, owner != nil && owner.Kind == "Node":
		row.Message = "it is a mirror pod, which the kubelet would create again"
	case finished(pod) && !withKubelet(pod):
		row.Reason, row.Message = reasonGone, "it has finished"
	case owner != nil && owner.Kind == "DaemonSet":
		row.Message = "its DaemonSet would create it again"
		return v.orAbandoned(pod, row, !v.gone(owner, pod.Namespace))
	case v.p.Cordon.Taint != "" && v.toleratesCordon(pod):
		row.Message = "it tolerates the taint of the cordon"
	case !v.s.CordonedAt.IsZero() && pod.CreationTimestamp.After(v.s.CordonedAt) && owner != nil && v.toleratesCordon(pod):
		row.Message = "it was created after the cordon, which it tolerates"
	default:
		return v.orAbandoned(pod, row, false)
	}
	return row, true
}

// finished reports whether the containers of a pod have ended and do not restart.
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// withKubelet reports whether the kubelet has still to end a deleted pod. After the last container
// it unmounts the volumes, and then deletes the object with a grace period of zero. Until then a
// StatefulSet does not create the successor.
func withKubelet(pod *corev1.Pod) bool {
	return !pod.DeletionTimestamp.IsZero() && !deletedWithin(pod, 0)
}

// orAbandoned returns the row of a pod that is ignored or no longer waited for. A pod that may be
// force-deleted is not abandoned before that request.
func (v *view) orAbandoned(pod *corev1.Pod, row Row, left bool) (Row, bool) {
	if left {
		return row, true
	}
	row = Row{Action: Ignore, Reason: ReasonAbandoned}
	end := v.abandonAt(pod)
	over := !end.IsZero() && !end.After(v.now)
	if !over && !pod.DeletionTimestamp.IsZero() && v.ruleOf(pod).SkipEnd {
		over, row.Message = true, "a rule does not wait for its end"
	}
	return row, over && (!v.allow.forceDelete || deletedWithin(pod, 0))
}

// abandonAt returns when the policy stops waiting for a pod, or zero.
func (v *view) abandonAt(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp.IsZero() || v.p.SkipTerminatingAfter <= 0 {
		return time.Time{}
	}
	return pod.DeletionTimestamp.Add(v.p.SkipTerminatingAfter)
}

// toleratesCordon reports whether the pod tolerates the taint of the cordon, or the policy sets
// none.
func (v *view) toleratesCordon(pod *corev1.Pod) bool {
	taint, known := v.p.cordonTaint()
	return !known || slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return tolerates(&t, &taint) })
}

// tolerates reports whether a toleration covers the taint of a cordon, by the rules of the
// scheduler.
func tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == corev1.TolerationOpExists || (t.Operator == corev1.TolerationOpEqual || t.Operator == "") && t.Value == taint.Value
}

// priority returns the priority of a pod, 0 if it has none.
func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// deletedWithin reports whether the pod was deleted with at most that grace period.
func deletedWithin(pod *corev1.Pod, seconds int64) bool {
	return !pod.DeletionTimestamp.IsZero() &&
		pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds <= seconds
}

// comparePods compares pods by identity, and copies of one pod the newest first.
func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID),
		compareVersions(b.ResourceVersion, a.ResourceVersion))
}

// compareVersions compares resource versions as decimal numbers.
func compareVersions(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
