// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain"
)

// volumesTown is a Node with pods and volumes of all kinds, and what was observed of it.
type volumesTown struct {
	*rand.Rand
	in drain.Observation
}

func newVolumesTown(seed uint64) *volumesTown {
	town := &volumesTown{Rand: rand.New(rand.NewPCG(seed, 7))}
	var all pods
	for i := range town.IntN(6) {
		all = append(all, town.pod(i))
	}
	town.in = observed(all...)
	town.in.Attachments.Complete, town.in.Claims.Complete = town.IntN(8) > 0, town.IntN(4) > 0
	for i := range 4 {
		if name := fmt.Sprint("claim-", i); town.IntN(6) > 0 {
			town.in.Claims.Items = append(town.in.Claims.Items, volumeClaim(name, town.volume()))
		}
		town.in.Claims.Items = append(town.in.Claims.Items, volumeClaim(fmt.Sprintf("pod-%d-inline", i), town.volume()))
	}
	for range town.IntN(6) {
		town.in.Attachments.Items = append(town.in.Attachments.Items, town.attachment())
	}
	if town.IntN(2) == 0 {
		town.in.Volumes.Complete = true
		for i := range 6 {
			town.in.Volumes.Items = append(town.in.Volumes.Items, volumeCSI(fmt.Sprint("pv-", i), fmt.Sprint("disk-", i)))
		}
	}
	for range town.IntN(3) {
		town.in = volumesReported(town.in, []corev1.UniqueVolumeName{
			"kubernetes.io/csi/csi.example.com^disk-1", "kubernetes.io/gce-pd/disk", "kubernetes.io/csi/ebs.csi.aws.com^vol-1", "", "?", "a/b",
			"kubernetes.io/csi/csi.example.com^disk-9",
		}[town.IntN(7)])
	}
	town.in.Reachability.Unreachable = town.IntN(4) == 0
	return town
}

func (t *volumesTown) volume() string {
	if t.IntN(8) == 0 {
		return ""
	}
	return fmt.Sprint("pv-", t.IntN(6))
}

func (t *volumesTown) pod(i int) *corev1.Pod {
	kinds := []func(*corev1.Pod){
		ownedBy("ReplicaSet"), ownedBy("StatefulSet"), ownedBy("DaemonSet"), mirror, unmanaged, inPhase(corev1.PodSucceeded),
		leaving(10*time.Second, 30), leaving(-time.Hour, 30), func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }, func(p *corev1.Pod) { p.Spec.NodeName = "" },
	}
	pod := newPod(fmt.Sprint("pod-", i), kinds[t.IntN(len(kinds))])
	for range t.IntN(3) {
		[]func(*corev1.Pod){
			volumesOf(fmt.Sprint("claim-", t.IntN(4))), emptyDir, volumesEphemeral,
		}[t.IntN(3)](pod)
	}
	return pod
}

func (t *volumesTown) attachment() *storagev1.VolumeAttachment {
	node := fmt.Sprint("node-", 1+t.IntN(2))
	va := volumeAttached(fmt.Sprint("pv-", t.IntN(6)), node)
	switch t.IntN(8) {
	case 0:
		va.Spec.Source = storagev1.VolumeAttachmentSource{}
	case 2:
		va.Status.Attached = false
	case 3:
		va.DeletionTimestamp = &metav1.Time{Time: now}
	case 4:
		return nil
	}
	return va
}

func (t *volumesTown) policy() drain.Policy {
	p := drain.Policy{EvictUnmanaged: t.IntN(2) == 0, EvictLocalStorage: true}
	p.Volumes = drain.VolumePolicy{Wait: true}
	if t.IntN(2) == 0 {
		p.Volumes.DetachTimeout = time.Minute
	}
	if t.IntN(2) == 0 {
		p.Volumes.ReattachTimeout = time.Minute
	}
	return p
}

// keepers are the volumes that pods which stay are known to use, found the long way.
func (t *volumesTown) keepers(plan drain.Decision) map[string]bool {
	kept := map[string]bool{}
	for _, pod := range t.in.Pods.Items {
		stays := false
		for _, row := range plan.Rows {
			stays = stays || row.UID == pod.UID && row.Verdict == drain.Ignore && row.Reason != drain.ReasonGone
		}
		for _, v := range pod.Spec.Volumes {
			for _, claim := range t.in.Claims.Items {
				if stays && (v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name || v.Ephemeral != nil && pod.Name+"-"+v.Name == claim.Name) {
					kept[claim.Spec.VolumeName] = true
				}
			}
		}
	}
	return kept
}

func shuffled[T any](r *rand.Rand, list drain.List[T]) drain.List[T] {
	items := append([]T{}, list.Items...)
	r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	list.Items = items
	return list
}

func TestLawsOfVolumes(t *testing.T) {
	ends := map[drain.Outcome]int{}
	for seed := range uint64(2000) {
		town := newVolumesTown(seed)
		policy := town.policy()
		before, plan := drain.Step(drain.State{}, town.in, policy, now)
		ends[plan.Outcome]++
		kept := town.keepers(plan)
		waited := map[string]drain.VolumeRow{}
		for i, v := range plan.Volumes {
			require.True(t, v.Verdict == drain.Wait || v.Verdict == drain.Ignore, "seed %d: %v", seed, v)
			require.NotEmpty(t, v.Reason, "seed %d: %v", seed, v)
			require.False(t, v.Verdict == drain.Wait && kept[v.Volume], "seed %d: waits for a volume that stays: %v", seed, v)
			require.False(t, i > 0 && plan.Volumes[i-1].Volume >= v.Volume, "seed %d: no order: %v", seed, plan.Volumes)
			waited[v.Volume] = v
		}
		town.nothingIsForgotten(t, seed, plan, kept, waited)

		other := town.in
		other.Pods, other.Claims = shuffled(town.Rand, other.Pods), shuffled(town.Rand, other.Claims)
		other.Attachments, other.Volumes = shuffled(town.Rand, other.Attachments), shuffled(town.Rand, other.Volumes)
		other.Attachments.Items = append(other.Attachments.Items, other.Attachments.Items...) // and twice
		other.Node = town.in.Node.DeepCopy()
		town.Shuffle(len(other.Node.Status.VolumesAttached), func(i, j int) {
			a := other.Node.Status.VolumesAttached
			a[i], a[j] = a[j], a[i]
		})
		after, again := drain.Step(drain.State{}, other, policy, now)
		require.Empty(t, cmp.Diff(plan, again), "seed %d: the order counts", seed)
		require.Empty(t, cmp.Diff(before, after), "seed %d: the order counts", seed)
	}
	t.Log(ends)
	for _, outcome := range []drain.Outcome{drain.Draining, drain.Drained, drain.Proceeded} {
		require.Greater(t, ends[outcome], 50, "the towns are too tame")
	}
}

// nothingIsForgotten requires that a drained Node has no attachment left but those of
// pods that stay.
func (t *volumesTown) nothingIsForgotten(tt *testing.T, seed uint64, plan drain.Decision, kept map[string]bool, rows map[string]drain.VolumeRow) {
	tt.Helper()
	for _, va := range t.in.Attachments.Items {
		if va == nil || va.Spec.NodeName != "node-1" || va.Spec.Source.PersistentVolumeName == nil {
			continue
		}
		name := *va.Spec.Source.PersistentVolumeName
		row, told := rows[name]
		require.True(tt, told, "seed %d: nothing is said of %s", seed, name)
		if plan.Outcome == drain.Drained {
			require.True(tt, kept[name], "seed %d: drained with %v", seed, row)
		}
		if plan.Outcome == drain.Proceeded && !kept[name] {
			require.Equal(tt, drain.ReasonAbandoned, row.Reason, "seed %d", seed)
		}
	}
}

func TestStepsOfVolumesChangeNothingTheyAreGiven(t *testing.T) {
	for seed := range uint64(500) {
		town := newVolumesTown(seed)
		policy := town.policy()
		s, _ := drain.Step(drain.State{}, town.in, policy, now)
		in := town.in
		copies := newVolumesTown(seed).in
		given, plan := drain.Step(s, in, policy, now.Add(time.Second))
		again, same := drain.Step(s, copies, policy, now.Add(time.Second))
		require.Empty(t, cmp.Diff(copies, in), "seed %d", seed)
		require.Empty(t, cmp.Diff(plan, same), "seed %d", seed)
		require.Empty(t, cmp.Diff(given, again), "seed %d", seed)
	}
}

// A drain whose volumes come off, or not, ends, and it ends as soon as the last has: with
// or without what it remembers.
func TestVolumesEnd(t *testing.T) {
	for seed := range uint64(500) {
		town := newVolumesTown(seed)
		policy := town.policy()
		policy.Volumes.DetachTimeout, policy.Volumes.ReattachTimeout, policy.EvictUnmanaged = time.Minute, time.Minute, true
		policy.SkipTerminatingAfter = time.Second
		forgetful := town.IntN(2) == 0
		var s drain.State
		var plan drain.Decision
		in := town.in
		for step := range 400 {
			at := now.Add(time.Duration(step) * 10 * time.Second)
			if forgetful && step < 20 {
				s = drain.State{}
			}
			if s, plan = drain.Step(s, in, policy, at); plan.Over() {
				break
			}
			if step > 20 && len(in.Pods.Items) > 0 && town.IntN(2) == 0 { // a pod goes
				in.Pods.Items = in.Pods.Items[1:]
			}
			if step > 30 && len(in.Attachments.Items) > 0 && town.IntN(4) == 0 {
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
		town := newVolumesTown(seed)
		in := volumesReported(town.in, corev1.UniqueVolumeName(unique))
		in.Attachments.Items = append(in.Attachments.Items, nil, volumeAttached(volume, "node-1"), &storagev1.VolumeAttachment{
			Spec: storagev1.VolumeAttachmentSpec{NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{InlineVolumeSpec: &corev1.PersistentVolumeSpec{}}},
		})
		pv := volumeCSI(volume, handle)
		pv.Spec.CSI.Driver = driver
		in.Volumes.Items = append(in.Volumes.Items, nil, pv, &corev1.PersistentVolume{})
		in.Claims.Items = append(in.Claims.Items, nil, volumeClaim(volume, volume))
		in.Pods.Items = append(in.Pods.Items, nil, newPod("fuzz", volumesOf(volume, "")), &corev1.Pod{})
		policy := town.policy()
		s, plan := drain.Step(drain.State{}, in, policy, now)
		for _, v := range plan.Volumes {
			if v.Volume == volume && volume != "" && v.Attachment != "" {
				require.NotEqual(t, drain.ReasonDetaching, v.Reason, "the pod uses it")
			}
		}
		_, again := drain.Step(s, in, policy, now)
		require.Empty(t, cmp.Diff(plan.Volumes, again.Volumes))
	})
}

// A Node with 110 pods, each with a volume, in the middle of its drain.
func BenchmarkStepWithVolumes(b *testing.B) {
	in := observed()
	in.Claims.Complete, in.Attachments.Complete, in.Budgets.Complete, in.DaemonSets.Complete = true, true, true, true
	for i := range 110 {
		name := fmt.Sprint("db-", i)
		in.Pods.Items = append(in.Pods.Items, newPod(name, volumesOf(name)))
		in.Claims.Items = append(in.Claims.Items, volumeClaim(name, "pv-"+name))
		in.Attachments.Items = append(in.Attachments.Items, volumeAttached("pv-"+name, "node-1"))
	}
	for name, wait := range map[string]bool{"waited for": true, "not waited for": false} {
		policy := volumesWaited
		policy.Volumes.Wait = wait
		s, _ := drain.Step(drain.State{}, in, policy, now)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				drain.Step(s, in, policy, now)
			}
		})
	}
}
