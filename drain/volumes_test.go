// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"cmp"
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
		ObjectMeta: metav1.ObjectMeta{Name: "va-" + volume + "-" + node},
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
	pods   = []*corev1.Pod
	claims = []*corev1.PersistentVolumeClaim
)

// volumeTexts returns the rows of volumes: attachment or volume, action and reason.
func volumeTexts(d drain.Decision) []string {
	var s []string
	for _, v := range d.Volumes {
		s = append(s, cmp.Or(v.Attachment, v.Volume)+" "+string(v.Action)+" "+string(v.Reason))
	}
	return s
}

func TestDecide_OneNode_WhichVolumesAreWaitedFor(t *testing.T) {
	db := newPod("db-0", volumesOf("data"))
	data := claims{volumeClaim("data", "pv-data")}
	here := volumeAttached("pv-data", "node-1")
	agent := newPod("agent", ownedBy("DaemonSet"), volumesOf("cache"))
	handle := func(in drain.Observation, volumes ...*corev1.PersistentVolume) drain.Observation {
		in.Volumes = drain.All(volumes...)
		return in
	}
	without := func(in drain.Observation, source drain.Source) drain.Observation {
		switch source {
		case drain.SourceAttachments:
			in.Attachments = drain.List[*storagev1.VolumeAttachment]{}
		case drain.SourceClaims:
			in.Claims = drain.List[*corev1.PersistentVolumeClaim]{}
		default:
			t.Fatal(source)
		}
		return in
	}
	unreachable := func(in drain.Observation) drain.Observation {
		in.Reachability = drain.NodeReachability{Unreachable: true, Since: now.Add(-time.Hour)}
		return in
	}
	for name, test := range map[string]struct {
		in   drain.Observation
		want []string
	}{
		"no volume is attached":            {in: volumesSeen(pods{db}, data)},
		"the volume of an evicted pod":     {in: volumesSeen(pods{db}, data, here), want: []string{"va-pv-data-node-1 wait InUse"}},
		"the volume of a pod that is gone": {in: volumesSeen(nil, data, here), want: []string{"va-pv-data-node-1 wait Detaching"}},
		"the volume of a pod that was gone before the first step, without its claim": {in: volumesSeen(nil, nil, here), want: []string{"va-pv-data-node-1 wait Detaching"}},
		"the volume of a finished pod":                            {in: volumesSeen(pods{newPod("job", inPhase(corev1.PodSucceeded), volumesOf("data"))}, data, here), want: []string{"va-pv-data-node-1 wait Detaching"}},
		"a volume of another Node":                                {in: volumesSeen(pods{db}, data, volumeAttached("pv-data", "node-2"))},
		"the volume of a DaemonSet stays":                         {in: volumesSeen(pods{agent}, claims{volumeClaim("cache", "pv-cache")}, volumeAttached("pv-cache", "node-1")), want: []string{"va-pv-cache-node-1 ignore Stays"}},
		"a volume that an evicted pod and a pod that stays share": {in: volumesSeen(pods{db, newPod("mirror", mirror, volumesOf("data"))}, data, here), want: []string{"va-pv-data-node-1 ignore Stays"}},
		"a pod on another Node does not keep its volume": {
			in:   volumesSeen(pods{newPod("db-0", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }, volumesOf("data"))}, data, here),
			want: []string{"va-pv-data-node-1 wait Detaching"},
		},
		"a claim of the same name in another namespace is another": {
			in:   volumesSeen(pods{newPod("agent", ownedBy("DaemonSet"), func(p *corev1.Pod) { p.Namespace = "other" }, volumesOf("data"))}, data, here),
			want: []string{"va-pv-data-node-1 wait Detaching"},
		},
		"a volume that a pod mounts twice is waited for":  {in: volumesSeen(pods{newPod("db-0", volumesOf("data", "data"))}, data, here), want: []string{"va-pv-data-node-1 wait InUse"}},
		"a volume that two pods share is waited for once": {in: volumesSeen(pods{db, newPod("db-1", volumesOf("data"))}, data, here), want: []string{"va-pv-data-node-1 wait InUse"}},
		"the claim of a generic ephemeral volume is named after pod and volume": {
			in: volumesSeen(pods{newPod("ci", volumesEphemeral)},
				claims{volumeClaim("ci-inline", "pv-ci")}, volumeAttached("pv-ci", "node-1")),
			want: []string{"va-pv-ci-node-1 wait InUse"},
		},
		"the generic ephemeral volume of a DaemonSet stays": {
			in: volumesSeen(pods{newPod("ci", ownedBy("DaemonSet"), volumesEphemeral)},
				claims{volumeClaim("ci-inline", "pv-ci")}, volumeAttached("pv-ci", "node-1")),
			want: []string{"va-pv-ci-node-1 ignore Stays"},
		},
		"one name within another is another volume": {
			in: volumesSeen(pods{newPod("agent", ownedBy("DaemonSet"), volumesOf("one"))},
				claims{volumeClaim("one", "vol-1")}, volumeAttached("vol-1", "node-1"), volumeAttached("vol-10", "node-1")),
			want: []string{"va-vol-1-node-1 ignore Stays", "va-vol-10-node-1 wait Detaching"},
		},
		"names are not regular expressions": {
			in: handle(volumesReported(without(volumesSeen(pods{newPod("agent", ownedBy("DaemonSet"), volumesOf("one"))},
				claims{volumeClaim("one", "pv-1")}), drain.SourceAttachments),
				"kubernetes.io/csi/csi.example.com^vol-a(b", "kubernetes.io/csi/csi.example.com^disk+1", "kubernetes.io/csi/csi.example.com^diskk1"),
				volumeCSI("pv-1", "vol-a(b"), volumeCSI("pv-2", "disk+1")),
			want: []string{"kubernetes.io/csi/csi.example.com^diskk1 wait Detaching", "pv-1 ignore Stays", "pv-2 wait Detaching"},
		},
		"a volume without attachment in the status of the Node": {
			in: handle(volumesReported(volumesSeen(pods{db}, data, volumeAttached("pv-other", "node-1")),
				"kubernetes.io/csi/csi.example.com^h-data", "kubernetes.io/csi/csi.example.com^h-other"),
				volumeCSI("pv-data", "h-data"), volumeCSI("pv-other", "h-other")),
			want: []string{"pv-data wait InUse", "va-pv-other-node-1 wait Detaching"},
		},
		"without volumes a complete list of attachments counts": {in: volumesReported(volumesSeen(pods{db}, data), "kubernetes.io/csi/csi.example.com^h-data")},
		"without volumes and attachments the status of the Node counts": {
			in:   volumesReported(without(volumesSeen(pods{db}, data), drain.SourceAttachments), "kubernetes.io/csi/csi.example.com^h-data"),
			want: []string{"kubernetes.io/csi/csi.example.com^h-data wait Detaching"},
		},
		"an in-tree volume that only the status of the Node shows": {in: volumesReported(volumesSeen(nil, nil), "kubernetes.io/gce-pd/disk-1")},
		"an attachment that names no volume does not count": {
			in: volumesSeen(pods{db}, data, &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va"}, Spec: storagev1.VolumeAttachmentSpec{NodeName: "node-1"}}),
		},
		"NFS, host paths, configuration and inline CSI volumes have no attachment": {
			in: volumesSeen(pods{newPod("web", func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{
					{VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}},
					{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}},
					{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
					{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.example.com"}}}, {},
				}
			})}, nil),
		},
		"without claims, an evicted pod may use each volume":               {in: without(volumesSeen(pods{db}, nil, here), drain.SourceClaims), want: []string{"va-pv-data-node-1 wait InUse"}},
		"without claims, waits for a volume that a pod that stays may use": {in: without(volumesSeen(pods{agent}, nil, here), drain.SourceClaims), want: []string{"va-pv-data-node-1 wait NotEvaluated"}},
		"an incomplete list of claims has the claim of a pod that stays": {
			in: func() drain.Observation {
				in := volumesSeen(pods{agent}, claims{volumeClaim("cache", "pv-data")}, here)
				in.Claims.Complete = false
				return in
			}(),
			want: []string{"va-pv-data-node-1 ignore Stays"},
		},
		"the volumes of an unreachable Node are abandoned": {in: unreachable(volumesSeen(nil, nil, here)), want: []string{"va-pv-data-node-1 ignore Abandoned"}},
		"without any list the volumes are NotEvaluated":    {in: without(volumesSeen(pods{db}, data), drain.SourceAttachments), want: []string{" ignore NotEvaluated"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := drain.Decide(test.in, volumesWaited, now)
			require.Equal(t, test.want, volumeTexts(plan))
			waits := false
			for _, v := range plan.Volumes {
				waits = waits || v.Action == drain.Wait
				if v.Action == drain.Wait && v.Reason == "InUse" {
					require.Zero(t, v.Until, "a change of the pod ends the wait")
					require.NotEmpty(t, v.Message)
				} else if v.Action == drain.Wait {
					require.Equal(t, now.Add(time.Minute), v.Until)
				}
			}
			require.False(t, waits && plan.Over())
			if waits {
				require.False(t, plan.NextCheck.IsZero())
			}
			none := volumesWaited
			none.Volumes.Wait = false
			require.Empty(t, drain.Decide(test.in, none, now).Volumes, "the zero policy waits for nothing")
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

// rows requires the rows of a plan.
func (s *volumeStory) rows(plan drain.Decision, outcome drain.Outcome, want ...string) {
	s.t.Helper()
	require.Equal(s.t, want, volumeTexts(plan))
	require.Equal(s.t, outcome, plan.Outcome)
}

func TestStep_DetachTimeout_CountsFromTheLastUser(t *testing.T) {
	s := &volumeStory{t: t, policy: volumesWaited}
	data := claims{volumeClaim("data", "pv")}
	a, b := newPod("a", volumesOf("data")), newPod("b", volumesOf("data"))
	va := volumeAttached("pv", "node-1")
	inUse := "va-pv-node-1 wait InUse"
	detaching := "va-pv-node-1 wait Detaching"

	s.rows(s.at(0, volumesSeen(pods{a, b}, data, va)), drain.Draining, inUse)
	plan := s.at(time.Hour, volumesSeen(pods{b}, data, va))
	s.rows(plan, drain.Draining, inUse)
	require.Equal(t, now, plan.Volumes[0].Since)
	require.Equal(t, "pod shop/b uses it", plan.Volumes[0].Message)
	plan = s.at(2*time.Hour, volumesSeen(nil, data, va))
	s.rows(plan, drain.Draining, detaching)
	require.Equal(t, now.Add(2*time.Hour), plan.Volumes[0].Since)
	require.Equal(t, now.Add(2*time.Hour+time.Minute), plan.NextCheck)
	require.Equal(t, "volumeattachment/va-pv-node-1", plan.Holds()[0].Subject)

	late := s.state // the deadline is the same in all steps
	s.rows(s.at(2*time.Hour+59*time.Second, volumesSeen(nil, data, va)), drain.Draining, detaching)
	s.rows(s.at(2*time.Hour+time.Minute, volumesSeen(nil, data, va)), drain.Proceeded, "va-pv-node-1 ignore Abandoned")
	s.rows(s.at(3*time.Hour, volumesSeen(nil, data)), drain.Drained)

	s.state = late // a new pod restarts the timeout
	s.rows(s.at(2*time.Hour+time.Minute, volumesSeen(pods{a}, data, va)), drain.Draining, inUse)
	plan = s.at(3*time.Hour, volumesSeen(nil, data, va))
	s.rows(plan, drain.Draining, detaching)
	require.Equal(t, now.Add(3*time.Hour+time.Minute), plan.Volumes[0].Until)

	s.state = drain.State{} // a lost state restarts the timeout
	plan = s.at(4*time.Hour, volumesSeen(nil, data, va))
	s.rows(plan, drain.Draining, detaching)
	require.Equal(t, now.Add(4*time.Hour+time.Minute), plan.Volumes[0].Until)
	plan = s.at(3*time.Hour, volumesSeen(nil, data, va)) // a clock that is set back restarts the timeout
	require.Equal(t, now.Add(3*time.Hour+time.Minute), plan.Volumes[0].Until)
}

func TestStep_NoDetachTimeout_WaitsAnyTime(t *testing.T) {
	s := &volumeStory{t: t, policy: drain.Policy{Volumes: drain.VolumePolicy{Wait: true}}}
	in := volumesSeen(nil, nil, volumeAttached("pv", "node-1"))
	in.Attachments.Items[0].Status.DetachError = &storagev1.VolumeError{Message: "the disk is busy"}
	s.at(0, in)
	plan := s.at(1000*time.Hour, in)
	s.rows(plan, drain.Draining, "va-pv-node-1 wait Detaching")
	require.Equal(t, "the disk is busy", plan.Volumes[0].Message)
	require.Zero(t, plan.Volumes[0].Until)
	require.False(t, plan.NextCheck.IsZero())
}

func TestStep_LadderEnds_LeavesVolumes(t *testing.T) {
	policy := volumesWaited
	policy.Volumes.DetachTimeout = time.Hour
	policy.Ladder = drain.Ladder{{After: time.Minute, Action: drain.Proceed}}
	data := claims{volumeClaim("data", "pv")}
	va := volumeAttached("pv", "node-1")
	abandoned := "va-pv-node-1 ignore Abandoned"

	s := &volumeStory{t: t, policy: policy}
	s.at(0, volumesSeen(pods{newPod("a", volumesOf("data"))}, data, va))
	s.rows(s.at(time.Minute, volumesSeen(pods{newPod("a", volumesOf("data"))}, data, va)), drain.Proceeded, abandoned)

	s = &volumeStory{t: t, policy: policy}
	s.at(0, volumesSeen(nil, data, va))
	s.rows(s.at(59*time.Second, volumesSeen(nil, data, va)), drain.Draining, "va-pv-node-1 wait Detaching")
	s.rows(s.at(time.Minute, volumesSeen(nil, data, va)), drain.Proceeded, abandoned)

	policy.Ladder[0].Action = drain.GiveUp
	s = &volumeStory{t: t, policy: policy}
	s.at(0, volumesSeen(nil, data, va))
	require.Equal(t, drain.Draining, s.at(59*time.Second, volumesSeen(nil, data, va)).Outcome)
	require.Equal(t, drain.GaveUp, s.at(time.Minute, volumesSeen(nil, data, va)).Outcome)
}

func TestStep_UnreachableNodeAnswersAgain_WaitsForVolumes(t *testing.T) {
	s := &volumeStory{t: t, policy: volumesWaited}
	in := volumesSeen(nil, nil, volumeAttached("pv", "node-1"))
	silent := in
	silent.Reachability.Unreachable = true
	s.rows(s.at(0, silent), drain.Proceeded, "va-pv-node-1 ignore Abandoned")
	plan := s.at(time.Hour, in)
	s.rows(plan, drain.Draining, "va-pv-node-1 wait Detaching")
	require.Equal(t, now.Add(time.Hour+time.Minute), plan.Volumes[0].Until)

	s = &volumeStory{t: t, policy: volumesWaited} // the state of a volume survives an unreachable Node
	s.policy.Volumes.ReattachTimeout = time.Hour
	data := claims{volumeClaim("data", "pv")}
	s.at(0, volumesSeen(pods{newPod("db-0", volumesOf("data"))}, data, volumeAttached("pv", "node-1")))
	s.at(time.Second, silent)
	s.rows(s.at(2*time.Second, volumesSeen(nil, data)), drain.Draining, "pv wait Reattaching")
}

func TestStep_ReattachTimeout_WaitsUntilTheVolumeIsElsewhere(t *testing.T) {
	policy := volumesWaited
	policy.Volumes.ReattachTimeout = 90 * time.Second
	data := claims{volumeClaim("data", "pv")}
	db, va := newPod("db-0", volumesOf("data")), volumeAttached("pv", "node-1")
	reattaching := "pv wait Reattaching"
	begun := func(t *testing.T) *volumeStory { // the volume was detached after 20 seconds
		s := &volumeStory{t: t, policy: policy}
		s.at(0, volumesSeen(pods{db}, data, va))
		s.at(10*time.Second, volumesSeen(nil, data, va))
		plan := s.at(20*time.Second, volumesSeen(nil, data))
		s.rows(plan, drain.Draining, reattaching)
		require.Equal(t, now.Add(25*time.Second), plan.NextCheck, "the Node has no event of it")
		require.Equal(t, "volume/pv", plan.Holds()[0].Subject)
		return s
	}

	t.Run("it is checked again without an event", func(t *testing.T) {
		s := begun(t)
		coming := volumeAttached("pv", "node-2")
		coming.Status.Attached = false
		s.rows(s.at(21*time.Second, volumesSeen(nil, data, coming)), drain.Draining, reattaching)
		s.rows(s.at(22*time.Second, volumesSeen(nil, data, volumeAttached("pv", "node-2"))), drain.Drained)
		s.rows(s.at(23*time.Second, volumesSeen(nil, data)), drain.Drained)
	})
	t.Run("an attachment that is deleted does not count", func(t *testing.T) {
		s := begun(t)
		deleted := volumeAttached("pv", "node-2")
		deleted.DeletionTimestamp = &metav1.Time{Time: now}
		s.rows(s.at(30*time.Second, volumesSeen(nil, data, deleted)), drain.Draining, reattaching)
	})
	t.Run("not after its timeout, and the Node is Drained", func(t *testing.T) {
		s := begun(t)
		s.rows(s.at(109*time.Second, volumesSeen(nil, data)), drain.Draining, reattaching)
		s.rows(s.at(110*time.Second, volumesSeen(nil, data)), drain.Drained, "pv ignore Reattaching")
		s.rows(s.at(111*time.Second, volumesSeen(nil, data)), drain.Drained, "pv ignore Reattaching")
	})
	t.Run("not without attachments", func(t *testing.T) {
		s := begun(t)
		in := volumesSeen(nil, data)
		in.Attachments.Complete = false
		s.rows(s.at(30*time.Second, in), drain.Drained, "pv ignore NotEvaluated")
	})
	t.Run("not if the volume was released or is gone", func(t *testing.T) {
		s := begun(t)
		in := volumesSeen(nil, nil)
		released := volumeCSI("pv", "h")
		released.Status.Phase = corev1.VolumeReleased
		in.Volumes = drain.All(released)
		s.rows(s.at(30*time.Second, in), drain.Drained)
		s = begun(t)
		in.Volumes = drain.All[*corev1.PersistentVolume]()
		s.rows(s.at(30*time.Second, in), drain.Drained)
		s = begun(t)
		released.Status.Phase = corev1.VolumeBound
		in.Volumes = drain.All(released)
		s.rows(s.at(30*time.Second, in), drain.Draining, reattaching)
	})
	t.Run("not if a pod that stays uses it", func(t *testing.T) {
		s := begun(t)
		s.rows(s.at(30*time.Second, volumesSeen(pods{newPod("agent", ownedBy("DaemonSet"), volumesOf("data"))}, data)), drain.Drained)
	})
	t.Run("deletions are not one at a time", func(t *testing.T) {
		in := volumesSeen(pods{db, newPod("db-1", volumesOf("more"))}, claims{data[0], volumeClaim("more", "pv-more")}, va, volumeAttached("pv-more", "node-1"))
		require.Equal(t, "db-0 evict Evictable, db-1 wait Wave", rows(drain.Decide(in, policy, now)))
		forced := policy
		forced.Ladder = drain.Ladder{{Action: drain.IgnoreBudgets}}
		require.Equal(t, "db-0 delete IgnoreBudgets, db-1 delete IgnoreBudgets", rows(drain.Decide(in, forced, now)))
	})
	t.Run("not after the end of the ladder", func(t *testing.T) {
		s := begun(t)
		s.policy.Ladder = drain.Ladder{{After: 25 * time.Second, Action: drain.Proceed}}
		s.rows(s.at(30*time.Second, volumesSeen(nil, data)), drain.Proceeded, "pv ignore Abandoned")
	})
	t.Run("not if it is attached to the Node again", func(t *testing.T) {
		s := begun(t)
		s.rows(s.at(30*time.Second, volumesSeen(pods{db}, data)), drain.Draining)
		s.rows(s.at(31*time.Second, volumesSeen(pods{db}, data, va)), drain.Draining, "va-pv-node-1 wait InUse")
	})
	t.Run("not after its DetachTimeout", func(t *testing.T) {
		s := &volumeStory{t: t, policy: policy}
		s.at(0, volumesSeen(pods{db}, data, va))
		s.at(10*time.Second, volumesSeen(nil, data, va))
		s.rows(s.at(70*time.Second, volumesSeen(nil, data, va)), drain.Proceeded, "va-pv-node-1 ignore Abandoned")
		s.rows(s.at(80*time.Second, volumesSeen(nil, data)), drain.Drained)
	})
	t.Run("only for pods that a controller recreates with the same claim", func(t *testing.T) {
		scratch := newPod("ci", volumesEphemeral)
		for name, pod := range map[string]*corev1.Pod{
			"unmanaged": newPod("db-0", unmanaged, volumesOf("data")), "ephemeral": scratch,
			"finished": newPod("job", inPhase(corev1.PodFailed), volumesOf("data")),
		} {
			s := &volumeStory{t: t, policy: policy}
			s.at(0, volumesSeen(pods{pod}, append(data, volumeClaim("ci-inline", "pv")), va))
			plan := s.at(10*time.Second, volumesSeen(nil, nil))
			require.Equal(t, drain.Drained, plan.Outcome, name)
		}
	})
}

func TestStep_SomeClaimsAreUnknown_VolumesAreNotEvaluated(t *testing.T) {
	s := &volumeStory{t: t, policy: volumesWaited}
	in := volumesSeen(pods{newPod("agent", ownedBy("DaemonSet"), volumesOf("cache", "other"))}, claims{volumeClaim("cache", "pv")}, volumeAttached("pv-x", "node-1"))
	in.Claims.Complete = false
	for i := range 2 {
		s.rows(s.at(time.Duration(i)*time.Second, in), drain.Draining, "va-pv-x-node-1 wait NotEvaluated")
	}
}

func TestDecide_TwoVolumesOfOneDisk_AreOne(t *testing.T) {
	in := volumesSeen(pods{newPod("agent", ownedBy("DaemonSet"), volumesOf("b"))}, claims{volumeClaim("a", "pv-a"), volumeClaim("b", "pv-b")},
		volumeAttached("pv-a", "node-1"))
	in.Volumes = drain.All(volumeCSI("pv-a", "disk"), volumeCSI("pv-b", "disk"))
	plan := drain.Decide(in, volumesWaited, now)
	require.EqualValues(t, "Stays", plan.Volumes[0].Reason)
	in.Volumes.Items[1].Spec.CSI.Driver = "other.example.com"
	plan = drain.Decide(in, volumesWaited, now)
	require.EqualValues(t, "Detaching", plan.Volumes[0].Reason)
}

func TestDecide_VolumesThatLookAlike_AreNotTheSame(t *testing.T) {
	csi := func(driver, handle string) corev1.PersistentVolumeSource {
		return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}}
	}
	const gce = "pd.csi.storage.gke.io"
	for name, sources := range map[string][2]corev1.PersistentVolumeSource{
		"disks of the same name in two zones": {csi(gce, "projects/p/zones/a/disks/d"), csi(gce, "projects/p/zones/b/disks/d")},
		"two of a driver without a handle":    {csi("csi.example.com", ""), csi("csi.example.com", "")},
		"two handles without a driver":        {csi("", "disk"), csi("", "disk")},
	} {
		t.Run(name, func(t *testing.T) {
			in := volumesSeen(pods{newPod("agent", ownedBy("DaemonSet"), volumesOf("b"))}, claims{volumeClaim("a", "pv-a"), volumeClaim("b", "pv-b")},
				volumeAttached("pv-a", "node-1"))
			in.Volumes = drain.All(volumeCSI("pv-a", ""), volumeCSI("pv-b", ""))
			for i, source := range sources {
				in.Volumes.Items[i].Spec.PersistentVolumeSource = source
			}
			require.EqualValues(t, "Detaching", drain.Decide(in, volumesWaited, now).Volumes[0].Reason)
		})
	}
}
