// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestAMoveTakesAllLabelsOffByWhichTheFirstSetSelects(t *testing.T) {
	set := func(labels map[string]string) *v1alpha1.MachineSet {
		return &v1alpha1.MachineSet{Spec: v1alpha1.MachineSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "w", "first": "1"}}}
	next := deployment.MovedMachine(m, set(m.Labels), set(map[string]string{"app": "w", "second": "2"}))
	require.Equal(t, map[string]string{"app": "w", "second": "2", v1alpha1.LabelKeyNodeUpdateResult: "successful"}, next.Labels)
}
