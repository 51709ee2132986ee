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

// ClusterAPILabels returns the rule that reads the label cluster.x-k8s.io/drain of
// pods, as Cluster API does: "skip" leaves the pod alone, "wait-completed" waits until
// it has completed. Other values are noted. It goes before rules that are data, as
// there.
func ClusterAPILabels() Rule {
	return func(s Subject, _ time.Time) (Opinion, bool) {
		if s.Pod == nil {
			return Opinion{}, false
		}
		value, set := s.Pod.Labels[clusterAPIDrainLabel]
		if !set {
			return Opinion{}, false
		}
		op := Opinion{Behavior: BehaviorNote, Message: "label " + clusterAPIDrainLabel + "=" + value}
		switch plain := strings.ReplaceAll(value, "-", ""); {
		case strings.EqualFold(value, string(BehaviorSkip)):
			op.Behavior = BehaviorSkip
		case strings.EqualFold(plain, string(BehaviorWaitCompleted)):
			op.Behavior = BehaviorWaitCompleted
		default:
			op.Message += " is not known and ignored"
		}
		return op, true
	}
}

// DoNotDisrupt returns the rule that reads the annotation karpenter.sh/do-not-disrupt
// of pods, as Karpenter does: "true" blocks the drain, a duration such as "30m" blocks
// it for so long after the pod has started, or was created if it has not. A value that
// says neither is noted and ignored; "false" is as good as none.
func DoNotDisrupt() Rule {
	return func(s Subject, _ time.Time) (Opinion, bool) {
		if s.Pod == nil {
			return Opinion{}, false
		}
		value, set := s.Pod.Annotations[doNotDisruptAnnotation]
		if !set || value == "false" {
			return Opinion{}, false
		}
		op := Opinion{Behavior: BehaviorBlock, Reason: ReasonDoNotDisrupt, Message: "annotation " + doNotDisruptAnnotation + "=" + value}
		if value == "true" {
			return op, true
		}
		period, err := time.ParseDuration(value)
		if err != nil || period <= 0 {
			message := "annotation " + doNotDisruptAnnotation + "=" + strconv.Quote(value) + " is neither true nor a duration, and ignored"
			return Opinion{Behavior: BehaviorNote, Message: message}, true
		}
		if start := startOf(s.Pod); !start.IsZero() {
			op.Until = start.Add(period)
		}
		return op, true
	}
}

// startOf returns when a pod has started or, if it has not, was created.
func startOf(pod *corev1.Pod) time.Time {
	if pod.Status.StartTime.IsZero() {
		return pod.CreationTimestamp.Time
	}
	return pod.Status.StartTime.Time
}

// OnlyPods returns the rule that leaves all pods alone but those that a selector
// selects, of which it has no opinion: the option --pod-selector of kubectl drain. A
// nil selector selects all.
func OnlyPods(selector labels.Selector) Rule {
	return func(s Subject, _ time.Time) (Opinion, bool) {
		if s.Pod == nil || selector == nil || selector.Matches(labels.Set(s.Pod.Labels)) {
			return Opinion{}, false
		}
		return Opinion{Behavior: BehaviorSkip, Message: "it is not among the pods that are selected"}, true
	}
}
