// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// TestMain lets the heap grow: the simulations allocate much and keep little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newNode returns a schedulable Node, changed by edits.
func newNode(name string, edits ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	for _, edit := range edits {
		edit(node)
	}
	return node
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// newPod returns a running pod of a ReplicaSet on node-1, changed by edits.
func newPod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "10", Labels: map[string]string{"app": "web"},
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
	p.Spec.Volumes = []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

func mirror(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""} }

func succeeded(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

func critical(p *corev1.Pod) { p.Spec.Priority = ptr.To(int32(2000000000)) }

func withUID(uid types.UID) func(*corev1.Pod) { return func(p *corev1.Pod) { p.UID = uid } }

func ofApp(app string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels["app"] = app } }

func onNode(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = name } }

func withClaim(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
}

// newBudget returns a budget of an app with a minAvailable.
func newBudget(name, app string, minimum int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(minimum)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}
}

// newVolume returns a claim in namespace shop, its volume, and an attachment of it to a Node.
func newVolume(name, node string) []runtime.Object {
	return []runtime.Object{
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + name},
		},
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name},
			Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: name},
			}},
		},
		newAttachment(name, node),
	}
}

func newAttachment(name, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + name + "-" + node},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com", NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv-" + name)},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
}

// observed returns an observation of a cordoned Node and its pods only.
func observed(pods ...*corev1.Pod) drain.Observation {
	return drain.Observation{Looked: true, Node: newNode("node-1", cordoned), Pods: drain.All(pods...)}
}

// world is a cluster with simulated controllers, and a client whose requests are counted.
type world struct {
	*draintest.Cluster

	client *fake.Clientset
	start  time.Time
	heard  []drain.Progress
	// onWait is called at the first wait for a budget that never allows a disruption. Nil is not called.
	onWait func()
}

func (w *world) Observe(e drain.Progress) {
	w.heard = append(w.heard, e)
	if do := w.onWait; do != nil && e.Reason == drain.ReasonBudgetNever {
		w.onWait = nil
		do()
	}
}

// stillWorld returns a cluster with these objects on a fake clock.
func stillWorld(t testing.TB, objects ...runtime.Object) *world {
	t.Helper()
	cluster := draintest.New(draintest.Options{Clock: clocktesting.NewFakeClock(now), Seed: 1})
	require.NoError(t, cluster.Add(objects...))
	return &world{Cluster: cluster, client: cluster.Clientset(), start: now}
}

// inWorld runs a test in a synctest bubble, where time passes only when everything waits. Pods take a
// second to stop. At its end no goroutine and no watch may be left.
func inWorld(t *testing.T, run func(t *testing.T, w *world), objects ...runtime.Object) {
	t.Helper()
	inWorldWith(t, draintest.Options{}, run, objects...)
}

func inWorldWith(t *testing.T, options draintest.Options, run func(t *testing.T, w *world), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		options.StopTime = func(*corev1.Pod) time.Duration { return time.Second }
		cluster := draintest.New(options)
		require.NoError(t, cluster.Add(objects...))
		ctx, cancel := context.WithCancel(t.Context())
		var cycle sync.WaitGroup
		cycle.Go(func() { cluster.Run(ctx) })
		run(t, &world{Cluster: cluster, client: cluster.Clientset(), start: time.Now()})
		cancel()
		cycle.Wait()
		require.Zero(t, cluster.Watching(""))
	})
}

// executor makes one request at a time, with the clock of the cluster.
func (w *world) executor() runner.Executor {
	return runner.Executor{Client: runner.NewClient(w.client), Clock: w.Clock(), Parallel: 1, Observer: w}
}

// run drains node-1 for an hour at most.
func (w *world) run(t *testing.T, p drain.Policy) (drain.Decision, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	return runner.Executor{Client: runner.NewClient(w.client), Observer: w}.Run(ctx, "node-1", p)
}

// drains makes a drain of node-1 and asserts that it is complete.
func (w *world) drains(t *testing.T, p drain.Policy) drain.Decision {
	t.Helper()
	d, err := w.run(t, p)
	require.NoError(t, err)
	require.Equal(t, drain.Drained, d.Outcome)
	return d
}

// fails drains node-1, and asserts that the error has the decision.
func (w *world) fails(t *testing.T, p drain.Policy) (drain.Decision, error) {
	t.Helper()
	d, err := w.run(t, p)
	var unfinished *runner.UnfinishedError
	require.ErrorAs(t, err, &unfinished)
	require.Equal(t, d, unfinished.Decision)
	return d, err
}

// pass makes one pass over node-1 with an observation.
func (w *world) pass(t *testing.T, s drain.State, in drain.Observation, p drain.Policy) (drain.State, drain.Decision, error) {
	return w.executor().Pass(t.Context(), s, in, p, "node-1")
}

// observe observes node-1 with a client without faults.
func (w *world) observe(t testing.TB) drain.Observation {
	t.Helper()
	in, err := runner.Observe(t.Context(), runner.NewClient(w.Client()), "node-1", drain.Policy{}, drain.State{})
	require.NoError(t, err)
	return in
}

// took returns the time since the start, without the few milliseconds between passes.
func (w *world) took() time.Duration { return time.Since(w.start).Truncate(20 * time.Millisecond) }

// later calls a function during a drain.
func (w *world) later(t *testing.T, after time.Duration, do func(client *fake.Clientset) error) {
	time.AfterFunc(after, func() {
		if err := do(w.Clientset()); err != nil {
			t.Error(err)
		}
	})
}

// requested counts the requests of the client, by verb and resource.
func (w *world) requested() map[string]int {
	counts := map[string]int{}
	for _, a := range w.client.Actions() {
		s := a.GetVerb() + " " + a.GetResource().Resource
		if a.GetSubresource() != "" {
			s += "/" + a.GetSubresource()
		}
		counts[s]++
	}
	return counts
}

// reported counts the reported progress by type.
func (w *world) reported() map[drain.ProgressType]int {
	counts := map[drain.ProgressType]int{}
	for _, e := range w.heard {
		counts[e.Type]++
	}
	return counts
}

// fullNode returns node-1 with n pods.
func fullNode(n int) []runtime.Object {
	objects := []runtime.Object{newNode("node-1")}
	for i := range n {
		objects = append(objects, newPod(fmt.Sprintf("web-%02d", i)))
	}
	return objects
}

// stuckNode returns node-1 with n pods, and a budget that allows no eviction.
func stuckNode(n int32) []runtime.Object {
	return append(fullNode(int(n)), newBudget("never", "web", n))
}

// requests returns a decision with the same action for these pods.
func requests(action drain.Action, names ...string) drain.Decision {
	d := drain.Decision{Node: "node-1"}
	for _, name := range names {
		d.Rows = append(d.Rows, drain.Row{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Action: action})
	}
	return d
}

// second returns the error of a call.
func second[T any](_ T, err error) error { return err }
