// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// attach attaches a volume to the Node of a machine. It is never detached.
func attach(t *testing.T, s *env.Env, machine string) {
	t.Helper()
	volume := "of-" + machine
	_, err := s.Client.StorageV1().VolumeAttachments().Create(t.Context(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: s.NodeName(machine)},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "csi.example.com", NodeName: s.NodeName(machine), Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// deletionBegan returns when the deletion of the VM of a machine began; zero is not
// yet.
func deletionBegan(s *env.Env, machine string) time.Time {
	for _, e := range s.Cloud.History() {
		if e.Kind == drivertest.VMDeletionBegan && e.VM.Machine == machine {
			return e.Time
		}
	}
	return time.Time{}
}

func TestVolumes_AttachedOrTimedOut_VMIsDeletedAfter(t *testing.T) {
	t.Parallel()
	const patient = 20 * time.Second
	s := cluster.Set(t, "volumes", fastOptions())
	manager := s.StartManager(t, "manager", "--machine-pv-detach-timeout="+patient.String())
	ctx, api := t.Context(), s.Machines.MachineV1alpha1().Machines(s.Namespace)
	require.NoError(t, s.Class(ctx, "small"))
	names := []string{"detached", "attached", "without"}
	for _, name := range names {
		create(t, s, s.Machine(name, "small"))
	}
	for _, name := range names {
		s.Wait(t, patience, "it runs", running(s, name))
	}
	attach(t, s, "detached")
	attach(t, s, "attached")
	for _, name := range names {
		require.NoError(t, api.Delete(ctx, name, metav1.DeleteOptions{}))
	}
	s.Wait(t, patience, "who has no volumes goes", gone(s, "without"))
	require.Zero(t, deletionBegan(s, "detached"))
	require.Zero(t, deletionBegan(s, "attached"))

	detached := time.Now()
	require.NoError(t, s.Client.StorageV1().VolumeAttachments().Delete(ctx, s.NodeName("detached"), metav1.DeleteOptions{}))
	s.Wait(t, patience, "who has them no more goes", gone(s, "detached"))
	require.False(t, deletionBegan(s, "detached").Before(detached))
	m := machine(t, s, "attached")
	require.Zero(t, deletionBegan(s, "attached"), "it is patient")
	require.NotNil(t, m.DeletionTimestamp)

	require.Contains(t, manager.Log(), "volumeattachment/"+s.NodeName("attached")+": Detaching", "it says what it waits for") // in the status too, if that takes long
	s.Wait(t, patience, "its time is over", gone(s, "attached"))
	require.GreaterOrEqual(t, deletionBegan(s, "attached").Sub(m.DeletionTimestamp.Time), patient, "it was given its time")
	require.Zero(t, attachmentDeletions(t, s), "no attachment is deleted while the volume is attached")
	require.NoError(t, s.Client.StorageV1().VolumeAttachments().Delete(ctx, s.NodeName("attached"), metav1.DeleteOptions{}))
	removeAll(t, s)
}

// attachmentDeletions counts the deletions of volume attachments that the manager
// has asked for.
func attachmentDeletions(t *testing.T, s *env.Env) (n int) {
	t.Helper()
	requests, err := s.Requests(t.Context())
	require.NoError(t, err)
	for _, r := range requests {
		if r.Resource == "volumeattachments" && r.Verb == "delete" {
			n++
		}
	}
	return n
}

func TestVolumes_ForcedDrain_AreDeclaredDetached(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "forced", fastOptions())
	s.StartManager(t, "manager")
	ctx, api := t.Context(), s.Machines.MachineV1alpha1().Machines(s.Namespace)
	require.NoError(t, s.Class(ctx, "small"))
	m := s.Machine("a", "small")
	m.Labels = map[string]string{v1alpha1.LabelKeyForceDeletion: "true"}
	create(t, s, m)
	s.Wait(t, patience, "it runs", running(s, "a"))
	attach(t, s, "a")
	require.NoError(t, api.Delete(ctx, "a", metav1.DeleteOptions{}))
	s.Wait(t, patience, "it is gone", gone(s, "a"))
	require.Equal(t, 1, attachmentDeletions(t, s))
	removeAll(t, s)
}
