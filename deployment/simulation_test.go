// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"cmp"
	"flag"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	rules "github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

var (
	worldSeeds = flag.Uint64("worlds", 40, "number of random worlds of each kind; a tenth with -short. make test adds many")
	worldFirst = flag.Uint64("first-world", 0, "seed of the first world of each kind, long and short")
	shortSeeds = flag.Uint64("short-worlds", 40, "number of short random worlds of each kind; a tenth with -short. make test adds many")
	worldLeast = flag.Uint64("least-worlds", 0, "smallest number of random worlds of all kinds together; fewer is a failure")
)

// availableFirst has a set let those machines go that are worth most.
var availableFirst = machineset.Order{{Name: "AvailableFirst", Rank: func(m *v1alpha1.Machine) int64 {
	if facts.TraitsOf(m.Status.CurrentStatus.Phase).Available {
		return 0
	}
	return 1
}}}

var worldKinds = []worldKind{
	{name: "rolling", strategy: kindRolling},
	{name: "rolling, with crashes", strategy: kindRolling, crashes: true},
	{name: "rolling, sets let available machines go first", strategy: kindRolling, crashes: true, badOrder: true},
	{name: "rolling, machines fail", strategy: kindRolling, failing: true},
	{name: "rolling, machines fail and processes crash", strategy: kindRolling, failing: true, crashes: true, gates: true},
	{name: "rolling, with gates and quota", strategy: kindRolling, gates: true, quota: true},
	{name: "recreate", strategy: kindRecreate, crashes: true},
	{name: "recreate, machines fail", strategy: kindRecreate, crashes: true, failing: true, gates: true},
	{name: "in place", strategy: kindInPlace},
	{name: "in place, with crashes and gates", strategy: kindInPlace, crashes: true, gates: true},
	{name: "in place, machines fail", strategy: kindInPlace, failing: true, crashes: true},
	{name: "in place by hand", strategy: kindInPlace, manual: true, crashes: true},
	{name: "rolling, users delete", strategy: kindRolling, crashes: true, deletes: true},
	{name: "recreate, users delete", strategy: kindRecreate, crashes: true, deletes: true},
	{name: "in place, users delete", strategy: kindInPlace, crashes: true, deletes: true},
	{name: "in place by hand, users delete", strategy: kindInPlace, manual: true, deletes: true},
	{name: "rolling, users resize sets", strategy: kindRolling, crashes: true, resizes: true},
	{name: "in place, users resize sets", strategy: kindInPlace, crashes: true, resizes: true},
}

// TestSimulation_RandomFailures_LawsHoldUntilRest has caches that lag, missed passes,
// failed calls, crashes, machines that fail and users who change the spec. The laws hold at every
// write, and in the end the desired state is reached.
func TestSimulation_RandomFailures_LawsHoldUntilRest(t *testing.T) {
	t.Parallel()
	percent := debug.SetGCPercent(800) // the worlds are small, and die young
	var all simulationCount
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		t.Logf("%d worlds of all kinds", all.worlds.Load())
		if n, least := all.worlds.Load(), inShort(*worldLeast); n < least && !t.Failed() {
			t.Errorf("%d worlds ran; at least %d were required", n, least)
		}
	})
	for _, kind := range worldKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			of := simulationCount{happened: failureCounts{}}
			of.live(t, kind, *worldFirst, *worldSeeds)
			kind.short = true
			of.live(t, kind, *worldFirst, *shortSeeds)
			t.Logf("%d worlds; %v", of.worlds.Load(), of.happened)
			if of.worlds.Load() >= enoughWorlds {
				of.happened.wantAll(t, kind)
			}
			all.worlds.Add(of.worlds.Load())
		})
	}
}

// simulationCount counts worlds that have come to rest after all that happened in them.
type simulationCount struct {
	worlds   atomic.Uint64
	happened failureCounts // of one kind
}

// live lives worlds of a kind, and tells of the first that breaks a law how to live
// it again.
func (l *simulationCount) live(t *testing.T, kind worldKind, first, number uint64) {
	for seed := first; seed < first+inShort(number); seed++ {
		r, what := simulate(t, kind, seed, false)
		if what != "" {
			r, what = simulate(t, kind, seed, true)
			t.Fatalf("seed %d: %s\n%s\n%s\nagain: %s", seed, cmp.Or(what, "it did not fail again"),
				strings.Join(r.trace[max(0, len(r.trace)-150):], "\n"), r.sizes(), again(t, kind, seed))
		}
		l.worlds.Add(1)
		l.happened.add(r.happened)
	}
}

// inShort is a tenth of a number with -short.
func inShort(number uint64) uint64 {
	if testing.Short() {
		return number / 10
	}
	return number
}

// again is the command that lives one world alone.
func again(t *testing.T, kind worldKind, seed uint64) string {
	length, other := "worlds", "short-worlds"
	if kind.short {
		length, other = other, length
	}
	flags := fmt.Sprintf("-first-world %d -%s 1 -%s 0", seed, length, other)
	return fmt.Sprintf("go test ./deployment -run '^%s$' %s", strings.ReplaceAll(t.Name(), "/", "$/^"), flags)
}

// simulate lives one world and says which law it broke, if any.
func simulate(t testing.TB, kind worldKind, seed uint64, loud bool) (r *randomWorld, what string) {
	defer func() {
		switch b := recover().(type) {
		case nil:
		case violation:
			what = b.what
		default:
			panic(b)
		}
	}()
	r = newRandomWorld(t, kind, seed, loud)
	if kind.short {
		r.short()
		return r, ""
	}
	r.rest()
	for range 1 + r.rng.IntN(3) {
		r.stretch(6, 16)
		if !kind.failing && r.rng.IntN(3) == 0 {
			r.shrinkByName()
		}
	}
	return r, ""
}

// short is a life of one to three events. One in four begins with the trouble, when
// there is no machine yet, and one in eight is that of an autoscaler.
func (r *randomWorld) short() {
	if r.rng.IntN(4) != 0 {
		r.rest()
	}
	if !r.kind.failing && r.rests > 0 && r.rng.IntN(8) == 0 {
		r.shrinkByName()
		return
	}
	r.stretch(3, 12)
}

// stretch is a time of trouble with some events and some steps after each, and then
// of rest.
func (r *randomWorld) stretch(events, steps int) {
	r.calm = false
	for range 1 + r.rng.IntN(events) {
		r.runs++
		r.event()
		for range r.rng.IntN(steps) {
			r.step()
		}
	}
	r.calm = true
	r.logf("calm")
	r.endFailures()
	r.rest()
}

// shrinkByName has an autoscaler take named machines from a world at rest, and say
// so again: exactly they go.
func (r *randomWorld) shrinkByName() {
	r.runs++
	stay := map[string]bool{}
	for _, m := range r.w.Machines() {
		stay[m.Name] = true
	}
	r.calm = false
	names := r.scaleDownByName(1 + r.rng.IntN(3))
	for _, name := range names {
		delete(stay, name)
	}
	said := r.w.Deployment().Annotations[v1alpha1.TriggerDeletionByMCM]
	for n := range r.rng.IntN(20) {
		r.step()
		if n%8 == 7 {
			r.edit(func(d *v1alpha1.MachineDeployment) {
				metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.TriggerDeletionByMCM, said)
			})
		}
	}
	r.calm = true
	r.endFailures()
	r.rest()
	for _, m := range r.w.Machines() {
		if !stay[m.Name] {
			r.failf("%v were to go, and %s is there", names, m.Name)
		}
		delete(stay, m.Name)
	}
	if len(stay) > 0 {
		r.failf("%v were to go, and so did %v", names, stay)
	}
}

// rest runs the world until it has come to rest, and looks whether it is as it
// was asked for.
func (r *randomWorld) rest() {
	const limit = 3000
	for n := 0; r.step(); n++ {
		if n > limit {
			r.failf("no fixed point after %d steps", n)
		}
	}
	if what := unfinished(r.w); what != "" {
		r.failf("at rest, but %s", what)
	}
	r.rests++
}

// unfinished returns what is not as a rollout that has ended leaves it; empty if all is: the
// sets have their sizes, and nothing of the rollout is left on machines and Nodes.
func unfinished(w *deploymenttest.World) string {
	d, sets := w.Deployment(), ownSets(w)
	if !deployment.Complete(d, d.Status) {
		return fmt.Sprintf("it is not complete: %+v", d.Status)
	}
	newSet, _ := rules.FindSets(d, sets)
	for _, s := range sets {
		want := int32(0)
		if s == newSet {
			want = d.Spec.Replicas
		}
		c := members.Count(s, w.MachinesOf(s), nil, w.Now())
		if s.Spec.Replicas != want || c.Machines != int(want) || c.Available != int(want) || s == newSet && members.ScaleUpDisabled(s) {
			return fmt.Sprintf("%s has size %d, labels %v and %+v", s.Name, s.Spec.Replicas, s.Labels, c)
		}
		if facts.JoinHeld(s) {
			return fmt.Sprintf("the nodes that join set %s are still held", s.Name)
		}
		for _, m := range w.MachinesOf(s) {
			n := w.Node(m)
			spec := *s.Spec.Template.Spec.DeepCopy()
			if spec.ProviderID = m.Spec.ProviderID; !apiequality.Semantic.DeepEqual(spec, m.Spec) {
				return fmt.Sprintf("%s of set %s is not of its template: %s", m.Name, s.Name, gocmp.Diff(spec, m.Spec))
			}
			marked := n != nil && (n.Labels[candKey]+n.Labels[selKey]+n.Labels[resultKey] != "" || len(n.Spec.Taints) > 0 || len(n.Annotations) > 1 || n.Spec.Unschedulable)
			if marked || members.Transferred(m) {
				return fmt.Sprintf("marks are left on %s: %v, %v", m.Name, m.Labels, n)
			}
		}
	}
	return ""
}
