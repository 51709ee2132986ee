// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	storagev1 "k8s.io/api/storage/v1"
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

// detaching is a machine whose Node was drained without force so long ago.
func detaching(ago time.Duration, changes ...change) machine.Observation {
	return terminating(append([]change{node(markedAgo(time.Minute)), attached("csi-2", "csi-1"), func(in *machine.Observation) {
		in.Drain = machine.DrainView{Round: now, Done: true, DoneAt: now.Add(-ago)}
	}, handed(v1alpha1.InitiateDrain)}, changes...)...)
}

func TestTheAttacherIsWaitedForUntilTheDetachTimeout(t *testing.T) {
	t.Parallel()
	p := machine.DefaultPolicy()
	d := lawful(t, detaching(0), p)
	require.Equal(t, "nothing (Detaching); waits for volumeattachment/csi-1: Detaching; waits for volumeattachment/csi-2: Detaching", d.String())
	for _, h := range d.Holds {
		require.Equal(t, now.Add(2*time.Minute), h.Until)
	}
	require.IsType(t, machine.DeleteVM{}, lawful(t, detaching(2*time.Minute), p).Do)
	require.NotEqual(t, machine.DeleteVM{}, lawful(t, detaching(2*time.Minute-time.Second), p).Do)
	require.IsType(t, machine.DeleteVM{}, lawful(t, detaching(0, attached()), p).Do, "what has gone is not waited for")
	// The zero policy waits for ever, but a person may force it.
	require.NotEqual(t, machine.DeleteVM{}, machine.Decide(detaching(999*time.Hour), machine.Policy{}, now).Do)
	require.IsType(t, machine.DeleteAttachments{}, machine.Decide(detaching(999*time.Hour, byForce), machine.Policy{}, now).Do)
	// When force comes during the wait, that is when to look again.
	p = machine.Policy{DrainTimeout: time.Minute + 3*time.Second}
	require.Equal(t, now.Add(3*time.Second), lawful(t, detaching(0), p).NextCheck)
}

func TestALongDetachIsTold(t *testing.T) {
	t.Parallel()
	volume := "pv-1"
	named := func(in *machine.Observation) {
		in.Attachments.Attachments[1].Spec.Source = storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}
	}
	p := machine.Policy{}
	d := lawful(t, detaching(10*time.Second, named), p)
	require.Nil(t, d.Do)
	require.Equal(t, now.Add(20*time.Second), d.NextCheck)
	d = lawful(t, detaching(30*time.Second, named), p)
	m := d.Do.(machine.UpdateStatus).Machine
	require.Equal(t, v1alpha1.InitiateDrain+"; waits for volumeattachment/csi-1: Detaching: volume pv-1 is attached; volumeattachment/csi-2: Detaching",
		m.Status.LastOperation.Description)
	in := detaching(time.Hour, named)
	in.Machine = m
	d = lawful(t, in, p)
	require.Nil(t, d.Do, "once")
	require.Zero(t, d.NextCheck, "then only a change helps")
	in.Attachments.Attachments = in.Attachments.Attachments[:1]
	require.Equal(t, now.Add(30*time.Second), lawful(t, in, p).NextCheck, "news are told, but not at once")
}

// An attacher that is quick costs no write and no time.
func TestAQuickDetachIsNotTold(t *testing.T) {
	t.Parallel()
	x := newExit(terminating(node(marked), attached("csi-1")))
	require.True(t, x.step(t)) // drain
	x.now = x.now.Add(3 * time.Second)
	require.Nil(t, machine.Decide(x.in, x.policy, x.now).Do)
	attached()(&x.in)
	require.Equal(t, []string{stepDrain, stepVM, stepNode, stepRelease}, x.run(t).did)
	require.Equal(t, now.Add(3*time.Second), x.now, "it goes on at once")
}

func TestDeletingAttachmentsKeepsNothingOfTheObservation(t *testing.T) {
	t.Parallel()
	in := terminating(byForce, node(marked), drainedByForce, attached("csi-1", "csi-2"))
	before := []*storagev1.VolumeAttachment{in.Attachments.Attachments[0].DeepCopy(), in.Attachments.Attachments[1].DeepCopy()}
	a := machine.Decide(in, machine.Policy{}, now).Do.(machine.DeleteAttachments)
	clear(a.Attachments)
	require.Empty(t, cmp.Diff(before, in.Attachments.Attachments))
}
