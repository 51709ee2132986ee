// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// longName is a Node name that no label can have as its value.
func longName(machine string) string {
	return machine + "." + strings.Repeat("a", 60) + ".example.com"
}

// TestMachine_NodeNameOver63Characters_RunsAndGoes has a cloud whose Node names are
// valid Node names, and no valid values of the label "node".
func TestMachine_NodeNameOver63Characters_RunsAndGoes(t *testing.T) {
	for name, machineName := range map[string]string{"long node name": "m", "long machine name": longName("m")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.cloud = drivertest.NewCloud(drivertest.CloudOptions{NodeName: func(string) string { return longName("n") }})
				r.start()
				r.create(machineName)
				r.eventually("running", func() bool { return r.phase(machineName) == v1alpha1.MachineRunning })

				api := r.machines.MachineV1alpha1().Machines(namespace)
				m, err := api.Get(t.Context(), machineName, metav1.GetOptions{})
				require.NoError(t, err)
				require.Equal(t, r.cloud.Snapshot().VMs[0].ProviderID, m.Spec.ProviderID)
				require.NotContains(t, m.Labels, v1alpha1.NodeLabelKey)
				valid := conditionOf(m, v1alpha1.MachineValid)
				require.NotNil(t, valid, "the cause is on the object")
				require.Contains(t, valid.Message, "metadata.labels[node]")
				node, err := r.nodes.CoreV1().Nodes().Get(t.Context(), longName("n"), metav1.GetOptions{})
				require.NoError(t, err)
				require.Contains(t, node.Finalizers, v1alpha1.NodeFinalizerName)

				require.NoError(t, r.target.Add(&corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", OwnerReferences: []metav1.OwnerReference{controller("ReplicaSet")}},
					Spec:       corev1.PodSpec{NodeName: longName("n")}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
				}))
				defer r.cloud.Subscribe(func(e drivertest.Event) {
					if e.Kind == drivertest.VMDeletionBegan {
						pods, err := r.nodes.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
						if err != nil || len(pods.Items) > 0 {
							t.Errorf("the VM goes before its pods: %v %v", pods, err)
						}
					}
				})()
				began := time.Now()
				require.NoError(t, api.Delete(t.Context(), machineName, metav1.DeleteOptions{}))
				r.eventually("gone", func() bool { return r.gone(t.Context(), machineName) })
				require.Less(t, time.Since(began), 10*time.Second)
				require.True(t, r.cloud.Snapshot().Empty(), r.cloud.Snapshot())
				nodes, err := r.nodes.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				require.Empty(t, nodes.Items)
			})
		})
	}
}

// conditionOf returns a condition of a machine, or nil.
func conditionOf(m *v1alpha1.Machine, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range m.Status.Conditions {
		if m.Status.Conditions[i].Type == kind {
			return &m.Status.Conditions[i]
		}
	}
	return nil
}
