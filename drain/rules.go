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

// marked returns the row of a pod that the selector of the policy, a label or an annotation keeps,
// or false and a message about the pod.
func marked(pod *corev1.Pod, p *Policy, selector labels.Selector, now time.Time) (row Row, keeps bool, notes string) {
	if !selector.Matches(labels.Set(pod.Labels)) {
		return Row{Action: Ignore, Reason: reasonRule, Message: "the pod selector does not select it"}, true, ""
	}
	if p.ClusterAPILabels {
		if row, keeps, notes = clusterAPILabel(pod); keeps {
			return row, true, ""
		}
	}
	if p.DoNotDisrupt {
		row, keeps, note := doNotDisrupt(pod, now)
		return row, keeps, joinMessages(notes, note)
	}
	return Row{}, false, notes
}

// clusterAPILabel applies the label of Cluster API that ignores a pod, or waits until it has
// completed.
func clusterAPILabel(pod *corev1.Pod) (row Row, keeps bool, note string) {
	value, set := pod.Labels[clusterAPIDrainLabel]
	message := "label " + clusterAPIDrainLabel + "=" + value
	switch plain := strings.ReplaceAll(value, "-", ""); {
	case !set:
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
func doNotDisrupt(pod *corev1.Pod, now time.Time) (row Row, keeps bool, note string) {
	value, set := pod.Annotations[doNotDisruptAnnotation]
	if !set || value == "false" {
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
	return row, row.Until.IsZero() || row.Until.After(now), ""
}

// joinMessages joins two messages.
func joinMessages(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
