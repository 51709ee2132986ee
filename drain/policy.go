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

// DefaultMachineDrainTimeout is how long the reference system drains the Node of
// a machine before it uses force.
const DefaultMachineDrainTimeout = 2 * time.Hour

// Policy says what a drain may do. The zero Policy is the cautious one: the Node is
// cordoned, pods are evicted with their own grace, budgets are respected for ever,
// and pods that no controller would create again, or that would lose local data, stay.
// A Policy is plain data that can be kept as JSON.
type Policy struct {
	// EscalateFrom is what the rungs of Ladder are counted from. Zero means the first step of
	// the drain, as the [State] has it.
	EscalateFrom time.Time
	// Ladder says when the drain escalates, and how. Empty means never.
	Ladder Ladder
	// UnreachableLadder says how the drain escalates in addition while the Node is
	// unreachable, counted from [NodeReachability.Since]. Empty means not at all.
	UnreachableLadder Ladder

	// Cordon keeps new pods off the Node. The zero Cordon cordons it without an owner.
	Cordon nodeops.Cordon
	// KeepSchedulable leaves the Node as it is: something else, such as a taint,
	// keeps new pods away. The drain does not wait for a cordon then.
	KeepSchedulable bool
	// Reassert cordons the Node again if the cordon is taken away during the drain. Without it
	// the drain stops there and says so. A claim of the owner that an earlier drain has left,
	// without its marks, looks like that from the beginning.
	Reassert bool

	// MaxGrace is the longest grace of a pod. Zero or less means the pod's own. Less than
	// a second means a second.
	MaxGrace time.Duration
	// EvictUnmanaged evicts pods that no controller would create again. Without it
	// they stay.
	EvictUnmanaged bool
	// EvictLocalStorage evicts pods that lose the data of their emptyDir volumes.
	// Without it they stay.
	EvictLocalStorage bool
	// AllAtOnce evicts critical pods together with all others. Without it, pods of the
	// classes system-cluster-critical and system-node-critical wait until the others have gone.
	AllAtOnce bool
	// PodSelector is a label selector, such as "app=web,tier!=db". Pods that it does not
	// select are left alone. Empty selects all.
	PodSelector string
	// ClusterAPILabels heeds the label cluster.x-k8s.io/drain of pods: "skip" leaves the pod
	// alone, "wait-completed" waits until it has completed.
	ClusterAPILabels bool
	// DoNotDisrupt heeds the annotation karpenter.sh/do-not-disrupt of pods: "true" protects
	// the pod, a duration such as "30m" protects it for so long after its start.
	DoNotDisrupt bool
	// SkipTerminatingAfter stops waiting for a pod so long after it was to stop.
	// Zero or less means that it is waited for until it has gone.
	SkipTerminatingAfter time.Duration

	// Volumes says what is waited for after the pods.
	Volumes VolumePolicy
}

// VolumePolicy says what is waited for once the pods have gone. The zero
// VolumePolicy waits for nothing.
type VolumePolicy struct {
	// Wait for the volumes of the pods that go to be detached from the Node.
	Wait bool
	// DetachTimeout is how long a volume may take for that once nothing on the Node
	// uses it. Zero or less means any time.
	DetachTimeout time.Duration
	// ReattachTimeout waits in addition until the volumes of pods that went are attached to
	// other Nodes, so long after each was detached. The pods with volumes are then evicted one
	// after the other. Zero or less means that this is not waited for.
	ReattachTimeout time.Duration
}

const (
	// retryEvery is the pause before a request is repeated for the first time.
	retryEvery = 5 * time.Second
	// lookAgain is when to look again at what only a change of something observed
	// can move, in case the change was missed.
	lookAgain = time.Minute
	// shortestGrace is the least grace of a pod that may be running: the kubelet
	// then still says when it has stopped.
	shortestGrace = time.Second
)

// Validate returns what is wrong with the policy, or nil: its ladders, its cordon, or its
// selector. A drain with a policy that is not valid does nothing but say so.
func (p Policy) Validate() error { return errors.Join(p.problems()...) }

func (p *Policy) problems() []error {
	errs := []error{p.Ladder.Validate(), p.UnreachableLadder.Validate()}
	if !p.KeepSchedulable {
		errs = append(errs, p.Cordon.Validate())
	}
	if _, err := labels.Parse(p.PodSelector); err != nil {
		errs = append(errs, fmt.Errorf("drain: pod selector: %w", err))
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// Sources returns the lists that a drain with this policy needs, in the order of the
// constants.
func (p Policy) Sources() []Source {
	sources := []Source{SourceBudgets, SourceDaemonSets}
	if p.Volumes.Wait {
		sources = append(sources, SourceAttachments, SourceClaims, SourceVolumes)
	}
	return sources
}

// baseCordon returns what the policy's cordon always consists of. The taint out-of-service is
// for instances that are known to be off, which a drain does not know. The reason is a text.
func (p *Policy) baseCordon() nodeops.Cordon {
	cordon := p.Cordon
	cordon.OutOfService, cordon.Reason = false, ""
	return cordon
}

// cordonTaint returns the taint that keeps new pods off the Node: that of the cordon or,
// for a Node that is marked unschedulable, the one that stands for the mark. There is
// none that the drain knows of if something else keeps pods away.
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

// UnreachableTimeout is how long a Node may be unreachable before waiting for it to stop
// pods makes no sense; it is that of the reference system.
const UnreachableTimeout = 5 * time.Minute

// ForMachine returns the policy by which the reference system drains the Node of a
// machine. All pods are asked to go at once, critical ones too. Pods without a controller and
// local data go as well. From forceAt on budgets are not asked and pods get a second. A minute
// later the drain goes on without the pods that are left. The pods of a Node that has not
// answered for five minutes are taken off the API, and a minute later the drain goes on. A
// zero forceAt means that force is never used.
//
// [Observation.Reachability] says whether the Node answers.
func ForMachine(forceAt time.Time) Policy {
	p := Policy{
		EvictUnmanaged: true, EvictLocalStorage: true, Reassert: true, AllAtOnce: true,
		UnreachableLadder: Ladder{
			{After: UnreachableTimeout, Action: ForceDeletePods}, {After: UnreachableTimeout + time.Minute, Action: Proceed},
		},
	}
	if !forceAt.IsZero() {
		p.EscalateFrom = forceAt
		p.Ladder = Ladder{{Action: IgnoreBudgets, Grace: time.Second}, {After: time.Minute, Action: Proceed}}
	}
	return p
}
