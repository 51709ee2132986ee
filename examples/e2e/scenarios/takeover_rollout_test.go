// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	oldHash, newHash = "3141592653", "2718281828" // the hash of MCM is not needed to find the sets
	mcmReplicas      = 4
)

// ownedByMCM returns the metadata of an object that MCM has created for an owner, with its
// finalizer.
func ownedByMCM(name, kind, owner string, uid types.UID, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Labels: labels, Finalizers: []string{v1alpha1.MCMFinalizerName},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: owner, UID: uid, Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}
}

// hashed returns the labels of a set of MCM.
func hashed(hash string) map[string]string {
	return map[string]string{"name": "workers", v1alpha1.DefaultMachineDeploymentUniqueLabelKey: hash}
}

// set creates a set of a deployment as MCM leaves it in the middle of a rollout.
func (h *inherited) set(d *v1alpha1.MachineDeployment, hash, class, revision string, replicas int32) *v1alpha1.MachineSet {
	h.t.Helper()
	set := &v1alpha1.MachineSet{
		ObjectMeta: ownedByMCM(d.Name+"-"+hash, "MachineDeployment", d.Name, d.UID, hashed(hash)),
		Spec: v1alpha1.MachineSetSpec{
			Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: hashed(hash)}, Template: *d.Spec.Template.DeepCopy(),
		},
	}
	set.Spec.Template.Labels, set.Spec.Template.Spec.Class.Name = hashed(hash), class
	set.Annotations = map[string]string{
		v1alpha1.RevisionAnnotation: revision, v1alpha1.DesiredReplicasAnnotation: strconv.Itoa(mcmReplicas), v1alpha1.MaxReplicasAnnotation: strconv.Itoa(mcmReplicas + 1),
	}
	set, err := h.Machines.MachineV1alpha1().MachineSets(h.Namespace).Create(h.t.Context(), set, metav1.CreateOptions{})
	require.NoError(h.t, err)
	set.Status = v1alpha1.MachineSetStatus{Replicas: replicas, FullyLabeledReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas, ObservedGeneration: 1}
	set, err = h.Machines.MachineV1alpha1().MachineSets(h.Namespace).UpdateStatus(h.t.Context(), set, metav1.UpdateOptions{})
	require.NoError(h.t, err)
	return set
}

// member creates a Running machine of a set, with its VM and its Node.
func (h *inherited) member(set *v1alpha1.MachineSet, name string) {
	h.t.Helper()
	m := h.Machine(name, set.Spec.Template.Spec.Class.Name)
	m.ObjectMeta = ownedByMCM(name, "MachineSet", set.Name, set.UID, set.Spec.Template.Labels)
	m.Annotations = map[string]string{v1alpha1.MachinePriority: "3"}
	m.Labels[v1alpha1.NodeLabelKey] = h.NodeName(name)
	m.Spec.ProviderID = h.plant(name)
	create(h.t, h.Env, m)
	h.joined(name)
	h.left(name, v1alpha1.MachineRunning, v1alpha1.LastOperation{
		Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateSuccessful, Description: "Machine " + name + " successfully joined the cluster in 1m",
	})
}

// rollout creates a deployment as MCM leaves it in the middle of a rollout from class small to
// class large: three old machines and one new one, and the new set was just scaled to two.
func (h *inherited) rollout() (oldSet, newSet *v1alpha1.MachineSet) {
	h.t.Helper()
	require.NoError(h.t, h.Class(h.t.Context(), "large"))
	d := h.Deployment("workers", "large", mcmReplicas, 1, 0)
	d.Finalizers, d.Annotations = []string{v1alpha1.MCMFinalizerName}, map[string]string{v1alpha1.RevisionAnnotation: "2"}
	d, err := h.Machines.MachineV1alpha1().MachineDeployments(h.Namespace).Create(h.t.Context(), d, metav1.CreateOptions{})
	require.NoError(h.t, err)
	oldSet, newSet = h.set(d, oldHash, "small", "1", 3), h.set(d, newHash, "large", "2", 2)
	for i := range 3 {
		h.member(oldSet, fmt.Sprintf("%s-%d", oldSet.Name, i))
	}
	h.member(newSet, newSet.Name+"-0")
	return oldSet, newSet
}

// readableByMCM asserts that MCM finds what it needs to continue: owners, finalizers, the labels
// and annotations of sets, and the Nodes and phases of machines.
func (h *inherited) readableByMCM() {
	h.t.Helper()
	api := h.Machines.MachineV1alpha1()
	d, err := api.MachineDeployments(h.Namespace).Get(h.t.Context(), "workers", metav1.GetOptions{})
	require.NoError(h.t, err)
	require.Contains(h.t, d.Finalizers, v1alpha1.MCMFinalizerName)
	require.NotEmpty(h.t, d.Annotations[v1alpha1.RevisionAnnotation])
	sets, err := api.MachineSets(h.Namespace).List(h.t.Context(), metav1.ListOptions{})
	require.NoError(h.t, err)
	owners := map[types.UID]bool{}
	for _, set := range sets.Items {
		owners[set.UID] = true
		require.Equal(h.t, d.UID, controller(&set))
		require.Contains(h.t, set.Finalizers, v1alpha1.MCMFinalizerName)
		hash := set.Labels[v1alpha1.DefaultMachineDeploymentUniqueLabelKey]
		require.NotEmpty(h.t, hash)
		require.Equal(h.t, hash, set.Spec.Selector.MatchLabels[v1alpha1.DefaultMachineDeploymentUniqueLabelKey])
		require.Equal(h.t, hash, set.Spec.Template.Labels[v1alpha1.DefaultMachineDeploymentUniqueLabelKey])
		for _, key := range []string{v1alpha1.RevisionAnnotation, v1alpha1.DesiredReplicasAnnotation, v1alpha1.MaxReplicasAnnotation} {
			_, err := strconv.Atoi(set.Annotations[key])
			require.NoError(h.t, err, "%s of set %s", key, set.Name)
		}
	}
	for _, m := range machines(h.t, h.Env) {
		require.True(h.t, owners[controller(&m)], m.Name)
		require.Contains(h.t, m.Finalizers, v1alpha1.MCMFinalizerName)
		require.NotEmpty(h.t, m.Labels[v1alpha1.DefaultMachineDeploymentUniqueLabelKey])
		if phase := m.Status.CurrentStatus.Phase; phase == v1alpha1.MachineRunning {
			require.Equal(h.t, h.NodeName(m.Name), m.Labels[v1alpha1.NodeLabelKey])
			require.NotEmpty(h.t, m.Spec.ProviderID)
			require.Contains(h.t, node(h.t, h.Env, m.Name).Finalizers, v1alpha1.NodeFinalizerName)
		} else {
			require.Contains(h.t, []v1alpha1.MachinePhase{"", v1alpha1.MachinePending, v1alpha1.MachineTerminating}, phase, m.Name)
		}
	}
}

// TestTakeOver_RolloutOfMCM_FinishedAndHandedBack takes a rollout over in the middle, finishes it,
// and stops in the middle of the next one with objects that MCM can continue with.
func TestTakeOver_RolloutOfMCM_FinishedAndHandedBack(t *testing.T) {
	t.Parallel()
	h := inherit(t, "half")
	oldSet, newSet := h.rollout()
	kept := machine(t, h.Env, newSet.Name+"-0")
	manager := h.StartManager(t, "manager")
	h.Wait(t, patience, "the rollout is complete", h.Complete("workers"))
	require.Equal(t, newSet.UID, setOf(t, h.Env, "large").UID, "the set of MCM is used")
	require.Equal(t, "2", setOf(t, h.Env, "large").Annotations[v1alpha1.RevisionAnnotation])
	require.Equal(t, oldSet.UID, setOf(t, h.Env, "small").UID)
	require.Zero(t, setOf(t, h.Env, "small").Spec.Replicas)
	allOf(t, h.Env, newSet, mcmReplicas)
	require.Equal(t, kept.Spec.ProviderID, machine(t, h.Env, kept.Name).Spec.ProviderID, "the new machine of MCM stays")
	h.readableByMCM()

	change(t, h.Env, "workers", `{"spec":{"template":{"spec":{"class":{"name":"small"}}}}}`)
	h.Wait(t, patience, "half of the next rollout", deploymentIs(h.Env, "workers", halfway))
	require.NoError(t, manager.Stop(t.Context()))
	require.NotEmpty(t, setOf(t, h.Env, "large").Spec.Replicas, "it was stopped in the middle")
	require.Equal(t, oldSet.UID, setOf(t, h.Env, "small").UID, "the set of MCM is used again")
	require.Equal(t, "3", setOf(t, h.Env, "small").Annotations[v1alpha1.RevisionAnnotation])
	h.readableByMCM()

	h.Start(t, manager)
	h.Wait(t, patience, "the next rollout is complete", h.Complete("workers"))
	removeAll(t, h.Env)
}
