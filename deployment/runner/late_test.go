// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment/runner"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// alone is a Reader that shows a deployment without its sets.
type alone struct{ *v1alpha1.MachineDeployment }

func (r alone) Get(_ context.Context, o machinist.Object) (machinist.Object, error) {
	if _, ok := o.(*v1alpha1.MachineDeployment); ok {
		return r.MachineDeployment, nil
	}
	return nil, nil
}

func (alone) List(context.Context, machinist.Object, string, string) ([]machinist.Object, error) {
	return nil, nil
}

// TestReconcile_DeletedDeploymentIsInvalid_SetsOfTheServerCount has a Reader without the set of a deployment
// that is being deleted, and whose selector does not select the set.
func TestReconcile_DeletedDeploymentIsInvalid_SetsOfTheServerCount(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"app": "w"}
	for name, selector := range map[string]*metav1.LabelSelector{
		"others": {MatchLabels: map[string]string{"app": "other"}}, "unreadable": {MatchLabels: map[string]string{"a b": "c"}}, "none": nil,
	} {
		d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "d", UID: "u", Finalizers: []string{v1alpha1.MCMFinalizerName}, DeletionTimestamp: &metav1.Time{Time: time.Now()},
		}}
		d.Spec.Selector, d.Spec.Template.Labels = selector, labels
		set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "s", UID: "uid-s", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, v1alpha1.SchemeGroupVersion.WithKind("MachineDeployment"))},
		}}
		requests := fake.NewSimpleClientset(d, set)
		executor := &runner.Executor{Reader: alone{d}, Requests: client.New(requests, nil)}
		for range 5 {
			_, err := executor.Reconcile(t.Context(), types.NamespacedName{Namespace: "n", Name: "d"})
			require.NoError(t, err, name)
		}
		left, err := requests.MachineV1alpha1().MachineDeployments("n").Get(t.Context(), "d", metav1.GetOptions{})
		require.NoError(t, err, name)
		require.NotEmpty(t, left.Finalizers, name)
	}
}
