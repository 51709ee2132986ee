// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A failure is something that goes wrong in a random world, or that a user does
// while it goes wrong.
type failure string

const (
	staleCache         failure = "a cache did not show all"
	turnMissed         failure = "a turn was missed"
	callRefused        failure = "a call was refused"
	answerLost         failure = "an answer was lost"
	crashBefore        failure = "a process ended before a call"
	crashAfter         failure = "a process ended after a call"
	neverJoins         failure = "a machine did not join"
	updateFails        failure = "an update in place failed"
	machineFails       failure = "a machine failed"
	machineUnknown     failure = "a machine was unknown"
	machineContradicts failure = "a machine was Terminating without a deletion timestamp"
	machineDeleted     failure = "a machine was deleted"
	machineVanishes    failure = "a machine vanished"
	machineLosesLabel  failure = "a machine lost a label"
	setLosesLabel      failure = "a set lost a label"
	setDeleted         failure = "a set was deleted"
	setResized         failure = "a set was given another size"
	noCapacity         failure = "there was no capacity"
	gateDenies         failure = "a gate said no"
	gateWaits          failure = "a gate said not now"
	betterWentFirst    failure = "an available machine went before another"
	selectedByHand     failure = "a Node was selected by hand"
	resized            failure = "other replicas"
	otherClass         failure = "another class"
	otherNodes         failure = "another node template"
	otherTimeout       failure = "another drain timeout"
	otherPriority      failure = "another priority of a machine"
	classOfFormerSet   failure = "a machine that was updated in place had its former class"
	pausedOrNot        failure = "paused or resumed"
	rolledBack         failure = "a roll-back"
	namedToGo          failure = "an autoscaler named machines"
)

// ofCall are the troubles with calls.
var ofCall = map[deploymenttest.Outcome]failure{
	deploymenttest.Refused: callRefused, deploymenttest.AnswerLost: answerLost,
	deploymenttest.CrashBefore: crashBefore, deploymenttest.CrashAfter: crashAfter,
}

// failureCounts are how often each happened.
type failureCounts map[failure]uint64

func (h failureCounts) add(o failureCounts) {
	for what, n := range o {
		h[what] += n
	}
}

// troubles are what has to happen in worlds of a kind, if there are many of them.
func (k worldKind) troubles() []failure {
	out := []failure{staleCache, turnMissed, resized, otherClass, otherNodes, otherTimeout, otherPriority, pausedOrNot, rolledBack, namedToGo}
	add := func(happen bool, what ...failure) {
		if happen {
			out = append(out, what...)
		}
	}
	add(k.crashes, callRefused, answerLost, crashBefore, crashAfter)
	add(k.failing, neverJoins, machineFails, machineUnknown, machineContradicts, machineDeleted, machineVanishes, machineLosesLabel, setLosesLabel)
	add(k.failing && k.strategy == kindInPlace, updateFails)
	add(k.strategy == kindInPlace, classOfFormerSet)
	add(k.quota, noCapacity)
	add(k.gates, gateDenies, gateWaits)
	add(k.badOrder, betterWentFirst)
	add(k.deletes, machineDeleted, setDeleted)
	add(k.resizes, setResized)
	add(k.manual, selectedByHand)
	return out
}

// enoughWorlds is from how many worlds of a kind on each of its troubles has to have
// happened.
const enoughWorlds = 80

// wantAll fails if a trouble of a kind never happened: a law that is kept where nothing
// goes wrong says little.
func (h failureCounts) wantAll(t *testing.T, k worldKind) {
	for _, what := range k.troubles() {
		if h[what] == 0 {
			t.Errorf("it never happened that %s", what)
		}
	}
}

// betterFirst notes that a set lets an available machine go while it has one that is
// not.
func (l *laws) betterFirst(s *v1alpha1.MachineSet, was *v1alpha1.Machine) {
	if !l.r.kind.badOrder || !l.available(s, was) {
		return
	}
	for _, m := range l.r.w.MachinesOf(s) {
		if m.UID != was.UID && !members.Leaving(m) && !l.available(s, m) {
			l.r.happened[betterWentFirst]++
			return
		}
	}
}
