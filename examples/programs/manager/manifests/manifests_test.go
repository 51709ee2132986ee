// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func decode(t *testing.T, data []byte) (all []map[string]any) {
	t.Helper()
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var o map[string]any
		err := documents.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if o != nil {
			all = append(all, o)
		}
	}
}

var programs = map[string]string{ // and their folders
	manifests.ServiceAccount: "manager", manifests.MachineController: "machine-controller", manifests.MachineControllerManager: "machine-controller-manager",
}

func TestManifests_DefaultNamespaces_AreWhatTheFilesSay(t *testing.T) {
	for program, folder := range programs {
		of := manifests.Installation{Program: program, Machines: "default"}
		access, err := manifests.Access(of)
		require.NoError(t, err)
		running, err := manifests.Deployment(of)
		require.NoError(t, err)
		printed, err := manifests.YAML(append(access, running...))
		require.NoError(t, err)
		names := []string{
			"common/namespace.yaml", folder + "/serviceaccount.yaml", folder + "/control.yaml", "common/shards.yaml", folder + "/target.yaml",
			"common/priority.yaml", "common/metrics.yaml", folder + "/flowcontrol.yaml", folder + "/deployment.yaml",
		}
		var files []map[string]any
		for _, name := range names {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			files = append(files, decode(t, data)...)
		}
		require.Empty(t, cmp.Diff(files, decode(t, printed)))
		found, err := filepath.Glob("*/*.yaml")
		require.NoError(t, err)
		for _, name := range found {
			if dir := filepath.Dir(name); (dir == "common" || dir == folder) && filepath.Base(name) != "kustomization.yaml" {
				require.Contains(t, names, name, "every file is printed")
			}
		}
	}
	_, err := manifests.Access(manifests.Installation{Program: "else", Machines: "default"})
	require.ErrorIs(t, err, manifests.ErrProgram)
	definitions, err := manifests.Definitions()
	require.NoError(t, err)
	require.Len(t, definitions, len(v1alpha1.CRDs()))
}

// field returns a field of an object.
func field[T any](t *testing.T, o *unstructured.Unstructured, path ...string) (value T) {
	t.Helper()
	found, ok, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	require.NoError(t, err)
	require.True(t, ok, "%s has no %s", o.GetKind(), path)
	value, ok = found.(T)
	require.True(t, ok, "%T", found)
	return value
}

func TestDeployment_OtherNamespaces_InFlagsAndFlowSchemas(t *testing.T) {
	ports := map[string]int64{manifests.ServiceAccount: 10259, manifests.MachineController: 10259, manifests.MachineControllerManager: 10258}
	for program, port := range ports {
		objects, err := manifests.Deployment(manifests.Installation{Program: program, Machines: "shoot", Manager: "ops"})
		require.NoError(t, err)
		of := map[string]*unstructured.Unstructured{}
		for _, o := range objects {
			of[o.GetKind()+" "+o.GetName()] = o
			if o.GetNamespace() != "" {
				require.Equal(t, "ops", o.GetNamespace())
			}
		}
		require.Len(t, objects, 8)
		pod := []string{"spec", "template", "spec"}
		container, ok := field[[]any](t, of["Deployment "+program], append(pod, "containers")...)[0].(map[string]any)
		require.True(t, ok)
		require.Equal(t, []any{
			"--namespace=shoot", "--leader-elect-resource-namespace=ops", "--address=0.0.0.0", fmt.Sprintf("--port=%d", port), "-v=2",
		}, container["args"])
		require.Equal(t, program, field[string](t, of["Deployment "+program], append(pod, "serviceAccountName")...))
		require.Contains(t, of, "PriorityClass "+field[string](t, of["Deployment "+program], append(pod, "priorityClassName")...))
		require.Contains(t, of, "PodDisruptionBudget "+program)
		require.Contains(t, of, "NetworkPolicy "+program)
		require.Contains(t, of, "ClusterRole "+manifests.MetricsReader)
		require.Contains(t, of, "PriorityLevelConfiguration "+field[string](t, of["FlowSchema "+program+".shoot"], "spec", "priorityLevelConfiguration", "name"))
		rules := field[[]any](t, of["FlowSchema "+program+"-lease.shoot"], "spec", "rules")
		require.Equal(t, []any{map[string]any{
			"subjects":      []any{map[string]any{"kind": "ServiceAccount", "serviceAccount": map[string]any{"name": program, "namespace": "ops"}}},
			"resourceRules": []any{map[string]any{"apiGroups": []any{"coordination.k8s.io"}, "resources": []any{"leases"}, "verbs": []any{"get", "create", "update", "watch"}, "namespaces": []any{"ops"}}},
		}}, rules)
	}
}

// TestAccess_TwoPrograms_HaveTheRightsOfOneAndNoMore asserts that the roles of the two programs
// together are the role of the program that runs all controllers.
func TestAccess_TwoPrograms_HaveTheRightsOfOneAndNoMore(t *testing.T) {
	rights := func(programs ...string) map[string]bool {
		all := map[string]bool{}
		for _, program := range programs {
			objects, err := manifests.Access(manifests.Installation{Program: program, Machines: "default"})
			require.NoError(t, err)
			for _, o := range objects {
				if !strings.HasSuffix(o.GetKind(), "Role") {
					continue
				}
				for _, rule := range field[[]any](t, o, "rules") {
					r, ok := rule.(map[string]any)
					require.True(t, ok)
					for _, resource := range r["resources"].([]any) { //nolint:forcetypeassert // it is a list
						for _, verb := range r["verbs"].([]any) { //nolint:forcetypeassert // it is a list
							all[fmt.Sprint(o.GetKind(), o.GetNamespace(), r["apiGroups"], resource, verb)] = true
						}
					}
				}
			}
		}
		return all
	}
	require.Empty(t, cmp.Diff(rights(manifests.ServiceAccount), rights(manifests.MachineController, manifests.MachineControllerManager)))
	for right := range rights(manifests.MachineControllerManager) {
		require.NotContains(t, right, "secrets")
		require.NotContains(t, right, "pods")
		require.NotContains(t, right, "machineclasses")
	}
}

func TestManifests_Namespace_OnlyNamespacedObjects(t *testing.T) {
	objects, err := manifests.Access(manifests.Installation{Machines: "shoot--a--b"})
	require.NoError(t, err)
	var names []string
	for _, o := range objects {
		names = append(names, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	require.Equal(t, []string{
		"Namespace /shoot--a--b-machinist", "ServiceAccount shoot--a--b-machinist/machinist",
		"Role shoot--a--b-machinist/machinist:shoot--a--b", "RoleBinding shoot--a--b-machinist/machinist:shoot--a--b",
		"ClusterRole /machinist-control:shoot--a--b", "RoleBinding shoot--a--b/machinist-control",
		"ClusterRole /machinist-reviews:shoot--a--b", "ClusterRoleBinding /machinist-reviews:shoot--a--b",
		"ValidatingAdmissionPolicy /machinist-shards.shoot--a--b", "ValidatingAdmissionPolicyBinding /machinist-shards.shoot--a--b",
		"ClusterRole /machinist:shoot--a--b", "ClusterRoleBinding /machinist:shoot--a--b",
		"Role kube-system/machinist:shoot--a--b", "RoleBinding kube-system/machinist:shoot--a--b",
		"ValidatingAdmissionPolicy /machinist.shoot--a--b", "ValidatingAdmissionPolicyBinding /machinist.shoot--a--b",
	}, names)
	roles := map[string]bool{}
	for _, o := range objects {
		roles[o.GetKind()+" "+o.GetName()] = true
		if role, ok, _ := unstructured.NestedStringMap(o.Object, "roleRef"); ok {
			require.True(t, roles[role["kind"]+" "+role["name"]], "%s comes before what binds it", role["name"])
		}
		if subjects, ok, _ := unstructured.NestedSlice(o.Object, "subjects"); ok {
			require.Equal(t, []any{map[string]any{"kind": "ServiceAccount", "name": manifests.ServiceAccount, "namespace": "shoot--a--b-machinist"}}, subjects)
		}
	}
	guarded := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetName() == manifests.AccessBinding(manifests.ServiceAccount)
	})
	require.Equal(t, []string{manifests.AccessFinalizer}, objects[guarded].GetFinalizers())
	selected, _, err := unstructured.NestedString(objects[8].Object, "spec", "matchConstraints", "namespaceSelector", "matchLabels", "kubernetes.io/metadata.name")
	require.NoError(t, err)
	require.Equal(t, "shoot--a--b", selected, "the shards of other namespaces have policies of their own")
	policy, binding := objects[len(objects)-2].Object, objects[len(objects)-1].Object
	conditions, _, err := unstructured.NestedSlice(policy, "spec", "matchConditions")
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{
		"name": "manager", "expression": "request.userInfo.username == 'system:serviceaccount:shoot--a--b-machinist:machinist'",
	}}, conditions)
	bound, _, err := unstructured.NestedString(binding, "spec", "policyName")
	require.NoError(t, err)
	require.Equal(t, "machinist.shoot--a--b", bound)
	again, err := manifests.Access(manifests.Installation{Machines: "default", Manager: "else"})
	require.NoError(t, err)
	require.Equal(t, "else", again[1].GetNamespace())
	require.Equal(t, "default", again[5].GetNamespace(), "the files are as they were")
}

func TestManifests_InvalidNamespace_Refused(t *testing.T) {
	for _, name := range []string{"", "A", "a/b", "a: b", "a.b"} {
		_, err := manifests.Access(manifests.Installation{Machines: name})
		require.ErrorIs(t, err, manifests.ErrNamespace, name)
		if name != "" {
			_, err = manifests.Deployment(manifests.Installation{Machines: "default", Manager: name})
			require.ErrorIs(t, err, manifests.ErrNamespace, name)
		}
	}
	_, err := manifests.Access(manifests.Installation{Machines: strings.Repeat("a", 54)})
	require.ErrorIs(t, err, manifests.ErrNamespace, "with its suffix it is too long")
}
