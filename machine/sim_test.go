// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func machineUID(s string) types.UID { return types.UID(s) }

// blow is what goes wrong at an arrow between two steps.
type blow string

const (
	noBlow        blow = ""
	crashBefore   blow = "crash before the step"
	crashAfter    blow = "crash after the step"
	fails         blow = "the step fails without effect"
	answerLost    blow = "the step has its effect and fails"
	halfDone      blow = "the step is half done and fails"
	deleted       blow = "the machine is deleted before the step"
	slow          blow = "half a minute passes before the step"
	late          blow = "half a minute passes before the answer"
	staleRead     blow = "the next pass reads an old version of the machine"
	blindToNode   blow = "the next pass has no view of the nodes"
	blindToClass  blow = "the next pass has no view of the classes"
	classMissing  blow = "the next pass finds no class"
	classUnusable blow = "the next pass finds a class without its secret"
	blindToVolume blow = "the next pass has no view of the volume attachments"
	blindToToken  blow = "the next pass has no view of the bootstrap tokens"
)

var blows = []blow{
	crashBefore, crashAfter, fails, answerLost, halfDone, deleted, slow, late,
	staleRead, blindToNode, blindToClass, classMissing, classUnusable, blindToVolume, blindToToken,
}

// plan says what goes wrong at which arrow, counted from 0.
type plan func(arrow int) blow

// sim runs the lives of machines as a controller does.
type sim struct {
	*store
	rng    *rand.Rand
	clock  *clocktesting.FakeClock
	cloud  *drivertest.Cloud
	policy machine.Policy
	plan   plan
	arrow  int

	memory map[types.UID]*memory
	wake   map[string]time.Time
	joined map[string]bool
	omen   map[string]blow // what is wrong with the next pass of a machine
	busy   int             // effects since time moved
	// nameless are machines that are deleted without a name for their Node, after
	// the provider failed to tell it several times: it is left behind.
	nameless map[string]bool
	// deleteAt, if set, is when all machines are deleted, which is done then.
	deleteAt time.Time
	// volumes says of how many volumes of a Node detach in the end; the others stay
	// as long as the VM.
	volumes volumes
	// needsToken says that the user data have a place for a bootstrap token.
	needsToken bool
	random     *rand.ChaCha8
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
	first  time.Time // when the machine was seen first
	vm     machine.VMView
	drain  machine.DrainView
	rounds int
	empty  time.Time // when the last pod was seen to have gone
	gone   bool      // the provider has said so
}

var errCrash = errors.New("crash")

func newSim(seed uint64, o drivertest.CloudOptions, p machine.Policy, at plan) *sim {
	start := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	s := &sim{
		rng: rand.New(rand.NewPCG(seed, 7)), clock: clocktesting.NewFakeClock(start), policy: p, plan: at,
		memory: map[types.UID]*memory{}, wake: map[string]time.Time{}, joined: map[string]bool{}, omen: map[string]blow{},
		nameless: map[string]bool{}, random: rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}),
	}
	o.Clock, o.Seed = s.clock, seed
	s.cloud = drivertest.NewCloud(o)
	s.store = newStore(func() time.Time { return s.clock.Now().Add(s.ahead) })
	s.watch = func(name string) { s.wake[name] = s.clock.Now() }
	s.broken = s.fault
	s.released = s.checkRelease
	return s
}

func (s *sim) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

func (s *sim) note(format string, args ...any) {
	s.trace = append(s.trace, s.clock.Now().Format("15:04:05.0 ")+fmt.Sprintf(format, args...))
}

// checkRelease asserts that nothing is left of a machine that is let go.
func (s *sim) checkRelease(m *v1alpha1.Machine) {
	left := s.cloud.Snapshot().Of(m.Name)
	for _, v := range left.VMs {
		if v.DeletedAt.IsZero() {
			s.fault("%s is let go while its VM %s lives", m.Name, v.ProviderID)
		}
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
			break
		}
		if name := s.due(); name != "" {
			s.pass(name)
			continue
		}
		if !s.passTime() {
			s.checkRest()
			return s.verdict()
		}
	}
	if len(s.faults) == 0 {
		s.fault("no rest after 5000 rounds")
	}
	return s.verdict()
}

func (s *sim) verdict() error {
	if most, name := s.cloud.History().MaxVMsOfOneMachine(); most > 1 {
		s.fault("%s had %d VMs at a time", name, most)
	}
	if len(s.faults) == 0 {
		return nil
	}
	return fmt.Errorf("%s\n--- what happened:\n%s", strings.Join(s.faults, "\n"), strings.Join(s.trace, "\n"))
}

// due returns a machine that is to be looked at now.
func (s *sim) due() string {
	var names []string
	for name, at := range s.wake {
		if !at.After(s.clock.Now()) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return ""
	}
	return names[s.rng.IntN(len(names))]
}

// passTime moves the clock to the next moment at which something happens.
func (s *sim) passTime() bool {
	next := s.cloud.NextChange()
	for _, at := range s.wake {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if at := s.nextDetach(); !at.IsZero() { // by the clock of the API server
		if at = at.Add(-s.ahead); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if !s.deleteAt.IsZero() && (next.IsZero() || s.deleteAt.Before(next)) {
		next = s.deleteAt
	}
	if next.IsZero() {
		return false
	}
	if next.After(s.clock.Now()) {
		s.clock.SetTime(next)
		s.busy = 0
	}
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
			s.attach(v.NodeName, s.volumes)
		}
	}
	s.detach()
	for name, m := range s.machines { // what a set does with a machine that failed
		if m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed {
			if m.CreationTimestamp.Add(s.policy.CreationTimeout).After(s.now()) {
				s.fault("%s failed before its creation timeout: %s", name, m.Status.LastOperation.Description)
			}
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
	if omen != noBlow {
		s.wake[name] = s.clock.Now().Add(time.Second) // the view gets better
	}
	kept := s.memory[m.UID]
	if kept == nil {
		kept = &memory{first: s.clock.Now()}
		s.memory[m.UID] = kept
	}
	for m != nil && len(s.faults) == 0 {
		in := s.observe(m, kept, omen)
		d := machine.Decide(in, s.policy, s.clock.Now())
		s.checkDecision(name, d)
		if d.Do == nil {
			if at, ok := s.wake[name]; !d.NextCheck.IsZero() && (!ok || d.NextCheck.Before(at)) {
				s.wake[name] = d.NextCheck
			}
			return
		}
		var err error
		if m, err = s.step(m, kept, d.Do); err != nil {
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
	if err := decisionLaws(d, s.clock.Now()); err != nil {
		s.fault("%s: %v", name, err)
	}
	if s.busy++; s.busy > 100*len(s.machines)+100 {
		s.fault("%s: 100 steps while no time passes", name)
		s.wake = map[string]time.Time{}
	}
}

// decisionLaws are what every decision promises.
func decisionLaws(d machine.Decision, now time.Time) error {
	settled := map[machinist.Reason]bool{
		machine.ReasonNodeReady: true, machine.ReasonAvailable: true, machine.ReasonReleased: true,
		machine.ReasonUnreferenced: true, machine.ReasonReferenced: true, machine.ReasonNotObserved: true,
	}
	switch {
	case d.Reason == "":
		return fmt.Errorf("%s has no reason", d)
	case d.Do != nil && !d.NextCheck.After(now):
		return fmt.Errorf("%s has an effect and no next check", d)
	case !d.NextCheck.IsZero() && !d.NextCheck.After(now):
		return fmt.Errorf("%s is to be asked again in the past", d)
	case d.Do == nil && len(d.Holds) == 0 && !settled[d.Reason]:
		return fmt.Errorf("%s does nothing and waits for nothing", d)
	}
	for _, h := range d.Holds {
		if h.Subject == "" || h.Reason == "" || strings.HasSuffix(h.Subject, "/") {
			return fmt.Errorf("the hold %q of %s names nothing", h, d)
		}
		if !h.Until.IsZero() && (d.NextCheck.IsZero() || d.NextCheck.After(h.Until)) {
			return fmt.Errorf("%s is asked again after its hold ends", d)
		}
	}
	return nil
}

func (s *sim) observe(m *v1alpha1.Machine, kept *memory, omen blow) machine.Observation {
	in := machine.Observation{
		Machine: m, FirstSeen: kept.first, VM: kept.vm, Drain: kept.drain,
		Class: machine.ClassView{Looked: true, Class: class(), NeedsToken: s.needsToken},
		Node:  machine.NodeView{Looked: true, AsOf: s.clock.Now()},

		ProviderID: machine.ProviderIDView{Compared: true},
		Tokens:     machine.TokensView{Looked: true, Secrets: s.tokensOf(m.UID)},
	}
	if name := cmp.Or(machine.NodeNameOf(m, kept.vm), s.nodeOf(m)); name != "" {
		in.Node.Node, in.Node.Name = s.node(name), name
		in.Attachments = machine.AttachmentsView{Looked: true, Attachments: s.attached(name)}
	}
	switch omen {
	case blindToNode:
		in.Node = machine.NodeView{}
	case blindToToken:
		in.Tokens = machine.TokensView{}
	case blindToVolume:
		in.Attachments = machine.AttachmentsView{}
	case blindToClass:
		in.Class = machine.ClassView{}
	case classMissing:
		in.Class.Class = nil
	case classUnusable:
		in.Class.Problem = "secret shoot/small does not exist"
	}
	return in
}

// step carries out one effect, with what goes wrong at this arrow.
func (s *sim) step(m *v1alpha1.Machine, kept *memory, do machine.Action) (*v1alpha1.Machine, error) {
	b := noBlow
	if s.plan != nil {
		b = s.plan(s.arrow)
	}
	s.arrow++
	if b != noBlow {
		s.note("%s: BLOW at arrow %d: %s", m.Name, s.arrow-1, b)
	}
	switch b {
	case crashBefore:
		return nil, s.crash()
	case deleted:
		s.remove(m.Name)
	case slow:
		s.clock.Step(31 * time.Second)
	case staleRead, blindToNode, blindToClass, classMissing, classUnusable, blindToVolume, blindToToken:
		s.omen[m.Name] = b
	}
	m, err := s.act(m, kept, do, b)
	if b == late {
		s.clock.Step(31 * time.Second)
	}
	if b == crashAfter {
		return nil, s.crash()
	}
	return m, err
}

// crash loses all memory, and lists everything afresh.
func (s *sim) crash() error {
	s.memory, s.omen = map[types.UID]*memory{}, map[string]blow{}
	for name := range s.machines {
		s.wake[name] = s.clock.Now().Add(time.Second)
	}
	return errCrash
}

func (s *sim) act(m *v1alpha1.Machine, kept *memory, do machine.Action, b blow) (*v1alpha1.Machine, error) {
	failsNow, err := s.callCloud(m, kept, do, b)
	if failsNow { // it was a call
		return m, err
	}
	if b == fails || b == halfDone {
		return m, conflict(m.Name)
	}
	after, err := m, error(nil)
	switch a := do.(type) {
	case machine.UpdateMachine:
		after, err = s.update(a.Machine)
	case machine.UpdateStatus:
		after, err = s.updateStatus(a.Machine)
	case machine.DeleteMachine:
		s.remove(a.Name)
		after = s.machines[a.Name].DeepCopy()
	case machine.UpdateNode:
		err = s.edit(a.Node.Name, a.Node.ResourceVersion, func(n *corev1.Node) {
			n.ObjectMeta, n.Spec = *a.Node.ObjectMeta.DeepCopy(), *a.Node.Spec.DeepCopy()
		})
	case machine.UpdateNodeCapacity:
		err = s.edit(a.Node.Name, a.Node.ResourceVersion, func(n *corev1.Node) {
			n.ObjectMeta, n.Status = *a.Node.ObjectMeta.DeepCopy(), *a.Node.Status.DeepCopy()
		})
	case machine.SetNodeCondition:
		err = s.edit(a.NodeName, "", func(n *corev1.Node) { n.Status.Conditions = append(n.Status.Conditions, a.Condition) })
	case machine.DrainNode:
		kept.drain = kept.drain.After(a.Mode, s.round(kept, a), s.clock.Now())
	case machine.CreateToken:
		err = s.createToken(m, a.Expires, s.random)
	case machine.DeleteToken:
		delete(s.tokens, a.Name)
	case machine.DeleteAttachments:
		if !forced(m) {
			s.fault("attachments of %s are deleted without force", m.Name)
		}
		err = s.deleteAttachments(a)
	case machine.DeleteNode:
		err = s.deleteNode(a)
	default:
		s.fault("%T is decided", do)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err == nil && b == answerLost {
		err = context.DeadlineExceeded
	}
	if after != nil && s.machines[after.Name] == nil {
		after = nil
	}
	return after, err
}

// callCloud makes a driver call, if that is the effect.
func (s *sim) callCloud(m *v1alpha1.Machine, kept *memory, do machine.Action, b blow) (bool, error) {
	switch do.(type) {
	case machine.LookForVM, machine.CreateVM, machine.InitializeVM, machine.DeleteVM:
	default:
		return false, nil
	}
	if f := kept.vm.Failure; f.Code != codes.OK && kept.vm.Asked == operationOf(do) && !s.clock.Now().After(f.At) {
		s.fault("%s is called again at once after %s", f.Operation, f.Message)
	}
	if kind, ok := map[blow]drivertest.FaultKind{
		fails: drivertest.Refuse, answerLost: drivertest.LoseResponse, halfDone: drivertest.Half,
	}[b]; ok {
		all := []codes.Code{
			codes.Unavailable, codes.DeadlineExceeded, codes.Unknown, codes.Internal, codes.Aborted,
			codes.ResourceExhausted, codes.Canceled, codes.Unauthenticated, codes.Code(99),
		}
		state := []string{"", "half-way"}[s.rng.IntN(2)]
		defer s.cloud.Inject(drivertest.Fault{Kind: kind, Code: all[s.rng.IntN(len(all))], Steps: s.rng.IntN(3), LastKnownState: state})()
	}
	s.called++
	ctx, c, secret := context.Background(), class(), s.cloud.Secret("shoot", "small")
	var answer machine.Answer
	switch a := do.(type) {
	case machine.LookForVM:
		answer = machine.FromStatus(s.cloud.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: m, MachineClass: c, Secret: secret}))
	case machine.CreateVM:
		if s.checkCreate(m); s.needsToken && !a.Token.Expires().After(s.clock.Now()) {
			s.fault("the VM of %s is made without a token to join with", m.Name)
		}
		answer = machine.FromCreate(s.cloud.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, MachineClass: c, Secret: secret}))
	case machine.InitializeVM:
		if s.machines[m.Name].Spec.ProviderID == "" {
			s.fault("a VM is initialised whose identity is not written down")
		}
		if a.LastKnownState != "" {
			m = m.DeepCopy()
			m.Status.LastKnownState = a.LastKnownState
		}
		answer = machine.FromInitialize(s.cloud.InitializeMachine(ctx, &driver.InitializeMachineRequest{Machine: m, MachineClass: c, Secret: secret}))
	case machine.DeleteVM:
		if m.DeletionTimestamp.IsZero() {
			s.fault("the VM of a machine is deleted that is not being deleted")
		}
		s.checkDetached(m, kept)
		answer = machine.FromDelete(s.cloud.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, MachineClass: c, Secret: secret}))
	}
	kept.vm = kept.vm.After(answer, s.clock.Now(), s.rng.Float64())
	kept.gone = kept.gone || kept.vm.Asked == driver.OpDeleteMachine && kept.vm.Failure.Code == codes.OK
	if f := kept.vm.Failure; f.Operation == driver.OpGetMachineStatus && f.Attempts >= 3 {
		s.nameless[m.Name] = true
	}
	s.note("%s: %s answers %v", m.Name, answer.Operation, answer.Err)
	return true, nil
}

// operationOf returns the operation that an effect calls.
func operationOf(do machine.Action) driver.Operation {
	switch do.(type) {
	case machine.LookForVM:
		return driver.OpGetMachineStatus
	case machine.CreateVM:
		return driver.OpCreateMachine
	case machine.InitializeVM:
		return driver.OpInitializeMachine
	default:
		return driver.OpDeleteMachine
	}
}

// checkCreate asserts that the intent is durable, and the VM not known.
func (s *sim) checkCreate(m *v1alpha1.Machine) {
	have := s.machines[m.Name]
	switch {
	case have == nil || have.UID != m.UID:
		s.fault("a VM is made for %s, which is gone", m.Name)
	case !slices.Contains(have.Finalizers, v1alpha1.MCMFinalizerName):
		s.fault("a VM is made for %s without a finalizer", m.Name)
	case have.Spec.ProviderID != "":
		s.fault("a VM is made for %s, which has one", m.Name)
	}
	op := have.Status.LastOperation
	intended := op.Type == v1alpha1.MachineOperationCreate && op.State == v1alpha1.MachineStateProcessing
	if !intended && have.Status.CurrentStatus.Phase != v1alpha1.MachineCrashLoopBackOff {
		s.fault("a VM is made for %s without a durable intent", m.Name)
	}
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
		switch {
		case m.Status.CurrentStatus.Phase != v1alpha1.MachineRunning || !m.DeletionTimestamp.IsZero():
			s.fault("%s rests in phase %q: %s", name, m.Status.CurrentStatus.Phase, m.Status.LastOperation.Description)
		case len(own.VMs) != 1 || own.VMs[0].ProviderID != m.Spec.ProviderID || !own.VMs[0].Initialized || len(own.Leftovers()) > 0:
			s.fault("%s with provider ID %q rests with %s", name, m.Spec.ProviderID, own)
		case node == nil || node.Labels[v1alpha1.MachineNameLabelKey] != name || !slices.Contains(node.Finalizers, v1alpha1.NodeFinalizerName):
			s.fault("%s rests with node %v", name, node)
		}
	}
	nodes := 0
	for name := range s.nodes {
		if s.machines[name] != nil || !s.nameless[name] {
			nodes++
		}
	}
	for name := range s.tokens {
		s.fault("%s is left", name)
	}
	if len(snapshot.VMs) != vms || nodes != len(s.machines) {
		s.fault("at rest there are %d machines, %d nodes and\n%s", len(s.machines), len(s.nodes), snapshot)
	}
	if len(s.machines) == 0 && !snapshot.Empty() {
		s.fault("left over: %s", snapshot)
	}
}

// forced says whether a person asked for force.
func forced(m *v1alpha1.Machine) bool { return m.Labels[v1alpha1.LabelKeyForceDeletion] == "true" }

// round makes a round of draining: pods go in the third, and then their volumes have
// their time.
func (s *sim) round(kept *memory, a machine.DrainNode) machine.DrainView {
	now := s.clock.Now()
	kept.rounds++
	if kept.rounds > 2 && kept.empty.IsZero() {
		kept.empty = now
		s.unmount(a.NodeName, s.volumes.after)
	}
	waited := a.Mode.DetachTimeout > 0 && !now.Before(kept.empty.Add(a.Mode.DetachTimeout))
	waits := a.Mode.Detach && !waited && len(s.moving(a.NodeName)) > 0
	return machine.DrainView{Done: kept.rounds > 2 && !waits, NextCheck: now.Add(20 * time.Second)}
}

// checkDetached asserts that a VM goes only when the volumes of the pods that went
// have gone, or have had their time; and all of them, by force.
func (s *sim) checkDetached(m *v1alpha1.Machine, kept *memory) {
	node, which := s.nodeOf(m), s.moving
	if forced(m) {
		which = s.attached
	}
	waited := s.policy.DetachTimeout > 0 && !s.clock.Now().Before(kept.empty.Add(s.policy.DetachTimeout))
	for _, va := range which(node) {
		if va.DeletionTimestamp.IsZero() && !waited && s.nodes[node] != nil && !kept.gone {
			s.fault("the VM of %s is deleted while %s is attached", m.Name, va.Name)
		}
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
