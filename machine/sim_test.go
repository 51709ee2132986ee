// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func machineUID(s string) types.UID { return types.UID(s) }

// incident is what goes wrong at a point between two steps.
type incident string

const (
	noIncident  incident = ""
	crashBefore incident = "crash before the step"
	crashAfter  incident = "crash after the step"
	fails       incident = "the step fails without effect"
	answerLost  incident = "the step has its effect and fails"
	halfDone    incident = "the step is half done and fails"
	deleted     incident = "the machine is deleted before the step"
	slow        incident = "half a minute passes before the step"
	late        incident = "half a minute passes before the answer"
	staleRead   incident = "the next pass reads an old version of the machine"
)

// views are the incidents that take something from what the next pass observes.
var views = map[incident]change{
	"the next pass has no view of the nodes":              func(in *machine.Observation) { in.Node = machine.NodeView{} },
	"the next pass has no view of the classes":            func(in *machine.Observation) { in.Class = machine.ClassView{} },
	"the next pass finds no class":                        noClass,
	"the next pass finds a class without its secret":      noSecret,
	"the next pass has no view of the volume attachments": func(in *machine.Observation) { in.Attachments = machine.AttachmentsView{} },
	"the next pass has no view of the bootstrap tokens":   func(in *machine.Observation) { in.Tokens = machine.TokensView{} },
}

var incidents = append(slices.Sorted(maps.Keys(views)),
	crashBefore, crashAfter, fails, answerLost, halfDone, muteBefore, muteAfter, deleted, slow, late, staleRead)

// plan says what goes wrong at which point, counted from 0.
type plan func(point int) incident

// sim runs machines from creation to deletion as a controller does, on its own API server:
// versions that conflict, a status subresource, finalizers, and times without fractions.
type sim struct {
	rng    *rand.Rand
	clock  *clocktesting.FakeClock
	cloud  *drivertest.Cloud
	policy machine.Policy
	plan   plan
	point  int

	version  int
	machines map[string]*v1alpha1.Machine
	before   map[string]*v1alpha1.Machine // one version older
	nodes    map[string]*corev1.Node
	detachAt map[string]time.Time // when the volumes of pods that went are detached, by Node
	detached map[string]bool
	marked   map[string]*metav1.Time // deletion timestamps of attachments
	tokens   map[string]*corev1.Secret

	memory map[types.UID]*memory
	wake   map[string]time.Time
	joined map[string]bool
	omen   map[string]incident // what is wrong with the next pass of a machine
	busy   int                 // effects since time moved
	// nameless are machines that are deleted without a name for their Node, after the
	// provider failed to tell it several times, or without a class to ask it: it is
	// left behind.
	nameless map[string]bool
	// deleteAt, if set, is when all machines are deleted, which is done then.
	deleteAt time.Time
	// volumes says of how many volumes of a Node detach in the end; the others stay
	// as long as the VM.
	volumes volumes
	// needsToken says that the user data have a place for a bootstrap token.
	needsToken bool
	random     *rand.ChaCha8
	// stranger writes phases.
	stranger stranger
	// outage freezes the controller.
	outage outage
	// unread is when no Node can be read.
	unread unread
	// disturbed is the end of the last incident.
	disturbed time.Time
	// ahead is by how much the clock of the API servers is ahead of the controller's.
	ahead time.Duration
	// decided and called count decisions and driver calls.
	decided, called int
	trace           []string
	faults          []string
}

// volumes are what every Node has attached.
type volumes struct {
	detach, stay int
	// after is how long the attacher takes when the pods have gone.
	after time.Duration
}

// memory is what a controller keeps of a machine, and loses in a crash.
type memory struct {
	readNode bool      // a LookForNode of this pass has answered
	first    time.Time // when the machine was seen first
	vm       machine.VMView
	drain    machine.DrainView
	rounds   int
	empty    time.Time // when the last pod was seen to have gone
	gone     bool      // the provider has said so
}

var errCrash = errors.New("crash")

func newSim(seed uint64, o drivertest.CloudOptions, p machine.Policy, at plan) *sim {
	start := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	s := &sim{
		rng: rand.New(rand.NewPCG(seed, 7)), clock: clocktesting.NewFakeClock(start), policy: p, plan: at, random: even(seed),
		machines: map[string]*v1alpha1.Machine{}, before: map[string]*v1alpha1.Machine{}, memory: map[types.UID]*memory{},
		nodes: map[string]*corev1.Node{}, tokens: map[string]*corev1.Secret{}, marked: map[string]*metav1.Time{},
		detachAt: map[string]time.Time{}, wake: map[string]time.Time{}, omen: map[string]incident{},
		detached: map[string]bool{}, joined: map[string]bool{}, nameless: map[string]bool{},
	}
	o.Clock, o.Seed = s.clock, seed
	s.cloud = drivertest.NewCloud(o)
	return s
}

// now is the time by the clock of the API servers.
func (s *sim) now() time.Time { return s.clock.Now().Add(s.ahead) }

// watch has a controller look at a machine.
func (s *sim) watch(name string) { s.wake[name] = s.clock.Now() }

func (s *sim) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// check adds a fault if a promise is not kept.
func (s *sim) check(kept bool, format string, args ...any) {
	if !kept {
		s.fault(format, args...)
	}
}

func (s *sim) note(format string, args ...any) {
	s.trace = append(s.trace, s.clock.Now().Format("15:04:05.0 ")+fmt.Sprintf(format, args...))
}

// checkRelease asserts that nothing is left of a machine that is let go.
func (s *sim) checkRelease(m *v1alpha1.Machine) {
	left := s.cloud.Snapshot().Of(m.Name)
	for _, v := range left.VMs {
		s.check(!v.DeletedAt.IsZero(), "%s is let go while its VM %s exists", m.Name, v.ProviderID)
	}
	for _, r := range left.SideResources {
		s.fault("%s is let go while its %s %s is left", m.Name, r.Kind, r.ID)
	}
}

// run lets the world go on until it rests, and returns what was wrong.
func (s *sim) run() error {
	for range 5000 {
		s.kubelets()
		if len(s.faults) > 0 {
			return s.verdict()
		}
		if name := s.due(); name != "" {
			s.pass(name)
		} else if !s.passTime() {
			s.checkRest()
			return s.verdict()
		}
	}
	s.fault("no rest after 5000 rounds")
	return s.verdict()
}

func (s *sim) verdict() error {
	most, name := s.cloud.History().MaxVMsOfOneMachine()
	s.check(most <= 1, "%s had %d VMs at a time", name, most)
	if len(s.faults) == 0 {
		return nil
	}
	return fmt.Errorf("%s\n--- what happened:\n%s", strings.Join(s.faults, "\n"), strings.Join(s.trace, "\n"))
}

// due returns a machine that is to be looked at now.
func (s *sim) due() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.wake)), func(name string) bool { return s.wake[name].After(s.clock.Now()) })
	if len(names) == 0 {
		return ""
	}
	return pick(s.rng, names...)
}

// passTime moves the clock to the next moment at which something happens.
func (s *sim) passTime() bool {
	next := machinist.Earliest(s.cloud.NextChange(), machinist.Earliest(s.deleteAt, s.stranger.at, s.outage.requestAt))
	for _, at := range s.wake {
		next = machinist.Earliest(next, at)
	}
	for _, at := range s.detachAt { // by the clock of the API server
		next = machinist.Earliest(next, at.Add(-s.ahead))
	}
	if next.IsZero() {
		return false
	}
	if next.After(s.clock.Now()) {
		s.clock.SetTime(next)
		s.busy = 0
	}
	s.strangers()
	s.frozen()
	s.checkUnread()
	if !s.deleteAt.IsZero() && !s.clock.Now().Before(s.deleteAt) {
		s.deleteAt = time.Time{}
		for name := range s.machines {
			s.remove(name)
		}
	}
	return true
}

// kubelets has the Nodes of VMs that are ready join.
func (s *sim) kubelets() {
	for _, v := range s.cloud.Snapshot().VMs {
		if v.State == drivertest.VMRunning && v.Initialized && !s.joined[v.ProviderID] {
			s.joined[v.ProviderID] = true
			s.join(v.NodeName, v.ProviderID)
		}
	}
	s.detach()
	for name, m := range s.machines { // what a set does with a machine that failed
		if m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed {
			s.check(!m.CreationTimestamp.Add(s.policy.CreationTimeout).After(s.now()),
				"%s failed before its creation timeout: %s", name, m.Status.LastOperation.Description)
			s.remove(name)
		}
	}
}

// pass observes one machine, decides and acts until there is nothing to do.
func (s *sim) pass(name string) {
	delete(s.wake, name)
	omen := s.omen[name]
	delete(s.omen, name)
	m := s.machines[name].DeepCopy()
	if omen == staleRead && s.before[name] != nil {
		m = s.before[name].DeepCopy()
		s.wake[name] = s.clock.Now().Add(100 * time.Millisecond)
	}
	if m == nil {
		return
	}
	if omen != noIncident {
		s.wake[name] = s.clock.Now().Add(time.Second) // the view gets better
	}
	kept := s.memory[m.UID]
	if kept == nil {
		kept = &memory{first: s.clock.Now()}
		s.memory[m.UID] = kept
	}
	kept.readNode = kept.readNode && !s.unread.at(s.clock.Now())
	for m != nil && len(s.faults) == 0 {
		in := s.observe(m, kept, omen)
		d := machine.Decide(in, s.policy, s.clock.Now())
		s.checkDecision(name, d)
		if d.Action == nil {
			if at, ok := s.wake[name]; !d.NextCheck.IsZero() && (!ok || d.NextCheck.Before(at)) {
				s.wake[name] = d.NextCheck
			}
			return
		}
		var err error
		if m, err = s.step(m, kept, d.Action); err != nil {
			s.note("%s: %v", name, err)
			s.wake[name] = s.clock.Now().Add(time.Second)
			return
		}
	}
}

// checkDecision asserts what holds for every decision.
func (s *sim) checkDecision(name string, d machine.Decision) {
	s.decided++
	s.note("%s: %s", name, d)
	err := decisionLaws(d, s.clock.Now())
	s.check(err == nil, "%s: %v", name, err)
	if s.busy++; s.busy > 100*len(s.machines)+100 {
		s.fault("%s: 100 steps while no time passes", name)
		s.wake = map[string]time.Time{}
	}
}

// decisionLaws are what every decision promises.
func decisionLaws(d machine.Decision, now time.Time) error {
	settled := []machinist.Reason{"NodeReady", "Available", "Released", "Referenced", machine.ReasonNotObserved}
	err := cmp.Or(
		promise(d.Reason != "", "no reason"),
		promise(d.NextCheck.After(now) || d.NextCheck.IsZero() && d.Action == nil, "a next check in the past, or an effect without one"),
		promise(d.Action != nil || len(d.Holds) > 0 || slices.Contains(settled, d.Reason), "it does nothing and waits for nothing"))
	for _, h := range d.Holds {
		err = cmp.Or(err, promise(h.Subject != "" && h.Reason != "" && !strings.HasSuffix(h.Subject, "/"), "a hold names nothing"),
			promise(h.Until.IsZero() || !d.NextCheck.IsZero() && !d.NextCheck.After(h.Until), "it is asked again after its hold ends"))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d, err)
	}
	return nil
}

func (s *sim) observe(m *v1alpha1.Machine, kept *memory, omen incident) machine.Observation {
	others := func(t *corev1.Secret) bool { return facts.TokenOwner(t) != m.UID }
	in := machine.Observation{
		Machine: m, FirstSeen: kept.first, VM: kept.vm, Drain: kept.drain,
		Class: machine.ClassView{Looked: true, Class: class(), NeedsToken: s.needsToken},
		Node:  machine.NodeView{Looked: true, AsOf: s.clock.Now()},

		ProviderID: machine.ProviderIDView{Compared: true},
		Tokens:     machine.TokensView{Looked: true, Secrets: slices.DeleteFunc(slices.Collect(maps.Values(s.tokens)), others)},
		Freeze:     s.outage.freeze(s.clock.Now()),
	}
	if name := cmp.Or(kept.vm.NodeNameOf(m), s.nodeOf(m)); name != "" {
		in.Node.Node, in.Node.Name = s.node(name), name
		in.Attachments = machine.AttachmentsView{Looked: true, Attachments: s.attached(name, true)}
	}
	kept.readNode = kept.readNode && (omen != noIncident || s.unread.at(s.clock.Now()))
	if blinds := views[omen]; blinds != nil {
		node := in.Node
		if blinds(&in); kept.readNode {
			in.Node = node
		}
		asks := in.Class.Class != nil && in.Class.Problem == ""
		s.nameless[m.Name] = s.nameless[m.Name] || !asks && !m.DeletionTimestamp.IsZero() && s.nodeOf(m) == ""
	}
	if s.unread.at(s.clock.Now()) {
		in.Node = machine.NodeView{Unanswered: kept.readNode}
	}
	return in
}

// step carries out one effect, with what goes wrong at this point.
func (s *sim) step(m *v1alpha1.Machine, kept *memory, do machinist.Action) (*v1alpha1.Machine, error) {
	b := noIncident
	if s.plan != nil {
		b = s.plan(s.point)
	}
	s.point++
	if b != noIncident {
		s.note("%s: INCIDENT at point %d: %s", m.Name, s.point-1, b)
	}
	switch b {
	case crashBefore:
		return nil, s.crash()
	case deleted:
		s.remove(m.Name)
	case slow:
		s.clock.Step(31 * time.Second)
	}
	if b == staleRead || views[b] != nil {
		s.omen[m.Name] = b
	}
	m, err := s.act(m, kept, do, b)
	if b == late {
		s.clock.Step(31 * time.Second)
	}
	if b != noIncident {
		s.disturbed = s.clock.Now()
	}
	if b == crashAfter {
		return nil, s.crash()
	}
	return m, err
}

// crash loses all memory, and lists everything afresh.
func (s *sim) crash() error {
	s.memory, s.omen, s.before = map[types.UID]*memory{}, map[string]incident{}, map[string]*v1alpha1.Machine{}
	for name := range s.machines {
		s.wake[name] = s.clock.Now().Add(time.Second)
	}
	return errCrash
}

func (s *sim) act(m *v1alpha1.Machine, kept *memory, do machinist.Action, b incident) (*v1alpha1.Machine, error) {
	if a, calls := do.(machine.CallDriver); calls {
		s.call(m, kept, a, b)
		return m, nil
	}
	if b == fails || b == halfDone {
		return m, conflict(m.Name)
	}
	after, err := m, error(nil)
	switch a := do.(type) {
	case machinist.Update:
		if m, ok := a.Object.(*v1alpha1.Machine); ok {
			after, err = s.write(m, do)
		} else {
			s.writeNode(a.Object.GetName(), do)
		}
	case machinist.Delete:
		after = s.delete(m, a.Object)
	case machinist.Refresh: // the next observation has the Node
		kept.readNode = true
	case machine.DrainNode:
		kept.drain = kept.drain.AfterRound(a, s.round(kept, a), s.clock.Now())
	case machine.CreateToken:
		err = s.createToken(m, a.Expires)
	case machine.DeleteAttachments:
		s.deleteAttachments(m, a)
	default:
		s.fault("%T is decided", do)
	}
	if err == nil && b == answerLost {
		err = context.DeadlineExceeded
	}
	if s.machines[m.Name] == nil {
		after = nil
	}
	return after, err
}

// call makes a driver call.
func (s *sim) call(m *v1alpha1.Machine, kept *memory, do machine.CallDriver, b incident) {
	f := kept.vm.Failure
	s.check(f.Code == codes.OK || kept.vm.Asked != do.Operation || s.clock.Now().After(f.At), "%s is called again at once after %s", f.Operation, f.Message)
	if kind, ok := map[incident]drivertest.FaultKind{
		fails: drivertest.Refuse, answerLost: drivertest.LoseResponse, halfDone: drivertest.Partial,
	}[b]; ok {
		code := pick(s.rng, codes.Unavailable, codes.DeadlineExceeded, codes.Unknown, codes.Internal, codes.Aborted,
			codes.ResourceExhausted, codes.Canceled, codes.Unauthenticated, codes.Code(99))
		defer s.cloud.Inject(drivertest.Fault{Kind: kind, Code: code, Steps: s.rng.IntN(3), LastKnownState: pick(s.rng, "", "half-way")})()
	}
	switch do.Operation {
	case driver.OpCreateMachine:
		s.checkCreate(m)
		s.check(!s.needsToken || do.Token.Expires().After(s.clock.Now()), "the VM of %s is made without a token to join with", m.Name)
	case driver.OpInitializeMachine:
		s.check(s.machines[m.Name].Spec.ProviderID != "", "a VM is initialized whose identity is not written down")
	case driver.OpDeleteMachine:
		s.check(!m.DeletionTimestamp.IsZero(), "the VM of a machine is deleted that is not being deleted")
		s.checkDetached(m, kept)
	}
	s.called++
	answer, err := machine.Call(context.Background(), s.driver(b), do, m, class(), s.cloud.Secret("shoot", "small"))
	s.check(err == nil, "%s of %s cannot be called: %v", do, m.Name, err)
	kept.vm = kept.vm.After(answer, s.clock.Now(), s.rng.Float64())
	kept.gone = kept.gone || kept.vm.Asked == driver.OpDeleteMachine && kept.vm.Failure.Code == codes.OK
	f = kept.vm.Failure
	s.nameless[m.Name] = s.nameless[m.Name] || f.Operation == driver.OpGetMachineStatus && f.Attempts >= 3
	s.note("%s: %s answers %v", m.Name, answer.Operation, answer.Err)
}

// operationOf returns the operation that an effect calls, or "" if it is no driver call.
func operationOf(do machinist.Action) driver.Operation {
	a, _ := do.(machine.CallDriver)
	return a.Operation
}

// checkCreate asserts that the intent is durable, and the VM not known.
func (s *sim) checkCreate(m *v1alpha1.Machine) {
	have := s.machines[m.Name]
	op := have.Status.LastOperation
	intended := op.Type == v1alpha1.MachineOperationCreate && op.State == v1alpha1.MachineStateProcessing
	s.check(have.UID == m.UID, "a VM is made for %s, which is gone", m.Name)
	s.check(slices.Contains(have.Finalizers, v1alpha1.MCMFinalizerName), "a VM is made for %s without a finalizer", m.Name)
	s.check(have.Spec.ProviderID == "", "a VM is made for %s, which has one", m.Name)
	s.check(intended || have.Status.CurrentStatus.Phase == v1alpha1.MachineCrashLoopBackOff, "a VM is made for %s without a durable intent", m.Name)
}

// checkRest asserts that every machine is where it should be.
func (s *sim) checkRest() {
	s.kubelets()
	snapshot := s.cloud.Snapshot()
	vms := 0
	for name, m := range s.machines {
		own := snapshot.Of(name)
		vms += len(own.VMs)
		node := s.nodes[s.nodeOf(m)]
		s.check(m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning && m.DeletionTimestamp.IsZero(),
			"%s rests in phase %q: %s", name, m.Status.CurrentStatus.Phase, m.Status.LastOperation.Description)
		s.check(len(own.VMs) == 1 && own.VMs[0].ProviderID == m.Spec.ProviderID && own.VMs[0].Initialized && len(own.Leftovers()) == 0,
			"%s with provider ID %q rests with %s", name, m.Spec.ProviderID, own)
		s.check(node != nil && node.Labels[v1alpha1.MachineNameLabelKey] == name && slices.Contains(node.Finalizers, v1alpha1.NodeFinalizerName),
			"%s rests with node %v", name, node)
	}
	nodes := 0
	for name := range s.nodes {
		if name = strings.TrimSuffix(name, tail); s.machines[name] != nil || !s.nameless[name] {
			nodes++
		}
	}
	s.check(len(s.tokens) == 0, "%d tokens are left", len(s.tokens))
	s.check(len(snapshot.VMs) == vms && nodes == len(s.machines), "at rest there are %d machines, %d nodes and\n%s", len(s.machines), len(s.nodes), snapshot)
	s.check(len(s.machines) > 0 || snapshot.Empty(), "left over: %s", snapshot)
}

// forced reports whether a person asked for force.
func forced(m *v1alpha1.Machine) bool { return m.Labels[v1alpha1.LabelKeyForceDeletion] == "true" }

// round makes a round of draining: pods go in the third, and then their volumes have
// their time.
func (s *sim) round(kept *memory, a machine.DrainNode) machine.DrainView {
	now, wait := s.clock.Now(), a.Policy.Volumes
	kept.rounds++
	if kept.rounds > 2 && kept.empty.IsZero() {
		kept.empty = now
		if _, known := s.detachAt[a.NodeName]; !known && !s.detached[a.NodeName] {
			s.detachAt[a.NodeName] = s.now().Add(s.volumes.after)
		}
	}
	waited := wait.DetachTimeout > 0 && !now.Before(kept.empty.Add(wait.DetachTimeout))
	waits := wait.Wait && !waited && len(s.attached(a.NodeName, false)) > 0
	return machine.DrainView{Done: kept.rounds > 2 && !waits, NextCheck: now.Add(20 * time.Second)}
}

// checkDetached asserts that a VM goes only when the volumes of the pods that went
// have gone, or have had their time; and all of them, by force.
func (s *sim) checkDetached(m *v1alpha1.Machine, kept *memory) {
	node := s.nodeOf(m)
	waited := s.policy.DetachTimeout > 0 && !s.clock.Now().Before(kept.empty.Add(s.policy.DetachTimeout))
	for _, va := range s.attached(node, forced(m)) {
		ended := !va.DeletionTimestamp.IsZero() || waited || s.nodes[node] == nil || kept.gone || s.mayForce(m)
		s.check(ended, "the VM of %s is deleted while %s is attached", m.Name, va.Name)
	}
}

func class() *v1alpha1.MachineClass {
	return &v1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "small", Finalizers: []string{v1alpha1.MCMFinalizerName}},
		Provider:   "simulated",
	}
}

func newMachine(name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name, UID: machineUID("uid-" + name)},
		Spec: v1alpha1.MachineSpec{
			Class:            v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"},
			NodeTemplateSpec: v1alpha1.NodeTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": "a"}}},
		},
	}
}

func conflict(name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, name, fmt.Errorf("has changed"))
}

func (s *sim) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

func (s *sim) create(m *v1alpha1.Machine) {
	m.CreationTimestamp = metav1.NewTime(s.now()).Rfc3339Copy()
	s.put(m)
}

func (s *sim) put(m *v1alpha1.Machine) *v1alpha1.Machine {
	s.before[m.Name] = s.machines[m.Name]
	m.ResourceVersion = s.next()
	s.machines[m.Name] = m
	if !m.DeletionTimestamp.IsZero() && len(m.Finalizers) == 0 {
		delete(s.machines, m.Name)
	}
	s.watch(m.Name)
	return m.DeepCopy()
}

// write stores metadata and spec of a machine, or its status. It asserts that the
// provider ID stays, and that a machine is let go only without a rest.
func (s *sim) write(m *v1alpha1.Machine, do machinist.Action) (*v1alpha1.Machine, error) {
	const ours = v1alpha1.MCMFinalizerName
	have := s.machines[m.Name]
	switch {
	case have == nil || have.UID != m.UID:
		return nil, nil
	case have.ResourceVersion != m.ResourceVersion:
		return nil, conflict(m.Name)
	}
	in := machine.Observation{Machine: have}
	carriedOut(&in, do)
	m = in.Machine
	if errs := metav1validation.ValidateLabels(m.Labels, field.NewPath("metadata", "labels")); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	s.check(have.Spec.ProviderID == "" || have.Spec.ProviderID == m.Spec.ProviderID,
		"the provider ID of %s changes from %q to %q", m.Name, have.Spec.ProviderID, m.Spec.ProviderID)
	if slices.Contains(have.Finalizers, ours) && !slices.Contains(m.Finalizers, ours) {
		s.checkRelease(have)
	}
	if !have.DeletionTimestamp.IsZero() && len(m.Finalizers) > len(have.Finalizers) {
		return nil, errors.New("no new finalizers on an object that is being deleted")
	}
	return s.put(m), nil
}

// remove asks for the deletion of a machine.
func (s *sim) remove(name string) {
	have := s.machines[name]
	if have == nil || !have.DeletionTimestamp.IsZero() {
		return
	}
	have = have.DeepCopy()
	now := metav1.NewTime(s.now()).Rfc3339Copy()
	have.DeletionTimestamp = &now
	s.put(have)
}

func (s *sim) concerned(node string) {
	for _, m := range s.machines {
		if s.nodeOf(m) == node {
			s.watch(m.Name)
		}
	}
}

// nodeOf returns the name of the Node of a machine, which a label or else its provider
// ID stands for, or "" for none.
func (s *sim) nodeOf(m *v1alpha1.Machine) string {
	if label := m.Labels[v1alpha1.NodeLabelKey]; label != "" || m.Spec.ProviderID == "" {
		return label
	}
	for name, node := range s.nodes {
		if node.Spec.ProviderID == m.Spec.ProviderID {
			return name
		}
	}
	return ""
}

// join is what a kubelet does.
func (s *sim) join(name, uid string) {
	s.putNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: machineUID(uid), CreationTimestamp: metav1.NewTime(s.now()).Rfc3339Copy()},
		Spec:       corev1.NodeSpec{ProviderID: uid},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.now())},
		}},
	})
}

func (s *sim) node(name string) *corev1.Node { return s.nodes[name].DeepCopy() }

// writeNode carries out a write of a Node, if that is there.
func (s *sim) writeNode(name string, do machinist.Action) {
	in := machine.Observation{Node: machine.NodeView{Node: s.node(name)}}
	if in.Node.Node != nil && carriedOut(&in, do) {
		s.putNode(in.Node.Node)
	}
}

func (s *sim) putNode(node *corev1.Node) {
	node.ResourceVersion = s.next()
	s.nodes[node.Name] = node
	s.concerned(node.Name)
}

// delete deletes the machine m, its Node or its bootstrap token, and returns the machine.
func (s *sim) delete(m *v1alpha1.Machine, o machinist.Object) *v1alpha1.Machine {
	name := o.GetName()
	switch o := o.(type) {
	case *corev1.Secret:
		delete(s.tokens, name)
	case *corev1.Node:
		if have := s.nodes[name]; have != nil && have.UID == o.UID {
			delete(s.nodes, name)
			delete(s.detachAt, name)
			delete(s.detached, name)
			s.concerned(name)
		}
	default:
		s.remove(name)
		return s.machines[name].DeepCopy()
	}
	return m
}

// createToken makes a bootstrap token of a machine.
func (s *sim) createToken(m *v1alpha1.Machine, expires time.Time) error {
	secret, err := machine.NewBootstrapToken(m, expires, nil, s.random)
	if err == nil {
		secret.UID = machineUID(s.next())
		s.tokens[secret.Name] = secret
	}
	return err
}

// attached returns the attachments of a Node: all, or those whose pods are drained.
func (s *sim) attached(node string, all bool) []*storagev1.VolumeAttachment {
	var list []*storagev1.VolumeAttachment
	for i := range s.volumes.detach + s.volumes.stay {
		stays := i >= s.volumes.detach
		if s.nodes[node] == nil || stays && !all || !stays && s.detached[node] {
			continue
		}
		va := attachment(fmt.Sprint("csi-", node, "-", i))
		va.Spec.NodeName, va.DeletionTimestamp = node, s.marked[va.Name]
		list = append(list, va)
	}
	return list
}

// deleteAttachments marks them; as the Node does not answer, they stay.
func (s *sim) deleteAttachments(m *v1alpha1.Machine, a machine.DeleteAttachments) {
	s.check(forced(m) || s.mayForce(m), "attachments of %s are deleted without force", m.Name)
	for _, va := range a.Attachments {
		s.marked[va.Name] = &metav1.Time{Time: s.now()}
		s.concerned(va.Spec.NodeName)
	}
}

// detach detaches what is due.
func (s *sim) detach() {
	for node, at := range s.detachAt {
		if !s.now().Before(at) {
			delete(s.detachAt, node)
			s.detached[node] = true
			s.concerned(node)
		}
	}
}

var (
	seedFlag      = flag.Uint64("seed", 0, "run only this schedule of TestCrash_RandomSchedules")
	schedulesFlag = flag.Uint64("schedules", 1500, "run so many schedules of TestCrash_RandomSchedules")
)

// TestCrash_RandomSchedules runs a few machines through random faults at random
// points.
func TestCrash_RandomSchedules(t *testing.T) {
	t.Parallel()
	if *seedFlag != 0 {
		err := schedule(*seedFlag)
		require.NoError(t, err)
		return
	}
	const shards = 4
	for shard := range uint64(shards) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			for seed := shard + 1; seed <= *schedulesFlag; seed += shards {
				if err := schedule(seed); err != nil {
					t.Fatalf("schedule %d (again with -run TestCrash_RandomSchedules -seed=%d): %v", seed, seed, err)
				}
			}
		})
	}
}

// schedule runs one random schedule.
func schedule(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	o := drivertest.CloudOptions{
		Lag:                 time.Duration(rng.IntN(31)) * time.Second,
		BootTime:            time.Minute,
		ShutdownTime:        time.Duration(rng.IntN(2)*20) * time.Second,
		NeedsInitialization: rng.IntN(2) == 0,
	}
	p := machine.DefaultPolicy()
	if rng.IntN(4) == 0 {
		p = machine.Policy{}
	}
	// Faults come dense or sparse, and end.
	often, budget := []float64{0.05, 0.2, 0.5}[rng.IntN(3)], rng.IntN(15)
	if rng.IntN(8) == 0 {
		o.NodeName = longName
	}
	s := newSim(seed, o, p, func(int) incident {
		if budget <= 0 || rng.Float64() > often {
			return noIncident
		}
		budget--
		return pick(rng, incidents...)
	})
	if rng.IntN(2) == 0 {
		s.deleteAt = s.clock.Now().Add(time.Duration(rng.Int64N(int64(4 * time.Minute))))
	}
	force := rng.IntN(4) == 0
	s.needsToken = rng.IntN(2) == 0
	s.volumes = volumes{detach: rng.IntN(3), stay: rng.IntN(2), after: time.Duration(rng.Int64N(int64(3 * time.Minute)))}
	for i := range 1 + rng.IntN(3) {
		m := newMachine(fmt.Sprint("m-", i))
		if force {
			m.Labels = map[string]string{v1alpha1.LabelKeyForceDeletion: "true"}
		}
		s.create(m)
	}
	if rng.IntN(3) == 0 {
		s.stranger.at = s.clock.Now().Add(time.Duration(rng.Int64N(int64(5 * time.Minute))))
	}
	s.outage = anyOutage(seed, s.clock.Now())
	if s.outage.from.IsZero() {
		s.drawUnread(seed)
	}
	return s.run()
}

// tail makes the name of a Node too long for the value of a label.
var tail = strings.Repeat("n", 64)

func longName(machine string) string { return machine + tail }

// clouds are clouds with each kind of latency.
func clouds() map[string]drivertest.CloudOptions {
	return map[string]drivertest.CloudOptions{
		"simple":        {BootTime: time.Minute},
		"late":          {BootTime: time.Minute, Lag: 30 * time.Second, ShutdownTime: 20 * time.Second},
		"uninitialized": {BootTime: time.Minute, NeedsInitialization: true},
		"long names":    {BootTime: time.Minute, NodeName: longName},
		"all":           {BootTime: time.Minute, NeedsInitialization: true, Lag: 30 * time.Second, ShutdownTime: 20 * time.Second},
	}
}

// runMachine runs a machine to Running, and deletes it three minutes after its creation.
func runMachine(o drivertest.CloudOptions, at plan) (*sim, error) {
	s, _, err := lifeByClock(o, at, 0, 3*time.Minute, false)
	return s, err
}

// lifeByClock runs a machine to its end, which is asked for after a while, and returns
// how long it took. The clock of the API servers is ahead of the controller's.
func lifeByClock(o drivertest.CloudOptions, at plan, ahead, deleteAfter time.Duration, force bool) (*sim, time.Duration, error) {
	s := newSim(1, o, machine.DefaultPolicy(), at)
	s.ahead, s.needsToken = ahead, true
	s.volumes = volumes{detach: 1, stay: 1, after: 40 * time.Second}
	begin := s.clock.Now()
	s.deleteAt = begin.Add(deleteAfter)
	m := newMachine("m")
	if force {
		m.Labels = map[string]string{v1alpha1.LabelKeyForceDeletion: "true"}
	}
	s.create(m)
	err := s.run()
	return s, s.clock.Now().Sub(begin), err
}

// points runs f for each cloud, with the number of steps of a machine without faults.
func points(t *testing.T, f func(t *testing.T, o drivertest.CloudOptions, points int)) {
	t.Parallel()
	for name, o := range clouds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain, err := runMachine(o, nil)
			require.NoError(t, err)
			require.Greater(t, plain.point, 15, "a machine has that many steps")
			f(t, o, plain.point)
		})
	}
}

// TestCrash_EachStep runs one machine through every single fault at every
// step, and through every fault after a deletion at every
// point.
func TestCrash_EachStep(t *testing.T) {
	points(t, func(t *testing.T, o drivertest.CloudOptions, points int) {
		for i := range points {
			for _, b := range incidents {
				_, err := runMachine(o, once(i, b))
				require.NoError(t, err, "point %d: %s", i, b)
			}
		}
	})
}

// once is a plan with one incident.
func once(at int, b incident) plan {
	return func(point int) incident {
		if point == at {
			return b
		}
		return noIncident
	}
}

// TestCrash_EachStepAfterADeletion deletes the machine at every point of its
// steps and has a fault at each of those that follow. Of the faults at a pair of
// points it takes every fourth, so that all come at each point and at each distance.
func TestCrash_EachStepAfterADeletion(t *testing.T) {
	points(t, func(t *testing.T, o drivertest.CloudOptions, points int) {
		for i := range points {
			for j := i; j < i+10; j++ {
				for k := (i + j) / 2 % 4; k < len(incidents); k += 4 {
					fault := once(j, incidents[k])
					_, err := runMachine(o, func(point int) incident {
						if point == i {
							return deleted
						}
						return fault(point)
					})
					require.NoError(t, err, "deleted at point %d, %s at point %d", i, incidents[k], j)
				}
			}
		}
	})
}

// outage is a freeze, in which a user deletes machines by their Nodes. The zero value is none.
type outage struct {
	from, until time.Time
	// requestAt is when the user writes the Nodes. Zero means that it is done.
	requestAt time.Time
	// byAnnotation means that the user sets the annotation instead of deleting the Nodes.
	byAnnotation bool
	// requested are the machines of these Nodes that are not being deleted, with the time of the request.
	requested map[string]time.Time
}

// anyOutage returns the outage of a schedule, which is random.
func anyOutage(seed uint64, begin time.Time) outage {
	rng := rand.New(rand.NewPCG(seed, 34))
	if rng.IntN(3) > 0 {
		return outage{}
	}
	within := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	o := outage{from: begin.Add(within(6 * time.Minute)), byAnnotation: rng.IntN(2) == 0, requested: map[string]time.Time{}}
	o.requestAt = o.from.Add(within(5 * time.Minute))
	o.until = o.requestAt.Add(within(20 * time.Minute))
	return o
}

// freeze returns what the controller knows of the outage.
func (o outage) freeze(now time.Time) machine.Freeze {
	switch {
	case o.from.IsZero() || now.Before(o.from):
		return machine.Freeze{}
	case now.Before(o.until):
		return machine.Freeze{Frozen: true, Since: o.from, Message: "the target API server does not answer"}
	default:
		return machine.Freeze{ClocksFrom: o.until}
	}
}

// frozen lets the user write the Nodes at its time, and checks that the machines are deleted during the
// freeze: within two minutes after the request and the last incident.
func (s *sim) frozen() {
	now, o := s.clock.Now(), &s.outage
	if !o.requestAt.IsZero() && !now.Before(o.requestAt) {
		o.requestAt = time.Time{}
		s.requestDeletions()
	}
	for name, at := range o.requested {
		m := s.machines[name]
		switch {
		case m == nil, !m.DeletionTimestamp.IsZero(), !now.Before(o.until):
			delete(o.requested, name)
		case now.After(latest(at, s.disturbed).Add(2 * time.Minute)):
			s.fault("%s is not deleted in a freeze although its node requests it since %s", name, at)
		}
	}
}

// requestDeletions deletes the machines by their Nodes.
func (s *sim) requestDeletions() {
	for name, m := range s.machines {
		node := s.node(s.nodeOf(m))
		if node == nil || !m.DeletionTimestamp.IsZero() || !slices.Contains(m.Finalizers, v1alpha1.MCMFinalizerName) {
			continue
		}
		if !s.outage.byAnnotation && !slices.Contains(node.Finalizers, v1alpha1.NodeFinalizerName) {
			continue // nothing keeps such a Node
		}
		if s.outage.byAnnotation {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, v1alpha1.TriggerDeletionByMCM, "true")
		} else if node.DeletionTimestamp.IsZero() {
			node.DeletionTimestamp = &metav1.Time{Time: s.now()}
		}
		s.note("a user deletes %s by its node, with the annotation: %t", name, s.outage.byAnnotation)
		s.outage.requested[name] = s.clock.Now()
		s.putNode(node)
	}
}

// latest returns the latest of some times.
func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

const (
	muteBefore incident = "the driver does nothing and returns neither response nor error"
	muteAfter  incident = "the driver returns neither response nor error"
)

// answers is a driver whose calls return no response and the error of call. again makes the call with
// the other driver.
type answers struct {
	driver.Driver
	call func(op driver.Operation, m *v1alpha1.Machine, c *v1alpha1.MachineClass, s *corev1.Secret, again func()) error
}

func (a answers) GetMachineStatus(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return nil, a.call(driver.OpGetMachineStatus, r.Machine, r.MachineClass, r.Secret, func() { _, _ = a.Driver.GetMachineStatus(ctx, r) })
}

func (a answers) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return nil, a.call(driver.OpCreateMachine, r.Machine, r.MachineClass, r.Secret, func() { _, _ = a.Driver.CreateMachine(ctx, r) })
}

func (a answers) InitializeMachine(ctx context.Context, r *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return nil, a.call(driver.OpInitializeMachine, r.Machine, r.MachineClass, r.Secret, func() { _, _ = a.Driver.InitializeMachine(ctx, r) })
}

func (a answers) DeleteMachine(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return nil, a.call(driver.OpDeleteMachine, r.Machine, r.MachineClass, r.Secret, func() { _, _ = a.Driver.DeleteMachine(ctx, r) })
}

// mute returns a driver that returns neither a response nor an error, after calls of another driver if
// that is not nil.
func mute(after driver.Driver) driver.Driver {
	return answers{after, func(_ driver.Operation, _ *v1alpha1.Machine, _ *v1alpha1.MachineClass, _ *corev1.Secret, again func()) error {
		if after != nil {
			again()
		}
		return nil
	}}
}

// driver returns the driver of a call with an incident.
func (s *sim) driver(b incident) driver.Driver {
	switch b {
	case muteBefore:
		return mute(nil)
	case muteAfter:
		return mute(s.cloud)
	default:
		return s.cloud
	}
}

// A stranger writes the status of machines: the owner of a restored backup, or a user. It writes
// phases that contradict what exists.
type stranger struct {
	// at is when it writes next. Zero means that it does not.
	at time.Time
	// writes counts what it has written.
	writes int
}

// strangers has the stranger write the phase of a machine at its time. It does not write Failed, which
// its owner acts on, nor an update of a machine without a Node, which fails after its timeout. A machine
// without a recorded VM gets Terminating.
func (s *sim) strangers() {
	if s.stranger.at.IsZero() || s.clock.Now().Before(s.stranger.at) {
		return
	}
	s.stranger.at = time.Time{}
	names := slices.Sorted(maps.Keys(s.machines))
	if len(names) == 0 {
		return
	}
	name, phase := pick(s.rng, names...), pick(s.rng, allPhases...)
	m := s.machines[name].DeepCopy()
	inPlace := strings.HasPrefix(string(phase), "InPlace")
	if phase == v1alpha1.MachineFailed || m.Spec.ProviderID == "" || inPlace && s.nodes[s.nodeOf(m)] == nil {
		phase = v1alpha1.MachineTerminating
	}
	m.Status.CurrentStatus.Phase, m.Status.CurrentStatus.LastUpdateTime = phase, metav1.NewTime(s.now())
	s.note("a stranger writes phase %q of %s, which was %q", phase, name, s.machines[name].Status.CurrentStatus.Phase)
	s.stranger.writes++
	s.put(m)
}

// unread is a time in which no Node can be read, not even live. The zero value is none.
type unread struct{ from, until time.Time }

// drawUnread draws the time in which no Node can be read. It begins about when machines are deleted, and
// is longer than the drain timeout, which is shortened for the number of rounds.
func (s *sim) drawUnread(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 35))
	if rng.IntN(3) > 0 {
		return
	}
	s.policy.DrainTimeout = min(s.policy.DrainTimeout, 20*time.Minute)
	from := s.clock.Now().Add(time.Duration(rng.Int64N(int64(6 * time.Minute))))
	s.unread = unread{from, from.Add(time.Duration(rng.Int64N(int64(time.Hour))))}
}

func (u unread) at(now time.Time) bool {
	return !u.from.IsZero() && !now.Before(u.from) && now.Before(u.until)
}

// forceDue returns when a deletion may use force in a schedule with unread Nodes. Zero means never.
func (s *sim) forceDue(m *v1alpha1.Machine) time.Time {
	switch {
	case s.unread.from.IsZero() || m.DeletionTimestamp.IsZero():
		return time.Time{}
	case forced(m) && s.unread.at(s.clock.Now()):
		return m.DeletionTimestamp.Time
	case s.policy.DrainTimeout > 0:
		return m.DeletionTimestamp.Add(s.policy.DrainTimeout)
	default:
		return time.Time{}
	}
}

// mayForce reports whether the deletion of a machine may use force because of unread Nodes.
func (s *sim) mayForce(m *v1alpha1.Machine) bool {
	due := s.forceDue(m)
	return !due.IsZero() && !s.clock.Now().Before(due)
}

// checkUnread checks that a deletion ends a few minutes after the drain timeout, or after a user forced
// it, although the Node cannot be read. The Node is then left.
func (s *sim) checkUnread() {
	now := s.clock.Now()
	if !s.unread.at(now) {
		return
	}
	for name, m := range s.machines {
		if !s.mayForce(m) {
			continue
		}
		s.nameless[name] = true
		if kept := s.memory[m.UID]; kept != nil && kept.vm.Failure.Code != codes.OK {
			continue // it waits for the provider
		}
		due := latest(s.forceDue(m), s.unread.from, s.disturbed).Add(6 * time.Minute)
		s.check(!now.After(due), "%s is not deleted by %s, while its node cannot be read: %s", name, due, m.Status.LastOperation.Description)
	}
}

// clocks are the differences of the clock of the API servers to that of the controller.
var clocks = []time.Duration{3 * time.Second, 30 * time.Minute, 24 * time.Hour, -3 * time.Second, -30 * time.Minute}

func TestDecide_ClockWrong_NoMoreCallsOrDecisions(t *testing.T) {
	t.Parallel()
	for name, o := range clouds() {
		for _, deleteAfter := range []time.Duration{0, 100 * time.Millisecond, 10 * time.Second, 40 * time.Second, 3 * time.Minute} {
			for i, ahead := range slices.Repeat(clocks, 2) {
				force := i >= len(clocks)
				run := func(ahead time.Duration) (*sim, time.Duration, error) {
					return lifeByClock(o, nil, ahead, deleteAfter, force)
				}
				noMoreThanRight(t, fmt.Sprintf("%s/deleted after %s/force %t", name, deleteAfter, force), ahead, run)
			}
		}
	}
}

// TestDecide_ClockBehindDuringDeletion_NoMoreCalls deletes the machine in the middle of a pass. The
// clock of the controller is behind, so that the deletion timestamp is later than every observation
// of the pass.
func TestDecide_ClockBehindDuringDeletion_NoMoreCalls(t *testing.T) {
	t.Parallel()
	for name, o := range clouds() {
		s, _, err := lifeByClock(o, nil, 0, 3*time.Minute, false)
		require.NoError(t, err)
		for i := range s.point {
			for _, ahead := range clocks {
				noMoreThanRight(t, fmt.Sprintf("%s/deleted at step %d", name, i), ahead, func(ahead time.Duration) (*sim, time.Duration, error) {
					return lifeByClock(o, once(i, deleted), ahead, time.Hour, false)
				})
			}
		}
	}
}

// noMoreThanRight runs a machine with a right clock and with a wrong one, and compares calls,
// decisions and duration.
func noMoreThanRight(t *testing.T, name string, ahead time.Duration, run func(ahead time.Duration) (*sim, time.Duration, error)) {
	t.Helper()
	t.Run(fmt.Sprintf("%s/API server %s ahead", name, ahead), func(t *testing.T) {
		t.Parallel()
		right, took, err := run(0)
		require.NoError(t, err)
		s, lasted, err := run(ahead)
		require.NoError(t, err)
		require.Empty(t, s.machines)
		require.LessOrEqual(t, s.called, right.called+2, "driver calls")
		require.LessOrEqual(t, s.decided, right.decided+10, "decisions")
		require.LessOrEqual(t, lasted, took+time.Minute)
	})
}

// quickWorld returns a world in which each effect takes a millisecond, and drains never end.
func quickWorld(in machine.Observation, p machine.Policy) *world {
	return &world{in: in, policy: p, now: now, fast: true, tick: time.Millisecond, rounds: 1 << 30}
}

func TestDecide_AnyTimes_Settles(t *testing.T) {
	t.Parallel()
	acted := 0
	for seed := range uint64(6000) {
		r := rand.New(rand.NewPCG(seed, 23))
		in, p := anyLife(r), anyPolicy(r)
		in.FirstSeen = pick(r, time.Time{}, now, moment(r))
		w := quickWorld(in, p)
		w.lookErr = pick[error](r, nil, status.Error(codes.NotFound, "none"), status.Error(codes.Internal, "broken"))
		effects, err := w.settle()
		require.NoError(t, err, "seed %d", seed)
		d := w.last
		require.True(t, w.released || d.NextCheck.IsZero() || d.NextCheck.After(w.now.Add(-time.Millisecond)), "seed %d: %s", seed, d)
		acted += effects
	}
	require.Greater(t, acted, 6000)
}

// TestDecide_AnyStatus_RunsOrHasReason has a machine with an existing VM, a healthy Node, and a
// status that was edited by hand.
func TestDecide_AnyStatus_RunsOrHasReason(t *testing.T) {
	t.Parallel()
	begins := append([]v1alpha1.MachinePhase{"Bogus", "running", "Running "}, allPhases...)
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 29))
		begin := pick(r, begins...)
		readyAgain := false
		in := living(begin, healthy)
		in.Machine.CreationTimestamp, in.FirstSeen = metav1.NewTime(now.Add(-time.Hour)), now
		in.Machine.Status = anything(r).Machine.Status
		in.Machine.Status.CurrentStatus.Phase = begin
		if entered := in.Machine.Status.CurrentStatus.LastUpdateTime; begin == v1alpha1.MachineFailed && !entered.IsZero() {
			readyAgain = entered.Time.Before(now.Add(-time.Hour)) // when the Node became Ready
		}
		w, d := quickWorld(in, machine.DefaultPolicy()), machine.Decision{}
		for range 30 {
			_, err := w.settle()
			require.NoError(t, err, "seed %d", seed)
			d = w.last
			if d.NextCheck.IsZero() {
				break
			}
			require.True(t, d.NextCheck.After(w.now.Add(-time.Millisecond)), "seed %d: %s", seed, d)
			require.True(t, d.NextCheck.Before(now.AddDate(0, 0, 1)), "seed %d: %s", seed, d)
			w.now = d.NextCheck
		}
		require.Zero(t, d.NextCheck, "seed %d: %s", seed, d)
		switch end := w.in.Machine.Status.CurrentStatus.Phase; {
		case begin == v1alpha1.MachineFailed && !readyAgain: // the owner replaces the machine
			require.Equal(t, v1alpha1.MachineFailed, end, "seed %d", seed)
			require.EqualValues(t, "Failed", d.Holds[0].Reason, "seed %d", seed)
		default:
			require.Equal(t, v1alpha1.MachineRunning, end, "seed %d: from %q: %s", seed, begin, d)
		}
	}
}

// TestCreationTimeout_SeveralClocks_CountsFromBegin has a machine whose Node does not join. The
// begin of its creation is recorded by several clocks.
func TestCreationTimeout_SeveralClocks_CountsFromBegin(t *testing.T) {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tc := range map[string]struct{ created, firstSeen, recorded, begin time.Time }{
		"not observed before":                {ago(5 * time.Minute), time.Time{}, time.Time{}, ago(5 * time.Minute)},
		"observed at once":                   {ago(5 * time.Minute), ago(4 * time.Minute), time.Time{}, ago(4 * time.Minute)},
		"observed after a restart":           {ago(5 * time.Minute), ago(time.Minute), ago(4 * time.Minute), ago(4 * time.Minute)},
		"clock of the API server behind":     {ago(time.Hour), ago(2 * time.Minute), ago(time.Minute), ago(2 * time.Minute)},
		"clock of the API server ahead":      {now.Add(time.Hour), ago(2 * time.Minute), ago(time.Minute), ago(2 * time.Minute)},
		"record older than the machine":      {ago(5 * time.Minute), ago(4 * time.Minute), ago(24 * time.Hour), ago(5 * time.Minute)},
		"record of a clock that is ahead":    {ago(5 * time.Minute), ago(4 * time.Minute), now.Add(time.Hour), ago(4 * time.Minute)},
		"observed by a clock that was ahead": {ago(5 * time.Minute), now.Add(2 * time.Hour), time.Time{}, ago(5 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			in := after(withID, seen(machine.Present), phase(v1alpha1.MachinePending), spec(func(m *v1alpha1.Machine) {
				m.CreationTimestamp = metav1.NewTime(tc.created)
				m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(tc.recorded)
			}))
			in.FirstSeen = tc.firstSeen
			d := machine.Decide(in, machine.DefaultPolicy(), now)
			require.NotEmpty(t, d.Holds)
			require.Equal(t, tc.begin.Add(machine.DefaultPolicy().CreationTimeout), d.Holds[0].Until, "%s", d)
		})
	}
}
