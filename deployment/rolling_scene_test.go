// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// denies is a gate that keeps the machines of these names.
func denies(names ...string) deployment.Gate {
	return func(c deployment.Choice) (bool, machinist.Hold) {
		if slices.Contains(names, c.Machine.Name) {
			return false, machinist.Hold{Reason: "Keep", Message: "it holds data"}
		}
		return true, machinist.Hold{}
	}
}

func TestRolling_Surge(t *testing.T) {
	check(t, []scenarioCase{
		{"machines that are asked for and not reported use it up", "rolling 3 +1; old 3/3/3; new 1", "old 3; new 1", "SurgeUsedUp"},
		{"machines take long to leave", "rolling 3 +1 -1; old 1/1/1: a b.leaving c.leaving; new 1/1/1", "old 1; new 1", "4 machines >= 3 replicas + 1 max surge"},
		{"a set that creates nothing counts what it has", "rolling 3 +1; old 3/2/2 fixed; new 1/1/0", "old 3; new 1>2", ""},
		{"a set that may create one more counts with it", "rolling 3 +1; old 3/2/2; new 1/1/0", "old 3; new 1", ""},
		{"growth goes to the new set, up to the replicas", "rolling 9 +5; old 2/2/2 sized=3; new 2/2/2", "old 2; new 2>9", ""},
		{"an empty new set takes growth", "rolling 6 +2; old 4/4/4 sized=4; other 1/1/1 sized=4; new 0", "old 4; other 1; new 0>3", ""},
		{"without a new set the youngest takes growth", "rolling 6 +2 paused; old 4/4/4 sized=4; other 1/1/1 sized=4", "old 4; other 1>4", ""},
		{"machines of a set that is being deleted are counted once", "rolling 3 +1; old 3/1/0 deleting: a.leaving; new 0", "old 3; new 0>3", ""},
		{"a machine that is leaving is counted beside the one that replaces it", "rolling 3 -3; new 1: a.leaving", "new 1>2; names new[a]", ""},
		{"a machine that stays is counted once", "rolling 3 -3; new 1: a", "new 1>3", ""},
		{"machines that leave and are not seen are waited for", "rolling 4 -1; new 2/3/2:", "new 2", "WaitingForMachines"},
		{"machines that are seen to leave are not", "rolling 4 -1; new 2/3/2: a.leaving", "new 2>3; names new[a]", ""},
		{"a machine that is named counts before it leaves", "rolling 4 -1 want=other scaled named=a; new 0; other 2 scaled: a.marked b", "new 0; other 2>3 without a; names other[a]", ""},
		{"a machine that is not named is counted once", "rolling 4 -1 want=other; new 0; other 2: a b", "new 0; other 2>4", ""},
		{"a frozen set does not grow", "rolling 3 +1; old 2/2/2; new 1/1/1 frozen", "old 2; new 1", "new: Frozen"},
		{"a negative size asks for nothing", "rolling 2 -1; new -5", "new -5>2", ""},
		{"the only set follows the replicas before it has reported", "rolling 1 +1; new 3/3/3 unreported sized=3", "new 3>1 without new-0 new-1; names new[new-0 new-1]", ""},
		{"a new set that may not grow may again", "rolling 3 +1; old 3/3/3; new 1/1/1 fixed", "old 3>2 without old-0; new 1; frees new; names old[old-0]", ""},
	})
}

func TestRolling_MinimumAvailable(t *testing.T) {
	check(t, []scenarioCase{
		{"machines that go already are not counted", "rolling 4 +1; old 2/13/10; new 3/3/2", "old 2 without old-10 old-11 old-12 old-0 old-1 old-2 old-3 old-4 old-5 old-6 old-7; new 3", "MinimumAvailable"},
		{"those that stay beside them are", "rolling 4 +1; old 2/13/10; new 3/3/3", "old 2>1 without old-10 old-11 old-12 old-0 old-1 old-2 old-3 old-4 old-5 old-6 old-7 old-8; new 3; names old[old-10 old-11 old-12 old-0 old-1 old-2 old-3 old-4 old-5 old-6 old-7 old-8]", ""},
		{"more available machines than asked for do not stop it", "rolling 4 +1 -1; old 2/3/3; new 2/2/2", "old 2>1 without old-0 old-1; new 2; names old[old-0 old-1]", ""},
		{"a set that has not reported holds growth and cuts", "rolling 3 +1; old 2/2/2 unreported; new 1/1/1", "old 2; new 1", "SetNotReported"},
		{"a new set that has not reported, too", "rolling 3 +1; old 1/1/1; new 1/1/1 unreported", "old 1; new 1", "SetNotReported"},
		{"machines of a set that has reported are counted on", "rolling 3 +1 -1; old 3/3/3; new 1/1/0", "old 3>2 without old-0; new 1; names old[old-0]", ""},
		{"machines of a set that has not are not", "rolling 3 +1 -1; old 3/3/3 unreported; new 1/1/0", "old 3; new 1", "SetNotReported"},
		{"old machines that are all broken go", "rolling 3 +1; old 4/4/0; new 0", "old 4>3 without old-0; new 0; names old[old-0]", "SurgeUsedUp"},
		{"a broken one stays while a new one may need it", "rolling 3 +1; old 3/3/1; new 1/1/0: d", "old 3; new 1", ""},
		{"a broken one goes for a new one", "rolling 3 +1; old 3/3/1; new 1/1/1", "old 3>2 without old-1; new 1; names old[old-1]", ""},
		{"fewer are reported as available than seen", "rolling 3 +1; old 3/3/2: a b c; new 1/1/1", "old 3; new 1", ""},
		{"the broken one goes, though all are reported", "rolling 3 +1; old 3/3/3: a.unknown b c; new 1/1/1", "old 3>2 without a; new 1; names old[a]", ""},
		{"one is broken, and so is the new one", "rolling 3 +1; old 3/3/3: a.unknown b c; new 1/1/1: d.unknown", "old 3; new 1", ""},
		{"what is reported and what goes may differ", "rolling 3 +1 -1; old 2/3/2: a b c; new 1/1/1", "old 2 without a; new 1", ""},
		{"what is reported and what goes are the same", "rolling 3 +1 -1; old 2/3/3: a b c; new 1/1/1", "old 2>1 without a b; new 1; names old[a b]", ""},
		{"a machine that was not seen does not exist, or is new", "rolling 3 +1; old 3/2/2; new 1/1/1", "old 3>2; new 1", ""},
		{"one that goes before a new one that was not seen is lost", "rolling 3 +1; old 3/2/2: a.early b; new 1/1/1", "old 3; new 1", ""},
		{"one that goes before it is not given up for nothing", "rolling 3 +1 -2; old 1/2/1: a.early; new 3/3/0", "old 1; new 3", ""},
		{"only as far as the minimum allows", "rolling 3 +3; old 4/2/2: a.early b.early; new 2/2/2", "old 4>3; new 2", ""},
		{"of two sets, both are sure", "rolling 3 +1 -1; old 2/2/2; other 1/2/1: c; new 0", "old 2>1 without old-0; other 1; new 0; names old[old-0]", ""},
		{"of two sets, one may let a machine go", "rolling 3 +1 -1; old 2/2/2; other 1/2/1: c.early; new 0", "old 2; other 1; new 0", "MinimumAvailable"},
		{"of two sets, one has named a machine", "rolling 3 +1 -1; old 2/2/2; other 1/2/1 names=c: c; new 0", "old 2; other 1; new 0", ""},
		{"a set that is sure of nothing takes nothing from others", "rolling 2 +1; old 1/1/1; other 1/2/0: b.early; new 2/2/2", "old 1>0 without old-0; other 1; new 2", ""},
		{"nothing is taken from a set that is being deleted", "rolling 3 +1; old 1/1/0 deleting; other 3/3/2; new 0", "old 1; other 3>2 without other-2; new 0; names other[other-2]", ""},
		{"a new set that is being deleted holds", "rolling 3 +1; old 3/3/3; new 1/1/1 deleting", "old 3; new 1", "SetDeleting"},
		{"a machine that goes by this pass is not counted on", "rolling 3 +1 scaled; old 2/2/2; new 2: a.marked b", "old 2; new 2 without a", ""},
		{"a machine whose set knows of no change is", "rolling 3 +1; old 2/2/2; new 2: a.marked b", "old 2>1 without old-0; new 2; names old[old-0]", ""},
		{"machines count once they are old enough", "rolling 3 +1 ready=600; old 3/3/3; new 1/1/1: d.young", "old 3; new 1", ""},
		{"the age is that which the deployment asks for now", "rolling 3 +1 ready=600; old 3/3/3; new 1/1/1 ready=0: d.young", "old 3; new 1", ""},
		{"machines that need no age count at once", "rolling 3 +1; old 3/3/3; new 1/1/1: d.young", "old 3>2 without old-0; new 1; names old[old-0]", ""},
		{"a cut in the middle of a rollout keeps to it", "rolling 4 +4; old 4/4/4 sized=8; new 8/8/0 sized=8", "old 4; new 8>4 without new-0 new-1 new-2 new-3; names new[new-0 new-1 new-2 new-3]", ""},
		{"gates are not asked about that cut", "rolling 4 +4 deny=old-0,old-1,old-2,old-3,new-0,new-1,new-2,new-3,new-4,new-5,new-6,new-7; old 4/4/4 sized=8; new 8/8/0 sized=8", "old 4; new 8>4 without new-0 new-1 new-2 new-3; names new[new-0 new-1 new-2 new-3]", ""},
		{"a frozen deployment shrinks and does not grow", "rolling 3 +1 frozen; old 3/3/3; new 1/1/1", "old 3>2 without old-0; new 1; names old[old-0]", "Frozen"},
	})
}

func TestRolling_Victims(t *testing.T) {
	check(t, []scenarioCase{
		{"the least available first", "rolling 4 +1 -2; old 4/4/3; new 1/1/1", "old 4>1 without old-3 old-0 old-1; new 1; names old[old-3 old-0 old-1]", ""},
		{"those that are named stay named", "rolling 4 +1 -2; old 3/4/4 names=old-2,gone; new 1/1/1", "old 3>1 without old-2 old-0 old-1; new 1; names old[old-2 old-0 old-1]", ""},
		{"a set that grows names none", "rolling 3 +1 want=old; old 1/1 sized=1 names=a: a", "old 1>3; names old[]", ""},
		{"another that a user named has to stay", "rolling 3 +1 named=old-0; old 3/3/2; new 1/1/1", "old 3>2 without old-2; new 1; names old[old-2]; marks old-0", ""},
		{"of a set that keeps its size", "rolling 2 +1; new 2/3/3", "new 2 without new-0", ""},
		{"one that is about to be preserved goes later", "rolling 3 +1; old 3/3/1: a b.failed.preserve c.failed; new 1/1/1", "old 3>2 without c; new 1; names old[c]", ""},
		{"one that is not preserved goes by name", "rolling 3 +1; old 3/3/1: a b.failed c.failed; new 1/1/1", "old 3>2 without b; new 1; names old[b]", ""},
		{"a preserved machine goes with the last of its set", "rolling 3 +1; old 1/1/0: a.preserved; other 0; new 3/3/3", "old 1>0 without a; other 0; new 3", ""},
		{"it stays until all sets have reported", "rolling 3 +1; old 1/1/0: a.preserved; other 0 unreported; new 3/3/3", "old 1; other 0; new 3", ""},
		{"it goes if there is room for a new one", "rolling 3 +1; old 1/1/0: a.preserved; other 1/1/1; new 2/2/2", "old 1>0 without a; other 1; new 2", ""},
		{"it stays while a set is being deleted", "rolling 3 +1; old 1/1/0: a.preserved; other 1/1/1 deleting; new 2/2/2", "old 1; other 1; new 2", ""},
		{"the oldest of two equal sets is the new one", "rolling 3 +1; new 3/3/3; late 1/1/1 equal", "new 3; late 1>0 without late-0", ""},
		{"a denied machine stays, and another goes", "rolling 3 +1 deny=old-0; old 3/3/3; new 1/1/1", "old 3>2 without old-1; new 1; names old[old-1]", "old-0: Gate"},
		{"the rest of a replacement that a change of the replicas ends is not denied", "rolling 3 +1; old 1/1/1 sized=2; new 3/3/3", "old 1>0 without old-0; new 3", ""},
		{"the rest of a replacement is denied", "rolling 3 +1 deny=old-0; old 1/1/1 sized=2; new 3/3/3", "old 1; new 3", "Gate"},
		{"machines that may go for one that was not seen", "rolling 4 +4; old 4/4/4: b.early c.early d.early; new 4/4/4", "old 4>1 without b c; new 4; names old[b c]", ""},
		{"gates deny machines that may go for one that was not seen", "rolling 4 +4 deny=b,c,d; old 4/4/4: b.early c.early d.early; new 4/4/4", "old 4; new 4", ""},
	})
}

func TestRecreate(t *testing.T) {
	check(t, []scenarioCase{
		{"the old machines go first", "recreate 3; old 3/3/3", "old 3>0 without old-0 old-1 old-2", ""},
		{"their machines are waited for", "recreate 3; old 0/1/0", "old 0 without old-0", "WaitingForMachines"},
		{"the new set comes when they are gone", "recreate 3; old 0", "old 0; creates 3", ""},
		{"nothing before the old sets have reported", "recreate 3; old 0 unreported", "old 0", "SetNotReported"},
		{"it goes on though the replicas change", "recreate 5; old 2/2/2 sized=3; new 1/1/1 sized=3", "old 2>0 without old-0 old-1; new 1", ""},
		{"the new set grows to what is wanted now", "recreate 5; old 0; new 1/1/1 sized=3", "old 0; new 1>5", ""},
		{"a pause in the gap brings no new machines", "recreate 4 paused; old 0/1/0; new 0", "old 0 without old-0; new 0", "1 old machine is left"},
		{"a pause after the gap brings them", "recreate 4 paused; old 0; new 0", "old 0; new 0>4", ""},
		{"priorities and preservations cost no availability", "rolling 5 +1; old 5/5/3: a.early b.preserved c.unknown d e; new 1/1/1", "old 5>4 without c; new 1; names old[c]", ""},
	})
}

func TestScaling(t *testing.T) {
	check(t, []scenarioCase{
		{"a paused deployment is scaled and not rolled", "rolling 5 +1 paused; old 3/3/3 sized=3", "old 3>5", "Paused"},
		{"a paused rollout creates no more new machines", "rolling 10 +3 paused; old 9/9/9; new 1/1/1", "old 9; new 1", "Paused"},
		{"a paused rollout shrinks together", "rolling 4 +1 -1 paused; old 3/3/3 sized=6; new 3/3/3 sized=6", "old 3>2 without old-0; new 3; names old[old-0]", ""},
		{"a paused rollout grows in the new set", "rolling 9 +1 -1 paused; old 3/3/3 sized=6; new 3/3/3 sized=6", "old 3; new 3>7", ""},
		{"a paused recreation shrinks together", "recreate 4 paused; old 3/3/3 sized=6; new 3/3/3 sized=6", "old 3>2 without old-0; new 3>2 without new-0; names old[old-0] new[new-0]", ""},
		{"a paused recreation grows in the new set", "recreate 9 paused; old 3/3/3 sized=6; new 3/3/3 sized=6", "old 3; new 3>6", ""},
		{"no set grows in a cut of named machines", "rolling 3 +1 -1 named=old-0; old 2/2/2 sized=4; new 1/1/1 sized=4", "old 2>1 without old-0; new 1; names old[old-0]; marks old-0", ""},
		{"a named machine for which its set is smaller already is counted once", "rolling 5 +2 -3 paused named=a scaled; old 1/2/2 sized=5 scaled: a.marked b; new 4/4/4 sized=6", "old 1 without a; new 4; names old[a]", ""},
		{"of the named machines only so many go as the replicas are fewer", "rolling 3 -2 named=old-0,other-0; old 2/2/2 sized=4; other 1/1/1 sized=4; new 1/1/1 sized=4", "old 2>1 without old-0; other 1; new 1; names old[old-0]; marks old-0 other-0", ""},
		{"a set that is being deleted does not hold it", "rolling 5 +1 -1; old 3/3/0 deleting sized=3: a.leaving b.leaving c.leaving; new 0 sized=3", "old 3; new 0>3", ""},
	})
}

// TestRolling_MachinesNotSeen has machines that exist and were not observed. Machines with an early
// priority are deleted before them.
func TestRolling_MachinesNotSeen(t *testing.T) {
	check(t, []scenarioCase{
		{"a set that has not reported is cut if enough are available without it", "rolling 2 -2; new 3/2/0 unreported", "new 3>2", ""},
		{"a set that has not reported is not cut otherwise", "rolling 2 -1; new 3/2/0 unreported", "new 3", ""},
		{"they are given up before those that were seen", "rolling 1 +1; new 3/2/1", "new 3>1 without new-1; names new[new-1]", ""},
		{"an available one would go before them", "rolling 1 +1; new 3/2/1: a.early b.pending", "new 3", ""},
		{"one machine is lost for one that was not seen", "rolling 3 +1; old 4/3/3 fixed: a.early b.early; new 3/3/3", "old 4>1 without a; new 3; names old[a]", ""},
		{"none is lost if that one is not given up", "rolling 1 -1; old 2/3/2: a b.early; new 0", "old 2>1 without b; new 0; names old[b]", ""},
		{"the only set gives them up, whatever is available", "rolling 2 +1; new 3/1/1 sized=3: a.early", "new 3>2", ""},
		{"gates are not asked if fewer are wanted", "rolling 1 +1 deny=a; new 2/1/0: a.early.pending", "new 2>1", ""},
		{"gates are asked once for each", "rolling 3 +3 deny=b; old 4/2/2: a.early b.early; new 3/3/3", "old 4>3; new 3", ""},
		{"a set that creates nothing has none", "rolling 1 -1; old 4/1/1 fixed: a.early; new 0", "old 4>0 without a; new 0", ""},
		{"a set that creates some has", "rolling 1 -1; old 4/1/1: a.early; new 0", "old 4>1; new 0", ""},
		{"one that is leaving is replaced by one", "rolling 2 +2 -1; old 4/3/2: a.early b.early c.pending.leaving; new 0", "old 4>3; new 0; names old[c]", ""},
		{"one that is not leaving is not", "rolling 2 +2 -1; old 4/3/2: a.early b.early c.pending; new 0", "old 4>2 without c; new 0; names old[c]", ""},
		{"one that goes anyway does not go for another", "rolling 2 -1 scaled named=b; new 4/4/1: a.early b.early.pending c.pending", "new 4 without b; marks b", ""},
	})
}

func TestRolling_NoCapacity(t *testing.T) {
	check(t, []scenarioCase{
		{"machines make place, one at a time", "rolling 3 +1 free; old 3/3/1: a b.unknown c.unknown; new 1/1/0: d.nocapacity", "old 3>2 without b; new 1; names old[b]", ""},
		{"the one before is not gone yet", "rolling 3 +1 free; old 2/3/1: a b.unknown c.unknown; new 1/1/0: d.nocapacity", "old 2 without b; new 1", ""},
		{"its place is free still", "rolling 3 +1 free; old 2/2/1: a b.unknown; new 2/2/0: d.nocapacity e.nocapacity", "old 2; new 2", ""},
		{"a machine that is leaving lacks none", "rolling 3 +1; old 3/3/3; new 1/1/0: d.nocapacity.leaving", "old 3; new 1", "!NoCapacity"},
		{"some of many machines that are not available are told", "rolling 8 +1; new 8/8/0", "new 8", "new: NewMachinesUnavailable: 3 more machines are not available"},
	})
	for name, change := range map[string]func(op *v1alpha1.LastOperation){
		"NoCapacity":        func(*v1alpha1.LastOperation) {},
		"another code":      func(op *v1alpha1.LastOperation) { op.ErrorCode = "Internal" },
		"another operation": func(op *v1alpha1.LastOperation) { op.Type = v1alpha1.MachineOperationHealthCheck },
		"another attempt":   func(op *v1alpha1.LastOperation) { op.State = v1alpha1.MachineStateProcessing },
	} {
		s := newScenario("rolling 3 +1; old 3/3/3; new 1/1/0: d.nocapacity")
		change(&s.of("d").Status.LastOperation)
		require.Equal(t, name == "NoCapacity", slices.Contains(reasons(s.decide()), machinist.Reason("NoCapacity")), name)
	}
}

// TestCreate_EveryStrategy_HasTheSurge asserts that a new set has the size that the bounds allow,
// for every strategy.
func TestCreate_EveryStrategy_HasTheSurge(t *testing.T) {
	for strategy, surge := range map[string]int32{"rolling": 3, "inplace": 3, "manual": 0, "recreate": 0} {
		s := newScenario(strategy + " 5 +3; old 5/5/5")
		b, err := deployment.BoundsOf(s.in.Deployment)
		require.NoError(t, err)
		require.EqualValues(t, surge, b.Surge, strategy)
		for _, set := range creates(s.decide()) {
			require.Equal(t, surge, set.Spec.Replicas, strategy)
			surge = -1
		}
		require.Equal(t, strategy != "recreate", surge == -1, "it is created: %s", strategy)
	}
}

func TestCut_ManyMachines_LimitedNames(t *testing.T) {
	d := rolling(1000, 0, 700)
	old, newSet := rollSet(d, "c0", 1000, 1000, 1000), rollSet(d, "c1", 0, 0, 0)
	in := deployment.Observation{Deployment: d, Sets: []*v1alpha1.MachineSet{old, newSet}, Complete: true, Proven: true}
	for i := range 1000 {
		in.Machines = append(in.Machines, rollMachine(old, fmt.Sprintf("m-%04d", i), v1alpha1.MachineRunning))
	}
	cut := func() deployment.Target {
		target, err := deployment.Decide(in, rollPolicy, rollNow).Target(old.UID)
		require.NoError(t, err)
		return target
	}
	require.Equal(t, int32(500), cut().To)
	require.Len(t, cut().Victims, members.MaxVictims)
	require.Contains(t, reasons(deployment.Decide(in, rollPolicy, rollNow)), machinist.Reason("BurstLimit"))

	d.Spec.Strategy = recreating(1000).Spec.Strategy
	require.Zero(t, cut().To, "none has to be named if all go")
	require.Len(t, cut().Victims, 1000)
	in.Machines = in.Machines[1:] // nor if one was not seen
	require.Zero(t, cut().To)
	for _, set := range writes[*v1alpha1.MachineSet](deployment.Decide(in, rollPolicy, rollNow)) {
		require.Empty(t, members.Victims(set))
	}
	_, err := deployment.Decide(in, rollPolicy, rollNow).Target("other")
	require.ErrorContains(t, err, "no target for the set with UID ")
}

// TestCut_NamesDoNotFit_SetKeepsSize has a set whose annotations are full.
func TestCut_NamesDoNotFit_SetKeepsSize(t *testing.T) {
	s := newScenario("rolling 3 +1 revision=2; old 2/4/4; new 2/2/2")
	s.in.Sets[0].Annotations["large"] = strings.Repeat("x", 1<<18)
	text, dec := s.result()
	require.Contains(t, text, "old 2 ", "of the 3 machines that go none could be named")
	require.Contains(t, dec.String(), "no more machines can be named for deletion")
}

func TestHolds_SetCannotCreate_ShortMessage(t *testing.T) {
	s := newScenario("rolling 3 +1; old 0; new 3/0/0")
	s.in.Sets[1].Status.Conditions = []v1alpha1.MachineSetCondition{{Type: v1alpha1.MachineSetReplicaFailure, Status: v1alpha1.ConditionTrue, Message: "quota of objects\n" + strings.Repeat("é", 300)}}
	dec := s.decide()
	require.Len(t, dec.Holds, 1)
	require.Contains(t, dec.Holds[0].String(), "new: WaitingForMachines: 0 machines, 3 wanted: quota of objects éé")
	require.Less(t, len(dec.Holds[0].Message), 300)
}

// TestDecide_MinReadySecondsLeft_ChecksThen has a machine of the old set, so that
// no hold has the time.
func TestDecide_MinReadySecondsLeft_ChecksThen(t *testing.T) {
	for ready, check := range map[string]time.Time{"90": rollNow.Add(30 * time.Second), "30": {}} {
		dec := newScenario("rolling 3 +1 revision=2 ready=" + ready + "; old 3: a.young b c; new 1/1/0").decide()
		require.Empty(t, dec.Actions, dec.String())
		require.Equal(t, check, dec.NextCheck, dec.String())
	}
}

func TestGate_Refusals_AskedOnceAndCounted(t *testing.T) {
	s := newScenario("rolling 50 +5 revision=2; old 50/50/50; new 5/5/5")
	asked, until := map[string]int{}, map[string]time.Time{"old-7": rollNow.Add(time.Minute), "old-8": rollNow.Add(time.Hour)}
	s.policy.Gates = []deployment.Gate{func(c deployment.Choice) (bool, machinist.Hold) {
		asked[c.Machine.Name]++
		return c.Machine.Name == "old-9", machinist.Hold{Until: until[c.Machine.Name]}
	}}
	text, dec := s.result()
	require.Equal(t, "old 50>49 without old-9; new 5; names old[old-9]", text, "the only one that is allowed")
	require.Len(t, asked, 50)
	for name, n := range asked {
		require.Equal(t, 1, n, name)
	}
	gates := slices.DeleteFunc(dec.Holds, func(h machinist.Hold) bool { return h.Reason != machinist.Reason("Gate") })
	require.Len(t, gates, 21)
	require.Equal(t, machinist.Hold{Subject: "machinedeployment/md", Reason: machinist.Reason("Gate"), Message: "gates keep 29 more machines", Until: until["old-7"]}, gates[20])
	s = newScenario("rolling 3 +1 revision=2; old 3/3/3; new 1/1/1")
	s.policy.Gates = []deployment.Gate{func(deployment.Choice) (bool, machinist.Hold) {
		return false, machinist.Hold{Until: rollNow.Add(time.Minute)}
	}}
	require.Equal(t, rollNow.Add(time.Minute), s.decide().NextCheck)
}

// TestScale_UnavailableOfAnotherSet_GoesBeforeAnAvailableOne has scale-downs that are shared among
// sets (kubernetes#119536).
func TestScale_UnavailableOfAnotherSet_GoesBeforeAnAvailableOne(t *testing.T) {
	check(t, []scenarioCase{
		{"paused: the unknown one of a small set", "rolling 4 +0 -1 paused; older 3/3/3 sized=5: a b c; old 1/1/0 sized=5: d.unknown; new 1/1/1 sized=5: e", "older 3; old 1>0 without d; new 1", ""},
		{"paused: the pending one of the new set", "rolling 1 +0 -1 paused; old 1/1/1 sized=2: a; new 1/1/0 sized=2: b.pending", "old 1; new 1>0 without b", ""},
		{"not paused: the unknown one", "rolling 4 +0 -1; older 3/3/3 sized=5: a b c; old 1/1/0 sized=5: d.unknown; new 1/1/1 sized=5: e", "older 3; old 1>0 without d; new 1", ""},
		{"not paused: one that joins stays", "rolling 4 +0 -2; old 4/4/4 sized=5: a b c d; new 1/1/0 sized=5: e.pending", "old 4>3 without a; new 1; names old[a]", ""},
		{"a preserved one stays", "rolling 4 +0 -1 paused; older 3/3/3 sized=5: a b c; old 1/1/0 sized=5: d.preserved; new 1/1/1 sized=5: e", "older 3>2 without a; old 1; new 1; names older[a]", ""},
		{"each set gives its own first", "rolling 2 +0 -2 paused; older 3/3/1 sized=4: a b.unknown c.unknown; new 1/1/1 sized=4: d", "older 3>1 without b c; new 1; names older[b c]", ""},
		{"in place: one of a younger set", "inplace 3 +0 -1 paused; older 2/2/2: a b; old 2/2/1: c.unknown d; new 0", "older 2; old 2>1 without c; new 0; names old[c]", ""},
	})
}

// TestScale_PriorityBeforeHealth_AsFromASetAlone asserts one order: a machine that a user marks goes
// before an unhealthy one, through a deployment and from a set alone.
func TestScale_PriorityBeforeHealth_AsFromASetAlone(t *testing.T) {
	for name, c := range map[string]struct{ machines, want, by string }{
		"marked and unhealthy":            {"a.early b bad.unknown", "a", "Priority"},
		"unhealthy":                       {"a b bad.unknown", "bad", "Availability"},
		"unhealthy and marked":            {"a b bad.unknown.early", "bad", "Priority"},
		"marked, and preserved unhealthy": {"a.early b bad.preserved", "a", "Priority"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario("rolling 2 +1 -0 want=old; old 3/3/2 sized=3: " + c.machines)
			d := s.decide()
			require.Len(t, d.Targets[0].Victims, 1)
			require.Equal(t, c.want, d.Targets[0].Victims[0].Machine.Name)
			require.Equal(t, c.by, d.Targets[0].Victims[0].By)

			alone := s.in.Sets[0].DeepCopy()
			alone.Spec.Replicas, alone.OwnerReferences = 2, nil
			in := machineset.Observation{Set: alone, Machines: s.in.Machines, Complete: true, Proven: true}
			var deleted []string
			for _, a := range machineset.Decide(in, machineset.Policy{}, rollNow).Actions {
				if a, ok := a.(machinist.Delete); ok {
					deleted = append(deleted, a.Object.GetName())
				}
			}
			require.Equal(t, []string{c.want}, deleted)
		})
	}
}

// TestScale_CustomOrder_IsThatOfTheSets asserts that a policy without a criterion for the health has
// the same order for deployments.
func TestScale_CustomOrder_IsThatOfTheSets(t *testing.T) {
	s := newScenario("rolling 2 +1 -0 want=old; old 3/3/2 sized=3: a b bad.unknown")
	s.policy.Order = machineset.Order{{Name: "FirstOfTheAlphabet", Rank: func(m *v1alpha1.Machine) int64 { return int64(m.Name[0]) }}}
	victims := s.decide().Targets[0].Victims
	require.Len(t, victims, 1)
	require.Equal(t, "a", victims[0].Machine.Name)
}

// TestScale_RandomPausedSets_NoAvailableBeforeAnUnavailable plays random scale-downs of paused rollouts.
func TestScale_RandomPausedSets_NoAvailableBeforeAnUnavailable(t *testing.T) {
	t.Parallel()
	cuts := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 31))
		all, names := 0, []string{"oldest", "older", "old", "new"}
		var sets []string
		for _, set := range names[r.IntN(3):] {
			var machines []string
			up, n := 0, r.IntN(5)
			for i := range n {
				state := chosen(chance{r}, "", "", ".unknown", ".pending", ".nocapacity")
				if state == "" {
					up++
				}
				machines = append(machines, fmt.Sprint(set, i, state))
			}
			all += n
			sets = append(sets, fmt.Sprintf("%s %d/%d/%d sized=SIZE: %s", set, n, n, up, strings.Join(machines, " ")))
		}
		text := fmt.Sprintf("rolling %d +%d -%d paused; %s", r.IntN(all+1), r.IntN(2), r.IntN(4), strings.Join(sets, "; "))
		s := newScenario(strings.ReplaceAll(text, "SIZE", fmt.Sprint(all)))
		lost, available := map[string]bool{}, ""
		for _, target := range s.decide().Targets {
			for _, v := range target.Victims {
				lost[v.Machine.Name] = true
				if v.Machine.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
					available = v.Machine.Name
				}
			}
		}
		if available == "" {
			continue
		}
		cuts++
		for _, m := range s.in.Machines {
			require.True(t, lost[m.Name] || m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning,
				"seed %d: %s goes, and the unavailable %s stays: %s", seed, available, m.Name, s.text)
		}
	}
	require.Greater(t, cuts, 500)
}
