// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
)

// abortPlace is a cluster with one Node and three pods, and a drain of it.
type abortPlace struct {
	t       *testing.T
	clock   *clocktesting.FakeClock
	cluster *draintest.Cluster
	client  kubernetes.Interface
	drain   runner.Executor
	policy  drain.Policy
	reach   drain.NodeReachability
	state   drain.State
	results []drain.Result
	events  []drain.Progress
}

func newAbortPlace(t *testing.T, node *corev1.Node, fence nodeops.Fence) *abortPlace {
	t.Helper()
	p := &abortPlace{t: t, clock: clocktesting.NewFakeClock(now), policy: drain.Policy{Fence: fence}}
	p.cluster = draintest.New(draintest.Options{Clock: p.clock})
	require.NoError(t, p.cluster.Add(node, newPod("web-1"), newPod("web-2"), newPod("web-3")))
	p.client = p.cluster.Client()
	p.drain = runner.Executor{Client: p.client, Clock: p.clock, Parallel: 1, Observer: p}
	return p
}

func (p *abortPlace) Observe(e drain.Progress) { p.events = append(p.events, e) }

// node returns the Node without its version.
func (p *abortPlace) node() *corev1.Node {
	p.t.Helper()
	node, err := p.client.CoreV1().Nodes().Get(p.t.Context(), "node-1", metav1.GetOptions{})
	require.NoError(p.t, err)
	node.ResourceVersion = ""
	return node
}

// step makes one round by hand, and lets some time pass.
func (p *abortPlace) step() drain.Decision {
	p.t.Helper()
	list, err := p.client.CoreV1().Pods("").List(p.t.Context(), metav1.ListOptions{})
	require.NoError(p.t, err)
	in := drain.Observation{Looked: true, Node: p.node(), Pods: drain.List[*corev1.Pod]{Complete: true}, Reachability: p.reach, Results: p.results}
	for i := range list.Items {
		in.Pods.Items = append(in.Pods.Items, &list.Items[i])
	}
	var plan drain.Decision
	p.state, plan = drain.Step(p.state, in, p.policy, p.clock.Now())
	p.results, err = p.drain.Apply(p.t.Context(), plan)
	require.NoError(p.t, err)
	p.clock.Step(10 * time.Second)
	p.cluster.Tick()
	return plan
}

// abort undoes the drain, twice.
func (p *abortPlace) abort() {
	p.t.Helper()
	for range 2 {
		require.NoError(p.t, p.drain.Abort(p.t.Context(), "node-1", "uid-node-1", p.policy))
	}
}

func TestD12AbortAfterEachStepRestoresTheNode(t *testing.T) { // D-12, N-7
	byHand := newNode()
	taintedByHand := openNode()
	taintedByHand.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	taintedByHand.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: "by-hand"}
	claimed, _, err := nodeops.Fence{Owner: "other", ExcludeFromLoadBalancers: true}.Set(openNode(), now)
	require.NoError(t, err)
	nodes := map[string]*corev1.Node{
		"open": openNode(), "cordoned by hand": byHand, "with taints and labels": taintedByHand, "fenced by another": claimed,
	}
	fences := map[string]nodeops.Fence{
		"a cordon":    {Owner: "me", Reason: "test"},
		"a taint":     {Owner: "me", Taint: "example.com/drain"},
		"everything":  {Owner: "me", ExcludeFromLoadBalancers: true, OutOfService: true},
		"all but one": {Owner: "me", Taint: "example.com/drain", ExcludeFromLoadBalancers: true, OutOfService: true},
	}
	for from, node := range nodes {
		for with, fence := range fences {
			for steps := range 6 {
				t.Run(fmt.Sprintf("%s, %s, %d steps", from, with, steps), func(t *testing.T) {
					p := newAbortPlace(t, node, fence)
					p.reach = drain.NodeReachability{Unreachable: true, Since: now}
					before := p.node()
					for range steps {
						p.step()
					}
					require.Equal(t, steps > 0, len(nodeops.Fences(p.node())) > len(nodeops.Fences(before)))
					p.abort()
					require.Empty(t, cmp.Diff(before, p.node()))
				})
			}
		}
	}
}

func TestD12AbortLeavesWhatOthersDid(t *testing.T) { // D-12
	for steps := range 6 {
		t.Run(fmt.Sprintf("after %d steps", steps), func(t *testing.T) {
			p := newAbortPlace(t, openNode(), nodeops.Fence{Owner: "me", Taint: "example.com/drain", ExcludeFromLoadBalancers: true})
			want := p.node()
			for range steps {
				p.step()
			}
			p.othersEdit()
			p.step()
			p.abort()

			taint := corev1.Taint{Key: "theirs", Effect: corev1.TaintEffectNoExecute}
			want.Spec.Unschedulable = true
			want.Spec.Taints = []corev1.Taint{taint}
			want.Labels = map[string]string{"theirs": "1"}
			want.Annotations = map[string]string{"theirs": "2"}
			want.Status.Conditions = []corev1.NodeCondition{{Type: "Theirs", Status: corev1.ConditionTrue}}
			require.Empty(t, cmp.Diff(want, p.node(), cmpopts.IgnoreFields(corev1.NodeCondition{}, "LastTransitionTime", "LastHeartbeatTime")))
		})
	}
}

// othersEdit does to the Node what others do.
func (p *abortPlace) othersEdit() {
	ctx := p.t.Context()
	_, _, err := nodeops.UpdateNode(ctx, p.client, "node-1", func(node *corev1.Node) (bool, error) {
		node.Spec.Taints, _ = nodeops.SetTaint(node.Spec.Taints, corev1.Taint{Key: "theirs", Effect: corev1.TaintEffectNoExecute})
		metav1.SetMetaDataLabel(&node.ObjectMeta, "theirs", "1")
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, "theirs", "2")
		return true, nil
	})
	require.NoError(p.t, err)
	require.NoError(p.t, nodeops.AddOrUpdateConditionsOnNode(ctx, p.client, "node-1", corev1.NodeCondition{Type: "Theirs", Status: corev1.ConditionTrue}))
	require.NoError(p.t, sourceErr(nodeops.FenceNode(ctx, p.client, "node-1", "", nodeops.Fence{}, now))) // kubectl cordon
}

func TestAbortNeedsAnOwnerAndAClient(t *testing.T) {
	p := newAbortPlace(t, openNode(), nodeops.Fence{})
	version := p.cluster.ResourceVersion()
	require.ErrorIs(t, p.drain.Abort(t.Context(), "node-1", "", p.policy), runner.ErrUnusable)
	require.ErrorIs(t, runner.Executor{}.Abort(t.Context(), "node-1", "", drain.Policy{Fence: nodeops.Fence{Owner: "me"}}), runner.ErrUnusable)
	require.NoError(t, runner.Executor{}.Abort(t.Context(), "node-1", "", drain.Policy{KeepSchedulable: true}), "nothing was done to the Node")
	require.Error(t, p.drain.Abort(t.Context(), "", "", drain.Policy{Fence: nodeops.Fence{Owner: "me"}}), "no name of a Node")
	require.Empty(t, p.cluster.HistorySince(version))
}

func TestAbortOfANodeThatIsGoneIsDone(t *testing.T) {
	for name, uid := range map[string]types.UID{"deleted": "uid-node-1", "replaced": "uid-of-old"} {
		t.Run(name, func(t *testing.T) {
			p := newAbortPlace(t, openNode(), nodeops.Fence{Owner: "me"})
			if name == "deleted" {
				require.NoError(t, p.client.CoreV1().Nodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{}))
			} else {
				p.step() // the new Node is fenced by the same owner
			}
			version := p.cluster.ResourceVersion()
			require.NoError(t, p.drain.Abort(t.Context(), "node-1", uid, p.policy))
			require.Empty(t, p.cluster.HistorySince(version))
			require.Empty(t, p.events)
		})
	}
}

func TestAnAbortThatFailsSaysSo(t *testing.T) {
	p := newAbortPlace(t, openNode(), nodeops.Fence{Owner: "me"})
	p.step()
	remove := p.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "update", Resource: "nodes"})
	err := p.drain.Abort(t.Context(), "node-1", "", p.policy)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.Len(t, p.events, 1)
	require.Equal(t, drain.ProgressUnfenced, p.events[0].Type)
	require.Error(t, p.events[0].Err)
	remove()

	p.abort()
	require.Len(t, p.events, 2, "what changed nothing is no event")
	require.NoError(t, p.events[1].Err)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.drain.Abort(ctx, "node-1", "", p.policy), context.Canceled)
}

func TestAnAbortThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := runner.Executor{Client: hangingNodes{draintest.New(draintest.Options{}).Client()}, CallTimeout: 5 * time.Second}.
			Abort(t.Context(), "node-1", "", drain.Policy{Fence: nodeops.Fence{Owner: "me"}})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(start))
	})
}

// hangingNodes is a client that finds no Node before its context ends, or an hour is over.
type hangingNodes struct{ kubernetes.Interface }

func (c hangingNodes) CoreV1() typedcorev1.CoreV1Interface {
	return hangingNodesCore{c.Interface.CoreV1()}
}

type hangingNodesCore struct{ typedcorev1.CoreV1Interface }

func (c hangingNodesCore) Nodes() typedcorev1.NodeInterface {
	return hangingNode{c.CoreV1Interface.Nodes()}
}

type hangingNode struct{ typedcorev1.NodeInterface }

func (hangingNode) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Node, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Hour):
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
	}
}
