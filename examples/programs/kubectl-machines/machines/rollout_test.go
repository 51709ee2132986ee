// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	machinestatus "github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/machines"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// noLarge is a provider without capacity for machines of the class large.
func noLarge(m *v1alpha1.Machine) error {
	if m.Spec.Class.Name == "large" {
		return machinestatus.Error(codes.ResourceExhausted, "no large VMs in this zone")
	}
	return nil
}

// message returns the message of the condition Progressing.
func message(d *v1alpha1.MachineDeployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == v1alpha1.MachineDeploymentProgressing {
			return c.Message
		}
	}
	return ""
}

func TestStatus_EachSituation_TextOfTheController(t *testing.T) {
	for _, c := range []struct {
		name   string
		model  deploymenttest.Model
		act    func(h *harness)
		args   []string
		status int
	}{
		{"complete", deploymenttest.Model{}, func(*harness) {}, nil, cli.Done},
		{"progressing", deploymenttest.Model{}, func(h *harness) { h.roll("large", 3*time.Minute) }, []string{"--watch=false"}, cli.Done},
		{"stuck", deploymenttest.Model{Create: noLarge}, func(h *harness) { h.roll("large", time.Hour) }, nil, cli.Failed},
		{"timed-out", deploymenttest.Model{}, func(h *harness) { h.roll("large", 3*time.Minute) }, []string{"--timeout=200ms"}, cli.Failed},
		{"paused", deploymenttest.Model{}, func(h *harness) {
			require.NoError(h.t, h.world.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = true }))
			h.roll("large", time.Minute)
		}, []string{"-w=false"}, cli.Done},
		{"not-observed", deploymenttest.Model{}, func(h *harness) {
			require.NoError(h.t, h.world.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "large" }))
		}, []string{"--watch=false"}, cli.Done},
		{"another-revision", deploymenttest.Model{}, func(h *harness) { h.roll("large", time.Hour) }, []string{"--revision=1"}, cli.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, 1, c.model)
			c.act(h)
			h.show()
			before := h.cluster.ResourceVersion()
			status, text := h.run(machines.NewRollout, append([]string{"status", "machinedeployment/workers"}, c.args...)...)
			require.Equal(t, c.status, status, text)
			golden(t, "status-"+c.name, text)
			require.Equal(t, before, h.cluster.ResourceVersion(), "it only reads")
			if c.name == "stuck" {
				require.Contains(t, text, ": Stuck: "+message(h.deployment())+"\n")
			}
		})
	}
}

func TestStatus_Frozen_SaysSo(t *testing.T) {
	h := newHarness(t, 1, deploymenttest.Model{})
	h.roll("large", time.Minute)
	h.show()
	d := h.deployment()
	d.Status.Conditions = append(d.Status.Conditions, v1alpha1.MachineDeploymentCondition{
		Type: v1alpha1.MachineDeploymentControllerFrozen, Status: v1alpha1.ConditionTrue, Message: "Nothing is created",
	})
	_, err := h.machines.MachineV1alpha1().MachineDeployments("shop").UpdateStatus(t.Context(), d, metav1.UpdateOptions{})
	require.NoError(t, err)
	status, text := h.run(machines.NewRollout, "status", "workers", "--watch=false")
	require.Equal(t, cli.Done, status, text)
	require.Equal(t, "machinedeployment workers: ControllerFrozen: Nothing is created\n", text)
}

func TestHistory_Revisions_WithTheirChanges(t *testing.T) {
	h := newHarness(t, 1, deploymenttest.Model{})
	h.roll("large", time.Hour)
	require.NoError(t, h.world.Edit(func(d *v1alpha1.MachineDeployment) {
		d.Annotations["kubernetes.io/change-cause"] = "more labels"
		d.Spec.Template.Labels = map[string]string{"pool": "workers", "team": "shop"}
		d.Spec.Template.Annotations = map[string]string{"a": "1"}
		d.Spec.Template.Spec.Class.Name = "medium"
	}))
	h.world.Run(time.Hour)
	h.show()
	for name, args := range map[string][]string{
		"history": nil, "history-template": {"--revision=2"}, "history-names": {"-o=name"}, "history-jsonpath": {"--revision=1", "-o=jsonpath={.spec.template.spec.class.name}"},
	} {
		status, text := h.run(machines.NewRollout, append([]string{"history", "workers"}, args...)...)
		require.Equal(t, cli.Done, status, text)
		golden(t, name, text)
	}
	status, text := h.run(machines.NewRollout, "history", "workers", "--revision=9")
	require.Equal(t, cli.Refused, status)
	require.Equal(t, "error: machinedeployment workers has no revision 9\n", text)
}

func TestChanges_EachVerb_OnePatch(t *testing.T) {
	h := newHarness(t, 1, deploymenttest.Model{})
	h.roll("large", time.Hour)
	h.show()
	for _, c := range []struct {
		args   []string
		status int
		text   string
		holds  func(d *v1alpha1.MachineDeployment) bool
	}{
		{[]string{"resume", "workers"}, cli.Refused, "error: machinedeployment workers is not paused\n", nil},
		{[]string{"undo", "workers", "--to-revision=7"}, cli.Refused, "error: cannot roll back: machinedeployment workers has no revision 7, but 1, 2\n", nil},
		{[]string{"undo", "workers", "--to-revision=2"}, cli.Refused, "error: cannot roll back: machinedeployment workers has the template of revision 2 already\n", nil},
		{
			[]string{"pause", "mcd/workers"}, cli.Done, "machinedeployment.machine.sapcloud.io/workers paused\n",
			func(d *v1alpha1.MachineDeployment) bool { return d.Spec.Paused },
		},
		{[]string{"pause", "workers"}, cli.Refused, "error: machinedeployment workers is already paused\n", nil},
		{[]string{"undo", "workers"}, cli.Refused, "error: machinedeployment workers is paused: resume it first, with kubectl machines rollout resume workers\n", nil},
		{[]string{"restart", "workers"}, cli.Refused, "error: machinedeployment workers is paused: resume it first, with kubectl machines rollout resume workers\n", nil},
		{
			[]string{"resume", "workers"}, cli.Done, "machinedeployment.machine.sapcloud.io/workers resumed\n",
			func(d *v1alpha1.MachineDeployment) bool { return !d.Spec.Paused },
		},
		{
			[]string{"restart", "machinedeployment.machine.sapcloud.io/workers", "-o=name"}, cli.Done, "machinedeployment.machine.sapcloud.io/workers\n",
			func(d *v1alpha1.MachineDeployment) bool {
				return d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == h.clock.Now().Format(time.RFC3339)
			},
		},
		{
			[]string{"undo", "workers", "--to-revision=1"}, cli.Done, "machinedeployment.machine.sapcloud.io/workers rolled back\n",
			func(d *v1alpha1.MachineDeployment) bool { return d.Spec.RollbackTo.Revision == 1 },
		},
		{[]string{"undo"}, cli.Refused, "error: accepts 1 arg(s), received 0; see rollout undo --help\n", nil},
		{[]string{"undo", "machine/workers"}, cli.Refused, "error: \"machine/workers\" is not a machinedeployment\n", nil},
		{[]string{"undo", "work_ers"}, cli.Refused, "error: \"work_ers\" is not a valid name of a machinedeployment\n", nil},
		{[]string{"pause", "other"}, cli.Failed, "error: machinedeployments.machine.sapcloud.io \"other\" not found\n", nil},
		{[]string{"pause", "workers", "-o=png"}, cli.Refused, "unable to match a printer", nil},
		{[]string{"dance", "workers"}, cli.Refused, "error: unknown command \"dance\" for \"rollout\"; see rollout --help\n", nil},
	} {
		before := h.cluster.ResourceVersion()
		status, text := h.run(machines.NewRollout, c.args...)
		require.Contains(t, text, c.text, c.args)
		require.Equal(t, c.status, status, text)
		if c.holds == nil {
			require.Equal(t, before, h.cluster.ResourceVersion(), c.args)
			continue
		}
		require.True(t, c.holds(h.deployment()), c.args)
		require.Equal(t, "shop", h.deployment().Namespace)
	}
}

func TestRollout_NoRights_SaysWhich(t *testing.T) {
	for _, resource := range []string{"machinedeployments", "machinesets", "machines", "nodes"} {
		h := newHarness(t, 1, deploymenttest.Model{}).show()
		h.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: resource})
		status, text := h.run(machines.NewRollout, "status", "workers")
		require.Equal(t, cli.Failed, status, text)
		require.Regexp(t, `^error: .*`+resource+`.* is forbidden: `, text)
		if resource == "nodes" {
			h.noNodes = true // --target-kubeconfig=none
			status, text = h.run(machines.NewRollout, "status", "workers")
			require.Equal(t, cli.Done, status, text)
		}
	}
	h := newHarness(t, 1, deploymenttest.Model{}).show()
	h.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "patch"})
	status, text := h.run(machines.NewRollout, "pause", "workers")
	require.Equal(t, cli.Failed, status)
	require.Equal(t, "error: machinedeployments.machine.sapcloud.io \"workers\" is forbidden: injected\n", text)
	h.cluster.ClearFaults()
	h.cluster.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "patch"})
	_, text = h.run(machines.NewRollout, "pause", "workers")
	require.Contains(t, text, "nothing was changed, repeat the command")
}
