// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestExecutor_NothingSet_Error(t *testing.T) {
	t.Parallel()
	for _, e := range []*Executor{{}, {Reader: oneNode{}}, {Reader: oneNode{}, Requests: client.New(fake.NewClientset(), nil)}} {
		_, err := e.Reconcile(t.Context(), Orphans)
		require.ErrorIs(t, err, errIncomplete)
	}
	_, err := (&Executor{Reader: oneNode{}, Requests: client.New(fake.NewClientset(), nil)}).Reconcile(t.Context(), "other")
	require.ErrorIs(t, err, errConcern)
	_, err = new(Prober).Reconcile(t.Context())
	require.ErrorIs(t, err, errNoRequests)
	_, err = NewInformers(machinerunner.Factories{})
	require.Error(t, err)
}

func TestChanged_EachKind_WakesItsConcerns(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Namespace: "n", Name: "o"}
	class, m, d := &v1alpha1.MachineClass{ObjectMeta: meta}, &v1alpha1.Machine{ObjectMeta: meta}, &v1alpha1.MachineDeployment{ObjectMeta: meta}
	set, node := &v1alpha1.MachineSet{ObjectMeta: meta}, &corev1.Node{ObjectMeta: meta}
	joined, counted, frozen, asked := m.DeepCopy(), set.DeepCopy(), set.DeepCopy(), set.DeepCopy()
	joined.Labels, frozen.Labels = map[string]string{v1alpha1.NodeLabelKey: "node"}, map[string]string{v1alpha1.FreezeLabelKey: "True"}
	counted.Status.Replicas, asked.Annotations = 3, map[string]string{v1alpha1.UnfreezeAnnotation: ""}
	beats, marked, recorded := node.DeepCopy(), node.DeepCopy(), node.DeepCopy()
	beats.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
	marked.Annotations, recorded.Annotations = map[string]string{v1alpha1.NotManagedByMCM: "1"}, map[string]string{v1alpha1.MachineUIDAnnotation: "u"}
	type wakes = map[Concern]time.Duration
	for name, c := range map[string]struct {
		before, after metav1.Object
		want          wakes
	}{
		"class created":           {nil, class, wakes{Orphans: 0}},
		"machine created":         {nil, m, wakes{Overshoot: overshootDelay, Unmanaged: unmanagedDelay}},
		"machine joined":          {m, joined, wakes{Unmanaged: unmanagedDelay}},
		"machine changed":         {m, m.DeepCopy(), wakes{}},
		"machine deleted":         {m, nil, wakes{Orphans: 0, Unmanaged: unmanagedDelay}},
		"set created":             {nil, set, wakes{Overshoot: overshootDelay}},
		"set counted":             {set, counted, wakes{}},
		"set unfrozen by hand":    {frozen, set, wakes{Overshoot: overshootDelay}},
		"set to unfreeze":         {set, asked, wakes{Overshoot: overshootDelay}},
		"set deleted":             {set, nil, wakes{}},
		"deployment created":      {nil, d, wakes{Overshoot: overshootDelay}},
		"Node joined":             {nil, node, wakes{Unmanaged: unmanagedDelay}},
		"Node beats":              {node, beats, wakes{}},
		"Node unmarked by others": {marked, node, wakes{Unmanaged: unmanagedDelay}},
		"Node has a record":       {node, recorded, wakes{Unmanaged: unmanagedDelay}},
		"Node deleted":            {node, nil, wakes{}},
		"nothing":                 {nil, nil, wakes{}},
	} {
		require.Equal(t, c.want, new(Executor).Changed(c.before, c.after), name)
	}
}
