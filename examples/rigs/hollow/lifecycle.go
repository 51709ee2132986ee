// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// Lifecycle simulates the Node lifecycle controller for a cluster in memory. The conditions of a
// Node that is silent for Grace become Unknown, and its pods not ready. A Node that is not ready
// gets the taints of that condition. It deletes no pods. It is for one goroutine.
type Lifecycle struct {
	// Client is the client for the cluster.
	Client kubernetes.Interface
	// Clock is the clock for Grace. Nil means the real clock.
	Clock clock.PassiveClock
	// Grace is how long a Node may be silent. Zero or less means 50s.
	//
	// Counts at most Grace/8 per step, so that a paused process does not expire Nodes.
	Grace time.Duration

	heard map[types.UID]heard
	last  time.Time // the time of the last step
}

// heard is the last report of a Node, and for how long there was none since.
type heard struct {
	lease, status time.Time
	quiet         time.Duration
}

// Step handles all Nodes once. The next step repeats failed writes. It returns their errors.
func (l *Lifecycle) Step(ctx context.Context) error {
	nodes, err := l.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	leases, err := l.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	now := l.clock().Now()
	passed := min(max(0, now.Sub(l.last)), l.grace()/8)
	if l.last.IsZero() {
		passed = 0
	}
	renewed := make(map[string]time.Time, len(leases.Items))
	for i := range leases.Items {
		if at := leases.Items[i].Spec.RenewTime; at != nil {
			renewed[leases.Items[i].Name] = at.Time
		}
	}
	still := make(map[types.UID]heard, len(nodes.Items))
	var errs []error
	for _, n := range pointers(nodes.Items) {
		h := l.heard[n.UID].after(n, renewed[n.Name], passed)
		still[n.UID] = h
		errs = append(errs, l.judge(ctx, n, h.quiet >= l.grace(), now))
	}
	l.heard, l.last = still, now
	return errors.Join(errs...)
}

func (l *Lifecycle) clock() clock.PassiveClock {
	if l.Clock == nil {
		return clock.RealClock{}
	}
	return l.Clock
}

func (l *Lifecycle) grace() time.Duration { return orElse(l.Grace, 50*time.Second) }

// after returns the state of heard at the next step.
func (h heard) after(n *corev1.Node, renewed time.Time, passed time.Duration) heard {
	now := heard{lease: renewed, quiet: h.quiet + passed}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			now.status = c.LastHeartbeatTime.Time
		}
	}
	if now.lease.After(h.lease) || now.status.After(h.status) {
		now.quiet = 0
	}
	return now
}

// judge writes the conditions and taints of a Node, and the conditions of the pods on a silent
// Node.
func (l *Lifecycle) judge(ctx context.Context, n *corev1.Node, silent bool, now time.Time) error {
	after := n.DeepCopy()
	if silent {
		unknown(after, now)
	}
	if !equality.Semantic.DeepEqual(n.Status, after.Status) {
		patch, err := patchOf(&corev1.Node{Status: n.Status}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: n.UID}, Status: after.Status})
		if err != nil {
			return err
		}
		after, err = l.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil {
			return ignoreNotFound(err)
		}
	}
	if taints, changed := taintsOf(after, now); changed {
		after.Spec.Taints = taints
		if _, err := l.Client.CoreV1().Nodes().Update(ctx, after, metav1.UpdateOptions{}); err != nil {
			return ignoreNotFound(err)
		}
	}
	if !silent {
		return nil
	}
	return l.unready(ctx, n.Name, now)
}

// unknown sets the conditions of a silent Node to Unknown.
func unknown(n *corev1.Node, now time.Time) {
	at := metav1.NewTime(now).Rfc3339Copy()
	for _, t := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == t })
		switch {
		case i < 0:
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
				Type: t, Status: corev1.ConditionUnknown, Reason: "NodeStatusNeverUpdated", Message: "Kubelet never posted node status.",
				LastHeartbeatTime: n.CreationTimestamp, LastTransitionTime: at,
			})
		case n.Status.Conditions[i].Status != corev1.ConditionUnknown:
			c := &n.Status.Conditions[i]
			c.Status, c.Reason, c.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
			c.LastTransitionTime = at
		}
	}
}

// taintsOf returns the taints of a Node including those for its condition Ready, and reports
// whether they differ from the present ones.
func taintsOf(n *corev1.Node, now time.Time) ([]corev1.Taint, bool) {
	key := corev1.TaintNodeUnreachable
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type != corev1.NodeReady:
		case c.Status == corev1.ConditionTrue:
			key = ""
		case c.Status == corev1.ConditionFalse:
			key = corev1.TaintNodeNotReady
		}
	}
	isOurs := func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeUnreachable || t.Key == corev1.TaintNodeNotReady
	}
	is := func(t corev1.Taint) bool { return isOurs(t) && t.Key != key }
	taints := slices.DeleteFunc(slices.Clone(n.Spec.Taints), is)
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
		if key != "" && !slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == key && t.Effect == effect }) {
			at := metav1.NewTime(now).Rfc3339Copy()
			taints = append(taints, corev1.Taint{Key: key, Effect: effect, TimeAdded: &at})
		}
	}
	return taints, !equality.Semantic.DeepEqual(taints, n.Spec.Taints)
}

// unready sets the pods on a silent Node to not ready.
func (l *Lifecycle) unready(ctx context.Context, node string, now time.Time) error {
	pods, err := l.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pointers(pods.Items) {
		if !isTrue(p, corev1.PodReady) {
			continue
		}
		after := p.DeepCopy()
		for i := range after.Status.Conditions {
			if c := &after.Status.Conditions[i]; c.Type == corev1.PodReady {
				c.Status, c.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(now).Rfc3339Copy()
			}
		}
		patch, err := patchOf(&corev1.Pod{Status: p.Status}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: p.UID}, Status: after.Status})
		if err == nil {
			_, err = l.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		}
		if ignoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("pod %s/%s not ready: %w", p.Namespace, p.Name, err))
		}
	}
	return errors.Join(errs...)
}
