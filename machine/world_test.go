// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// TestMain lets the heap grow: the simulations allocate much and keep little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// world holds one machine and its Node. Every effect that is decided for them
// happens and is observed by the next decision. It starts from any observation.
type world struct {
	in     machine.Observation
	policy machine.Policy
	now    time.Time
	// tick passes with each effect.
	tick time.Duration
	// away means that the API server of the Nodes does not answer.
	away bool
	// fast skips the API server's form of objects and the checks of each decision.
	fast bool
	// drained answers rounds of draining. With nil, pods are gone after the given
	// rounds, and their volumes after the time of the attacher.
	drained func(machine.DrainNode) machine.DrainView
	rounds  int
	emptied time.Time // when the last pod was gone
	// anew makes a round of draining after each wait.
	anew bool
	// create, initialize, deletion and look are the errors of the next calls. All
	// later ones succeed, but for lookErr.
	create, initialize, deletion, look []error
	lookErr                            error
	// absent says that there is no VM until one is created.
	absent bool

	last machine.Decision
	// trace has the text of each decision, did that of each effect, and told the
	// descriptions that were written.
	trace     lines
	did, told []string
	// writes counts requests that write.
	writes int
	// released says that the machine has lost its finalizer.
	released bool
}

func newWorld(in machine.Observation) *world {
	w := &world{in: deepCopy(in), policy: machine.DefaultPolicy(), now: now}
	w.store()
	return w
}

// store has both objects go to the API server and back, which drops fractions of
// seconds and shows times in the zone of the reader.
func (w *world) store() {
	w.in.Machine = stored(w.in.Machine)
	if w.in.Node.Node != nil {
		w.in.Node.Node = stored(w.in.Node.Node)
	}
}

func stored[T any](o *T) *T {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	back := new(T)
	if err := json.Unmarshal(b, back); err != nil {
		panic(err)
	}
	return back
}

// step decides and does one thing. It returns false if there is nothing to do.
func (w *world) step() (bool, error) {
	if w.fast {
		w.last = machine.Decide(w.in, w.policy, w.now)
	} else {
		w.in.Node.AsOf = w.now // it is read at every step
		before := deepCopy(w.in)
		w.last = machine.Decide(w.in, w.policy, w.now)
		if err := decisionLaws(w.last, w.now); err != nil {
			return false, err
		}
		if !reflect.DeepEqual(before, w.in) {
			return false, fmt.Errorf("the input has changed: %s", gocmp.Diff(before, w.in))
		}
	}
	w.trace = append(w.trace, w.last.String())
	if w.last.Action == nil {
		return false, nil
	}
	w.did = append(w.did, strings.SplitN(w.last.Action.String(), ",", 2)[0])
	if err := w.act(w.last.Action); err != nil {
		return false, err
	}
	if w.now = w.now.Add(w.tick); !w.fast {
		w.store()
	}
	return true, nil
}

// rest begins a new pass and goes on until there is nothing to do. It returns how
// many effects there were.
func (w *world) rest() (int, error) {
	w.in.Drain = w.in.Drain.Again()
	return w.settle()
}

// settle goes on until there is nothing to do.
func (w *world) settle() (int, error) {
	for effects := range 40 {
		if goesOn, err := w.step(); err != nil || !goesOn || w.released {
			return effects, err
		}
	}
	return 0, fmt.Errorf("no rest:\n%s", strings.Join(w.trace[len(w.trace)-20:], "\n"))
}

func (w *world) mustRest(t *testing.T) int {
	t.Helper()
	n, err := w.rest()
	require.NoError(t, err, w.log())
	return n
}

// next waits for the next effect, and returns false if it was the release of the
// machine, or if there is none for a day.
func (w *world) next(t *testing.T) bool {
	t.Helper()
	for end := w.now.Add(24 * time.Hour); ; {
		acted, err := w.step()
		require.NoError(t, err)
		switch at := w.last.NextCheck; {
		case acted:
			return !w.released
		case at.IsZero() || at.After(end):
			w.did = append(w.did, w.last.String())
			return false
		default:
			w.now = at.UTC()
		}
		if w.anew {
			w.in.Drain = w.in.Drain.Again()
		}
	}
}

// run goes on until the machine is released, or nothing happens for a day.
func (w *world) run(t *testing.T) *world {
	t.Helper()
	for range 300 {
		if !w.next(t) {
			return w
		}
	}
	require.Fail(t, "no end", w.log())
	return w
}

func (w *world) act(do machinist.Action) error {
	if m := statusOf(do); m != nil {
		w.told = append(w.told, m.Status.LastOperation.Description)
	}
	in := &w.in
	switch w.writes++; a := do.(type) {
	case machine.CallDriver:
		w.writes--
		in.VM = in.VM.After(w.answer(a.Operation), w.now, 0)
	case machine.DrainNode:
		w.writes--
		w.rounds--
		in.Drain = in.Drain.AfterRound(a, w.round(a), w.now)
	case machinist.Refresh:
		if in.Node.Unanswered = w.away; !w.away {
			in.Node.Looked, in.Node.AsOf = true, w.now
		}
	case machine.DeleteAttachments:
		for _, va := range in.Attachments.Attachments {
			if va != nil && slices.ContainsFunc(a.Attachments, func(o *storagev1.VolumeAttachment) bool { return o.Name == va.Name }) {
				va.DeletionTimestamp = &metav1.Time{Time: w.now}
			}
		}
	case machinist.Delete:
		switch o := a.Object.(type) {
		case *corev1.Node:
			in.Node.Node = nil
		case *corev1.Secret:
			in.Tokens.Secrets = slices.DeleteFunc(slices.Clone(in.Tokens.Secrets), func(s *corev1.Secret) bool { return s != nil && s.Name == o.Name && s.UID == o.UID })
		default:
			in.Machine = in.Machine.DeepCopy()
			in.Machine.DeletionTimestamp = &metav1.Time{Time: w.now}
		}
	case machine.CreateToken:
		in.Tokens.Secrets = append(slices.Clone(in.Tokens.Secrets), newToken(uint64(1000+w.writes), a.Expires))
	case machine.TakePermit:
		in.Permit = machine.PermitView{Asked: true, Held: true, Within: a.Within}
	case machine.ReturnPermit:
		in.Permit.Held = false
	default:
		if !carriedOut(in, do) {
			return fmt.Errorf("%T is decided:\n%s", do, w.log())
		}
		w.released = !in.Machine.DeletionTimestamp.IsZero() && len(in.Machine.Finalizers) == 0
	}
	return nil
}

// answer is what the provider answers to a call.
func (w *world) answer(op driver.Operation) machine.CallResult {
	a := machine.CallResult{Operation: op, ByName: true}
	switch op {
	case driver.OpGetMachineStatus:
		if a.Err = cmp.Or(shift(&w.look), w.lookErr); a.Err == nil && w.absent {
			a.Err = status.Error(codes.NotFound, "")
		}
	case driver.OpCreateMachine:
		a.Err = shift(&w.create)
		w.absent = w.absent && a.Err != nil
	case driver.OpInitializeMachine:
		a.Err = shift(&w.initialize)
	case driver.OpDeleteMachine:
		a.Err = shift(&w.deletion)
		return a
	}
	if a.Err == nil {
		a.ProviderID, a.NodeName = "simulated:///1", "n"
	}
	return a
}

// carriedOut carries out a write of the machine or the Node as the API server does,
// and returns false if it is something else.
func carriedOut(in *machine.Observation, do machinist.Action) bool {
	switch a := do.(type) {
	case machine.TakePermit: // with none to take, the answer is yes
		if a.Within > 0 {
			return false
		}
		in.Permit = machine.PermitView{Asked: true, Held: true}
	case machinist.Update:
		if node, ok := a.Object.(*corev1.Node); ok {
			in.Node.Node = writtenNode(in.Node.Node, node, a)
			return true
		}
		before, after := in.Machine, written(a)
		in.Machine = before.DeepCopy()
		if a.Subresource == "" {
			in.Machine = after.DeepCopy()
			in.Machine.Status = before.Status
			return true
		}
		in.Machine.Status = *after.Status.DeepCopy()
		s := &in.Machine.Status
		for _, t := range []*metav1.Time{&s.LastOperation.LastUpdateTime, &s.CurrentStatus.LastUpdateTime} {
			*t = t.Rfc3339Copy()
		}
	default:
		return false
	}
	return true
}

// writtenNode returns a Node after an update. A condition is written alone.
func writtenNode(have, want *corev1.Node, u machinist.Update) *corev1.Node {
	next := want.DeepCopy()
	if u.Subresource == "" {
		next.Status = have.Status
		return next
	}
	next.Spec = have.Spec
	if set := changedConditions(u); len(set) > 0 {
		next = have.DeepCopy()
		next.Status.Conditions = nodeops.CloneAndAddCondition(next.Status.Conditions, set[0])
	}
	return next
}

// objectOf returns the object of type T that an action writes, and false for another action.
func objectOf[T machinist.Object](do machinist.Action) (T, bool) {
	u, _ := do.(machinist.Update)
	o, ok := u.Object.(T)
	return o, ok
}

// written returns the machine that an action writes. It panics for another action.
func written(do machinist.Action) *v1alpha1.Machine {
	return do.(machinist.Update).Object.(*v1alpha1.Machine)
}

// isMachine reports whether an action writes the machine.
func isMachine(do machinist.Action) bool {
	_, ok := objectOf[*v1alpha1.Machine](do)
	return ok
}

// statusOf returns the machine whose status an action writes, or nil.
func statusOf(do machinist.Action) *v1alpha1.Machine {
	if u, _ := do.(machinist.Update); u.Subresource == "status" && isMachine(u) {
		return written(u)
	}
	return nil
}

// changedConditions returns the conditions of a Node that an action writes.
func changedConditions(do machinist.Action) []corev1.NodeCondition {
	u, _ := do.(machinist.Update)
	node, ok := u.Object.(*corev1.Node)
	if !ok {
		return nil
	}
	var set []corev1.NodeCondition
	for _, c := range node.Status.Conditions {
		if !slices.Contains(u.Before.(*corev1.Node).Status.Conditions, c) {
			set = append(set, c)
		}
	}
	return set
}

// round is what a round of draining comes to.
func (w *world) round(a machine.DrainNode) machine.DrainView {
	switch {
	case w.drained != nil:
		return w.drained(a)
	case w.rounds > 0:
		return machine.DrainView{NextCheck: w.now.Add(20 * time.Second)}
	case w.emptied.IsZero():
		w.emptied = w.now
	}
	var v machine.DrainView
	wait := a.Policy.Volumes
	end := w.emptied.Add(wait.DetachTimeout)
	if wait.DetachTimeout > 0 {
		v.NextCheck = end
	}
	for _, va := range w.in.Attachments.Attachments {
		if va != nil && va.Spec.NodeName == "n" && wait.Wait && (wait.DetachTimeout == 0 || w.now.Before(end)) {
			v.Holds = append(v.Holds, machinist.Hold{Subject: "volumeattachment/" + va.Name, Reason: "Detaching"})
		}
	}
	v.Done = len(v.Holds) == 0
	return v
}

func shift(errs *[]error) error {
	if len(*errs) == 0 {
		return nil
	}
	err := (*errs)[0]
	*errs = (*errs)[1:]
	return err
}

var errTransient = status.Error(codes.Unavailable, "not now")

// attachment is a volume that is attached to Node n.
func attachment(name string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: machineUID("uid-" + name)},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: "n"},
	}
}

// attached are volumes that are attached to Node n.
func attached(names ...string) change {
	return func(in *machine.Observation) {
		in.Attachments = machine.AttachmentsView{Looked: true}
		for _, name := range names {
			in.Attachments.Attachments = append(in.Attachments.Attachments, attachment(name))
		}
	}
}

// handed is an operation that another controller wrote half a minute ago.
func handed(description string) change {
	return operationAgo(30*time.Second, v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, description)
}

// markedAgo is the condition of a Node that was told so long ago that it goes.
func markedAgo(ago time.Duration) corev1.NodeCondition {
	c := marked
	c.LastTransitionTime = metav1.NewTime(now.Add(-ago))
	return c
}

// The steps of a deletion.
const (
	stepMark    = "update status of node n: condition Terminating=True (ScaleDown)"
	stepDrain   = "drain node n"
	stepBegin   = `update status of machine m: phase "Terminating"`
	stepVM      = "delete the VM"
	stepNode    = "delete node n"
	stepRelease = "update machine m: no finalizer"
	stepLook    = "look for the VM"
	stepName    = "update machine m: node n"
	stepDetach  = "delete volume attachments csi-1"
)

// crash loses what only a controller remembers of the Node.
func (w *world) crash() { w.in.Drain = machine.DrainView{} }

// pass lets time pass.
func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

// log returns the trace, whose text is made only for a message.
func (w *world) log() lines { return w.trace }

// lines is a text of lines.
type lines []string

func (l lines) String() string { return strings.Join(l, "\n") }

// chapter says what happens, lets it happen, and tells what comes of that: one line
// for each effect, and in the end one for what is waited for, with its reasons.
func (w *world) chapter(t *testing.T, what string, happens func()) string {
	t.Helper()
	happens()
	w.in.Drain = w.in.Drain.Again()
	lines := []string{"-- " + what}
	for range 30 {
		goesOn, err := w.step()
		require.NoError(t, err, w.log())
		if !goesOn {
			break
		}
		line := w.last.Action.String()
		if set := changedConditions(w.last.Action); len(set) > 0 && set[0].Message != "" {
			line += ": " + set[0].Message
		}
		lines = append(lines, line)
	}
	var waits []string
	for _, h := range w.last.Holds {
		waits = append(waits, fmt.Sprintf("%s (%s)", h.Subject, h.Reason))
	}
	return strings.Join(append(lines, "waits for "+cmp.Or(strings.Join(waits, ", "), "nothing")), "\n") + "\n"
}

var updateFlag = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *updateFlag {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// annotate sets or, if the value is "-", removes an annotation of both objects.
func annotate(annotations map[string]string, key, value string) map[string]string {
	if value == "-" {
		delete(annotations, key)
		return annotations
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	return annotations
}

func (w *world) end() *time.Time {
	if end := w.in.Machine.Status.CurrentStatus.PreserveExpiryTime; end != nil {
		utc := end.UTC()
		return &utc
	}
	return nil
}

// condition returns a condition of the Node.
func (w *world) condition(t corev1.NodeConditionType) *corev1.NodeCondition {
	return facts.ConditionOf(w.in.Node.Node.Status.Conditions, t)
}

// tainted reports whether the Node has the taint of preserved Nodes.
func (w *world) tainted() bool {
	return nodeops.HasTaint(w.in.Node.Node.Spec.Taints, corev1.Taint{Key: v1alpha1.TaintNodePreserved, Effect: corev1.TaintEffectNoSchedule})
}

// operationText returns the text of the last operation, without what it says about waits.
func operationText(m *v1alpha1.Machine) string {
	text, _, _ := strings.Cut(m.Status.LastOperation.Description, "; waits for ")
	return text
}
