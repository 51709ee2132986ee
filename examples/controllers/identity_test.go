// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// longName returns a Node name that is too long for a label value.
func longName(machine string) string {
	return machine + "." + strings.Repeat("a", 60) + ".example.com"
}

// TestMachine_NodeNameOver63Characters_RunsAndIsDeleted has a cloud with valid Node names that are
// not valid values of the label "node".
func TestMachine_NodeNameOver63Characters_RunsAndIsDeleted(t *testing.T) {
	for name, machineName := range map[string]string{"long node name": "m", "long machine name": longName("m")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				r.cloud = drivertest.NewCloud(drivertest.CloudOptions{NodeName: func(string) string { return longName("n") }})
				r.start()
				r.running(machineName)

				api := r.machines.MachineV1alpha1().Machines(namespace)
				m := get(t, api.Get, machineName)
				require.Equal(t, r.cloud.Snapshot().VMs[0].ProviderID, m.Spec.ProviderID)
				require.NotContains(t, m.Labels, v1alpha1.NodeLabelKey)
				valid := conditionOf(m, v1alpha1.MachineValid)
				require.NotNil(t, valid, "the cause is on the object")
				require.Contains(t, valid.Message, "metadata.labels[node]")
				node := get(t, r.nodes.CoreV1().Nodes().Get, longName("n"))
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
				nodes := list(t, r.nodes.CoreV1().Nodes().List, metav1.ListOptions{})
				require.Empty(t, nodes.Items)
			})
		})
	}
}

// TestMachine_SharedProviderID_VMOfTheOtherStays deletes each of two machines with the same
// provider ID, which a user has set on the second.
func TestMachine_SharedProviderID_VMOfTheOtherStays(t *testing.T) {
	for _, deleted := range []string{"owner", "thief"} {
		t.Run(deleted, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				r.start()
				r.running("owner")
				ctx, api := t.Context(), r.machines.MachineV1alpha1().Machines(namespace)
				owner := get(t, api.Get, "owner")
				thief := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "thief", Namespace: namespace}, Spec: owner.Spec}
				create(t, api.Create, thief)
				both := func() bool {
					for _, name := range []string{"owner", "thief"} {
						m, err := api.Get(ctx, name, metav1.GetOptions{})
						if err != nil {
							return false
						}
						if c := conditionOf(m, v1alpha1.MachineValid); c == nil || c.Reason != "ProviderIDShared" {
							return false
						}
					}
					return true
				}
				r.eventually("a condition on both", both)

				require.NoError(t, api.Delete(ctx, deleted, metav1.DeleteOptions{}))
				r.eventually("gone", func() bool { return r.gone(ctx, deleted) })
				require.Equal(t, map[string][]string{"thief": {"owner"}}[deleted], r.liveVMs())
				if deleted == "thief" {
					r.eventually("the condition gone", func() bool {
						m, err := api.Get(ctx, "owner", metav1.GetOptions{})
						return err == nil && conditionOf(m, v1alpha1.MachineValid) == nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning
					})
				}
			})
		})
	}
}

// TestMachine_FinalizerRemovedByUser_NodeIsDeletedWithItsVM removes a machine without its deletion.
// Orphan collection deletes its VM and Node only.
func TestMachine_FinalizerRemovedByUser_NodeIsDeletedWithItsVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.orphans = safety.Policy{Grace: time.Second, Period: time.Second, MaxDeletions: 5, MaxPercent: 60}
		r.start()
		r.running("kept", "lost")
		ctx, api := t.Context(), r.machines.MachineV1alpha1().Machines(namespace)
		require.NoError(t, r.target.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.NodeSpec{ProviderID: "other:///1"}}))
		merge(t, api.Patch, "lost", `{"metadata":{"finalizers":null}}`)
		require.NoError(t, api.Delete(ctx, "lost", metav1.DeleteOptions{}))
		r.eventually("VM and Node gone", func() bool { return slices.Equal(r.nodeNames(), []string{"kept", "other"}) })
		require.Len(t, r.liveVMs(), 1)
		require.Equal(t, v1alpha1.MachineRunning, r.phase("kept"))
	})
}

// TestMachine_LabelNamesAnotherNode_OwnNodeIsDeleted deletes a machine whose label names the Node
// of another machine.
func TestMachine_LabelNamesAnotherNode_OwnNodeIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.start()
		r.running("astray", "other")
		ctx, api := t.Context(), r.machines.MachineV1alpha1().Machines(namespace)
		merge(t, api.Patch, "astray", `{"metadata":{"labels":{"node":"other"}}}`)
		require.NoError(t, api.Delete(ctx, "astray", metav1.DeleteOptions{}))
		r.eventually("gone", func() bool { return r.gone(ctx, "astray") })
		require.Equal(t, []string{"other"}, r.nodeNames())
		require.Len(t, r.liveVMs(), 1)
		require.Equal(t, v1alpha1.MachineRunning, r.phase("other"))
	})
}

// nodeNames returns the sorted names of the Nodes.
func (r *harness) nodeNames() (names []string) {
	r.t.Helper()
	nodes := list(r.t, r.nodes.CoreV1().Nodes().List, metav1.ListOptions{})
	for i := range nodes.Items {
		names = append(names, nodes.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// liveVMs returns the machine names of the VMs that were not deleted.
func (r *harness) liveVMs() (machines []string) {
	for _, vm := range r.cloud.Snapshot().VMs {
		if vm.DeletedAt.IsZero() {
			machines = append(machines, vm.Machine)
		}
	}
	return machines
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
