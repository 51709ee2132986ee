// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain"
)

// volumesWaited is a policy that waits for volumes, and for a minute after their pods.
var volumesWaited = drain.Policy{EvictUnmanaged: true, Volumes: drain.VolumePolicy{Wait: true, DetachTimeout: time.Minute}}

// volumesOf mounts claims, each by a volume of the same name.
func volumesOf(claims ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, claim := range claims {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}})
		}
	}
}

// volumesEphemeral gives a pod a generic ephemeral volume.
func volumesEphemeral(p *corev1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "inline", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
}

// volumeClaim is a claim of namespace shop that is bound to a volume.
func volumeClaim(name, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume},
	}
}

// volumeAttached attaches a volume to a node.
func volumeAttached(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume + "@" + node},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
}

// volumeCSI is a persistent volume of a CSI driver.
func volumeCSI(name, handle string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: handle},
		},
	}}
}

// volumesSeen returns an observation with complete lists of claims and attachments.
func volumesSeen(pods []*corev1.Pod, claims []*corev1.PersistentVolumeClaim, attachments ...*storagev1.VolumeAttachment) drain.Observation {
	in := observed(pods...)
	in.Claims, in.Attachments = drain.All(claims...), drain.All(attachments...)
	return in
}

// volumesReported has the status of the Node list volumes.
func volumesReported(in drain.Observation, names ...corev1.UniqueVolumeName) drain.Observation {
	in.Node = in.Node.DeepCopy()
	for _, name := range names {
		in.Node.Status.VolumesAttached = append(in.Node.Status.VolumesAttached, corev1.AttachedVolume{Name: name})
	}
	return in
}

type (
	pods        = []*corev1.Pod
	claims      = []*corev1.PersistentVolumeClaim
	attachments = []*storagev1.VolumeAttachment
)

// volumeTexts returns the rows of volumes: attachment or volume, action and reason.
func volumeTexts(d drain.Decision) string {
	var s []string
	for _, v := range d.Volumes {
		s = append(s, cmp.Or(v.Attachment, v.Volume)+" "+string(v.Action)+" "+string(v.Reason))
	}
	return strings.Join(s, ", ")
}

func TestDecide_OneNode_WhichVolumesAreWaitedFor(t *testing.T) {
	const (
		csi                           = corev1.UniqueVolumeName("kubernetes.io/csi/csi.example.com^")
		inUse, detaching, staysOnNode = "pv@node-1 wait InUse", "pv@node-1 wait Detaching", "pv@node-1 ignore Stays"
	)
	mounting := func(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
		return newPod(name, append(edits, volumesOf("data"))...)
	}
	db, agent := mounting("db-0"), mounting("agent", ownedBy("DaemonSet"))
	elsewhere := mounting("db-0", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" })
	foreign := mounting("agent", ownedBy("DaemonSet"), func(p *corev1.Pod) { p.Namespace = "other" })
	data, here := claims{volumeClaim("data", "pv")}, attachments{volumeAttached("pv", "node-1")}
	inline := claims{volumeClaim("ci-inline", "pv")}
	noVolume := volumeAttached("", "node-1")
	noVolume.Spec.Source.PersistentVolumeName = nil
	none := func(*drain.Observation) {}
	withoutClaims := func(in *drain.Observation) { in.Claims.Complete = false }
	silent := func(in *drain.Observation) {
		in.Reachability = drain.NodeReachability{Unreachable: true, Since: now.Add(-time.Hour)}
	}
	reports := func(handles ...corev1.UniqueVolumeName) func(*drain.Observation) {
		return func(in *drain.Observation) {
			in.Attachments.Complete = len(in.Attachments.Items) > 0
			*in = volumesReported(*in, handles...)
		}
	}
	handles := func(in *drain.Observation) {
		reports(csi+"vol-a(b", csi+"disk+1", csi+"diskk1")(in)
		in.Volumes = drain.All(volumeCSI("pv", "vol-a(b"), volumeCSI("pv-2", "disk+1"))
	}
	known := func(in *drain.Observation) {
		reports(csi+"h-data", csi+"h-other")(in)
		in.Volumes = drain.All(volumeCSI("pv", "h-data"), volumeCSI("pv-other", "h-other"))
	}
	for _, tt := range []struct {
		name        string
		pods        pods
		claims      claims
		attachments attachments
		edit        func(*drain.Observation)
		want        string
	}{
		{"the volume of a pod that was gone before the first step, without its claim", nil, nil, here, none, detaching},
		{"the volume of a finished pod", pods{mounting("job", inPhase(corev1.PodSucceeded))}, data, here, none, detaching},
		{"a volume of another Node", pods{db}, data, attachments{volumeAttached("pv", "node-2")}, none, ""},
		{"a volume that an evicted pod and a pod that stays share", pods{db, mounting("static", mirror)}, data, here, none, staysOnNode},
		{"a pod on another Node does not keep its volume", pods{elsewhere}, data, here, none, detaching},
		{"a claim of the same name in another namespace is another", pods{foreign}, data, here, none, detaching},
		{"a volume that a pod mounts twice is waited for", pods{newPod("db-0", volumesOf("data", "data"))}, data, here, none, inUse},
		{"a volume that two pods share is waited for once", pods{db, mounting("db-1")}, data, here, none, inUse},
		{"the claim of a generic ephemeral volume is named after pod and volume", pods{newPod("ci", volumesEphemeral)}, inline, here, none, inUse},
		{
			"one name within another is another volume", pods{agent}, data, append(here, volumeAttached("pv0", "node-1")), none,
			"pv@node-1 ignore Stays, pv0@node-1 wait Detaching",
		},
		{
			"names are not regular expressions", pods{agent}, data, nil, handles,
			"kubernetes.io/csi/csi.example.com^diskk1 wait Detaching, pv ignore Stays, pv-2 wait Detaching",
		},
		{
			"a volume without attachment in the status of the Node", pods{db}, data, attachments{volumeAttached("pv-other", "node-1")}, known,
			"pv wait InUse, pv-other@node-1 wait Detaching",
		},
		{"without volumes a list of attachments counts", pods{db}, data, attachments{nil}, reports(csi + "h"), ""},
		{
			"without volumes and attachments the status of the Node counts", pods{db}, data, nil, reports(csi + "h"),
			"kubernetes.io/csi/csi.example.com^h wait Detaching",
		},
		{"an in-tree volume that only the status of the Node shows", nil, nil, attachments{nil}, reports("kubernetes.io/gce-pd/disk-1"), ""},
		{"an attachment that names no volume does not count", pods{db}, data, attachments{noVolume}, none, ""},
		{"without claims, an evicted pod may use each volume", pods{db}, nil, here, withoutClaims, inUse},
		{"without claims, waits for a volume that a pod that stays may use", pods{agent}, nil, here, withoutClaims, "pv@node-1 wait NotEvaluated"},
		{"an incomplete list of claims has the claim of a pod that stays", pods{agent}, data, here, withoutClaims, staysOnNode},
		{"the volumes of an unreachable Node are abandoned", nil, nil, here, silent, "pv@node-1 ignore Abandoned"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := volumesSeen(tt.pods, tt.claims, tt.attachments...)
			tt.edit(&in)
			plan := drain.Decide(in, volumesWaited, now)
			require.Equal(t, tt.want, volumeTexts(plan))
			for _, v := range plan.Volumes {
				timed := v.Action == drain.Wait && v.Reason != "InUse" // a change of the pod ends the other wait
				require.Equal(t, timed, v.Until.Equal(now.Add(time.Minute)))
			}
			require.False(t, strings.Contains(tt.want, "wait") && plan.Over())
			require.Empty(t, drain.Decide(in, drain.Policy{}, now).Volumes, "the zero policy waits for nothing")
		})
	}
}

// volumeStory steps one drain.
type volumeStory struct {
	t      *testing.T
	state  drain.State
	policy drain.Policy
}

func (s *volumeStory) at(after time.Duration, in drain.Observation) drain.Decision {
	s.t.Helper()
	var plan drain.Decision
	s.state, plan = drain.Step(s.state, in, s.policy, now.Add(after))
	return plan
}

// rows requires the rows and the outcome of a step.
func (s *volumeStory) rows(after time.Duration, in drain.Observation, outcome drain.Outcome, want string) drain.Decision {
	s.t.Helper()
	plan := s.at(after, in)
	require.Equal(s.t, []any{want, outcome}, []any{volumeTexts(plan), plan.Outcome})
	return plan
}

func TestStep_DetachTimeout_CountsFromTheLastUser(t *testing.T) {
	s := &volumeStory{t: t, policy: volumesWaited}
	a, b := newPod("a", volumesOf("data")), newPod("b", volumesOf("data"))
	va := volumeAttached("pv", "node-1")
	va.Status.DetachError = &storagev1.VolumeError{Message: "the disk is busy"}
	seen := func(pods ...*corev1.Pod) drain.Observation {
		return volumesSeen(pods, claims{volumeClaim("data", "pv")}, va)
	}
	const inUse, detaching, second = "pv@node-1 wait InUse", "pv@node-1 wait Detaching", time.Second
	s.rows(0, seen(a, b), drain.Draining, inUse)
	plan := s.rows(time.Hour, seen(b), drain.Draining, inUse)
	require.Equal(t, []any{now, "pod shop/b uses it"}, []any{plan.Volumes[0].Since, plan.Volumes[0].Message})
	plan = s.rows(2*time.Hour, seen(), drain.Draining, detaching)
	require.Equal(t, now.Add(2*time.Hour), plan.Volumes[0].Since)
	require.Equal(t, "the disk is busy", plan.Volumes[0].Message)
	require.Equal(t, now.Add(2*time.Hour+time.Minute), plan.NextCheck)
	require.Equal(t, "volumeattachment/pv@node-1", plan.Holds()[0].Subject)

	late := s.state // the deadline is the same in all steps
	s.rows(2*time.Hour+59*second, seen(), drain.Draining, detaching)
	s.rows(2*time.Hour+60*second, seen(), drain.Proceeded, "pv@node-1 ignore Abandoned")
	s.rows(3*time.Hour, volumesSeen(nil, nil), drain.Drained, "")
	s.state = late
	s.rows(2*time.Hour+60*second, seen(a), drain.Draining, inUse)
	restarts := func(after time.Duration) {
		plan := s.rows(after, seen(), drain.Draining, detaching)
		require.Equal(t, now.Add(after+time.Minute), plan.Volumes[0].Until)
	}
	restarts(3 * time.Hour) // after a new pod
	s.state = drain.State{}
	restarts(4 * time.Hour) // without the state
	restarts(3 * time.Hour) // after the clock was set back
}

func TestStep_NoDetachTimeout_WaitsAnyTime(t *testing.T) {
	s := &volumeStory{t: t, policy: drain.Policy{Volumes: drain.VolumePolicy{Wait: true}}}
	in := volumesSeen(nil, nil, volumeAttached("pv", "node-1"))
	s.at(0, in)
	plan := s.rows(1000*time.Hour, in, drain.Draining, "pv@node-1 wait Detaching")
	require.Zero(t, plan.Volumes[0].Until)
}

func TestStep_UnreachableNodeAnswersAgain_WaitsForVolumes(t *testing.T) {
	db, data := pods{newPod("db-0", volumesOf("data"))}, claims{volumeClaim("data", "pv")}
	s := &volumeStory{t: t, policy: volumesWaited}
	s.policy.Volumes.ReattachTimeout = time.Hour
	s.at(0, volumesSeen(db, data, volumeAttached("pv", "node-1")))
	silent := volumesSeen(nil, nil, volumeAttached("pv", "node-1"))
	silent.Reachability.Unreachable = true
	s.rows(time.Second, silent, drain.Proceeded, "pv@node-1 ignore Abandoned")
	s.rows(2*time.Second, volumesSeen(nil, data), drain.Draining, "pv wait Reattaching")
}

func TestStep_ReattachTimeout_WaitsUntilTheVolumeIsElsewhere(t *testing.T) {
	const reattaching, second = "pv wait Reattaching", time.Second
	policy := volumesWaited
	policy.Volumes.ReattachTimeout = 90 * second
	data := claims{volumeClaim("data", "pv")}
	db, here, there := newPod("db-0", volumesOf("data")), volumeAttached("pv", "node-1"), volumeAttached("pv", "node-2")
	coming, deleted := there.DeepCopy(), there.DeepCopy()
	coming.Status.Attached = false
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	begun := func(t *testing.T) *volumeStory { // the volume was detached after 20 seconds
		s := &volumeStory{t: t, policy: policy}
		s.at(0, volumesSeen(pods{db}, data, here))
		s.at(10*second, volumesSeen(nil, data, here))
		plan := s.rows(20*second, volumesSeen(nil, data), drain.Draining, reattaching)
		require.Equal(t, now.Add(25*second), plan.NextCheck, "the Node has no event of it")
		require.Equal(t, "volume/pv", plan.Holds()[0].Subject)
		return s
	}
	withVolume := func(volumes ...*corev1.PersistentVolume) drain.Observation {
		in := volumesSeen(nil, nil)
		in.Volumes = drain.All(volumes...)
		return in
	}
	inPhase := func(phase corev1.PersistentVolumePhase) drain.Observation {
		pv := volumeCSI("pv", "h")
		pv.Status.Phase = phase
		return withVolume(pv)
	}
	unknown := volumesSeen(nil, data)
	unknown.Attachments.Complete = false
	for _, tt := range []struct {
		name    string
		at      time.Duration
		in      drain.Observation
		outcome drain.Outcome
		want    string
	}{
		{"an attachment that is not attached yet", 21 * second, volumesSeen(nil, data, coming), drain.Draining, reattaching},
		{"an attachment that is deleted", 30 * second, volumesSeen(nil, data, deleted), drain.Draining, reattaching},
		{"before its timeout", 109 * second, volumesSeen(nil, data), drain.Draining, reattaching},
		{"not after its timeout, and the Node is Drained", 110 * second, volumesSeen(nil, data), drain.Drained, "pv ignore Reattaching"},
		{"not without attachments", 30 * second, unknown, drain.Drained, "pv ignore NotEvaluated"},
		{"not if the volume was released", 30 * second, inPhase(corev1.VolumeReleased), drain.Drained, ""},
		{"not if the volume is gone", 30 * second, withVolume(), drain.Drained, ""},
		{"a volume that is bound", 30 * second, inPhase(corev1.VolumeBound), drain.Draining, reattaching},
		{"not if a pod that stays uses it", 30 * second, volumesSeen(pods{newPod("agent", ownedBy("DaemonSet"), volumesOf("data"))}, data), drain.Drained, ""},
		{"not if a pod on the Node uses it", 30 * second, volumesSeen(pods{db}, data), drain.Draining, ""},
		{"not if it is attached to the Node again", 30 * second, volumesSeen(pods{db}, data, here), drain.Draining, "pv@node-1 wait InUse"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begun(t).rows(tt.at, tt.in, tt.outcome, tt.want)
		})
	}
	t.Run("it is checked again without an event", func(t *testing.T) {
		s := begun(t)
		s.rows(22*second, volumesSeen(nil, data, there), drain.Drained, "")
		s.rows(23*second, volumesSeen(nil, data), drain.Drained, "")
	})
	t.Run("not after the end of the ladder", func(t *testing.T) {
		s := begun(t)
		s.policy.Ladder = drain.Ladder{{After: 25 * second, Action: drain.Proceed}}
		s.rows(30*second, volumesSeen(nil, data), drain.Proceeded, "pv ignore Abandoned")
	})
	t.Run("not after its DetachTimeout", func(t *testing.T) {
		s := &volumeStory{t: t, policy: policy}
		s.at(0, volumesSeen(pods{db}, data, here))
		s.at(10*second, volumesSeen(nil, data, here))
		s.rows(70*second, volumesSeen(nil, data, here), drain.Proceeded, "pv@node-1 ignore Abandoned")
		s.rows(80*second, volumesSeen(nil, data), drain.Drained, "")
	})
	t.Run("deletions are not one at a time", func(t *testing.T) {
		more := claims{data[0], volumeClaim("more", "pv-more")}
		in := volumesSeen(pods{db, newPod("db-1", volumesOf("more"))}, more, here, volumeAttached("pv-more", "node-1"))
		forced := policy
		forced.Ladder = drain.Ladder{{Action: drain.IgnoreBudgets}}
		require.Equal(t, "db-0 delete IgnoreBudgets, db-1 delete IgnoreBudgets", rows(drain.Decide(in, forced, now)))
	})
	t.Run("only for pods that a controller recreates with the same claim", func(t *testing.T) {
		for name, pod := range map[string]*corev1.Pod{
			"unmanaged": newPod("db-0", unmanaged, volumesOf("data")), "ephemeral": newPod("ci", volumesEphemeral),
			"finished": newPod("job", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, volumesOf("data")),
		} {
			s := &volumeStory{t: t, policy: policy}
			s.at(0, volumesSeen(pods{pod}, append(data, volumeClaim("ci-inline", "pv")), here))
			require.Equal(t, drain.Drained, s.at(10*second, volumesSeen(nil, nil)).Outcome, name)
		}
	})
}

func TestStep_SomeClaimsAreUnknown_VolumesAreNotEvaluated(t *testing.T) {
	s := &volumeStory{t: t, policy: volumesWaited}
	agent := newPod("agent", ownedBy("DaemonSet"), volumesOf("cache", "other"))
	in := volumesSeen(pods{agent}, claims{volumeClaim("cache", "pv")}, volumeAttached("pv-x", "node-1"))
	in.Claims.Complete = false
	for i := range 2 {
		s.rows(time.Duration(i)*time.Second, in, drain.Draining, "pv-x@node-1 wait NotEvaluated")
	}
}

// TestDecide_TwoVolumesOfOneDisk_AreOne has an attached volume, and a pod that stays and uses another volume.
func TestDecide_TwoVolumesOfOneDisk_AreOne(t *testing.T) {
	const gce = "pd.csi.storage.gke.io"
	for name, tt := range map[string]struct {
		drivers, handles [2]string
		want             string
	}{
		"one disk":                            {[2]string{gce, gce}, [2]string{"disk", "disk"}, "Stays"},
		"disks of two drivers":                {[2]string{gce, "other.example.com"}, [2]string{"disk", "disk"}, "Detaching"},
		"disks of the same name in two zones": {[2]string{gce, gce}, [2]string{"zones/a/disks/d", "zones/b/disks/d"}, "Detaching"},
		"two of a driver without a handle":    {[2]string{gce, gce}, [2]string{}, "Detaching"},
		"two handles without a driver":        {[2]string{}, [2]string{"disk", "disk"}, "Detaching"},
	} {
		t.Run(name, func(t *testing.T) {
			agent := newPod("agent", ownedBy("DaemonSet"), volumesOf("b"))
			bound := claims{volumeClaim("a", "pv-a"), volumeClaim("b", "pv-b")}
			in := volumesSeen(pods{agent}, bound, volumeAttached("pv-a", "node-1"))
			in.Volumes = drain.All(volumeCSI("pv-a", tt.handles[0]), volumeCSI("pv-b", tt.handles[1]))
			for i, pv := range in.Volumes.Items {
				pv.Spec.CSI.Driver = tt.drivers[i]
			}
			require.EqualValues(t, tt.want, drain.Decide(in, volumesWaited, now).Volumes[0].Reason)
		})
	}
}

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
		require.Equal(t, plan.Volumes, again.Volumes)
	})
}
