// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// requested records a condition VMRequested.
func requested(status corev1.ConditionStatus, reason machinist.Reason) change {
	return func(in *machine.Observation) {
		in.Machine.Status.Conditions = append(in.Machine.Status.Conditions, corev1.NodeCondition{
			Type: v1alpha1.MachineVMRequested, Status: status, Reason: string(reason), LastTransitionTime: metav1.NewTime(now),
		})
	}
}

// requestOf returns the condition VMRequested of a machine, or nil.
func requestOf(m *v1alpha1.Machine) *corev1.NodeCondition {
	i := slices.IndexFunc(m.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.MachineVMRequested })
	if i < 0 {
		return nil
	}
	return &m.Status.Conditions[i]
}

// sharedCause keeps every machine of a class from having a VM.
type sharedCause struct {
	// begin lets the cause begin, and end lets it end.
	begin, end func(w *world)
	// says is a part of the message for the user.
	says string
	// asked means that the provider was asked for a VM.
	asked bool
}

// ofView is a cause in the view of the class.
func ofView(says string, begin, end func(in *machine.Observation)) sharedCause {
	return sharedCause{begin: func(w *world) { begin(&w.in) }, end: func(w *world) { end(&w.in) }, says: says}
}

// ofCall is a cause that the provider returns.
func ofCall(code codes.Code, errs func(w *world) *[]error, asked bool) sharedCause {
	return sharedCause{
		begin: func(w *world) { *errs(w) = slices.Repeat([]error{status.Error(code, "no such flavor")}, 3000) },
		end:   func(w *world) { *errs(w) = nil },
		says:  "no such flavor", asked: asked,
	}
}

// sharedCauses are the causes for which no machine may fail.
func sharedCauses() map[string]sharedCause {
	class := func() *v1alpha1.MachineClass { return after().Class.Class }
	all := map[string]sharedCause{
		"class missing": ofView(`machine class "small" does not exist`, noClass, func(in *machine.Observation) { in.Class.Class = class() }),
		"class without finalizer": ofView(`machine class "small" has no finalizer`, func(in *machine.Observation) {
			in.Class.Class = class()
			in.Class.Class.Finalizers, in.Class.Class.DeletionTimestamp = nil, &metav1.Time{Time: now}
		}, func(in *machine.Observation) { in.Class.Class = class() }),
		"Secret missing": ofView("secret shop/small does not exist", func(in *machine.Observation) { in.Class.Problem = "secret shop/small does not exist" },
			func(in *machine.Observation) { in.Class.Problem = "" }),
		"class of another kind": ofView("spec.class.kind", func(in *machine.Observation) { in.Machine.Spec.Class.Kind = "AWSMachineClass" },
			func(in *machine.Observation) { in.Machine.Spec.Class.Kind = v1alpha1.MachineClassKind }),
		"node template incomplete": ofView("nodeTemplate.zone", func(in *machine.Observation) {
			in.Class.Class.NodeTemplate = &v1alpha1.NodeTemplate{InstanceType: "m5", Region: "r"}
		}, func(in *machine.Observation) { in.Class.Class.NodeTemplate = nil }),
	}
	for _, code := range []codes.Code{codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated} {
		all[code.String()+" of GetMachineStatus"] = ofCall(code, func(w *world) *[]error { return &w.look }, false)
		all[code.String()+" of CreateMachine"] = ofCall(code, func(w *world) *[]error { return &w.create }, true)
		all[code.String()+" of InitializeMachine"] = ofCall(code, func(w *world) *[]error { return &w.initialize }, true)
	}
	for _, code := range []codes.Code{codes.NotFound, codes.Unimplemented} {
		all[code.String()+" of CreateMachine"] = ofCall(code, func(w *world) *[]error { return &w.create }, true)
	}
	return all
}

// newMachineWorld returns a world with a new machine whose VM does not exist and whose Node never
// joins.
func newMachineWorld() *world {
	w := newWorld(after(func(in *machine.Observation) {
		in.Machine.CreationTimestamp, in.FirstSeen = metav1.NewTime(now), now
		in.Node.Node = nil
	}))
	w.absent = true
	return w
}

// lasts lets time pass, and calls each after each step.
func (w *world) lasts(t *testing.T, d time.Duration, each func()) {
	t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		acted, err := w.step()
		require.NoError(t, err, w.log())
		each()
		switch at := w.last.NextCheck; {
		case w.released:
			return
		case acted:
		case at.IsZero() || at.After(end):
			w.now = end
		default:
			w.now = at.UTC()
		}
	}
}

func (w *world) phase() v1alpha1.MachinePhase { return w.in.Machine.Status.CurrentStatus.Phase }

// restart loses what a process keeps of a machine.
func (w *world) restart() {
	w.in.VM, w.in.FirstSeen = machine.VMView{}, w.now
}

// TestSharedCause_24Hours_MachineWaitsAndGoesOn asserts that no machine fails for a cause that its
// replacement would share, that its status names the cause, and that the creation timeout begins
// when the cause ends, whatever process decides (I-22).
func TestSharedCause_24Hours_MachineWaitsAndGoesOn(t *testing.T) {
	t.Parallel()
	for name, cause := range sharedCauses() {
		for _, restarts := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newMachineWorld()
				cause.begin(w)
				w.lasts(t, 24*time.Hour, func() {
					require.NotEqual(t, v1alpha1.MachineFailed, w.phase(), "after %s", w.now.Sub(now))
				})
				c := requestOf(w.in.Machine)
				require.NotNil(t, c)
				require.Equal(t, cause.asked, c.Status == corev1.ConditionUnknown)
				require.Contains(t, c.Message, cause.says)
				require.Contains(t, w.in.Machine.Status.LastOperation.Description, cause.says)
				require.Contains(t, w.last.String(), cause.says, "the hold names it")
				require.Less(t, w.writes, 20, "nothing new is written")

				if restarts {
					w.restart()
				}
				cause.end(w)
				ended := w.now
				w.lasts(t, 15*time.Minute, func() {
					require.NotEqual(t, v1alpha1.MachineFailed, w.phase(), "%s after the end", w.now.Sub(ended))
				})
				require.Equal(t, v1alpha1.MachinePending, w.phase(), w.log())
				if restarts {
					w.restart()
				}
				w.lasts(t, 30*time.Minute, func() {})
				require.Equal(t, v1alpha1.MachineFailed, w.phase(), "its Node has not joined")
				require.WithinRange(t, w.in.Machine.Status.CurrentStatus.LastUpdateTime.Time, ended.Add(20*time.Minute-time.Second), ended.Add(35*time.Minute))
			})
		}
	}
}

// TestSharedCause_Deleted_NoVMWasRequested_GoneAtOnce asserts that a machine for which no VM was
// requested is deleted without class, Secret and provider, and without a view of the Nodes.
func TestSharedCause_Deleted_NoVMWasRequested_GoneAtOnce(t *testing.T) {
	t.Parallel()
	for name, cause := range sharedCauses() {
		for _, after := range []time.Duration{0, time.Second, 24 * time.Hour} {
			t.Run(name+" "+after.String(), func(t *testing.T) {
				t.Parallel()
				w := newMachineWorld()
				cause.begin(w)
				w.lasts(t, after, func() {})
				w.restart()
				if after == 0 { // nothing is recorded
					w.deletion = slices.Repeat([]error{status.Error(codes.Unauthenticated, "no")}, 100)
				}
				w.did, w.in.Machine.DeletionTimestamp = nil, &metav1.Time{Time: w.now}
				w.lasts(t, time.Minute, func() {})
				require.True(t, w.released, w.log())
				if after > 0 && !cause.asked {
					require.Equal(t, []string{"update machine m: no finalizer"}, w.did)
				}
			})
		}
	}
}

// TestSharedCause_AnotherFailureFollows_TimeoutBegins asserts that a failure of the machine alone
// has the creation timeout, which counts from its begin.
func TestSharedCause_AnotherFailureFollows_TimeoutBegins(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		w := newMachineWorld()
		errs := &w.look
		if asked {
			errs = &w.create
		}
		*errs = slices.Repeat([]error{status.Error(codes.Unauthenticated, "no")}, 3000)
		w.lasts(t, 5*time.Hour, func() {})
		*errs = slices.Repeat([]error{status.Error(codes.Unavailable, "away")}, 3000)
		begin := w.now
		w.lasts(t, 19*time.Minute, func() { require.NotEqual(t, v1alpha1.MachineFailed, w.phase()) })
		w.lasts(t, 20*time.Minute, func() {})
		require.Equal(t, v1alpha1.MachineFailed, w.phase(), "%s later: %s", w.now.Sub(begin), w.log())
	}
}

// TestRequest_FailuresOfTheMachine_NoNewTimeout asserts that other failures do not postpone the
// creation timeout.
func TestRequest_FailuresOfTheMachine_NoNewTimeout(t *testing.T) {
	t.Parallel()
	w := newMachineWorld()
	w.look = slices.Repeat([]error{status.Error(codes.Unavailable, "away")}, 5)
	w.create = slices.Repeat([]error{status.Error(codes.ResourceExhausted, "no quota")}, 3000)
	w.lasts(t, time.Hour, func() {
		if w.now.Before(now.Add(20 * time.Minute)) {
			require.NotEqual(t, v1alpha1.MachineFailed, w.phase())
		}
	})
	require.Equal(t, v1alpha1.MachineFailed, w.phase())
	require.WithinDuration(t, now.Add(20*time.Minute), w.in.Machine.Status.CurrentStatus.LastUpdateTime.Time, time.Minute)
	require.False(t, slices.ContainsFunc(w.did, func(s string) bool { return strings.Contains(s, "token") }))
}

// TestRequest_NodeJoins_ConditionIsRemoved asserts that the condition stays while the machine is
// Pending, also with the conditions of its Node, and not longer.
func TestRequest_NodeJoins_ConditionIsRemoved(t *testing.T) {
	t.Parallel()
	in := living(v1alpha1.MachinePending, sick, requested(corev1.ConditionTrue, machine.ReasonNoVM))
	write(t, &in)
	require.NotNil(t, requestOf(in.Machine), "the conditions of the Node were copied")
	in = living(v1alpha1.MachinePending, healthy, requested(corev1.ConditionTrue, machine.ReasonNoVM))
	write(t, &in)
	require.Equal(t, v1alpha1.MachineRunning, in.Machine.Status.CurrentStatus.Phase)
	require.Nil(t, requestOf(in.Machine))
}
