// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// kubectl returns a function that runs kubectl as a cluster admin in the namespace of an environment,
// and returns what it prints.
func kubectl(t *testing.T, s *env.Env) func(args ...string) string {
	t.Helper()
	program, config := kubectlFiles(t)
	return func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, append([]string{"--kubeconfig=" + config, "--namespace=" + s.Namespace}, args...)...)
		out, err := cmd.Output() // without the warnings about the group of another scenario
		require.NoError(t, err, "kubectl %s: %s", strings.Join(args, " "), out)
		return string(out)
	}
}

// kubectlFiles returns the file names of kubectl and of a kubeconfig of a cluster admin.
func kubectlFiles(t *testing.T) (program, config string) {
	t.Helper()
	program, err := controlplane.Kubectl(t.Context(), nil)
	require.NoError(t, err)
	text, err := controlplane.Kubeconfig(cluster.ControlPlane.Config())
	require.NoError(t, err)
	config = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(config, text, 0o600))
	return program, config
}

var (
	age    = regexp.MustCompile(`^(\d+[smh])+$`)
	joined = regexp.MustCompile(`Machine .* successfully joined the cluster in .*`)
)

// table returns what kubectl get prints, with one space between columns and without what differs
// from run to run.
func table(text string, masked ...string) string {
	var lines []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(joined.ReplaceAllString(line, "JOINED"))
		for i := range fields {
			if age.MatchString(fields[i]) {
				fields[i] = "<age>"
			}
		}
		lines = append(lines, strings.Join(fields, " "))
	}
	return strings.NewReplacer(masked...).Replace(strings.Join(lines, "\n"))
}

func TestKubectl_GetWaitAndDescribe_ShowTheState(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "kubectl", fastOptions())
	s.StartManager(t, "manager")
	run := kubectl(t, s)
	d := s.Deployment("workers", "small", 2, 1, 0)
	deploy(t, s, d)
	create(t, s, s.Machine("alone", "small"))
	odd := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "odd"}, Spec: v1alpha1.MachineSetSpec{
		Replicas: 1, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "other"}}, Template: d.Spec.Template,
	}}
	_, err := s.Machines.MachineV1alpha1().MachineSets(s.Namespace).Create(t.Context(), odd, metav1.CreateOptions{})
	require.NoError(t, err)
	create(t, s, s.Machine("stuck", "nowhere"))
	set := machines(t, s)
	var owner string
	for _, m := range set {
		if len(m.OwnerReferences) > 0 {
			owner = m.OwnerReferences[0].Name
		}
	}
	require.NotEmpty(t, owner)

	const within = "--timeout=120s"
	run("wait", within, "--for=condition=Ready", "machine/alone")
	run("wait", within, "--for=condition=Available", "machinedeployment/workers")
	run("wait", within, "--for=condition=Progressing", "machinedeployment/workers")
	run("wait", within, "--for=condition=Available", "machineset/"+owner)
	run("wait", within, "--for=condition=Progressing", "machineset/"+owner)
	run("wait", within, "--for=condition=Progressing=False", "machineset/odd")
	run("wait", within, "--for=jsonpath={.status.lastOperation.state}=Failed", "machine/stuck")

	alone := machine(t, s, "alone")
	id := alone.Spec.ProviderID
	require.Equal(t, "NAME STATUS AGE NODE WAITING PROVIDERID CLASS OPERATION STATE MESSAGE\n"+
		"alone Running <age> <node> <id> small Create Successful JOINED",
		table(run("get", "machine", "alone", "-o", "wide"), s.NodeName("alone"), "<node>", id, "<id>"))
	require.Equal(t, "NAME STATUS AGE NODE WAITING PROVIDERID\nalone Running <age> <node> <id>",
		table(run("get", "mc", "alone"), s.NodeName("alone"), "<node>", id, "<id>"))
	require.Contains(t, table(run("get", "mc", "stuck")), "<age> ClassMissing machineclass/nowhere")
	require.Equal(t, "NAME DESIRED CURRENT READY AVAILABLE AGE CLASS PROGRESSING\n<set> 2 2 2 2 <age> small Complete",
		table(run("get", "machineset", owner, "-o", "wide"), owner, "<set>"))
	require.Equal(t, "NAME READY DESIRED UP-TO-DATE AVAILABLE AGE CLASS STRATEGY PROGRESSING\n"+
		"workers 2 2 2 2 <age> small RollingUpdate NewMachineSetAvailable",
		table(run("get", "machinedeployment", "-o", "wide")))
	require.Contains(t, table(run("get", "machineclass", "small", "-o", "wide")), "NAME PROVIDER INSTANCE TYPE ZONE AGE REGION\nsmall simulated")

	told := run("describe", "machine", "stuck")
	require.Contains(t, told, `machine class "nowhere" does not exist`)
	_, told, _ = strings.Cut(told, "Events:")
	require.Contains(t, told, `machine class "nowhere" does not exist`)
	told = run("describe", "machineset", "odd")
	_, told, _ = strings.Cut(told, "Events:")
	require.Contains(t, told, "InvalidSpec")
	require.Contains(t, told, "is not matching with spec.template.metadata.labels")
	removeAll(t, s)
}
