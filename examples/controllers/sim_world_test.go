// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// world is a simulation: two clusters, a cloud, the controllers, and other clients. Everything
// happens in one goroutine in the order of one schedule, so that a seed determines the history.
type world struct {
	rng      *rand.Rand // nil for a fixed order
	even     *rand.Rand // for names in a fixed order
	clock    *clocktesting.FakeClock
	turn     sync.Mutex // of the goroutine of a driver call that does not end
	scenario scenario
	plan     plan
	policy   machine.Policy
	cloud    *drivertest.Cloud
	control  *site
	target   *site

	machines versioned.Interface  // for other clients; the controllers use calls
	secrets  kubernetes.Interface // for other clients
	nodes    kubernetes.Interface // for other clients

	began   time.Time // the begin of the simulation
	process *process
	beginAt time.Time // the begin of the next process
	calls   int
	// driverCalls and decisions count what the controllers did.
	driverCalls, decisions int
	freezes                int // the number of freezes
	busy                   int // passes since the clock moved
	tooMany                int // observations of sets with enough machines for a freeze
	last                   Note
	agenda                 []timedAction

	joined       map[string]bool // provider IDs
	bound        bool            // the late pod was bound
	lies         map[string]bool // machines whose living VM the provider does not find
	cloudChanged bool            // the cloud has changed
	judge        judge
	verbose      bool
	trace        []string
	events       []string                    // events of deployments
	onWrite      func(write draintest.Write) // set by a test
	violations   []string
	unended      []*unendedCall // driver calls that did not end
	fault        int            // the number of faults
	calmFrom     time.Time      // the end of the last fault
}

// timedAction is an action of other clients at a time.
type timedAction struct {
	at time.Time
	do func()
}

// author is the author of a write.
type author bool

const (
	others author = false
	ours   author = true
)

const ns = "shoot"

func newWorld(s scenario, rng *rand.Rand, at plan, verbose bool) *world {
	start := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	w := &world{
		rng: rng, even: rand.New(rand.NewPCG(1, 1)), clock: clocktesting.NewFakeClock(start), scenario: s, plan: at, verbose: verbose, joined: map[string]bool{}, judge: newJudge(), began: start,
	}
	w.policy = machine.DefaultPolicy()
	w.policy.DrainTimeout, w.policy.PreserveTimeout = drainTimeout, preserveTime
	s.cloud.Clock = w.clock
	w.cloud = drivertest.NewCloud(s.cloud)
	w.cloud.Subscribe(w.cloudEvent)

	options := draintest.Options{Clock: w.clock, StopTime: func(*corev1.Pod) time.Duration { return 4 * time.Second }}
	control, machines := machinetest.New(options)
	w.control = newSite("control", control)
	options.DetachTime = s.detach
	w.target = newSite("target", draintest.New(options))
	w.machines, w.secrets, w.nodes = machines, w.control.cluster.Clientset(), w.target.cluster.Clientset()
	w.prepare()
	return w
}

// prepare creates the class, its Secret and the machines.
func (w *world) prepare() {
	class, secret := w.cloud.MachineClass(ns, "small"), w.cloud.Secret(ns, "small")
	foreign(&class.ObjectMeta)
	foreign(&secret.ObjectMeta)
	w.addClass(class, secret)
	if w.scenario.rollout != nil {
		w.deploy()
	}
	for i := range w.scenario.machines {
		m := &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("m-%d", i)},
			Spec:       machineSpec(),
		}
		foreign(&m.ObjectMeta)
		if w.scenario.foreignFinalizers {
			m.Finalizers = append(m.Finalizers, foreignKey)
		}
		if w.scenario.deployment {
			m.Labels[v1alpha1.LabelKeyMachineDeploymentName] = "d"
		}
		must(w.control.cluster.Add(m))
		for _, r := range w.scenario.preserve {
			w.later(r.after, func() { w.setPreserve(m.Name, r) })
		}
		if w.scenario.deleteAfter > 0 {
			w.later(w.scenario.deleteAfter, func() { w.remove(m.Name) })
		}
	}
	w.collect(others)
}

const foreignKey = "example.com/foreign"

// foreign adds a label and an annotation of another client to an object.
func foreign(m *metav1.ObjectMeta) {
	metav1.SetMetaDataLabel(m, foreignKey, "theirs")
	metav1.SetMetaDataAnnotation(m, foreignKey, "theirs")
}

// chance returns a number in [0, 1).
func (w *world) chance() float64 {
	switch {
	case w.rng != nil:
		return w.rng.Float64()
	case w.scenario.rollout != nil: // for names of machines
		return w.even.Float64()
	default:
		return 0.5
	}
}

// choose returns a number below n.
func (w *world) choose(n int) int {
	if w.rng == nil || n < 2 {
		return 0
	}
	return w.rng.IntN(n)
}

func (w *world) later(wait time.Duration, do func()) {
	w.agenda = append(w.agenda, timedAction{w.clock.Now().Add(wait), do})
}

func (w *world) logf(format string, args ...any) {
	if w.verbose {
		w.trace = append(w.trace, w.clock.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

// violate records a violation.
func (w *world) violate(format string, args ...any) {
	w.violations = append(w.violations, w.clock.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	w.logf("VIOLATION: "+format, args...)
}

// note receives the decisions of the controllers.
func (w *world) note(n Note) {
	w.last = n
	if n.Kind == "freeze" && n.Waits {
		w.freezes++
	}
	if w.decisions++; w.decisions == 20_000 {
		w.violate("%d decisions", w.decisions)
	}
	if n.Err != nil {
		w.logf("  %s %s: error: %v", n.Kind, n.Key, n.Err)
		return
	}
	w.logf("  %s", n.Text)
}

// recordFault records when the last fault ends.
func (w *world) recordFault(wait time.Duration) {
	w.fault++
	if end := w.clock.Now().Add(wait); end.After(w.calmFrom) {
		w.calmFrom = end
	}
}

// collect appends the new writes to the logs.
func (w *world) collect(by author) {
	for _, s := range []*site{w.control, w.target} {
		writes := s.cluster.History()
		if len(writes) == 0 {
			continue
		}
		s.cluster.ForgetHistory()
		for _, write := range writes {
			w.logf("      %s: %s", map[author]string{ours: "controllers", others: "others"}[by], write)
			w.assess(s, write, by)
			w.assessUnended(write, by)
			s.add(write, w.clock.Now().Add(w.latency()))
			w.react(write)
		}
	}
}

// latency returns the delay of a write until a watch shows it.
func (w *world) latency() time.Duration {
	if w.rng == nil || w.rng.IntN(4) > 0 {
		return 0
	}
	return time.Duration(w.rng.IntN(300)) * time.Millisecond
}

// run runs the world until nothing is due.
func (w *world) run() {
	for range 20000 {
		w.live()
		if len(w.violations) > 0 {
			return
		}
		if !w.step() && !w.passTime() {
			return
		}
	}
	w.violate("the simulation does not end")
}

// step lets the controllers do one of the things that are due.
func (w *world) step() bool {
	now := w.clock.Now()
	if w.process == nil {
		if now.Before(w.beginAt) {
			return false
		}
		w.begin()
		return true
	}
	var due []func()
	for _, i := range w.process.caches {
		if at := i.next(); !at.IsZero() && !at.After(now) {
			due = append(due, i.deliver)
		}
	}
	for n, q := range w.process.queues {
		for _, key := range q.due() {
			due = append(due, func() { w.process.pass(w.process.loops[n], q, key) })
		}
	}
	if len(due) == 0 {
		return false
	}
	due[w.choose(len(due))]()
	if w.process != nil {
		w.process.guard()
	}
	return true
}

// deliverAll delivers all events.
func (w *world) deliverAll() {
	w.collect(others)
	for _, i := range w.process.caches {
		for at := i.next(); !at.IsZero() && !at.After(w.clock.Now()); at = i.next() {
			i.deliver()
		}
	}
}

// interleave delivers events during a call.
func (w *world) interleave() {
	switch {
	case w.process == nil || w.rng == nil && !w.scenario.oldLists || w.rng != nil && w.rng.IntN(3) > 0:
		return
	case w.rng == nil: // all events, so that old lists are as new as possible
		w.deliverAll()
		return
	}
	w.collect(others)
	for _, i := range w.process.caches {
		for range w.rng.IntN(3) {
			if at := i.next(); !at.IsZero() && !at.After(w.clock.Now()) {
				i.deliver()
			}
		}
	}
}

// end ends a process and drops its memory.
func (w *world) end() {
	w.logf("the process ends")
	w.process.cancel()
	w.process = nil
	w.collect(ours)
}

// passTime moves the clock to the next event. It returns false if there is none.
func (w *world) passTime() bool {
	times := []time.Time{w.cloud.NextChange(), w.control.cluster.Tick(), w.target.cluster.Tick()}
	for _, e := range w.agenda {
		times = append(times, e.at)
	}
	if w.process == nil {
		times = append(times, w.beginAt)
	} else {
		for _, i := range w.process.caches {
			times = append(times, i.next())
		}
		for n, q := range w.process.queues {
			if w.process.loops[n].kind != "freeze" {
				times = append(times, q.next())
			}
		}
	}
	next := machinist.Earliest(times...)
	if next.IsZero() { // probes alone do not move the clock
		return false
	}
	if w.process != nil {
		next = machinist.Earliest(next, w.process.probes.next())
	}
	if next.After(w.clock.Now()) {
		w.clock.SetTime(next)
		w.busy = 0
	}
	return true
}

// live makes the actions of other clients that are due.
func (w *world) live() {
	now := w.clock.Now()
	w.cloud.NextChange() // delivers the events of the cloud
	w.target.cluster.Tick()
	w.collect(others)
	for {
		i := slices.IndexFunc(w.agenda, func(e timedAction) bool { return !e.at.After(now) })
		if i < 0 {
			break
		}
		do := w.agenda[i].do
		w.agenda = slices.Delete(w.agenda, i, i+1)
		do()
		w.collect(others)
	}
	if w.cloudChanged {
		w.cloudChanged = false
		w.kubelets()
		w.collect(others)
	}
	w.checkForce()
	w.checkReplaced()
	w.checkUnrequested()
	w.checkCorrected()
}

// machineFor returns the name of the machine that a call is about.
func (w *world) machineFor(a simCall) string {
	if name := a.name; a.site == nil || a.resource == "machines" || a.resource == "nodes" {
		return name
	}
	if machines := all[*v1alpha1.Machine](w.control, "machines"); w.scenario.rollout != nil && len(machines) > 0 {
		return machines[0].Name
	}
	return "m-0"
}

// remove deletes a machine as a user.
func (w *world) remove(name string) {
	w.logf("another client deletes machine %s", name)
	_ = w.machines.MachineV1alpha1().Machines(ns).Delete(context.Background(), name, metav1.DeleteOptions{}) // the machine may be deleted
	w.collect(others)
}

// result returns an error with the violations of a schedule, or nil.
func (w *world) result() error {
	if len(w.violations) == 0 {
		return nil
	}
	return fmt.Errorf("%s\n%s", w.scenario, strings.Join(slices.Concat(w.violations, w.trace), "\n"))
}

var _ cache.SharedIndexInformer = (*informer)(nil)
