// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machinist-dev/machinist"
)

const (
	clusterAPIDrainLabel   = "cluster.x-k8s.io/drain"
	doNotDisruptAnnotation = "karpenter.sh/do-not-disrupt"
)

// Rule is what a caller decides about a pod: see [Policy.Rules]. The zero Rule decides nothing. Pods that
// every drain ignores, such as mirror pods, have no rule. A terminating pod is only ignored: there is
// nothing left to protect.
type Rule struct {
	// Action is [Ignore], [Wait] or [Block]. Empty means that the policy decides. Other actions are
	// invalid and block the pod.
	Action Action
	// Reason is why, a stable word of the caller. Empty means Rule.
	Reason machinist.Reason
	// Message is why, for people.
	Message string
	// Until is when to ask again. Zero means when an object changes.
	Until time.Time
	// Wave is the wave of the eviction. Pods of a wave are evicted when those of lower waves are gone. Zero
	// means that of the policy: 1 for critical pods, 0 for others.
	Wave int32
	// SkipEnd does not wait for the end of the pod once it is terminating.
	SkipEnd bool
}

// rules is the table of rules about pods, by field of [Policy]. A
// rule returns the row of a pod that it keeps, or false and a message about the pod. The first rule
// that keeps a pod decides.
var rules = []struct {
	field string
	row   func(v *view, pod *corev1.Pod) (row Row, keeps bool, note string)
}{
	{"Rules", ownRule},
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

// ruleOf returns the rule of the caller for a pod.
func (v *view) ruleOf(pod *corev1.Pod) Rule {
	if v.p.Rules == nil {
		return Rule{}
	}
	return v.p.Rules(pod)
}

// ownRule applies the rule of the caller.
func ownRule(v *view, pod *corev1.Pod) (row Row, keeps bool, note string) {
	rule := v.ruleOf(pod)
	switch rule.Action {
	case "":
		return Row{}, false, rule.Message
	case Ignore, Wait, Block:
		row = Row{Action: rule.Action, Reason: cmp.Or(rule.Reason, reasonRule), Message: rule.Message, Until: rule.Until}
		return row, true, ""
	default:
		return Row{Action: Block, Reason: reasonInvalidPolicy, Message: fmt.Sprintf("a rule cannot have the action %q", string(rule.Action))}, true, ""
	}
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
