// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// setsAlone is a Reader of sets without machines.
type setsAlone []*v1alpha1.MachineSet

func (r setsAlone) Get(_ context.Context, o machinist.Object) (machinist.Object, error) {
	if _, node := o.(*corev1.Node); node {
		return nil, machine.ErrNoTarget
	}
	return r[0], nil
}

func (r setsAlone) List(_ context.Context, _ machinist.Object, _, key string) (all []machinist.Object, _ error) {
	if key == runners.ControllerKey("n", "") {
		for _, set := range r {
			all = append(all, set)
		}
	}
	return all, nil
}

// workers returns a deployment.
func workers() *v1alpha1.MachineDeployment {
	return &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d", UID: "u"}}
}

// TestPass_NewSetRelabeled_IsNotExpected relabels a set after its creation as another client. The set no
// longer belongs to the deployment, and the expectation is fulfilled once the Reader shows it.
func TestPass_NewSetRelabeled_IsNotExpected(t *testing.T) {
	t.Parallel()
	d := workers()
	set := func(version string) *v1alpha1.MachineSet {
		return &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "s", ResourceVersion: version}}
	}
	for version, pending := range map[string]int{"6": 1, "7": 0, "8": 0} {
		p := &pass{Executor: &Executor{Reader: setsAlone{set(version)}}}
		p.memory.Change(d, func(m *memory) { m.expected = m.expected.Updated(set("7"), time.Unix(0, 0)) })
		_, _, err := p.decide(t.Context(), d)
		require.NoError(t, err)
		require.Len(t, p.in.Expectations, pending, "the Reader shows version %s", version)
	}
}

// TestObserve_SetReleased_IsInObservation checks that released sets are observed, because they limit how
// many sets the deployment creates while another client removes labels.
func TestObserve_SetReleased_IsInObservation(t *testing.T) {
	t.Parallel()
	d := workers()
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}
	s := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "s", UID: "s", Annotations: map[string]string{"machinist.dev/released-by": "u"},
	}}
	in, _, err := observe(t.Context(), setsAlone{s}, d)
	require.NoError(t, err)
	require.Empty(t, in.Sets)
	require.Equal(t, []*v1alpha1.MachineSet{s}, in.Released)
}

// TestApply_Fails_LastIsTheFailedAction checks that a Node that cannot be written stops no other action,
// and that no Node is written after another failure.
func TestApply_Fails_LastIsTheFailedAction(t *testing.T) {
	_, machines := machinetest.New(draintest.Options{})
	target := draintest.New(draintest.Options{})
	var marks []machinist.Action
	for _, name := range []string{"node-1", "node-2"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.NoError(t, target.Add(node))
		edited := node.DeepCopy()
		edited.Labels = map[string]string{"a": "b"}
		marks = append(marks, machinist.Update{Before: node, Object: edited, Unchanged: true})
	}
	target.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "patch", Resource: "nodes", Times: 1})
	actions := append([]machinist.Action{machinist.Create{Object: &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}}}}, marks...)
	p := &pass{Executor: &Executor{Requests: client.New(machines, target.Client()), Parallel: 1}, d: deployment.Decision{Actions: actions}}
	p.in.Deployment = workers()
	marked := func() (names []string) {
		nodes, err := target.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"})
		require.NoError(t, err)
		for _, n := range nodes.Items {
			names = append(names, n.Name)
		}
		return names
	}

	last, failed := p.apply(t.Context())
	require.Equal(t, marks[1], last)
	require.True(t, apierrors.IsConflict(failed), "%v", failed)
	require.Equal(t, []string{"node-2"}, marked())

	last, failed = p.apply(t.Context())
	require.Equal(t, actions[0], last)
	require.True(t, apierrors.IsAlreadyExists(failed), "%v", failed)
	require.Equal(t, []string{"node-2"}, marked())
}

func TestExecutor_NothingSet_Error(t *testing.T) {
	_, err := new(Executor).Reconcile(t.Context(), types.NamespacedName{})
	require.ErrorContains(t, err, "no Reader")
	_, err = Observe(t.Context(), nil, types.NamespacedName{})
	require.ErrorContains(t, err, "no Reader")
	_, err = NewInformers(nil, nil)
	require.ErrorContains(t, err, "no factory")
	require.Empty(t, Affected(t.Context(), nil, nil, nil))
}
