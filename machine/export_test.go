// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Transition is a row of the table of transitions, without its guard.
type Transition struct {
	From []v1alpha1.MachinePhase
	Why  machinist.Reason
	To   v1alpha1.MachinePhase
}

// Transitions returns the table of transitions.
func Transitions() []Transition {
	var table []Transition
	for _, row := range transitions {
		table = append(table, Transition{row.from, row.why, row.to})
	}
	return table
}

// DrainMode is what is particular to a DrainNode, in a form that can be compared.
type DrainMode struct {
	Started, ForceAt        time.Time
	NodeUnreachable         bool
	UnreachableSince        time.Time
	KeepSchedulable, Detach bool
	DetachTimeout           time.Duration
}

// ModeOf returns the mode of a drain.
func ModeOf(a DrainNode) DrainMode {
	return DrainMode{
		Started: a.Started, ForceAt: a.forceAt(), NodeUnreachable: a.unreachable(), UnreachableSince: a.Reachability.Since,
		KeepSchedulable: a.Policy.KeepSchedulable, Detach: a.Policy.Volumes.Wait, DetachTimeout: a.Policy.Volumes.DetachTimeout,
	}
}

// DrainOf returns a drain of the Node n with a mode.
func DrainOf(m DrainMode) DrainNode {
	a := DrainNode{NodeName: "n", Started: m.Started, Policy: drain.ForMachine(m.ForceAt)}
	a.Policy.KeepSchedulable = m.KeepSchedulable
	a.Policy.Volumes = drain.VolumePolicy{Wait: m.Detach, DetachTimeout: m.DetachTimeout}
	if m.NodeUnreachable {
		a.Reachability = drain.NodeReachability{Unreachable: true, Since: m.UnreachableSince}
	}
	return a
}

func logicOf(m *v1alpha1.Machine, p Policy, now time.Time) *logic {
	return &logic{m: m, p: p.forMachine(m), now: now}
}

// DrainModeFor returns the mode of the drain for a deletion.
func DrainModeFor(m *v1alpha1.Machine, node *corev1.Node, p Policy, now time.Time) DrainMode {
	return ModeOf(logicOf(m, p, now).deletionDrain(node))
}

// DrainModeForUpdate returns the mode of the drain for an update in place.
func DrainModeForUpdate(m *v1alpha1.Machine, node *corev1.Node, p Policy, now time.Time) DrainMode {
	return ModeOf(logicOf(m, p, now).updateDrain(node))
}

// DrainModeForPreservation returns the mode of the drain for a preservation.
func DrainModeForPreservation(m *v1alpha1.Machine, node *corev1.Node, p Policy, now time.Time) DrainMode {
	return ModeOf(logicOf(m, p, now).preservationDrain(node))
}

// AfterRound returns the view after a pass that left things as round says.
func (v DrainView) AfterRound(a DrainNode, round DrainView, now time.Time) DrainView {
	return v.after(a, round, now)
}

// Deletes reports whether the action deletes an attachment.
func (a DeleteAttachments) Deletes(va *storagev1.VolumeAttachment) bool {
	return slices.ContainsFunc(a.Attachments, func(o *storagev1.VolumeAttachment) bool { return o.Name == va.Name && o.UID == va.UID })
}

// PreservedAndDrained is the predicate of the same name.
var PreservedAndDrained = preservedAndDrained

// LiveAttachments is the function of the same name.
var LiveAttachments = liveAttachments

// What tests ask of the inside.
var (
	ConditionsChanged = conditionsChanged
	JudgeHealth       = judgeHealth
	PreserveEnd       = preserveEnd
	Replacing         = replacing
	ValidateClass     = validateClass
	JudgePreservation = judgePreservation
	RenderUserData    = renderUserData
	TokenOf           = tokenOf
	ErrNoUserData     = errNoUserData
)

// PreserveVerdict is the verdict on a preservation.
type PreserveVerdict = preserveVerdict

// The verdicts.
const (
	PreserveKeep   = preserveKeep
	PreserveStop   = preserveStop
	PreserveForget = preserveForget
)

// Ignored returns what in a machine is not understood, so that it is as if it were
// not there: the default holds in its place, and the machine lives on. A nil
// machine has nothing to ignore.
func Ignored(m *v1alpha1.Machine) field.ErrorList {
	if m == nil {
		return nil
	}
	return ignoredTemplate(&m.Spec.NodeTemplateSpec, ignored(m))
}
