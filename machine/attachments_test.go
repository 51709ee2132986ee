// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestLiveAttachments(t *testing.T) {
	t.Parallel()
	in := after(attached("b", "a", "c", "d"))
	all := in.Attachments.Attachments
	all[2].Spec.NodeName = "another"
	all[3].DeletionTimestamp = &metav1.Time{Time: now}
	all = append(all, nil)
	want := []machine.Attachment{{Name: "a", UID: "uid-a"}, {Name: "b", UID: "uid-b"}}
	require.Equal(t, want, machine.LiveAttachments("n", all))
	slices.Reverse(all)
	require.Equal(t, want, machine.LiveAttachments("n", all), "in any order")
	require.Empty(t, machine.LiveAttachments("", nil))
}

// While volumes are detached, that is part of the drain.
func TestWhichDrainsWaitForVolumes(t *testing.T) {
	t.Parallel()
	p := machine.DefaultPolicy()
	mode := func(p machine.Policy, changes ...change) machine.DrainMode {
		in := terminating(append([]change{node(marked)}, changes...)...)
		return machine.DrainModeFor(in.Machine, in.Node.Node, p, now)
	}
	m := mode(p)
	require.True(t, m.Detach)
	require.Equal(t, 2*time.Minute, m.DetachTimeout)
	m = mode(machine.Policy{DetachTimeout: -time.Second})
	require.True(t, m.Detach)
	require.Zero(t, m.DetachTimeout, "any time")
	require.False(t, mode(p, byForce).Detach, "by force they are declared detached")
	require.False(t, mode(machine.Policy{DrainTimeout: time.Minute}).Detach, "also when its time has come")
	require.False(t, mode(p, node(marked, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
	})).Detach, "nobody unmounts on a Node that does not answer")
	in := living(v1alpha1.MachineFailed, healthy, updates(v1alpha1.SelectedForUpdate))
	require.False(t, machine.DrainModeForUpdate(in.Machine, in.Node.Node, p, now).Detach, "its VM stays")
	require.False(t, machine.DrainModeForPreservation(in.Machine, in.Node.Node, p, now).Detach, "its VM stays")
}

func TestTheAttacherIsWaitedForUntilTheDetachTimeout(t *testing.T) {
	t.Parallel()
	x := newWorld(terminating(node(marked), attached("csi-1", "csi-2"), handed(v1alpha1.InitiateDrain)))
	x.run(t)
	require.Equal(t, stepRelease, x.did[len(x.did)-1])
	require.NotContains(t, x.did, stepDetach)
	require.Equal(t, now.Add(2*time.Minute), x.now)
	require.Contains(t, x.told[0], v1alpha1.InitiateDrain+"; waits for volumeattachment/csi-1: Detaching; volumeattachment/csi-2: Detaching")

	// The zero policy waits for ever, but a person may force it.
	x = newWorld(terminating(node(marked), attached("csi-1")))
	x.policy = machine.Policy{}
	waits := len(x.run(t).did)
	require.NotContains(t, x.did, stepVM)
	byForce(&x.in)
	require.Equal(t, []string{stepDrain, stepDetach, stepVM, stepNode, stepRelease}, x.run(t).did[waits:])
	// So may the drain timeout, which is when to look again.
	x = newWorld(terminating(node(marked), attached("csi-1")))
	x.policy = machine.Policy{DrainTimeout: time.Minute + 3*time.Second}
	require.Contains(t, x.run(t).did, stepDetach)
	require.Equal(t, now.Add(3*time.Second), x.now)
}

// An attacher that is quick costs no write and no time.
func TestAQuickDetachIsNotTold(t *testing.T) {
	t.Parallel()
	x := newWorld(terminating(node(marked), attached("csi-1"), handed(v1alpha1.InitiateDrain)))
	x.in.Machine.Status.LastOperation.LastUpdateTime = metav1.NewTime(now)
	require.True(t, x.next(t)) // drain
	x.now = x.now.Add(3 * time.Second)
	require.Nil(t, machine.Decide(x.in, x.policy, x.now).Do)
	attached()(&x.in)
	x.in.Drain = x.in.Drain.Again()
	require.Equal(t, []string{stepDrain, stepDrain, stepVM, stepNode, stepRelease}, x.run(t).did)
	require.Equal(t, now.Add(3*time.Second), x.now, "it goes on at once")
	require.Empty(t, x.told)
}
