// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	clusterAPIDrainLabel   = "cluster.x-k8s.io/drain"
	doNotDisruptAnnotation = "karpenter.sh/do-not-disrupt"
)

// rules is the table of rules that labels and annotations of pods follow, by field of [Policy]. A
// rule returns the row of a pod that it keeps, or false and a message about the pod. The first rule
// that keeps a pod decides.
var rules = []struct {
	field string
	row   func(v *view, pod *corev1.Pod) (row Row, keeps bool, note string)
}{
	{"PodSelector", podSelector},
	{"ClusterAPILabels", clusterAPILabel},
	{"DoNotDisrupt", doNotDisrupt},
}

// ruled returns the row of a pod that a rule keeps, or false and the messages of the rules.
func (v *view) ruled(pod *corev1.Pod) (row Row, keeps bool, notes string) {
	for _, rule := range rules {
		row, keeps, note := rule.row(v, pod)
		if keeps {
			return row, true, notes
		}
		notes = joinMessages(notes, note)
	}
	return Row{}, false, notes
}

// podSelector ignores pods that the selector of the policy does not select.
func podSelector(v *view, pod *corev1.Pod) (row Row, keeps bool, note string) {
	row = Row{Action: Ignore, Reason: reasonRule, Message: "the pod selector does not select it"}
	return row, !v.selector.Matches(labels.Set(pod.Labels)), ""
}

// clusterAPILabel applies the label of Cluster API that ignores a pod, or waits until it has
// completed.
func clusterAPILabel(v *view, pod *corev1.Pod) (row Row, keeps bool, note string) {
	value, set := pod.Labels[clusterAPIDrainLabel]
	message := "label " + clusterAPIDrainLabel + "=" + value
	switch plain := strings.ReplaceAll(value, "-", ""); {
	case !set || !v.p.ClusterAPILabels:
		return Row{}, false, ""
	case strings.EqualFold(value, "skip"):
		return Row{Action: Ignore, Reason: reasonRule, Message: message}, true, ""
	case strings.EqualFold(plain, "waitcompleted"):
		return Row{Action: Wait, Reason: ReasonWaitCompleted, Message: message}, true, ""
	default:
		return Row{}, false, message + " is not known and ignored"
	}
}

// doNotDisrupt applies the annotation of Karpenter that protects a pod: always, or for a duration
// after its start or creation.
func doNotDisrupt(v *view, pod *corev1.Pod) (row Row, keeps bool, note string) {
	value, set := pod.Annotations[doNotDisruptAnnotation]
	if !set || value == "false" || !v.p.DoNotDisrupt {
		return Row{}, false, ""
	}
	row = Row{Action: Block, Reason: ReasonDoNotDisrupt, Message: "annotation " + doNotDisruptAnnotation + "=" + value}
	if value == "true" {
		return row, true, ""
	}
	period, err := time.ParseDuration(value)
	if err != nil || period <= 0 {
		return Row{}, false, "annotation " + doNotDisruptAnnotation + "=" + strconv.Quote(value) + " is neither true nor a duration, and ignored"
	}
	start := pod.CreationTimestamp.Time
	if !pod.Status.StartTime.IsZero() {
		start = pod.Status.StartTime.Time
	}
	if !start.IsZero() {
		row.Until = start.Add(period)
	}
	return row, row.Until.IsZero() || row.Until.After(v.now), ""
}

// joinMessages joins two messages.
func joinMessages(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
