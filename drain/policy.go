// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machinist-dev/machinist/nodeops"
)

// DefaultMachineDrainTimeout is how long MCM drains the Node of a machine before it deletes pods.
const DefaultMachineDrainTimeout = 2 * time.Hour

// Policy is what a drain may do. With the zero Policy the Node is cordoned, and pods are evicted
// with their own grace periods. PodDisruptionBudgets are always respected. Pods that no controller
// would recreate or that would lose local data stay. A Policy can be stored as JSON.
type Policy struct {
	// EscalateFrom is when the ladder starts. Zero means the first step of the drain,
	// [State].Started.
	EscalateFrom time.Time
	// Ladder is when and how the drain escalates. Empty means never.
	Ladder Ladder
	// UnreachableLadder is how the drain also escalates while the Node is unreachable. It starts at
	// [NodeReachability.Since]. Empty means never.
	UnreachableLadder Ladder

	// Cordon keeps new pods off the Node. The zero Cordon cordons it without an owner.
	Cordon nodeops.Cordon
	// KeepSchedulable sets no cordon: something else, such as a taint, keeps new pods off the Node.
	KeepSchedulable bool
	// Reassert cordons the Node again if another client uncordons it during the drain. Without it
	// the drain stops and says so. A claim of the owner without its marks, left by an earlier
	// drain, counts as uncordoned.
	Reassert bool

	// Rules returns what the caller decides about a pod. It precedes the other fields of the policy
	// and PodDisruptionBudgets. It may be called several times in a step, and must not change the pod.
	// Nil means no rules. It is not stored as JSON.
	Rules func(pod *corev1.Pod) Rule `json:"-"`

	// Grace is the grace period of all pods, in whole seconds: longer or shorter than their own. With
	// zero, pods are deleted from the API without confirmation of the kubelet. Nil means that of the
	// pod.
	Grace *time.Duration
	// RetryEvery is the first pause before a request that was refused or had no effect is repeated.
	// Later pauses are up to four times as long. It is at least a second and at most an hour. Zero or
	// less means 5 seconds.
	RetryEvery time.Duration
	// EvictUnmanaged evicts pods that no controller would recreate. Without it they stay.
	EvictUnmanaged bool
	// EvictLocalStorage evicts pods with emptyDir volumes, whose data is lost. Without it they
	// stay.
	EvictLocalStorage bool
	// AllAtOnce evicts critical pods together with all others. Without it, pods of the classes
	// system-cluster-critical and system-node-critical wait until the others are gone.
	AllAtOnce bool
	// PodSelector is a label selector, such as "app=web,tier!=db". Pods that it does not select are
	// ignored. Empty selects all pods.
	PodSelector string
	// ClusterAPILabels applies the label cluster.x-k8s.io/drain of pods: "skip" ignores the pod,
	// "wait-completed" waits until it has completed.
	ClusterAPILabels bool
	// DoNotDisrupt applies the annotation karpenter.sh/do-not-disrupt of pods: "true" protects the
	// pod, a duration such as "30m" protects it for that long after its start.
	DoNotDisrupt bool
	// SkipTerminatingAfter is for how long after its deletion timestamp the drain waits for a
	// terminating pod. Zero or less means until it is gone.
	SkipTerminatingAfter time.Duration

	// Volumes is what the drain waits for after the pods.
	Volumes VolumePolicy
}

// VolumePolicy is what a drain waits for after the pods are gone. The zero VolumePolicy waits for
// nothing.
type VolumePolicy struct {
	// Wait waits until the volumes that are attached to the Node are detached. It does not wait for
	// volumes that a pod which stays uses. It waits for any time without a DetachTimeout.
	Wait bool
	// DetachTimeout is how long a volume may take to be detached when no pod on the Node uses it.
	// Zero or less means any time.
	DetachTimeout time.Duration
	// ReattachTimeout waits also until the volumes are attached to other Nodes, for at most this
	// time after each was detached. Pods with volumes are then evicted one at a time. Zero or less
	// means no wait.
	ReattachTimeout time.Duration
}

const (
	// retryEvery is the first pause before a request is repeated, by default.
	retryEvery = 5 * time.Second
	// lookAgain is when to decide again about holds that end with a change, in case the change was
	// missed.
	lookAgain = time.Minute
	// shortestGrace is the shortest grace period of a pod that may be running, with which the
	// kubelet still confirms the end of the pod.
	shortestGrace = time.Second
)

// Validate returns why the ladders, the cordon or the selector of the policy are invalid, or nil. A
// drain with an invalid policy makes no request.
func (p Policy) Validate() error { return errors.Join(p.problems()...) }

func (p *Policy) problems() []error {
	errs := []error{p.Ladder.Validate(), p.UnreachableLadder.Validate()}
	if !p.KeepSchedulable {
		errs = append(errs, p.Cordon.Validate())
	}
	if p.Grace != nil && *p.Grace < 0 {
		errs = append(errs, fmt.Errorf("drain: the grace period %s is negative", *p.Grace))
	}
	if _, err := labels.Parse(p.PodSelector); err != nil {
		errs = append(errs, fmt.Errorf("drain: pod selector: %w", err))
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// Sources returns the lists that a drain with this policy needs, in the order of the constants.
func (p Policy) Sources() []Source {
	sources := []Source{SourceBudgets, SourceDaemonSets}
	if p.Volumes.Wait {
		sources = append(sources, SourceAttachments, SourceClaims, SourceVolumes)
	}
	return sources
}

// pause returns the first pause before a request is repeated.
func (p *Policy) pause() time.Duration {
	if p.RetryEvery <= 0 {
		return retryEvery
	}
	return min(max(p.RetryEvery, time.Second), time.Hour)
}

// baseCordon returns the cordon of the policy without out-of-service, which is for instances that
// are shut down, and without its reason.
func (p *Policy) baseCordon() nodeops.Cordon {
	cordon := p.Cordon
	cordon.OutOfService, cordon.Reason = false, ""
	return cordon
}

// cordonTaint returns the taint that keeps new pods off the Node: that of the cordon, or that of
// spec.unschedulable. It returns false if the policy sets none.
func (p *Policy) cordonTaint() (corev1.Taint, bool) {
	switch {
	case p.Cordon.Taint != "":
		return corev1.Taint{Key: p.Cordon.Taint, Effect: corev1.TaintEffectNoSchedule}, true
	case p.KeepSchedulable:
		return corev1.Taint{}, false
	default:
		return corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, true
	}
}

// unreachableTimeout is how long a Node may be unreachable before its pods are deleted without
// confirmation, as in MCM.
const unreachableTimeout = 5 * time.Minute

// ForMachine returns the policy by which MCM drains the Node of a machine. All pods are evicted at
// once, including critical pods, pods without a controller and pods with local data. From forceAt
// on, pods are deleted with a grace period of a second, and a minute later the drain ends with pods
// left. When the Node has been unreachable for five minutes, its pods are deleted from the API, and
// a minute later the drain ends. With a zero forceAt pods are only evicted.
//
// [Observation.Reachability] is whether the Node is reachable.
func ForMachine(forceAt time.Time) Policy {
	p := Policy{
		EvictUnmanaged: true, EvictLocalStorage: true, Reassert: true, AllAtOnce: true,
		UnreachableLadder: Ladder{
			{After: unreachableTimeout, Action: ForceDeletePods}, {After: unreachableTimeout + time.Minute, Action: Proceed},
		},
	}
	if !forceAt.IsZero() {
		p.EscalateFrom = forceAt
		p.Ladder = Ladder{{Action: IgnoreBudgets, Grace: time.Second}, {After: time.Minute, Action: Proceed}}
	}
	return p
}
