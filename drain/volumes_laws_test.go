// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/machinist-dev/machinist/drain"
)

// randomVolumes is a cordoned Node with random pods and volumes, and a policy that waits for
// them.
func randomVolumes(seed uint64) (*dice, drain.Observation, drain.Policy) {
	d := &dice{bytes: randomBytes(seed, 900)}
	in := d.observation()
	in.Looked, in.Node, in.Pods.Complete, in.Budgets.Items, in.Results = true, newNode(), true, nil, nil
	return d, in, drain.Policy{EvictUnmanaged: d.yes(), EvictLocalStorage: true, Volumes: drain.VolumePolicy{
		Wait: true, DetachTimeout: pick(d, 0, time.Minute), ReattachTimeout: pick(d, 0, time.Minute),
	}}
}

// TestStep_RandomVolumes_End asserts that a drain ends when its last volume is detached or given
// up, with or without its state.
func TestStep_RandomVolumes_End(t *testing.T) {
	for seed := range uint64(500) {
		d, in, policy := randomVolumes(seed)
		policy.Volumes.DetachTimeout, policy.Volumes.ReattachTimeout, policy.EvictUnmanaged = time.Minute, time.Minute, true
		policy.SkipTerminatingAfter = time.Second
		forgetful := d.yes()
		var s drain.State
		var plan drain.Decision
		for step := range 400 {
			if forgetful && step < 20 {
				s = drain.State{}
			}
			if s, plan = drain.Step(s, in, policy, now.Add(time.Duration(step)*10*time.Second)); plan.Over() {
				break
			}
			if step > 20 && len(in.Pods.Items) > 0 && step%2 == 0 { // a pod is deleted
				in.Pods.Items = in.Pods.Items[1:]
			}
			if step > 30 && len(in.Attachments.Items) > 0 && step%4 == 0 {
				in.Attachments.Items = in.Attachments.Items[1:]
			}
		}
		require.True(t, plan.Over(), "seed %d: %v", seed, plan)
	}
}

func FuzzVolumes(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, "kubernetes.io/csi/csi.example.com^disk-1", "csi.example.com", "disk-1", "pv-1")
	}
	f.Add(uint64(0), "kubernetes.io/csi/", "", "", "")
	f.Add(uint64(1), "kubernetes.io/csi/^", "ebs.csi.aws.com", "/", "/")
	f.Add(uint64(2), "/", "pd.csi.storage.gke.io", "projects/UNSPECIFIED/", "volumeattachment/")
	f.Fuzz(func(t *testing.T, seed uint64, unique, driver, handle, volume string) {
		_, in, policy := randomVolumes(seed)
		in = volumesReported(in, corev1.UniqueVolumeName(unique))
		in.Attachments.Items = append(in.Attachments.Items, nil, volumeAttached(volume, "node-1"), &storagev1.VolumeAttachment{
			Spec: storagev1.VolumeAttachmentSpec{NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{InlineVolumeSpec: &corev1.PersistentVolumeSpec{}}},
		})
		pv := volumeCSI(volume, handle)
		pv.Spec.CSI.Driver = driver
		in.Volumes.Items = append(in.Volumes.Items, nil, pv, &corev1.PersistentVolume{})
		in.Claims.Items = append(in.Claims.Items, nil, volumeClaim(volume, volume))
		in.Pods.Items = append(in.Pods.Items, nil, newPod("fuzz", volumesOf(volume, "")), &corev1.Pod{})
		s, plan := drain.Step(drain.State{}, in, policy, now)
		for _, v := range plan.Volumes {
			if v.Volume == volume && volume != "" && v.Attachment != "" {
				require.NotEqual(t, "Detaching", v.Reason, "the pod uses it")
			}
		}
		_, again := drain.Step(s, in, policy, now)
		require.Empty(t, cmp.Diff(plan.Volumes, again.Volumes))
	})
}
