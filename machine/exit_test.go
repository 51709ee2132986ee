// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// exit lives the end of one machine in a world that obeys, from any observation to
// the release of the machine.
type exit struct {
	in     machine.Observation
	policy machine.Policy
	now    time.Time
	// rounds are how many rounds the drain takes; 0 is one.
	rounds int
	// deletion and look are the errors of the next calls; beyond them all succeeds.
	deletion, look []error
	// did is what was done, without its reasons; writes counts requests that write.
	did    []string
	writes int
	gone   bool
	// emptied is when the last pod was seen to have gone.
	emptied time.Time
	// anew makes a round of draining in every pass.
	anew bool
	// told are the descriptions that were written, in their order.
	told []string
}

func newExit(in machine.Observation) *exit {
	return &exit{in: deepCopy(in), policy: machine.DefaultPolicy(), now: now}
}

// run goes on until the machine is let go, or nothing happens any more for a day.
func (e *exit) run(t *testing.T) *exit {
	t.Helper()
	for range 300 {
		if !e.step(t) {
			return e
		}
	}
	require.Fail(t, "no end", strings.Join(e.did, "\n"))
	return e
}

// step takes one step, after as long as it takes, and returns false at the end.
func (e *exit) step(t *testing.T) bool {
	t.Helper()
	for end := e.now.Add(24 * time.Hour); ; {
		d := machine.Decide(e.in, e.policy, e.now)
		require.NoError(t, decisionLaws(d, e.now))
		switch {
		case d.Do != nil:
			e.did = append(e.did, strings.SplitN(d.Do.String(), ",", 2)[0])
			e.act(t, d.Do)
			return !e.gone
		case d.NextCheck.IsZero() || d.NextCheck.After(end):
			e.did = append(e.did, d.String())
			return false
		}
		e.now = d.NextCheck
		if e.anew {
			e.in.Drain = e.in.Drain.Again()
		}
	}
}

func (e *exit) act(t *testing.T, do machine.Action) {
	t.Helper()
	e.writes++
	switch a := do.(type) {
	case machine.UpdateMachine:
		e.in.Machine = a.Machine.DeepCopy()
		e.gone = len(a.Machine.Finalizers) == 0
	case machine.UpdateStatus:
		e.in.Machine = a.Machine.DeepCopy()
		e.told = append(e.told, a.Machine.Status.LastOperation.Description)
	case machine.LookForVM:
		e.writes--
		e.in.VM = e.in.VM.After(machine.Answer{Operation: driver.OpGetMachineStatus, Err: shift(&e.look), ProviderID: "simulated:///1", NodeName: "n"}, e.now, 0)
	case machine.DeleteVM:
		e.writes--
		e.in.VM = e.in.VM.After(machine.Answer{Operation: driver.OpDeleteMachine, Err: shift(&e.deletion)}, e.now, 0)
	case machine.SetNodeCondition:
		e.in.Node.Node.Status.Conditions = append(e.in.Node.Node.Status.Conditions, a.Condition)
	case machine.DrainNode:
		e.writes--
		e.rounds--
		e.in.Drain = e.in.Drain.After(a.Mode, e.round(a.Mode), e.now)
	case machine.DeleteAttachments:
		for _, va := range e.in.Attachments.Attachments {
			if va != nil && slices.Contains(a.Attachments, machine.Attachment{Name: va.Name, UID: va.UID}) {
				va.DeletionTimestamp = &metav1.Time{Time: e.now}
			}
		}
	case machine.DeleteNode:
		e.in.Node.Node = nil
	default:
		require.Fail(t, "unexpected", "%T", do)
	}
}

// round is what a round of draining comes to: pods go, then volumes have their time.
func (e *exit) round(mode machine.DrainMode) machine.DrainView {
	if e.rounds > 0 {
		return machine.DrainView{NextCheck: e.now.Add(20 * time.Second)}
	}
	if e.emptied.IsZero() {
		e.emptied = e.now
	}
	var v machine.DrainView
	end := e.emptied.Add(mode.DetachTimeout)
	if mode.DetachTimeout > 0 {
		v.NextCheck = end
	}
	for _, va := range e.in.Attachments.Attachments {
		if va != nil && va.Spec.NodeName == "n" && mode.Detach && (mode.DetachTimeout == 0 || e.now.Before(end)) {
			v.Holds = append(v.Holds, machinist.Hold{Subject: "volumeattachment/" + va.Name, Reason: machine.ReasonDetaching})
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
	return spec(func(m *v1alpha1.Machine) {
		m.Status.LastOperation = v1alpha1.LastOperation{
			Type: v1alpha1.MachineOperationDelete, State: v1alpha1.MachineStateProcessing,
			Description: description, LastUpdateTime: metav1.NewTime(now.Add(-30 * time.Second)),
		}
	})
}

// markedAgo is the condition of a Node that was told so long ago that it goes.
func markedAgo(ago time.Duration) corev1.NodeCondition {
	c := marked
	c.LastTransitionTime = metav1.NewTime(now.Add(-ago))
	return c
}

// The steps of a deletion.
const (
	stepMark    = "set condition Terminating=True (ScaleDown) on node n"
	stepDrain   = "drain node n"
	stepBegin   = `record phase "Terminating"`
	stepVM      = "delete the VM"
	stepNode    = "delete node n"
	stepRelease = "update machine: no finalizer"
	stepLook    = "look for the VM"
	stepName    = "update machine: node n"
	stepDetach  = "delete volume attachments csi-1"
)
