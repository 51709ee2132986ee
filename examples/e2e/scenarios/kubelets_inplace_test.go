// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// updateNodes plays what Gardener has on the Nodes of an environment until the test ends: the agent
// that updates a Node by a reboot and reports the result, and the controller that lets pods come back
// by removing the taint of critical components.
func updateNodes(t *testing.T, s *env.Env) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	watch, err := s.Client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{LabelSelector: env.Label + "=" + s.Namespace})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		var err error
		for e := range watch.ResultChan() {
			if n, ok := e.Object.(*corev1.Node); ok && err == nil && ctx.Err() == nil {
				err = updateNode(ctx, s, n)
			}
		}
		done <- err
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

// updateNode does the next step for a Node.
func updateNode(ctx context.Context, s *env.Env, n *corev1.Node) error {
	c := conditionOf(n, v1alpha1.NodeInPlaceUpdate)
	if c == nil {
		return nil
	}
	switch _, reported := n.Labels[v1alpha1.LabelKeyNodeUpdateResult]; {
	case c.Reason == v1alpha1.ReadyForUpdate && !reported:
		if err := s.Fleet.Reboot(n.Name); err != nil {
			return err
		}
		return patchNode(ctx, s.Client, n, map[string]any{"metadata": map[string]any{
			"labels": map[string]string{v1alpha1.LabelKeyNodeUpdateResult: v1alpha1.LabelValueNodeUpdateSuccessful},
		}})
	case !n.Spec.Unschedulable && slices.ContainsFunc(n.Spec.Taints, ofCriticalComponents):
		taints := slices.DeleteFunc(slices.Clone(n.Spec.Taints), ofCriticalComponents)
		return patchNode(ctx, s.Client, n, map[string]any{"metadata": map[string]any{"resourceVersion": n.ResourceVersion}, "spec": map[string]any{"taints": taints}})
	}
	return nil
}

func ofCriticalComponents(taint corev1.Taint) bool {
	return taint.Key == v1alpha1.TaintNodeCriticalComponentsNotReady
}

// patchNode changes a Node. A conflict is no error, since the Node is seen again.
func patchNode(ctx context.Context, client kubernetes.Interface, n *corev1.Node, change map[string]any) error {
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, n.Name, mergePatch, text, metav1.PatchOptions{})
	if ctx.Err() != nil || apierrors.IsConflict(err) {
		err = nil
	}
	return err
}

func TestKubelets_InPlaceUpdate_PodsMoveAndVMsStay(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "agent", kubeletOptions())
	s.StartManager(t, "manager")
	deploy(t, s, inPlace(s.Deployment("workers", "small", 3, 0, 1), v1alpha1.OrchestrationTypeAuto))
	remove := workload(t, s)
	before := identities(t, s)
	pids := kubelets(t, s)
	web, db := fewest(t, s, "web"), fewest(t, s, "db")
	updateNodes(t, s)
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "updated", s.Complete("workers"))
	s.Wait(t, patience, "and acknowledged", acknowledged(s))
	require.Equal(t, before, identities(t, s), "the same machines, Nodes and VMs")
	s.Wait(t, patience, "each was rebooted", ended(pids))
	require.GreaterOrEqual(t, web(), 4)
	require.GreaterOrEqual(t, db(), 2)
	require.EqualValues(t, 0, setOf(t, s, "small").Spec.Replicas)
	for _, m := range machines(t, s) {
		// The agent reports its success before the new kubelet reports anything, so the Node may become
		// not ready once more.
		updated := []v1alpha1.MachinePhase{"Pending", "Running", "InPlaceUpdating", "InPlaceUpdateSuccessful", "Running"}
		s.Wait(t, patience, "its phases", func(ctx context.Context) (string, error) {
			if differs, err := went(s, m.UID, updated...)(ctx); differs == "" || err != nil {
				return differs, err
			}
			return went(s, m.UID, append(slices.Clone(updated), "Unknown", "Running")...)(ctx)
		})
	}
	remove()
	removeAll(t, s)
}
