// SPDX-License-Identifier: Apache-2.0

package draining_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/draining"
)

// patience is the longest wait of these tests.
const patience = 10 * time.Second

// screen receives the output of a command. Tests can wait for a line.
type screen struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newScreen() *screen { return &screen{changed: make(chan struct{})} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(p)
}

func (s *screen) read() (string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String(), s.changed
}

func (s *screen) String() string {
	text, _ := s.read()
	return text
}

// line waits for a line with all of these words and returns it.
func (s *screen) line(t *testing.T, words ...string) string {
	t.Helper()
	late := time.After(patience)
	for {
		text, changed := s.read()
		for line := range strings.Lines(text) {
			if containsAll(line, words) {
				return line
			}
		}
		select {
		case <-changed:
		case <-late:
			require.Failf(t, "no such line", "no line with %q in:\n%s", words, text)
		}
	}
}

func containsAll(line string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

// bubble runs a test in virtual time, which does not depend on the load of the host.
func bubble(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		synctest.Test(t, test)
	}
}

// harness is a cluster and the output of a command.
type harness struct {
	t       *testing.T
	cluster *draintest.Cluster
	client  *fake.Clientset
	out     *screen
	errOut  *screen
}

// newHarness returns a running cluster with node-1, node-2 and these objects.
func newHarness(t *testing.T, objects ...runtime.Object) *harness {
	t.Helper()
	r := &harness{t: t, out: newScreen(), errOut: newScreen()}
	r.cluster = draintest.New(draintest.Options{
		StopTime:   func(*corev1.Pod) time.Duration { return 10 * time.Millisecond },
		DetachTime: 10 * time.Millisecond,
	})
	r.client = r.cluster.Clientset()
	require.NoError(t, r.cluster.Add(testNode("node-1"), testNode("node-2"), testSet()))
	require.NoError(t, r.cluster.Add(objects...))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.cluster.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return r
}

// env is the environment of a command in the cluster.
func (r *harness) env() *cli.Env { return env(r.out, r.errOut, r.client) }

// env returns an environment with a client for Nodes and pods.
func env(out, errOut io.Writer, client kubernetes.Interface) *cli.Env {
	e := cli.New(nil, out, errOut)
	e.Zone = time.UTC
	e.Connect = func() (cli.Clients, error) { return cli.Clients{Clients: explain.Clients{Target: client}}, nil }
	return e
}

// run runs the command to its end.
func (r *harness) run(ctx context.Context, args ...string) int {
	r.t.Helper()
	select {
	case status := <-r.start(ctx, args...):
		return status
	case <-time.After(patience):
		require.Failf(r.t, "the command does not end", "%s", r.out)
		return -1
	}
}

// start runs the command in a goroutine.
func (r *harness) start(ctx context.Context, args ...string) <-chan int {
	status := make(chan int, 1)
	go func() { status <- r.env().Run(ctx, draining.New(r.env()), args) }() //nolint:contextcheck // a command has the context of its run
	return status
}

// ends waits for the end of the command and returns its status.
func (r *harness) ends(status <-chan int) int {
	r.t.Helper()
	select {
	case s := <-status:
		return s
	case <-time.After(patience):
		require.Failf(r.t, "the command does not end", "%s", r.out)
		return -1
	}
}

// writes returns the writes of clients.
func (r *harness) writes() []string {
	var all []string
	for _, w := range r.cluster.History() {
		if w.ByClient() {
			all = append(all, w.String())
		}
	}
	return all
}

func (r *harness) node() *corev1.Node {
	r.t.Helper()
	n, err := r.client.CoreV1().Nodes().Get(r.t.Context(), "node-1", metav1.GetOptions{})
	require.NoError(r.t, err)
	return n
}

// there reports whether a pod of the namespace shop exists.
func (r *harness) there(name string) bool {
	r.t.Helper()
	list, err := r.client.CoreV1().Pods("shop").List(r.t.Context(), metav1.ListOptions{})
	require.NoError(r.t, err)
	for _, p := range list.Items {
		if p.Name == name {
			return true
		}
	}
	return false
}

func testNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "a"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "team", Value: "shop", Effect: corev1.TaintEffectPreferNoSchedule}}},
	}
}

func testSet() *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
}

// testPod returns a ready pod of the ReplicaSet web.
func testPod(name, node string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "uid-web", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: new(int64(30))},
	}
	setReady(p, corev1.ConditionTrue)
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func setReady(p *corev1.Pod, status corev1.ConditionStatus) {
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
}

func unready(p *corev1.Pod)   { setReady(p, corev1.ConditionFalse) }
func unmanaged(p *corev1.Pod) { p.OwnerReferences = nil }
func emptyDir(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

// stuck sets a finalizer, so that a deleted pod stays.
func stuck(p *corev1.Pod) { p.Finalizers = []string{"example.com/job-tracking"} }

// oneHealthy returns a PodDisruptionBudget that requires one healthy pod of web.
func oneHealthy() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-budget"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
}

// blocked returns a pod on node-1 that cannot be evicted until the pod on node-2 is ready.
func blocked() []runtime.Object {
	return []runtime.Object{oneHealthy(), testPod("web-1", "node-1"), testPod("web-2", "node-2", unready)}
}

// free makes the pod on node-2 ready.
func (r *harness) free() {
	r.t.Helper()
	p, err := r.client.CoreV1().Pods("shop").Get(r.t.Context(), "web-2", metav1.GetOptions{})
	require.NoError(r.t, err)
	setReady(p, corev1.ConditionTrue)
	_, err = r.client.CoreV1().Pods("shop").UpdateStatus(r.t.Context(), p, metav1.UpdateOptions{})
	require.NoError(r.t, err)
}
