// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// TestMain lets the heap grow: the simulations allocate much and keep little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// A worldKind is what may go wrong in a random world, beside that caches lag
// behind, turns are missed, and users change their minds.
type worldKind struct {
	name     string
	strategy v1alpha1.MachineDeploymentStrategyType
	manual   bool
	failing  bool // machines fail and vanish, users delete them, labels get lost
	crashes  bool // calls are refused, answers are lost, processes end
	quota    bool // the provider runs out of capacity
	gates    bool // gates say no for a while
	badOrder bool // sets let available machines go first
	deletes  bool // users delete sets and machines by hand
	resizes  bool // users give sets other sizes by hand
	short    bool // few machines, and little happens
}

// stream is what the random numbers of worlds with one seed differ by.
func (k worldKind) stream() uint64 {
	if !k.short {
		return 6
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(k.name))
	return h.Sum64()
}

// randomWorld is one world, with the laws that it has to keep.
type randomWorld struct {
	kind worldKind
	seed uint64
	rng  *rand.Rand
	mix  *rand.Rand // the order in which a planner is shown things again
	w    *deploymenttest.World
	laws
	policy   deployment.Policy
	calm     bool
	quota    int
	loud     bool
	trace    []string
	happened failureCounts
	runs     int // events, each with what follows until the next, or to rest
	rests    int // how often it came to rest
}

// violation is what a world panics with when a law is violation.
type violation struct{ what string }

func (r *randomWorld) failf(format string, args ...any) {
	panic(violation{fmt.Sprintf(format, args...)})
}

func (r *randomWorld) logf(format string, args ...any) {
	if r.loud {
		r.trace = append(r.trace, fmt.Sprintf(format, args...))
	}
}

// note counts a trouble, and tells of it.
func (r *randomWorld) note(what, format string, args ...any) {
	r.happened[what]++
	r.logf(format, args...)
}

// oneIn is true once in n times, never when the world is calm.
func (r *randomWorld) oneIn(n int) bool { return !r.calm && r.rng.IntN(n) == 0 }

func newRandomWorld(t testing.TB, kind worldKind, seed uint64, loud bool) *randomWorld {
	r := &randomWorld{kind: kind, seed: seed, rng: rand.New(rand.NewPCG(seed, kind.stream())), calm: true, loud: loud, quota: 1 << 30, happened: failureCounts{}}
	r.mix = r.rng
	if kind.short {
		r.mix = rand.New(rand.NewPCG(seed, 8))
	}
	d, model := r.deployment(), r.model()
	r.policy = model.Policy
	var err error
	if r.w, err = deploymenttest.New(d, model); err != nil {
		t.Fatalf("%s", err)
	}
	r.laws = laws{r: r, floors: map[types.UID]int64{}, demanded: map[string]bool{}, chosen: map[types.UID]bool{}, taken: map[types.UID]bool{}, every: 32}
	if kind.short {
		r.every = 8
	}
	return r
}

// deployment returns a small deployment of the kind.
func (r *randomWorld) deployment() *v1alpha1.MachineDeployment {
	replicas := int32(1 + r.rng.IntN(5))
	if r.rng.IntN(8) == 0 {
		replicas = int32(r.rng.IntN(9))
	}
	if r.kind.short {
		replicas = min(replicas, 3)
	}
	d := rollDeployment(replicas, r.kind.strategy, r.bound(), r.bound())
	if r.kind.manual {
		byHand(d)
	}
	if r.rng.IntN(3) == 0 {
		d.Spec.MinReadySeconds = 60
	}
	if r.rng.IntN(2) == 0 {
		d.Spec.RevisionHistoryLimit = ptr.To(int32(r.rng.IntN(3)))
	}
	return d
}

func (r *randomWorld) bound() intstr.IntOrString {
	if r.rng.IntN(3) == 0 {
		return intstr.FromString([]string{"0%", "10%", "25%", "50%", "100%"}[r.rng.IntN(5)])
	}
	return intstr.FromInt32(int32(r.rng.IntN(4)))
}

// model is how machines behave, and what goes wrong unless the world is calm.
func (r *randomWorld) model() deploymenttest.Model {
	m := deploymenttest.Model{
		Create: func(*v1alpha1.Machine) error {
			if vms(r.w) >= r.quota {
				r.happened["there was no capacity"]++
				return status.Error(codes.ResourceExhausted, "no capacity")
			}
			return nil
		},
		Join: func(*v1alpha1.Machine) (time.Duration, bool) {
			return time.Duration(30+r.rng.IntN(180)) * time.Second, !r.kind.failing || !r.fails("a machine did not join", 6)
		},
		CreationTimeout: 20 * time.Minute,
		HealthTimeout:   10 * time.Minute,
		Leave:           func(*v1alpha1.Machine) time.Duration { return time.Duration(r.rng.IntN(120)) * time.Second },
		Update: func(*v1alpha1.Machine) (time.Duration, bool) {
			return time.Duration(30+r.rng.IntN(300)) * time.Second, !r.kind.failing || !r.fails("an update in place failed", 6)
		},
		Lag: r.lag, Idle: func(string) bool { return r.fails("a turn was missed", 4) }, Call: r.outcome,
		OnWrite:       func(c deploymenttest.Change) { r.wrote(c) },
		OnDecision:    func(in deployment.Observation, d deployment.Decision) { r.planned(in, d) },
		OnSetDecision: func(in machineset.Observation, d machineset.Decision) { r.setPlanned(in, d) },
	}
	m.Policy.HoldAutoscaler = r.rng.IntN(4) == 0
	m.Policy.FreeCapacity = r.rng.IntN(3) == 1
	if r.rng.IntN(4) == 0 {
		m.Policy.Burst, m.SetPolicy.Burst = 1+r.rng.IntN(2), 1+r.rng.IntN(2)
	}
	if r.kind.gates {
		m.Policy.Gates = []func(deployment.Choice) (bool, machinist.Hold){r.gate}
	}
	if r.kind.badOrder {
		m.SetPolicy.Order, m.Policy.Order = availableFirst, availableFirst // the deployment relies on the order of its sets
	}
	return m
}

func (r *randomWorld) lag(_, _ string) int {
	if r.calm || r.rng.IntN(2) == 0 {
		return 0
	}
	n := r.rng.IntN(6)
	if n > 0 {
		r.happened["a cache did not show all"]++ // there is news, and some of it is not shown
	}
	return n
}

func (r *randomWorld) outcome(_, _, _, _ string) deploymenttest.Outcome {
	if !r.kind.crashes || !r.oneIn(12) {
		return deploymenttest.Done
	}
	o := deploymenttest.Outcome(1 + r.rng.IntN(4))
	r.happened[ofCall[o]]++
	return o
}

// gate lets each machine go in some minutes and not in others; all, when the
// world is calm.
func (r *randomWorld) gate(c deployment.Choice) (bool, machinist.Hold) {
	const slot = 5 * 60
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.Machine.Name))
	turn := c.Now.Unix()/slot + int64(h.Sum32())
	if r.calm || turn%2 == 0 {
		return true, machinist.Hold{}
	}
	if turn%3 == 0 {
		r.happened["a gate said no"]++
		return false, machinist.Hold{Reason: "NotThisOne"}
	}
	r.happened["a gate said not now"]++
	return false, machinist.Hold{Reason: "NotNow", Until: time.Unix((c.Now.Unix()/slot+1)*slot, 0)}
}

// step moves the world on, with the users of the moment.
func (r *randomWorld) step() bool {
	if r.kind.manual {
		r.selectSome()
	}
	if r.kind.failing && r.oneIn(6) {
		r.addFailures()
	}
	f, ok := r.w.Step()
	if ok && r.loud {
		r.logFrame(f)
	}
	return ok
}

func (r *randomWorld) logFrame(f deploymenttest.Frame) {
	r.logf("%s", f.At.Format("15:04:05"))
	for _, e := range f.Events {
		r.logf("    %s", e)
	}
	r.logf("    %s", r.sizes())
}

func (r *randomWorld) sizes() string {
	var out []string
	for _, s := range r.w.Sizes() {
		out = append(out, fmt.Sprintf("%s(%s) %d %v", s.Name, s.Class, s.Spec, s.Phases))
	}
	return strings.Join(out, "  ")
}

// selectSome is the user of an update in place that is orchestrated by hand.
func (r *randomWorld) selectSome() {
	for _, n := range r.w.Nodes() {
		if n.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate] == "true" && n.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] == "" && (r.calm || r.rng.IntN(3) == 0) {
			r.note("a Node was selected by hand", "user: selects %s", n.Name)
			r.must(r.w.EditNode(n.Name, func(n *corev1.Node) {
				metav1.SetMetaDataLabel(&n.ObjectMeta, v1alpha1.LabelKeyNodeSelectedForUpdate, "true")
			}))
			return
		}
	}
}

func (r *randomWorld) must(err error) {
	if err != nil {
		r.failf("the world: %s", err)
	}
}

// addFailures damages a machine, a Node or a set.
func (r *randomWorld) addFailures() {
	m := pickFrom(r.rng, r.w.Machines())
	if m == nil {
		return
	}
	switch r.rng.IntN(8) {
	case 7:
		r.note(contradicts, "harm: %s is Terminating without a deletion timestamp", m.Name)
		r.must(r.w.SetPhase(m.Name, v1alpha1.MachineTerminating))
	case 0, 1:
		r.note("a machine failed", "harm: %s fails", m.Name)
		r.must(r.w.SetPhase(m.Name, v1alpha1.MachineFailed))
	case 2:
		r.note("a machine was unknown", "harm: %s is unknown", m.Name)
		r.must(r.w.SetPhase(m.Name, v1alpha1.MachineUnknown))
	case 3:
		r.note("a machine was deleted", "harm: %s is deleted", m.Name)
		r.must(r.w.DeleteMachine(m.Name))
	case 4:
		r.note("a machine vanished", "harm: %s vanishes", m.Name)
		r.must(r.w.Vanish(m.Name))
	case 5:
		r.note("a machine lost a label", "harm: %s loses its labels", m.Name)
		r.must(r.w.EditMachine(m.Name, func(m *v1alpha1.Machine) {
			delete(m.Labels, []string{"app", v1alpha1.DefaultMachineDeploymentUniqueLabelKey}[r.rng.IntN(2)])
		}))
	case 6:
		if s := pickFrom(r.rng, r.w.Sets()); s != nil && r.rng.IntN(2) == 0 {
			r.note("a set lost a label", "harm: %s loses its labels", s.Name)
			r.must(r.w.EditSet(s.Name, func(s *v1alpha1.MachineSet) { delete(s.Labels, "app") }))
		}
	}
}

// endFailures ends what would go on for ever.
func (r *randomWorld) endFailures() {
	for _, m := range r.w.Machines() {
		if m.Status.CurrentStatus.Phase == v1alpha1.MachineUnknown {
			r.must(r.w.SetPhase(m.Name, v1alpha1.MachineFailed))
		}
	}
	for _, s := range r.w.Sets() { // those that were let go, or are about to be, are taken down
		if _, has := s.Labels["app"]; !has {
			r.must(r.w.EditSet(s.Name, func(s *v1alpha1.MachineSet) { s.Spec.Replicas = 0 }))
		}
	}
	for _, m := range r.w.Machines() { // and so are machines
		if metav1.GetControllerOfNoCopy(m) == nil && m.Annotations["machinist.dev/released-by"] != "" {
			r.must(r.w.DeleteMachine(m.Name))
		}
	}
	r.quota = 1 << 30
	r.edit(func(d *v1alpha1.MachineDeployment) { // any change has gates that said no asked again
		d.Spec.Paused = false
		d.Labels = map[string]string{"stretch": fmt.Sprint(r.runs)}
	})
}

func pickFrom[T any](rng *rand.Rand, list []*T) *T {
	if len(list) == 0 {
		return nil
	}
	return list[rng.IntN(len(list))]
}

// fails is true once in n times, and notes what goes wrong then.
func (r *randomWorld) fails(what string, n int) bool {
	wrong := r.oneIn(n)
	if wrong {
		r.happened[what]++
	}
	return wrong
}

// event has the user ask for something else.
func (r *randomWorld) event() {
	d, kinds, most := r.w.Deployment(), 10, 8
	if r.kind.deletes {
		kinds = 14
	}
	if r.kind.short {
		most = 5
	}
	switch r.rng.IntN(kinds) {
	case 0, 1:
		n := int32(r.rng.IntN(most))
		r.user("other replicas", func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = n }, "user: %d replicas", n)
	case 2, 3, 4, 5:
		class := fmt.Sprintf("c%d", 1+r.rng.IntN(3))
		r.user("another class", func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = class }, "user: class %s", class)
	case 6:
		r.user("paused or resumed", func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = !d.Spec.Paused }, "user: paused %t", !d.Spec.Paused)
	case 7:
		r.editInPlace(r.rng.IntN(100))
	case 8:
		r.user("a roll-back", func(d *v1alpha1.MachineDeployment) { d.Spec.RollbackTo = &v1alpha1.RollbackConfig{} }, "user: rolls back")
	case 9:
		r.scaleDownByName(1 + r.rng.IntN(2))
	case 10, 11:
		if m := pickFrom(r.rng, r.w.Machines()); m != nil {
			r.note("a machine was deleted", "user: deletes %s", m.Name)
			r.must(r.w.DeleteMachine(m.Name))
		}
	case 12, 13:
		if s := pickFrom(r.rng, r.w.Sets()); s != nil {
			r.note("a set was deleted", "user: deletes %s", s.Name)
			r.must(r.w.DeleteSet(s.Name))
		}
	}
	if r.runs%3 == 0 {
		r.movedByOthers()
	}
	if r.kind.resizes && r.rng.IntN(3) == 0 {
		r.resize(most)
	}
	if r.kind.quota && r.rng.IntN(2) == 0 {
		r.quota = int(r.w.Deployment().Spec.Replicas) + r.rng.IntN(2)
		r.logf("provider: quota %d", r.quota)
	}
}

// resize gives a set another size, as a user does by hand.
func (r *randomWorld) resize(most int) {
	s, n := pickFrom(r.rng, r.w.Sets()), int32(r.rng.IntN(most))
	if s == nil || s.DeletionTimestamp != nil || s.Spec.Replicas == n {
		return
	}
	r.note("a set was given another size", "user: gives %s the size %d", s.Name, n)
	r.must(r.w.EditSet(s.Name, func(s *v1alpha1.MachineSet) { s.Spec.Replicas = n }))
}

// user has a user change the deployment.
func (r *randomWorld) user(what string, change func(*v1alpha1.MachineDeployment), format string, args ...any) {
	r.note(what, format, args...)
	r.edit(change)
}

func (r *randomWorld) edit(change func(*v1alpha1.MachineDeployment)) { r.must(r.w.Edit(change)) }

// scaleDownByName does what an autoscaler does, in one write.
func (r *randomWorld) scaleDownByName(k int) []string {
	machines := slices.DeleteFunc(r.w.Machines(), func(m *v1alpha1.Machine) bool { return m.DeletionTimestamp != nil || !r.ours(m) })
	r.rng.Shuffle(len(machines), func(i, j int) { machines[i], machines[j] = machines[j], machines[i] })
	machines = machines[:min(k, len(machines), int(r.w.Deployment().Spec.Replicas))]
	var names, entries []string
	at := r.w.Now().UTC().Format(time.RFC3339)
	for _, m := range machines {
		names = append(names, m.Name)
		entries = append(entries, m.Name+"~"+at)
	}
	if len(names) == 0 {
		return nil
	}
	r.note("an autoscaler named machines", "autoscaler: without %v", names)
	r.edit(func(d *v1alpha1.MachineDeployment) {
		d.Spec.Replicas -= int32(len(names))
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.TriggerDeletionByMCM, strings.Join(entries, ","))
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.LastDeploymentReplicaChangeByScalerTime, at)
	})
	return names
}

// contradicts is the trouble with a machine that seems to leave, and may come back.
const contradicts = "a machine was Terminating without a deletion timestamp"

// ofCall are the troubles with calls.
var ofCall = map[deploymenttest.Outcome]string{
	deploymenttest.Refused: "a call was refused", deploymenttest.AnswerLost: "an answer was lost",
	deploymenttest.CrashBefore: "a process ended before a call", deploymenttest.CrashAfter: "a process ended after a call",
}

// failureCounts are how often each happened.
type failureCounts map[string]uint64

func (h failureCounts) add(o failureCounts) {
	for what, n := range o {
		h[what] += n
	}
}

// troubles are what has to happen in worlds of a kind, if there are many of them.
func (k worldKind) troubles() []string {
	out := []string{"a cache did not show all", "a turn was missed", "other replicas", "another class", "another node template", "another drain timeout", "another priority of a machine", "paused or resumed", "a roll-back", "an autoscaler named machines"}
	add := func(happen bool, what ...string) {
		if happen {
			out = append(out, what...)
		}
	}
	add(k.crashes, "a call was refused", "an answer was lost", "a process ended before a call", "a process ended after a call")
	add(k.failing, "a machine did not join", "a machine failed", "a machine was unknown", contradicts, "a machine was deleted", "a machine vanished", "a machine lost a label", "a set lost a label")
	add(k.failing && k.strategy == kindInPlace, "an update in place failed")
	add(k.strategy == kindInPlace, "a machine that was updated in place had its former class")
	add(k.quota, "there was no capacity")
	add(k.gates, "a gate said no", "a gate said not now")
	add(k.badOrder, "an available machine went before another")
	add(k.deletes, "a machine was deleted", "a set was deleted")
	add(k.resizes, "a set was given another size")
	add(k.manual, "a Node was selected by hand")
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

// editInPlace has a user change what causes no rollout: the node template, a timeout, the priority
// of a machine.
func (r *randomWorld) editInPlace(n int) {
	machines := r.w.Machines()
	switch {
	case n%3 == 1:
		r.user("another drain timeout", func(d *v1alpha1.MachineDeployment) {
			d.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: time.Duration(n) * time.Minute}}
		}, "user: drain timeout %dm", n)
	case n%3 == 2 && len(machines) > 0:
		m := machines[n%len(machines)]
		r.note("another priority of a machine", "user: priority of %s is %d", m.Name, n%3)
		r.must(r.w.EditMachine(m.Name, func(m *v1alpha1.Machine) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.MachinePriority, strconv.Itoa(n%3))
		}))
	default:
		r.user("another node template", func(d *v1alpha1.MachineDeployment) {
			d.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"n": fmt.Sprint(n)}
		}, "user: other node template")
	}
}

// movedByOthers gives a machine that was updated in place the class of a former set, as MCM left it.
func (r *randomWorld) movedByOthers() {
	machines := slices.DeleteFunc(r.w.Machines(), func(m *v1alpha1.Machine) bool {
		s := r.setOf(m)
		return s == nil || s.DeletionTimestamp != nil || !slices.ContainsFunc(m.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == v1alpha1.NodeInPlaceUpdate && c.Reason == v1alpha1.UpdateSuccessful
		})
	})
	if len(machines) == 0 {
		return
	}
	r.note("a machine that was updated in place had its former class", "MCM: %s keeps its former class", machines[0].Name)
	r.must(r.w.EditMachine(machines[0].Name, func(m *v1alpha1.Machine) { m.Spec.Class.Name = "former" }))
}
