// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A trouble is something that goes wrong in a random world, or that a user does
// while it goes wrong.
type trouble string

const (
	staleCache        trouble = "a cache did not show all"
	turnMissed        trouble = "a turn was missed"
	callRefused       trouble = "a call was refused"
	answerLost        trouble = "an answer was lost"
	crashBefore       trouble = "a process ended before a call"
	crashAfter        trouble = "a process ended after a call"
	neverJoins        trouble = "a machine did not join"
	updateFails       trouble = "an update in place failed"
	machineFails      trouble = "a machine failed"
	machineUnknown    trouble = "a machine was unknown"
	machineDeleted    trouble = "a machine was deleted"
	machineVanishes   trouble = "a machine vanished"
	machineLosesLabel trouble = "a machine lost a label"
	setLosesLabel     trouble = "a set lost a label"
	setDeleted        trouble = "a set was deleted"
	setResized        trouble = "a set was given another size"
	noCapacity        trouble = "there was no capacity"
	gateDenies        trouble = "a gate said no"
	gateWaits         trouble = "a gate said not now"
	betterWentFirst   trouble = "an available machine went before another"
	selectedByHand    trouble = "a Node was selected by hand"
	resized           trouble = "other replicas"
	otherClass        trouble = "another class"
	otherNodes        trouble = "another node template"
	pausedOrNot       trouble = "paused or resumed"
	rolledBack        trouble = "a roll-back"
	namedToGo         trouble = "an autoscaler named machines"
)

// ofCall are the troubles with calls.
var ofCall = map[deploymenttest.Outcome]trouble{
	deploymenttest.Refused: callRefused, deploymenttest.AnswerLost: answerLost,
	deploymenttest.CrashBefore: crashBefore, deploymenttest.CrashAfter: crashAfter,
}

// troubles are how often each happened.
type troubles map[trouble]uint64

func (h troubles) add(o troubles) {
	for what, n := range o {
		h[what] += n
	}
}

// troubles are what has to happen in worlds of a kind, if there are many of them.
func (k worldKind) troubles() []trouble {
	out := []trouble{staleCache, turnMissed, resized, otherClass, otherNodes, pausedOrNot, rolledBack, namedToGo}
	add := func(happen bool, what ...trouble) {
		if happen {
			out = append(out, what...)
		}
	}
	add(k.crashes, callRefused, answerLost, crashBefore, crashAfter)
	add(k.fragile, neverJoins, machineFails, machineUnknown, machineDeleted, machineVanishes, machineLosesLabel, setLosesLabel)
	add(k.fragile && k.strategy == kindInPlace, updateFails)
	add(k.quota, noCapacity)
	add(k.gates, gateDenies, gateWaits)
	add(k.spiteful, betterWentFirst)
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
func (h troubles) wantAll(t *testing.T, k worldKind) {
	for _, what := range k.troubles() {
		if h[what] == 0 {
			t.Errorf("it never happened that %s", what)
		}
	}
}

// betterFirst notes that a set lets an available machine go while it has one that is
// not.
func (l *laws) betterFirst(s *v1alpha1.MachineSet, was *v1alpha1.Machine) {
	if !l.r.kind.spiteful || !l.available(s, was) {
		return
	}
	for _, m := range l.r.w.MachinesOf(s) {
		if m.UID != was.UID && !machineset.Leaving(m) && !l.available(s, m) {
			l.r.happened[betterWentFirst]++
			return
		}
	}
}
