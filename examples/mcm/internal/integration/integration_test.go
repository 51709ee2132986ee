// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/examples/programs/manager/apptest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// tracker counts the calls, and reports resources.
type tracker struct {
	initialized int
	orphans     bool
}

func (k *tracker) IsOrphanedResourcesAvailable() bool { return k.orphans }

func (k *tracker) InitializeResourcesTracker(*v1alpha1.MachineClass, map[string][]byte, string) error {
	k.initialized++
	return nil
}

// valid sets the environment of a suite in a new project, and returns the folder of the project.
func valid(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/provider\n", patchFile: `{"metadata":{"labels":{"a":"b"}}}`, "kubeconfig": "",
		"class.yaml":  "apiVersion: machine.sapcloud.io/v1alpha1\nkind: MachineClass\nmetadata: {name: test-mc-v1}\nprovider: Acme\n",
		"secret.yaml": "apiVersion: v1\nkind: Secret\n",
	} {
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for _, name := range []string{targetKubeconfig, controlNamespace, nextClass, tagsAreStrings, isSeed, deploymentName, agentSecret, preserve} {
		t.Setenv(name, "")
	}
	t.Setenv(controlKubeconfig, "kubeconfig")
	t.Setenv(clusterName, "c")
	t.Setenv(firstClass, "class.yaml")
	t.Chdir(root)
	return root
}

func TestEnvironment_Valid_Options(t *testing.T) {
	root := valid(t)
	e, err := readEnvironment()
	require.NoError(t, err)
	require.Equal(t, "default", os.Getenv(controlNamespace), "for the tracker")
	require.Equal(t, "c", e.cluster)
	require.Equal(t, "Acme", e.options.Class.Provider)
	e.options.Class = nil
	require.Equal(t, apptest.Options{
		ControlKubeconfig: "kubeconfig", TargetKubeconfig: "kubeconfig", Namespace: "default",
		Program: filepath.Join(root, "cmd", "machine-controller"), LogDir: filepath.Join(root, ".ci", "controllers-test", "logs"),
	}, e.options)

	t.Setenv(targetKubeconfig, "target")
	t.Setenv(controlNamespace, "shoot")
	t.Setenv(nextClass, "class.yaml")
	t.Setenv(firstClass, "")
	t.Setenv(isSeed, "true")
	t.Setenv(deploymentName, "mcm")
	t.Setenv(agentSecret, "agent")
	t.Setenv(preserve, "true")
	e, err = readEnvironment()
	require.NoError(t, err)
	o := e.options
	require.Equal(t, []any{"target", "shoot", "mcm", true, map[string]string{agentLabel: "agent"}}, []any{o.TargetKubeconfig, o.Namespace, o.Deployment, o.KeepDefinitions, o.NodeLabels})
	require.Equal(t, "Acme", o.NextClass.Provider)
}

func TestEnvironment_Wrong_ErrorNamesTheVariable(t *testing.T) {
	for name, c := range map[string]struct {
		set  map[string]string
		want []string // of the lines of the error
	}{
		"nothing":    {map[string]string{controlKubeconfig: "", clusterName: "", firstClass: ""}, []string{clusterName + ": a value is required", controlKubeconfig + ": a value is required", firstClass + ": a file with a MachineClass is required"}},
		"class":      {map[string]string{firstClass: "none.yaml", nextClass: "secret.yaml"}, []string{firstClass + ": open none.yaml: no such file or directory", nextClass + `: secret.yaml: the first object has the kind "Secret", not MachineClass`}},
		"bools":      {map[string]string{isSeed: "yes", preserve: "1", tagsAreStrings: "no"}, []string{isSeed + `: "yes" is not true or false`, preserve + `: "1" is not true or false`, tagsAreStrings + `: "no" is not true or false`}},
		"seed":       {map[string]string{isSeed: "true"}, []string{controlNamespace + ": the namespace default is none of a seed"}},
		"deployment": {map[string]string{isSeed: "true", controlNamespace: "shoot", firstClass: ""}, []string{deploymentName + ": a value is required"}},
	} {
		t.Run(name, func(t *testing.T) {
			valid(t)
			for variable, value := range c.set {
				t.Setenv(variable, value)
			}
			_, err := readEnvironment()
			require.Error(t, err)
			var lines []string
			for line := range strings.Lines(err.Error()) {
				lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "environment variable "))
			}
			require.Equal(t, c.want, lines)
		})
	}
}

func TestEnvironment_NoPatchFile_ErrorUnlessTagsAreStrings(t *testing.T) {
	root := valid(t)
	require.NoError(t, os.Remove(filepath.Join(root, patchFile)))
	_, err := readEnvironment()
	require.ErrorContains(t, err, patchFile)
	t.Setenv(tagsAreStrings, "true")
	e, err := readEnvironment()
	require.NoError(t, err)
	require.JSONEq(t, `{"providerSpec":{"tags":["c","kubernetes-io-cluster-c","kubernetes-io-role-integration-test"]}}`, string(e.patch))
}

func TestPatchClass_MergePatch_OtherFieldsStay(t *testing.T) {
	class := &v1alpha1.MachineClass{Provider: "Acme"}
	class.ProviderSpec.Raw = []byte(`{"flavor":"small","tags":{"a":"1","b":"2"}}`)
	require.NoError(t, patchClass(class, []byte(`{"providerSpec":{"tags":{"b":null,"c":"3"}}}`)))
	require.Equal(t, "Acme", class.Provider)
	require.JSONEq(t, `{"flavor":"small","tags":{"a":"1","c":"3"}}`, string(class.ProviderSpec.Raw))
	require.NoError(t, patchClass(nil, nil))
	require.Error(t, patchClass(class, []byte("tags: none")))
}

func TestNew_Intervals_Seconds(t *testing.T) {
	for _, c := range []struct {
		intervals []int64
		want      [2]time.Duration
	}{{nil, [2]time.Duration{}}, {[]int64{600}, [2]time.Duration{10 * time.Minute}}, {[]int64{600, 5, 7}, [2]time.Duration{10 * time.Minute, 5 * time.Second}}} {
		f := New(nil, c.intervals...)
		require.Equal(t, c.want, [2]time.Duration{f.timeout, f.interval})
	}
}

func TestSetUp_NoTrackerOrNoCluster_ErrorSaysSo(t *testing.T) {
	require.ErrorIs(t, New(nil).setUp(t.Context()), errNoTracker)
	valid(t)
	t.Setenv(controlKubeconfig, "none")
	require.ErrorContains(t, New(&tracker{}).setUp(t.Context()), "environment variable CONTROL_KUBECONFIG: kubeconfig \"none\": ")
	t.Setenv(controlKubeconfig, "kubeconfig")
	t.Setenv(targetKubeconfig, "none")
	require.Error(t, New(&tracker{}).setUp(t.Context()))
}

func TestOrphans_Tracker_InitializedOnceAndAsked(t *testing.T) {
	k := &tracker{orphans: true}
	orphans := New(k).orphans("c")
	found, err := orphans(t.Context(), nil, &corev1.Secret{})
	require.NoError(t, err)
	require.Empty(t, found)
	found, err = orphans(t.Context(), nil, &corev1.Secret{})
	require.NoError(t, err)
	require.NotEmpty(t, found)
	k.orphans = false
	found, err = orphans(t.Context(), nil, &corev1.Secret{})
	require.NoError(t, err)
	require.Empty(t, found)
	require.Equal(t, 1, k.initialized)
}
