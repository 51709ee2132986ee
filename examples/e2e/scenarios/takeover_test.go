// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// inherited are machines as another system has left them, on an environment.
type inherited struct {
	*env.Env
	t       *testing.T
	planted map[string]bool // provider IDs of VMs that the other system has made
}

// inherit sets an environment whose VMs may have been made by another system.
func inherit(t *testing.T, prefix string) *inherited {
	t.Helper()
	h := &inherited{t: t, planted: map[string]bool{}}
	o := fastOptions()
	o.Bounds.Foreign = func(vm drivertest.VM) bool { return h.planted[vm.ProviderID] }
	h.Env = cluster.Set(t, prefix, o)
	require.NoError(t, h.Class(t.Context(), "small"))
	return h
}

// guarded makes a machine with the finalizer that both systems use.
func (h *inherited) guarded(name string) {
	m := h.Machine(name, "small")
	m.Finalizers = []string{v1alpha1.MCMFinalizerName}
	create(h.t, h.Env, m)
}

// plant gives a machine a VM, and says which it is.
func (h *inherited) plant(name string) string {
	vm := h.Cloud.AddVM(drivertest.VM{Namespace: h.Namespace, Machine: name, Class: "small"})
	h.planted[vm.ProviderID] = true
	return vm.ProviderID
}

// know writes down which VM and Node a machine has.
func (h *inherited) know(name, providerID string) {
	h.t.Helper()
	m := machine(h.t, h.Env, name)
	m.Spec.ProviderID = providerID
	m.Labels = map[string]string{v1alpha1.NodeLabelKey: h.NodeName(name)}
	m.Annotations = map[string]string{v1alpha1.MachinePriority: "3"}
	_, err := h.Machines.MachineV1alpha1().Machines(h.Namespace).Update(h.t.Context(), m, metav1.UpdateOptions{})
	require.NoError(h.t, err)
}

// joined waits until the Node of a machine is there, and gives it what the other
// system gives it.
func (h *inherited) joined(name string) {
	h.t.Helper()
	h.Wait(h.t, patience, "the node of "+name+" is there", func(ctx context.Context) (string, error) {
		_, err := h.Client.CoreV1().Nodes().Get(ctx, h.NodeName(name), metav1.GetOptions{})
		if err != nil {
			return "no node", err
		}
		return "", nil
	})
	_, err := h.Client.CoreV1().Nodes().Patch(h.t.Context(), h.NodeName(name), mergePatch, fmt.Appendf(nil,
		`{"metadata":{"finalizers":[%q],"labels":{%q:%q,%q:%q}}}`, v1alpha1.NodeFinalizerName, v1alpha1.MachineNameLabelKey, name, env.Label, h.Namespace), metav1.PatchOptions{})
	require.NoError(h.t, err)
}

// draining marks the Node of a machine as the other system does when it begins to
// drain it.
func (h *inherited) draining(name string) {
	h.t.Helper()
	now := metav1.NewTime(time.Now().Add(-10 * time.Second))                        // in another second than what is written next
	require.NoError(h.t, retry.RetryOnConflict(retry.DefaultBackoff, func() error { // its kubelet writes, too
		n := node(h.t, h.Env, name)
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: v1alpha1.NodeTerminationCondition, Status: corev1.ConditionTrue, Reason: v1alpha1.NodeScaledDown,
			Message: "Machine Controller is scaling down machine", LastHeartbeatTime: now, LastTransitionTime: now,
		})
		_, err := h.Client.CoreV1().Nodes().UpdateStatus(h.t.Context(), n, metav1.UpdateOptions{})
		return err
	}))
	_, err := h.Client.CoreV1().Nodes().Patch(h.t.Context(), h.NodeName(name), mergePatch, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	require.NoError(h.t, err)
}

// left writes how far the other system has come with a machine.
func (h *inherited) left(name string, phase v1alpha1.MachinePhase, op v1alpha1.LastOperation) {
	h.t.Helper()
	m := machine(h.t, h.Env, name)
	now := metav1.Now()
	op.LastUpdateTime = now
	m.Status.LastOperation = op
	m.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: phase, TimeoutActive: phase == v1alpha1.MachinePending, LastUpdateTime: now}
	_, err := h.Machines.MachineV1alpha1().Machines(h.Namespace).UpdateStatus(h.t.Context(), m, metav1.UpdateOptions{})
	require.NoError(h.t, err)
}

// leaving deletes a machine, and writes how far the other system has come with that.
func (h *inherited) leaving(name, description string) {
	h.t.Helper()
	require.NoError(h.t, h.Machines.MachineV1alpha1().Machines(h.Namespace).Delete(h.t.Context(), name, metav1.DeleteOptions{}))
	h.left(name, v1alpha1.MachineTerminating, v1alpha1.LastOperation{
		Type: v1alpha1.MachineOperationDelete, State: v1alpha1.MachineStateProcessing, Description: description,
	})
}

// stuck puts a pod on the Node of a machine which a budget keeps there.
func (h *inherited) stuck(name string) {
	h.t.Helper()
	ctx, labels, all := h.t.Context(), map[string]string{"app": "stuck-on-" + name}, intstr.FromInt32(1)
	_, err := h.Client.PolicyV1().PodDisruptionBudgets(h.Namespace).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "stuck-on-" + name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}, metav1.CreateOptions{})
	require.NoError(h.t, err)
	_, err = h.Client.CoreV1().Pods(h.Namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "stuck-on-" + name, Labels: labels},
		Spec: corev1.PodSpec{
			NodeName: h.NodeName(name), AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(1)),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, Containers: []corev1.Container{{Name: "app", Image: "hollow"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(h.t, err)
	h.Wait(h.t, patience, "the pod is ready", func(ctx context.Context) (string, error) {
		p, err := h.Client.CoreV1().Pods(h.Namespace).Get(ctx, "stuck-on-"+name, metav1.GetOptions{})
		if err != nil || p.Status.Phase != corev1.PodRunning {
			return "it does not run", err
		}
		return "", nil
	})
}

func TestTakeOver_DeletionsOfMCM_AreFinished(t *testing.T) {
	t.Parallel()
	h := inherit(t, "inherit")
	ctx := t.Context()
	// The names are those of the steps at which the reference system may stop.
	steps := []struct{ name, description string }{
		{"a-looks", v1alpha1.GetVMStatus},
		{"a-retries", "Error occurred with decoding machine error status while getting VM status, aborting with retry. " + v1alpha1.GetVMStatus},
		{"b-drains", v1alpha1.InitiateDrain},
		{"b-retries", "Drain failed due to - error. Will retry in next sync. " + v1alpha1.InitiateDrain},
		{"c-detaches", "Force Drain successful. " + v1alpha1.DelVolumesAttachments},
		{"d-drained", "Drain successful. " + v1alpha1.InitiateVMDeletion},
		{"d-retries", "VM deletion failed due to - machine codes error: code = [Unavailable] message = [busy]. However, will re-try in the next resync. " + v1alpha1.InitiateVMDeletion},
		{"e-without-vm", "VM deletion was successful. " + v1alpha1.InitiateNodeDeletion},
		{"f-without-node", "Deletion of Node Object \"n\" is successful. " + v1alpha1.InitiateFinalizerRemoval},
	}
	ids := map[string]string{}
	for _, s := range steps {
		h.guarded(s.name)
		if s.name != "f-without-node" {
			ids[s.name] = h.plant(s.name)
		}
	}
	for _, s := range steps {
		if s.name != "f-without-node" {
			h.joined(s.name)
		}
		if s.name != "a-looks" { // there it does not even know its Node
			h.know(s.name, ids[s.name])
		}
	}
	h.stuck("d-drained")
	h.stuck("d-retries")
	attach(t, h.Env, "c-detaches")
	require.True(t, h.Cloud.Terminate(ids["e-without-vm"]))
	for _, name := range []string{"b-retries", "c-detaches", "d-drained", "d-retries", "e-without-vm"} {
		h.draining(name)
	}
	for _, s := range steps {
		h.leaving(s.name, s.description)
	}

	h.StartManager(t, "manager")
	for _, s := range steps {
		h.Wait(t, patience, s.name+" is gone", gone(h.Env, s.name))
		h.Wait(t, patience, "its node too", env.Gone("node", h.Client.CoreV1().Nodes().Get, h.NodeName(s.name)))
	}
	h.Wait(t, patience, "so are the VMs", func(context.Context) (string, error) {
		if left := h.Cloud.Snapshot(); !left.Empty() {
			return left.String(), nil
		}
		return "", nil
	})
	require.Zero(t, evictions(ctx, t, h.Env, http.StatusTooManyRequests), "what was drained is not drained again")
	require.Equal(t, 1, attachmentDeletions(t, h.Env), "what is attached to a node that was drained by force")
	require.NoError(t, h.Client.PolicyV1().PodDisruptionBudgets(h.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	removeAll(t, h.Env)
}

func TestTakeOver_CreationsOfMCM_OneVMEach(t *testing.T) {
	t.Parallel()
	h := inherit(t, "begun")
	names := []string{"bare", "made", "crashed", "crashed-with-vm", "pending", "runs"}
	ids := map[string]string{}
	for _, name := range names {
		h.guarded(name)
	}
	for _, name := range []string{"made", "crashed-with-vm", "pending", "runs"} {
		ids[name] = h.plant(name)
	}
	for _, name := range []string{"pending", "runs"} {
		h.know(name, ids[name])
	}
	failed := v1alpha1.LastOperation{
		Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed, ErrorCode: "ResourceExhausted",
		Description: "Cloud provider message - machine codes error: code = [ResourceExhausted] message = [no room]",
	}
	h.left("crashed", v1alpha1.MachineCrashLoopBackOff, failed)
	h.left("crashed-with-vm", v1alpha1.MachineCrashLoopBackOff, failed)
	h.left("pending", v1alpha1.MachinePending, v1alpha1.LastOperation{
		Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateProcessing, Description: v1alpha1.CreatingMachine,
	})
	h.joined("runs")
	h.left("runs", v1alpha1.MachineRunning, v1alpha1.LastOperation{
		Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateSuccessful, Description: "Machine runs successfully joined the cluster in 1m",
	})

	h.StartManager(t, "manager", "--resource-exhausted-retry=2s")
	for _, name := range names {
		h.Wait(t, patience, name+" runs", running(h.Env, name))
	}
	one := func(context.Context) (string, error) {
		snapshot := h.Cloud.Snapshot()
		for _, name := range names {
			if n := len(snapshot.Of(name).VMs); n != 1 {
				return fmt.Sprintf("%s has %d VMs", name, n), nil
			}
		}
		return "", nil
	}
	h.Wait(t, patience, "each has one VM", one)
	for _, name := range names {
		m := machine(t, h.Env, name)
		if id := ids[name]; id != "" {
			require.Equal(t, id, m.Spec.ProviderID, "the one that was there")
		}
		require.Equal(t, h.NodeName(name), m.Labels[v1alpha1.NodeLabelKey])
		require.True(t, slices.Contains(m.Finalizers, v1alpha1.MCMFinalizerName))
		require.Contains(t, node(t, h.Env, name).Finalizers, v1alpha1.NodeFinalizerName)
	}
	for _, e := range h.Cloud.History() { // also what came and went
		if e.Kind == drivertest.VMCreated && !h.planted[e.VM.ProviderID] {
			require.Contains(t, []string{"bare", "crashed"}, e.VM.Machine)
		}
	}
	require.Equal(t, v1alpha1.MachineRunning, machine(t, h.Env, "runs").Status.CurrentStatus.Phase)
	// The search for orphan VMs, for longer than the grace period, finds none.
	searched := func() int { return h.Cloud.Calls(driver.OpListMachines, codes.OK) }
	before := searched()
	h.Wait(t, patience, "searched for longer than the grace", func(context.Context) (string, error) {
		if n := searched() - before; n < 4 {
			return fmt.Sprintf("%d searches", n), nil
		}
		return "", nil
	})
	missing, err := one(t.Context())
	require.NoError(t, err)
	require.Empty(t, missing)
	removeAll(t, h.Env)
}
