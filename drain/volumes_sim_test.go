// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// volumesSim drains node-1 in virtual time; pods that have gone are made again on node-2.
type volumesSim struct {
	t       *testing.T
	clock   *clocktesting.FakeClock
	cluster *draintest.Cluster
	client  kubernetes.Interface
	policy  drain.Policy
	// forgets says how often, in steps, what is remembered is lost; zero is never.
	forgets int
	// nodeOnly leaves the attachments out of what is observed.
	nodeOnly bool

	state     drain.State
	steps     int
	seen      string // the last write
	mostMoved int
}

// newVolumesSim has pods without and with a volume each, which need a second to stop, a
// second to be detached and one to be attached.
func newVolumesSim(t *testing.T, plain, volumes int) *volumesSim {
	s := &volumesSim{t: t, clock: clocktesting.NewFakeClock(now)}
	s.cluster = draintest.New(draintest.Options{
		Clock: s.clock, StopTime: func(*corev1.Pod) time.Duration { return time.Second },
		DetachTime: time.Second, AttachTime: time.Second, NodeVolumes: true,
	})
	s.client = s.cluster.Client()
	other := openNode()
	other.Name, other.UID = "node-2", "uid-node-2"
	require.NoError(t, s.cluster.Add(openNode(), other))
	for i := range plain {
		require.NoError(t, s.cluster.Add(newPod(fmt.Sprint("plain-", i))))
	}
	for i := range volumes {
		claim, volume := fmt.Sprint("claim-", i), fmt.Sprint("pv-", i)
		require.NoError(t, s.cluster.Add(
			volumeClaim(claim, volume), volumeCSI(volume, fmt.Sprint("disk-", i)), volumeAttached(volume, "node-1"),
			newPod(fmt.Sprint("db-", i), ownedBy("StatefulSet"), volumesOf(claim)),
		))
	}
	s.policy = drain.Policy{Volumes: drain.VolumePolicy{Wait: true}}
	return s
}

// run drains the Node, and returns how long that took and what it came to.
func (s *volumesSim) run() (time.Duration, drain.Decision) {
	executor := runner.Executor{Client: s.client, Clock: s.clock, Parallel: 1}
	var results []drain.Result
	for range 5000 {
		next := s.cluster.Tick()
		s.replace()
		if again := s.cluster.Tick(); next.IsZero() || !again.IsZero() && again.Before(next) {
			next = again
		}
		if s.steps++; s.forgets > 0 && s.steps%s.forgets == 0 {
			s.state = drain.State{}
		}
		var plan drain.Decision
		s.state, plan = drain.Step(s.state, s.observe(results), s.policy, s.clock.Now())
		if plan.Over() {
			return s.clock.Since(now), plan
		}
		s.countMoved(plan)
		var err error
		results, err = executor.Apply(s.t.Context(), plan)
		require.NoError(s.t, err)
		if len(results) > 0 || plan.Fence != nil {
			continue
		}
		if at := plan.NextCheck; next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
		require.True(s.t, next.After(s.clock.Now()), "nothing will happen: %v", plan)
		s.clock.SetTime(next)
	}
	s.t.Fatal("no end")
	return 0, drain.Decision{}
}

func (s *volumesSim) observe(results []drain.Result) drain.Observation {
	ctx, everything := s.t.Context(), metav1.ListOptions{}
	node, err := s.client.CoreV1().Nodes().Get(ctx, "node-1", metav1.GetOptions{})
	require.NoError(s.t, err)
	in := drain.Observation{Looked: true, Node: node, Results: results}
	pods, err := s.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=node-1"})
	require.NoError(s.t, err)
	in.Pods = volumesListed(pods.Items)
	claims, err := s.client.CoreV1().PersistentVolumeClaims("").List(ctx, everything)
	require.NoError(s.t, err)
	in.Claims = volumesListed(claims.Items)
	volumes, err := s.client.CoreV1().PersistentVolumes().List(ctx, everything)
	require.NoError(s.t, err)
	in.Volumes = volumesListed(volumes.Items)
	if s.nodeOnly {
		return in
	}
	attachments, err := s.client.StorageV1().VolumeAttachments().List(ctx, everything)
	require.NoError(s.t, err)
	in.Attachments = volumesListed(attachments.Items)
	return in
}

func volumesListed[T any](items []T) drain.List[*T] {
	list := drain.List[*T]{Complete: true}
	for i := range items {
		list.Items = append(list.Items, &items[i])
	}
	return list
}

// replace makes the pods again that have gone, on the other Node.
func (s *volumesSim) replace() {
	for _, w := range s.cluster.HistorySince(s.seen) {
		s.seen = w.ResourceVersion
		pod, ok := w.Before.(*corev1.Pod)
		if !ok || w.After != nil {
			continue
		}
		again := pod.DeepCopy()
		again.UID, again.ResourceVersion, again.DeletionTimestamp, again.DeletionGracePeriodSeconds = "", "", nil, nil
		again.Spec.NodeName, again.Status.Conditions = "node-2", nil
		require.NoError(s.t, s.cluster.Add(again))
	}
}

// countMoved keeps the largest number of volumes that were on their way at a time.
func (s *volumesSim) countMoved(plan drain.Decision) {
	moved := 0
	for _, v := range plan.Volumes {
		if v.Reason == drain.ReasonDetaching || v.Reason == drain.ReasonReattaching {
			moved++
		}
	}
	for _, row := range plan.Rows {
		if row.Verdict == drain.Wait && row.Reason == drain.ReasonTerminating && row.Name[:2] == "db" {
			moved++
		}
	}
	s.mostMoved = max(s.mostMoved, moved)
}

func (s *volumesSim) writes(what func(draintest.Write) bool) int {
	n := 0
	for _, w := range s.cluster.History() {
		if what(w) {
			n++
		}
	}
	return n
}

func TestB5DD5VolumesAreWaitedForInParallel(t *testing.T) {
	for name, test := range map[string]struct {
		plain, volumes int
		edit           func(*volumesSim)
		want           time.Duration
		most           int
	}{
		"50 with volumes":                              {0, 50, nil, 2 * time.Second, 50},
		"40 without and 10 with":                       {40, 10, nil, 2 * time.Second, 10},
		"50 without":                                   {50, 0, nil, time.Second, 0},
		"50 with volumes, not waited for":              {0, 50, func(s *volumesSim) { s.policy.Volumes = drain.VolumePolicy{} }, time.Second, 50},
		"50 with volumes, from the Node's status":      {0, 50, func(s *volumesSim) { s.nodeOnly = true }, 2 * time.Second, 50},
		"50 with volumes, until each is elsewhere":     {0, 50, func(s *volumesSim) { s.policy.Volumes.ReattachTimeout = time.Minute }, 150 * time.Second, 1},
		"what is remembered is lost with every step":   {0, 50, func(s *volumesSim) { s.forgets = 1 }, 2 * time.Second, 50},
		"the timeout is not used up by volumes in use": {0, 50, func(s *volumesSim) { s.policy.Volumes.DetachTimeout = 1100 * time.Millisecond }, 2 * time.Second, 50},
	} {
		t.Run(name, func(t *testing.T) {
			s := newVolumesSim(t, test.plain, test.volumes)
			if test.edit != nil {
				test.edit(s)
			}
			took, plan := s.run()
			require.Equal(t, drain.Drained, plan.Outcome, "%v", plan)
			require.Equal(t, test.want, took)
			require.Equal(t, test.most, s.mostMoved)
			require.Equal(t, test.plain+test.volumes, s.writes(volumesEvicted), "one eviction for each pod")
			if s.policy.Volumes.Wait {
				require.Zero(t, s.attachedTo("node-1"))
			}
		})
	}
}

// volumesEvicted says whether a write is the one by which an eviction marks a pod.
func volumesEvicted(w draintest.Write) bool {
	before, _ := w.Before.(*corev1.Pod)
	after, _ := w.After.(*corev1.Pod)
	return w.Subresource == "eviction" && before != nil && after != nil && before.DeletionTimestamp == nil && after.DeletionTimestamp != nil
}

func (s *volumesSim) attachedTo(node string) int {
	list, err := s.client.StorageV1().VolumeAttachments().List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	n := 0
	for _, va := range list.Items {
		if va.Spec.NodeName == node {
			n++
		}
	}
	return n
}

func TestAVolumeThatStaysCostsNothing(t *testing.T) {
	s := newVolumesSim(t, 1, 1)
	require.NoError(t, s.cluster.Add(
		volumeClaim("cache", "pv-cache"), volumeAttached("pv-cache", "node-1"), newPod("agent", ownedBy("DaemonSet"), volumesOf("cache")),
	))
	took, plan := s.run()
	require.Equal(t, drain.Drained, plan.Outcome)
	require.Equal(t, 2*time.Second, took)
	require.Equal(t, 1, s.attachedTo("node-1"))
}

func TestASharedVolumeIsDetachedOnce(t *testing.T) {
	s := newVolumesSim(t, 0, 0)
	claim := volumeClaim("files", "pv-files")
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	require.NoError(t, s.cluster.Add(claim, volumeAttached("pv-files", "node-1")))
	for i := range 5 {
		require.NoError(t, s.cluster.Add(newPod(fmt.Sprint("db-", i), volumesOf("files"))))
	}
	took, plan := s.run()
	require.Equal(t, drain.Drained, plan.Outcome)
	require.Equal(t, 2*time.Second, took)
	require.Equal(t, 1, s.writes(func(w draintest.Write) bool {
		_, is := w.Before.(*storagev1.VolumeAttachment)
		return is && w.After == nil
	}))
}

func TestRandomVolumesAreDetachedWhenTheyAreFree(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 11))
		s := newVolumesSim(t, r.IntN(4), r.IntN(6))
		s.nodeOnly = r.IntN(4) == 0
		if !s.nodeOnly && r.IntN(2) == 0 {
			s.policy.Volumes.ReattachTimeout = time.Minute
		}
		s.forgets = r.IntN(6)
		if r.IntN(3) == 0 {
			require.NoError(t, s.cluster.Add(
				volumeClaim("cache", "pv-cache"), volumeCSI("pv-cache", "cache"), volumeAttached("pv-cache", "node-1"),
				newPod("agent", ownedBy("DaemonSet"), volumesOf("cache")),
			))
		}
		took, plan := s.run()
		require.Equal(t, drain.Drained, plan.Outcome, "seed %d: %v", seed, plan)
		require.LessOrEqual(t, took, 18*time.Second, "seed %d", seed)
		list, err := s.client.StorageV1().VolumeAttachments().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, va := range list.Items {
			stays := va.Spec.NodeName == "node-2" || *va.Spec.Source.PersistentVolumeName == "pv-cache"
			require.True(t, stays, "seed %d: %s is left", seed, va.Name)
		}
		if s.policy.Volumes.ReattachTimeout > 0 && s.forgets == 0 {
			require.LessOrEqual(t, s.mostMoved, 1, "seed %d", seed)
		}
	}
}
