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

// marked returns the row of a pod that the selector of the policy, its label or its annotation
// keeps on the Node. Without such a row it returns what is to be said about the pod.
func marked(pod *corev1.Pod, p *Policy, selector labels.Selector, now time.Time) (row Row, keeps bool, notes string) {
	if !selector.Matches(labels.Set(pod.Labels)) {
		return Row{Action: Ignore, Reason: ReasonRule, Message: "it is not among the pods that are selected"}, true, ""
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

// clusterAPILabel reads the label by which Cluster API leaves a pod alone, or waits until it
// has completed.
func clusterAPILabel(pod *corev1.Pod) (row Row, keeps bool, note string) {
	value, set := pod.Labels[clusterAPIDrainLabel]
	message := "label " + clusterAPIDrainLabel + "=" + value
	switch plain := strings.ReplaceAll(value, "-", ""); {
	case !set:
		return Row{}, false, ""
	case strings.EqualFold(value, "skip"):
		return Row{Action: Ignore, Reason: ReasonRule, Message: message}, true, ""
	case strings.EqualFold(plain, "waitcompleted"):
		return Row{Action: Wait, Reason: ReasonWaitCompleted, Message: message}, true, ""
	default:
		return Row{}, false, message + " is not known and ignored"
	}
}

// doNotDisrupt reads the annotation by which Karpenter does not disrupt a pod: for ever, or
// for a while after it has started, or was created if it has not.
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

// joinMessages puts two messages together.
func joinMessages(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
