// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// room is a world of one machine and its Node, in which every effect that is
// decided for them happens. It remembers nothing but what an API server would,
// and the drain.
type room struct {
	in     machine.Observation
	policy machine.Policy
	now    time.Time
	// drained answers rounds of draining; nil says that nothing is left.
	drained func(machine.DrainNode) machine.DrainView
	// trace says what was done and waited for, one line each.
	trace []string
	last  machine.Decision
}

func newRoom(in machine.Observation) *room {
	r := &room{in: deepCopy(in), policy: machine.DefaultPolicy(), now: now}
	r.store()
	return r
}

// store has all objects go to the API server and back, which drops fractions of
// seconds and shows times in the zone of the reader.
func (r *room) store() {
	there, back := func(o any) []byte {
		b, err := json.Marshal(o)
		if err != nil {
			panic(err)
		}
		return b
	}, func(b []byte, o any) {
		if err := json.Unmarshal(b, o); err != nil {
			panic(err)
		}
	}
	b := there(r.in.Machine)
	r.in.Machine = &v1alpha1.Machine{}
	back(b, r.in.Machine)
	if r.in.Node.Node != nil {
		b = there(r.in.Node.Node)
		r.in.Node.Node = &corev1.Node{}
		back(b, r.in.Node.Node)
	}
}

// rest begins a new pass and lets happen what is decided until nothing is. It
// returns how many effects there were.
func (r *room) rest() (int, error) {
	r.in.Drain = r.in.Drain.Again()
	for effects := range 30 {
		if goesOn, err := r.step(); err != nil || !goesOn {
			return effects, err
		}
	}
	return 0, fmt.Errorf("no rest:\n%s", r.story())
}

// step decides and does one thing. It returns false if there is nothing to do.
func (r *room) step() (bool, error) {
	r.in.Node.AsOf = r.now // it is read at every step
	before := deepCopy(r.in)
	r.last = machine.Decide(r.in, r.policy, r.now)
	r.trace = append(r.trace, r.last.String())
	if err := decisionLaws(r.last, r.now); err != nil {
		return false, err
	}
	if !reflect.DeepEqual(before, r.in) {
		return false, fmt.Errorf("the input has changed: %s", gocmp.Diff(before, r.in))
	}
	if r.last.Do == nil {
		return false, nil
	}
	err := r.act(r.last.Do)
	r.store()
	return true, err
}

func (r *room) act(do machine.Action) error {
	switch a := do.(type) {
	case machine.UpdateMachine:
		status := r.in.Machine.Status
		r.in.Machine = a.Machine.DeepCopy()
		r.in.Machine.Status = status
	case machine.UpdateStatus:
		r.in.Machine.Status = a.Machine.DeepCopy().Status
	case machine.UpdateNode:
		status := r.in.Node.Node.Status
		r.in.Node.Node = a.Node.DeepCopy()
		r.in.Node.Node.Status = status
	case machine.SetNodeCondition:
		s := &r.in.Node.Node.Status
		c := a.Condition
		c.LastHeartbeatTime, c.LastTransitionTime = metav1.NewTime(r.now), metav1.NewTime(r.now)
		s.Conditions = nodeops.CloneAndAddCondition(s.Conditions, c)
	case machine.DrainNode:
		round := machine.DrainView{Done: true}
		if r.drained != nil {
			round = r.drained(a)
		}
		r.in.Drain = r.in.Drain.After(a.Mode, round, r.now)
	case machine.LookForVM:
		r.in.VM = machine.VMView{Sighting: machine.Present, ProviderID: r.in.Machine.Spec.ProviderID, NodeName: "n", SeenAt: r.now, Asked: "GetMachineStatus"}
	default:
		return fmt.Errorf("%T is decided:\n%s", do, r.story())
	}
	return nil
}

// crash loses what only a controller remembers of the Node.
func (r *room) crash() { r.in.Drain = machine.DrainView{} }

// pass lets time pass.
func (r *room) pass(d time.Duration) { r.now = r.now.Add(d) }

func (r *room) story() string { return strings.Join(r.trace, "\n") }

// chapter says what happens, lets it happen, and tells what comes of that: one line
// for each effect, and in the end one for what is waited for, with its reasons.
func (r *room) chapter(t *testing.T, what string, happens func()) string {
	t.Helper()
	happens()
	r.in.Drain = r.in.Drain.Again()
	lines := []string{"-- " + what}
	for range 30 {
		goesOn, err := r.step()
		require.NoError(t, err, r.story())
		if !goesOn {
			break
		}
		line := r.last.Do.String()
		if set, ok := r.last.Do.(machine.SetNodeCondition); ok && set.Condition.Message != "" {
			line += ": " + set.Condition.Message
		}
		lines = append(lines, line)
	}
	var waits []string
	for _, h := range r.last.Holds {
		waits = append(waits, fmt.Sprintf("%s (%s)", h.Subject, h.Reason))
	}
	return strings.Join(append(lines, "waits for "+cmp.Or(strings.Join(waits, ", "), "nothing")), "\n") + "\n"
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

func (r *room) end() *time.Time {
	if end := r.in.Machine.Status.CurrentStatus.PreserveExpiryTime; end != nil {
		utc := end.UTC()
		return &utc
	}
	return nil
}

// condition returns a condition of the Node.
func (r *room) condition(t corev1.NodeConditionType) *corev1.NodeCondition {
	conditions := r.in.Node.Node.Status.Conditions
	if i := slices.IndexFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == t }); i >= 0 {
		return &conditions[i]
	}
	return nil
}

// tainted says whether the Node has the taint of preserved Nodes.
func (r *room) tainted() bool {
	return nodeops.HasTaint(r.in.Node.Node.Spec.Taints, corev1.Taint{Key: v1alpha1.TaintNodePreserved, Effect: corev1.TaintEffectNoSchedule})
}

// survivesCrashes asserts that a crash after any effect leads to the same place as
// none, and that there are so many effects at least.
func survivesCrashes(t *testing.T, name string, in machine.Observation, atLeast int) {
	t.Helper()
	plain := newRoom(in)
	effects := plain.mustRest(t)
	require.GreaterOrEqual(t, effects, atLeast, name)
	for crash := range effects {
		r := newRoom(in)
		for range crash {
			_, err := r.step()
			require.NoError(t, err)
		}
		r.crash()
		r.mustRest(t)
		require.Empty(t, gocmp.Diff(plain.in.Machine, r.in.Machine), "%s: crash after %d", name, crash)
		require.Empty(t, gocmp.Diff(plain.in.Node, r.in.Node), "%s: crash after %d", name, crash)
	}
}
