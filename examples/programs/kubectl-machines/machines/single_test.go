// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/machines"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// machine returns a machine of the cluster.
func (h *harness) machine(name string) *v1alpha1.Machine {
	h.t.Helper()
	m, err := h.machines.MachineV1alpha1().Machines("shop").Get(h.t.Context(), name, metav1.GetOptions{})
	require.NoError(h.t, err)
	return m
}

func TestRetry_EachKind_IsAnnotated(t *testing.T) {
	h := newHarness(t, 1, deploymenttest.Model{}).show()
	name, set := h.world.Machines()[0].Name, h.world.Sets()[0].Name
	status, text := h.run(machines.NewRetry, name, "machineset/"+set, "machinedeployment/workers")
	require.Equal(t, cli.Done, status, text)
	require.Equal(t, "machine.machine.sapcloud.io/"+name+" will be tried again\nmachineset.machine.sapcloud.io/"+set+
		" will be tried again\nmachinedeployment.machine.sapcloud.io/workers will be tried again\n", text)
	at := h.clock.Now().Format(time.RFC3339)
	require.Equal(t, at, h.machine(name).Annotations[v1alpha1.RetryNowAnnotation])
	require.Equal(t, at, h.deployment().Annotations[v1alpha1.RetryNowAnnotation])
	h.clock.Step(time.Minute)
	_, text = h.run(machines.NewRetry, name, "-o=jsonpath={.metadata.annotations.machine\\.sapcloud\\.io/retry-now}")
	require.Equal(t, h.clock.Now().Format(time.RFC3339), text)
	for arg, says := range map[string]string{"node/a": `"node/a" is not a machine, machineset, machinedeployment`, "none": `"none" not found`} {
		status, text = h.run(machines.NewRetry, arg)
		require.NotEqual(t, cli.Done, status)
		require.Contains(t, text, says)
	}
}

func TestPreserve_EachValue_IsAnnotated(t *testing.T) {
	h := newHarness(t, 1, deploymenttest.Model{})
	name, ofNode := h.world.Machines()[0].Name, h.world.Machines()[1].Name
	require.NoError(t, h.world.EditMachine(ofNode, func(m *v1alpha1.Machine) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.LastAppliedNodePreserveValueAnnotationKey, "now")
	}))
	h.show()
	for _, c := range []struct {
		args   []string
		status int
		value  string
		text   string
	}{
		{[]string{name, "when-failed"}, cli.Done, "when-failed", "machine.machine.sapcloud.io/" + name + " preserved: when-failed\n"},
		{[]string{"machine/" + name, "now"}, cli.Done, "now", "machine.machine.sapcloud.io/" + name + " preserved: now\n"},
		{[]string{name, "false"}, cli.Done, "false", "machine.machine.sapcloud.io/" + name + " not preserved\n"},
		{[]string{name, "remove"}, cli.Done, "", "machine.machine.sapcloud.io/" + name + " not preserved by its annotation\n"},
		{[]string{name, "forever"}, cli.Refused, "", "error: \"forever\" is not a value, want now, when-failed, false, remove\n"},
		{[]string{name}, cli.Refused, "", "error: accepts 2 arg(s), received 1; see preserve --help\n"},
	} {
		status, text := h.run(machines.NewPreserve, c.args...)
		require.Equal(t, c.status, status, text)
		require.Equal(t, c.text, text)
		require.Equal(t, c.value, h.machine(name).Annotations[v1alpha1.PreserveMachineAnnotationKey])
	}
	_, text := h.run(machines.NewPreserve, ofNode, "false")
	require.Contains(t, text, "warning: its Node has the annotation node.machine.sapcloud.io/preserve=now, which counts before that of the machine")
}

func TestReplace_NothingAvailable_TakesTheReplicaBack(t *testing.T) {
	h := newHarness(t, 1, deploymenttest.Model{}).show()
	name := h.world.Machines()[1].Name
	status, text := h.run(machines.NewReplace, name, "--timeout=500ms")
	require.Equal(t, cli.Failed, status)
	golden(t, "replace-timeout", strings.ReplaceAll(text, name, "NAME"))
	require.EqualValues(t, 3, h.deployment().Spec.Replicas)
	require.NotContains(t, h.deployment().Annotations, "machinist.dev/replacing")
	require.Nil(t, h.machine(name).DeletionTimestamp)

	h.cluster.Inject(draintest.Fault{Kind: draintest.Unavailable, Verb: "patch", Skip: 1})
	_, text = h.run(machines.NewReplace, name, "--timeout=500ms")
	require.Contains(t, text, "the replica that was added to machinedeployment workers stays: ")
	require.EqualValues(t, 4, h.deployment().Spec.Replicas, "the next call goes on")
}

func TestReplace_Available_DeletesTheMachine(t *testing.T) {
	h := newHarness(t, 1, deploymenttest.Model{})
	name := h.world.Machines()[1].Name
	require.NoError(t, h.world.Edit(func(d *v1alpha1.MachineDeployment) { // as a call that was killed has left it
		d.Spec.Replicas = 4
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, "machinist.dev/replacing", name+"~4")
	}))
	h.world.Run(time.Hour)
	h.show()
	other := h.world.Machines()[0].Name
	status, text := h.run(machines.NewReplace, other)
	require.Equal(t, cli.Refused, status)
	require.Contains(t, text, "machine "+name+" of machinedeployment workers is being replaced")

	status, text = h.run(machines.NewReplace, name, "--wait=false")
	require.Equal(t, cli.Done, status, text)
	golden(t, "replace-available", strings.ReplaceAll(text, name, "NAME"))
	require.EqualValues(t, 3, h.deployment().Spec.Replicas)
	require.Contains(t, h.deployment().Annotations[v1alpha1.TriggerDeletionByMCM], name)
}

func TestReplace_NoSurge_DeletesTheMachine(t *testing.T) {
	h := newHarness(t, 0, deploymenttest.Model{}).show()
	name := h.world.Machines()[1].Name
	status, text := h.run(machines.NewReplace, name, "--wait=false")
	require.Equal(t, cli.Done, status, text)
	golden(t, "replace-no-surge", strings.ReplaceAll(text, name, "NAME"))
	require.NotNil(t, h.machine(name).DeletionTimestamp)
}

func TestReplace_Impossible_Refused(t *testing.T) {
	h := newHarness(t, 1, deploymenttest.Model{})
	alone, ofSet := h.world.Machines()[0].DeepCopy(), h.world.Machines()[0].DeepCopy()
	set := h.world.Sets()[0].DeepCopy()
	alone.Name, alone.UID, alone.OwnerReferences = "alone", "alone", nil
	set.Name, set.UID, set.OwnerReferences = "set", "set", nil
	ofSet.Name, ofSet.UID, ofSet.OwnerReferences[0].Name, ofSet.OwnerReferences[0].UID = "of-set", "of-set", "set", "set"
	alone.ResourceVersion, set.ResourceVersion, ofSet.ResourceVersion = "", "", ""
	h.show()
	require.NoError(t, h.cluster.Add(alone, set, ofSet))
	for name, says := range map[string]string{
		"alone":  "machine alone has no MachineSet that would replace it",
		"of-set": "machineset set has no MachineDeployment: delete machine of-set, and the set creates another one",
		"none":   `machines.machine.sapcloud.io "none" not found`,
		"mcs/x":  `"mcs/x" is not a machine`,
	} {
		status, text := h.run(machines.NewReplace, name)
		require.NotEqual(t, cli.Done, status)
		require.Contains(t, text, says)
	}
}
