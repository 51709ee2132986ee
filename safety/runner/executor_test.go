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
	class := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m"}}
	joined := m.DeepCopy()
	joined.Labels = map[string]string{v1alpha1.NodeLabelKey: "node"}
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}}
	counted, frozen, asked := set.DeepCopy(), set.DeepCopy(), set.DeepCopy()
	counted.Status.Replicas, frozen.Labels, asked.Annotations = 3, map[string]string{v1alpha1.FreezeLabelKey: "True"}, map[string]string{v1alpha1.UnfreezeAnnotation: ""}
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	beats, marked, recorded := node.DeepCopy(), node.DeepCopy(), node.DeepCopy()
	beats.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
	marked.Annotations, recorded.Annotations = map[string]string{v1alpha1.NotManagedByMCM: "1"}, map[string]string{v1alpha1.MachineUIDAnnotation: "u"}
	orphans, sets, nodes := time.Duration(0), overshootDelay, unmanagedDelay
	for name, c := range map[string]struct {
		before, after metav1.Object
		wakes         map[Concern]time.Duration
	}{
		"class created":           {nil, class, map[Concern]time.Duration{Orphans: orphans}},
		"machine created":         {nil, m, map[Concern]time.Duration{Overshoot: sets, Unmanaged: nodes}},
		"machine joined":          {m, joined, map[Concern]time.Duration{Unmanaged: nodes}},
		"machine changed":         {m, m.DeepCopy(), map[Concern]time.Duration{}},
		"machine deleted":         {m, nil, map[Concern]time.Duration{Orphans: orphans, Unmanaged: nodes}},
		"set created":             {nil, set, map[Concern]time.Duration{Overshoot: sets}},
		"set counted":             {set, counted, map[Concern]time.Duration{}},
		"set unfrozen by hand":    {frozen, set, map[Concern]time.Duration{Overshoot: sets}},
		"set to unfreeze":         {set, asked, map[Concern]time.Duration{Overshoot: sets}},
		"set deleted":             {set, nil, map[Concern]time.Duration{}},
		"deployment created":      {nil, d, map[Concern]time.Duration{Overshoot: sets}},
		"Node joined":             {nil, node, map[Concern]time.Duration{Unmanaged: nodes}},
		"Node beats":              {node, beats, map[Concern]time.Duration{}},
		"Node unmarked by others": {marked, node, map[Concern]time.Duration{Unmanaged: nodes}},
		"Node has a record":       {node, recorded, map[Concern]time.Duration{Unmanaged: nodes}},
		"Node deleted":            {node, nil, map[Concern]time.Duration{}},
		"nothing":                 {nil, nil, map[Concern]time.Duration{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.wakes, new(Executor).Changed(c.before, c.after))
		})
	}
}
