// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
)

// drainWorld is a namespace with two Nodes and no machines, for tests of package drain without the
// rest of this project.
type drainWorld struct {
	control *controlplane.ControlPlane
	client  kubernetes.Interface
	ns      string
	a, b    string // Nodes
	nodes   *hollow.Nodes
}

// newDrainWorld returns a drainWorld on a control plane. Its pods take 300 ms to stop.
func newDrainWorld(t *testing.T, c *controlplane.ControlPlane) *drainWorld {
	t.Helper()
	config := c.Config()
	config.UserAgent = "drain"
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	w := &drainWorld{control: c, client: client, ns: c.Namespace(t, "drain")}
	w.a, w.b = w.ns+"-a", w.ns+"-b"
	up := time.Now().Add(-time.Minute)
	w.nodes = &hollow.Nodes{
		Client: client, LeaseInterval: 5 * time.Second, PodStopTime: 300 * time.Millisecond,
		VMs: func() []hollow.VM {
			return []hollow.VM{{ProviderID: "drain:///" + w.a, NodeName: w.a, UpSince: up}, {ProviderID: "drain:///" + w.b, NodeName: w.b, UpSince: up}}
		},
	}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	var playing sync.WaitGroup
	playing.Go(func() { _ = w.nodes.Run(ctx) }) // fails only without a client
	t.Cleanup(func() {
		end()
		playing.Wait()
		for _, name := range []string{w.a, w.b} {
			_ = client.CoreV1().Nodes().Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{})
		}
	})
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, env.Label, w.ns)
	for _, name := range []string{w.a, w.b} {
		w.until(t, "node "+name+" joins", func(ctx context.Context) bool {
			_, err := client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			return err == nil
		})
	}
	return w
}

// until waits until a condition holds.
func (w *drainWorld) until(t *testing.T, what string, holds func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			require.FailNow(t, what, "never")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// pod creates a pod without an owner on a Node, and waits until it runs, and is ready
// unless its gate is closed.
func (w *drainWorld) pod(t *testing.T, name, node string, edits ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: new(int64(2)), AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "app", Image: "hollow"}},
		},
	}
	for _, edit := range edits {
		edit(pod)
	}
	made, err := w.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	w.until(t, "pod "+name+" is ready", func(ctx context.Context) bool {
		now, err := w.client.CoreV1().Pods(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if len(pod.Spec.ReadinessGates) > 0 {
			return err == nil && now.Status.Phase == corev1.PodRunning
		}
		return err == nil && slices.ContainsFunc(now.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	})
	return made
}

// neverReady keeps a pod from being ready until its gate opens.
func neverReady(p *corev1.Pod) {
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
}

// gate is a condition of pods that is part of their readiness.
const gate = "example.com/gate"

// open makes a pod ready that was not.
func (w *drainWorld) open(t *testing.T, pod string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":"True"}]}}`, gate)
	_, err := w.client.CoreV1().Pods(w.ns).Patch(t.Context(), pod, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

// app labels a pod.
func app(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels["app"] = name }
}

// there reports whether a pod is still there, and is not going.
func (w *drainWorld) there(t *testing.T, pod *corev1.Pod) bool {
	t.Helper()
	now, err := w.client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false
	}
	require.NoError(t, err)
	return now.UID == pod.UID && now.DeletionTimestamp == nil
}

// goes waits until a pod is asked to go.
func (w *drainWorld) goes(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	w.until(t, "pod "+pod.Name+" goes", func(ctx context.Context) bool {
		now, err := w.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && (now.UID != pod.UID || now.DeletionTimestamp != nil)
	})
}

// budget creates a disruption budget for an app, and waits until it counts so many
// pods, that many of them healthy.
func (w *drainWorld) budget(t *testing.T, name, app string, minAvailable, expected, healthy int32) {
	t.Helper()
	least := intstr.FromInt32(minAvailable)
	w.budgetOf(t, name, expected, healthy, policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	})
}

func (w *drainWorld) budgetOf(t *testing.T, name string, expected, healthy int32, spec policyv1.PodDisruptionBudgetSpec) {
	t.Helper()
	api := w.client.PolicyV1().PodDisruptionBudgets(w.ns)
	_, err := api.Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Spec: spec}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.until(t, "budget "+name+" counts its pods", func(ctx context.Context) bool {
		b, err := api.Get(ctx, name, metav1.GetOptions{})
		return err == nil && b.Status.ObservedGeneration == b.Generation && b.Status.ExpectedPods == expected && b.Status.CurrentHealthy == healthy
	})
}

// asked returns the evictions of a pod that the API server has answered in one way.
func (w *drainWorld) asked(t *testing.T, pod string, code int) (evictions []controlplane.Request) {
	t.Helper()
	requests, err := w.control.Requests()
	require.NoError(t, err)
	for _, r := range requests {
		if r.Namespace == w.ns && r.Name == pod && r.Subresource == "eviction" && r.Code == code {
			evictions = append(evictions, r)
		}
	}
	return evictions
}

// lenient is a policy that evicts pods without an owner.
var lenient = drain.Policy{EvictUnmanaged: true, EvictLocalStorage: true}

// going is a drain that is under way.
type going struct {
	ended chan struct{}  // closed when it is over
	plan  drain.Decision // read these after that
	err   error
	at    time.Time

	mu     sync.Mutex
	events []drain.Progress
}

// Observe collects the events.
func (g *going) Observe(e drain.Progress) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, e)
}

// all returns what has happened so far.
func (g *going) all() []drain.Progress {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.events)
}

// drains begins to drain the Node a.
func (w *drainWorld) drains(ctx context.Context, client kubernetes.Interface, p drain.Policy) *going {
	g := &going{ended: make(chan struct{})}
	go func() {
		defer close(g.ended)
		g.plan, g.err = runner.Executor{Client: runner.NewClient(client), Observer: g}.Run(ctx, w.a, p)
		g.at = time.Now()
	}()
	return g
}

// end waits for the end of a drain.
func (g *going) end(t *testing.T) *going {
	t.Helper()
	select {
	case <-g.ended:
	case <-time.After(patience):
		require.FailNow(t, "the drain does not end", "%v", g.all())
	}
	return g
}

// waits for a drain to say that it waits for something, and returns what it says.
func (g *going) waits(t *testing.T, w *drainWorld, subject string, reason machinist.Reason) drain.Progress {
	t.Helper()
	var found drain.Progress
	w.until(t, fmt.Sprintf("the drain waits for %s: %s", subject, reason), func(context.Context) bool {
		all := g.all()
		i := slices.IndexFunc(all, func(e drain.Progress) bool {
			told := e.Type == drain.ProgressWaiting || e.Type == drain.ProgressRequested // and refused
			return told && e.Subject == subject && e.Reason == reason
		})
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// row returns the row of a pod.
func row(t *testing.T, plan drain.Decision, pod string) drain.Row {
	t.Helper()
	i := slices.IndexFunc(plan.Rows, func(r drain.Row) bool { return r.Name == pod })
	require.GreaterOrEqual(t, i, 0, "%s is not in\n%s", pod, plan)
	return plan.Rows[i]
}
