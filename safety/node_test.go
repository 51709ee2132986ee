// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

func TestDeleteVM_OwnsNode(t *testing.T) {
	t.Parallel()
	action := safety.DeleteVM{ProviderID: "cloud:///zone/vm-1", MachineName: "m"}
	node := func(providerID, machineName string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.MachineNameLabelKey: machineName}},
			Spec:       corev1.NodeSpec{ProviderID: providerID},
		}
	}
	for name, tc := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"no Node":                      {nil, false},
		"its Node":                     {node("cloud:///zone/vm-1", "m"), true},
		"its Node, never labeled":      {node("cloud:///zone/vm-1", ""), true},
		"the Node of another machine":  {node("cloud:///zone/vm-1", "n"), false},
		"the Node of another VM":       {node("cloud:///zone/vm-2", "m"), false},
		"a VM of that name elsewhere":  {node("cloud:///region/vm-1", "m"), false},
		"a Node without a provider ID": {node("", "m"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, action.OwnsNode(tc.node))
		})
	}
	require.False(t, safety.DeleteVM{}.OwnsNode(node("", "")))
}
