// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/nodeops"
)

// TestMain lets the heap grow: the simulations allocate much and keep little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// dice turns bytes into choices: those of a fuzzer, or of a seed. When they run
// out every choice is the first.
type dice struct{ bytes []byte }

func (d *dice) roll(n int) int {
	if len(d.bytes) == 0 {
		return 0
	}
	b := d.bytes[0]
	d.bytes = d.bytes[1:]
	return int(b) % n
}

func (d *dice) yes() bool { return d.roll(2) == 1 }

func pick[T any](d *dice, of ...T) T { return of[d.roll(len(of))] }

func randomBytes(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// when returns a time near now, or zero.
func (d *dice) when() time.Time {
	return pick(d, time.Time{}, now.Add(-time.Hour), now.Add(-3*time.Second), now, now.Add(1), now.Add(10*time.Second), now.Add(time.Hour))
}

func (d *dice) duration() time.Duration {
	return pick(d, 0, time.Second, time.Minute, -time.Second, time.Hour, 1)
}

// ladder returns a ladder that is valid most of the time.
func (d *dice) ladder() drain.Ladder {
	if d.roll(2) == 0 {
		return nil
	}
	if d.roll(12) == 1 {
		return drain.Ladder{{
			After: d.duration(), Action: pick(d, drain.Proceed, drain.IgnoreBudgets, "Pray"), Grace: d.duration(),
		}, {After: d.duration(), Action: drain.ForceDeletePods}}
	}
	return randomLadder(rand.New(rand.NewPCG(uint64(d.roll(256)), uint64(d.roll(256)))))
}

// randomLadder returns a ladder that is valid.
func randomLadder(r *rand.Rand) drain.Ladder {
	var l drain.Ladder
	after, grace := time.Duration(0), 90*time.Second
	for range r.IntN(4) {
		after += time.Duration(r.IntN(3)) * time.Minute
		rung := drain.Rung{After: after, Action: []drain.Escalation{drain.IgnoreBudgets, drain.IgnoreBudgets, drain.ForceDeletePods}[r.IntN(3)]}
		if r.IntN(2) == 0 {
			grace = max(grace/2, time.Second)
			rung.Grace = grace
		}
		l = append(l, rung)
	}
	if r.IntN(2) == 0 {
		l = append(l, drain.Rung{After: after + time.Duration(r.IntN(3))*time.Minute, Action: []drain.Escalation{drain.Proceed, drain.GiveUp}[r.IntN(2)]})
	}
	return l
}

func (d *dice) policy() drain.Policy {
	p := drain.Policy{
		EscalateFrom: d.when(), Ladder: d.ladder(), UnreachableLadder: d.ladder(), Reassert: d.yes(), KeepSchedulable: d.roll(6) == 1,
		EvictUnmanaged: d.yes(), EvictLocalStorage: d.yes(), AllAtOnce: d.yes(),
		Grace: pick(d, nil, nil, ptr.To(time.Second), ptr.To(10*time.Second), ptr.To(time.Hour)), RetryEvery: pick(d, 0, 0, time.Second, time.Minute),
		SkipTerminatingAfter: pick(d, 0, 0, 0, time.Second, time.Hour),
		Cordon:               nodeops.Cordon{OutOfService: d.roll(6) == 1},
		Volumes:              drain.VolumePolicy{Wait: d.roll(3) == 1, DetachTimeout: d.duration(), ReattachTimeout: d.duration()},
	}
	if d.roll(4) == 1 {
		p.Rules = randomRules(d.roll(256))
		p.ClusterAPILabels, p.DoNotDisrupt, p.PodSelector = d.yes(), d.yes(), pick(d, "", "app=web", "!", "app!=web")
	}
	return p
}

// randomRules returns rules by the names of pods. A seed of less than 128 has none.
func randomRules(seed int) func(*corev1.Pod) drain.Rule {
	if seed < 128 {
		return nil
	}
	return func(pod *corev1.Pod) drain.Rule {
		r := rand.New(rand.NewPCG(uint64(seed), uint64(crc32.ChecksumIEEE([]byte(pod.Name)))))
		rule := drain.Rule{
			Action: []drain.Action{"", "", "", drain.Ignore, drain.Wait, drain.Block, drain.Evict}[r.IntN(7)],
			Wave:   []int32{0, 0, -1, 5}[r.IntN(4)], SkipEnd: r.IntN(4) == 0,
		}
		if rule.Action == drain.Wait && r.IntN(2) == 0 {
			rule.Until = now.Add(time.Hour)
		}
		return rule
	}
}

func (d *dice) observation() drain.Observation {
	in := drain.Observation{Looked: d.roll(12) != 1}
	in.Pods.Complete, in.Budgets.Complete, in.Attachments.Complete = d.roll(12) != 1, d.yes(), d.yes()
	in.DaemonSets.Complete, in.Claims.Complete = d.yes(), d.yes()
	if d.roll(12) != 1 {
		in.Node = newNode()
		in.Node.Spec.Unschedulable = d.roll(3) > 0
	}
	in.Reachability = drain.NodeReachability{Since: d.when(), Unreachable: d.roll(3) == 1}
	for i := range d.roll(12) {
		in.Pods.Items = append(in.Pods.Items, d.pod(i))
	}
	for i := range d.roll(3) {
		in.Budgets.Items = append(in.Budgets.Items, d.budget(i))
	}
	if d.roll(4) == 1 {
		in.DaemonSets.Items = append(in.DaemonSets.Items, nil, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "owner", UID: "uid-DaemonSet"}})
	}
	d.addVolumes(&in)
	in.Results = d.results()
	return in
}

// addVolumes adds claims, volumes, attachments and the status of the Node.
func (d *dice) addVolumes(in *drain.Observation) {
	for _, name := range []string{"claim-0", "claim-1", "claim-2", "a-inline", "b-inline"} {
		if d.roll(5) > 0 {
			in.Claims.Items = append(in.Claims.Items, volumeClaim(name, d.volume()))
		}
	}
	for i := range d.roll(6) {
		va := volumeAttached(d.volume(), pick(d, "node-1", "node-1", "node-2"))
		va.ResourceVersion, va.Status.Attached = fmt.Sprint(i), d.roll(5) > 0
		switch d.roll(9) {
		case 1:
			va.Spec.Source = storagev1.VolumeAttachmentSource{}
		case 2:
			va.DeletionTimestamp = &metav1.Time{Time: now}
		case 3:
			va = nil
		}
		in.Attachments.Items = append(in.Attachments.Items, va)
	}
	if in.Volumes.Complete = d.yes(); in.Volumes.Complete {
		for i := range 4 {
			in.Volumes.Items = append(in.Volumes.Items, volumeCSI(fmt.Sprint("pv-", i), fmt.Sprint("disk-", i)))
		}
	}
	for range d.roll(3) {
		if in.Node != nil {
			in.Node.Status.VolumesAttached = append(in.Node.Status.VolumesAttached, corev1.AttachedVolume{Name: pick[corev1.UniqueVolumeName](d,
				"kubernetes.io/csi/csi.example.com^disk-1", "kubernetes.io/gce-pd/disk", "kubernetes.io/csi/csi.example.com^disk-9", "", "?", "a/b")})
		}
	}
}

func (d *dice) volume() string { return pick(d, "pv-0", "pv-1", "pv-2", "pv-3", "") }

func (d *dice) results() []drain.Result {
	var results []drain.Result
	resource := schema.GroupResource{}
	for range d.roll(5) {
		row := drain.Row{Namespace: "shop", Name: pick(d, "a", "b"), UID: types.UID("uid-" + pick(d, "a", "b", "c", "zz"))}
		row.Action = pick(d, drain.Evict, drain.Delete, drain.ForceDelete, drain.Wait, "")
		err := pick[error](d, nil, errors.New("boom"), apierrors.NewTooManyRequests("slow down", 7), apierrors.NewNotFound(resource, "a"),
			apierrors.NewForbidden(resource, "a", nil), apierrors.NewInvalid(schema.GroupKind{}, "a", nil))
		results = append(results, drain.Result{Row: row, Err: err, At: d.when()})
	}
	return results
}

// state returns a valid or a broken state.
func (d *dice) state() drain.State {
	if d.roll(3) == 0 {
		return drain.State{}
	}
	s := drain.State{
		Started: d.when(), CordonedAt: d.when(), UnreachableSince: d.when(), Gone: d.roll(3),
		Pods: map[types.UID]drain.PodState{}, Responses: map[types.UID]drain.Response{}, Volumes: map[string]drain.VolumeState{},
	}
	for _, l := range []drain.Ladder{d.ladder(), d.ladder()} {
		for _, rung := range l {
			s.Reached = append(s.Reached, drain.ReachedRung{Rung: rung, At: d.when()})
		}
		s.Reached, s.UnreachableReached = s.UnreachableReached, s.Reached
	}
	for range d.roll(4) {
		s.Volumes[d.volume()] = drain.VolumeState{Pod: "uid-a", Moves: d.roll(4) > 0, FreeAt: d.when(), DetachedAt: d.when(), Done: d.roll(4) == 1}
	}
	for range d.roll(8) {
		s.Pods[types.UID("uid-"+pick(d, "a", "b", "c", "d", ""))] = drain.PodState{
			Reason: pick(d, drain.ReasonBudget, drain.ReasonEvict, ""), Since: d.when(), Waited: d.yes(),
		}
		s.Responses[types.UID("uid-"+pick(d, "a", "b", "c", "d", ""))] = drain.Response{
			Request: pick(d, drain.Evict, drain.Delete, drain.ForceDelete, ""), Reason: pick(d, drain.ReasonBudget, drain.ReasonTerminating, ""), Until: d.when(),
			Tries: d.roll(5) - 1,
		}
	}
	return s
}

func (d *dice) budget(i int) *policyv1.PodDisruptionBudget {
	if d.roll(8) == 1 {
		return nil
	}
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pick(d, "web", "all"), ResourceVersion: fmt.Sprint(i)},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(d.roll(4)) - 1, ExpectedPods: 3, CurrentHealthy: 3, DesiredHealthy: 2},
	}
	if d.yes() {
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}
	return b
}

func (d *dice) pod(i int) *corev1.Pod {
	if d.roll(16) == 1 {
		return nil
	}
	pod := newPod(pick(d, "a", "b", "c", "d", "e"))
	pod.ResourceVersion = fmt.Sprint(i) // no two copies are of one version
	for _, edit := range []func(*corev1.Pod){
		unmanaged, emptyDir, mirror, ownedBy("DaemonSet"), ownedBy("Node"), inPhase(corev1.PodFailed), withFinalizer, withoutGrace,
		withPriority(2000001000), withGrace(int64(d.roll(256)) - 5),
		func(p *corev1.Pod) { p.UID = pick[types.UID](d, "uid-successor", "") },
		func(p *corev1.Pod) { p.Name = "" },
		func(p *corev1.Pod) { p.Spec.NodeName = "node-2" },
		func(p *corev1.Pod) {
			p.Labels["cluster.x-k8s.io/drain"] = pick(d, "skip", "wait-completed", "WaitCompleted", "?")
		},
		doNotDisrupt(pick(d, "true", "1h")),
		tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}), created(now.Add(-time.Second)), volumesEphemeral,
		volumesOf(fmt.Sprint("claim-", d.roll(3))), volumesOf(fmt.Sprint("claim-", d.roll(3))),
	} {
		if d.roll(6) == 1 {
			edit(pod)
		}
	}
	if d.roll(3) == 1 {
		terminating(pick(d, -time.Hour, -time.Second, 0, time.Minute), int64(pick(d, 0, 1, 30, -1)))(pod)
		if d.roll(5) == 1 {
			pod.DeletionGracePeriodSeconds = nil
		}
	}
	return pod
}

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// anything is a policy that may evict every pod.
var anything = drain.Policy{EvictUnmanaged: true, EvictLocalStorage: true}

// newNode returns a cordoned Node.
func newNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "uid-node-1"},
		Spec:       corev1.NodeSpec{Unschedulable: true},
	}
}

// openNode returns a Node that is not cordoned.
func openNode() *corev1.Node {
	node := newNode()
	node.Spec.Unschedulable = false
	return node
}

// newPod returns a running pod of a ReplicaSet on node-1, changed by edits.
func newPod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "10",
			Labels: map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", TerminationGracePeriodSeconds: ptr.To(int64(30))},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
	ownedBy("ReplicaSet")(pod)
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func ownedBy(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: kind, Name: "owner", UID: types.UID("uid-" + kind), Controller: ptr.To(true),
		}}
	}
}

func unmanaged(p *corev1.Pod) { p.OwnerReferences = nil }

func emptyDir(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{
		{Name: "config"}, {Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
}

func mirror(p *corev1.Pod) {
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""}
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func withPriority(priority int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Priority = &priority }
}

// terminating deletes a pod with a grace period in seconds that ends at a time after now.
func terminating(end time.Duration, grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: now.Add(end)}
		p.DeletionGracePeriodSeconds = &grace
	}
}

func withFinalizer(p *corev1.Pod) { p.Finalizers = []string{"example.com/job-tracking"} }

// observed returns an observation of a cordoned Node and its pods only.
func observed(pods ...*corev1.Pod) drain.Observation {
	return drain.Observation{Looked: true, Node: newNode(), Pods: drain.All(pods...)}
}
