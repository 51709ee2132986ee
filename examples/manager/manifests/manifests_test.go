// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/machinist-dev/machinist/examples/manager/manifests"
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

func TestWhatIsPrintedIsWhatTheFilesSay(t *testing.T) {
	printed, err := manifests.YAML("default")
	require.NoError(t, err)
	var files []map[string]any
	for _, crd := range v1alpha1.CRDs() {
		files = append(files, decode(t, crd.YAML)...)
	}
	for _, name := range []string{"serviceaccount.yaml", "control.yaml", "target.yaml"} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		files = append(files, decode(t, data)...)
	}
	require.Empty(t, cmp.Diff(files, decode(t, printed)))
	found, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	require.Len(t, found, 3, "every file is printed")
}

func TestANamespaceIsPutWhereItBelongsAndNowhereElse(t *testing.T) {
	objects, err := manifests.Access("shoot--a--b")
	require.NoError(t, err)
	var names []string
	for _, o := range objects {
		names = append(names, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	require.Equal(t, []string{
		"ServiceAccount shoot--a--b/machinist", "Role shoot--a--b/machinist", "RoleBinding shoot--a--b/machinist",
		"ClusterRole /machinist:shoot--a--b", "ClusterRoleBinding /machinist:shoot--a--b",
		"Role kube-system/machinist:shoot--a--b", "RoleBinding kube-system/machinist:shoot--a--b",
		"ValidatingAdmissionPolicy /machinist.shoot--a--b", "ValidatingAdmissionPolicyBinding /machinist.shoot--a--b",
	}, names)
	for _, o := range objects {
		if role, ok, _ := unstructured.NestedString(o.Object, "roleRef", "name"); ok {
			require.Equal(t, o.GetName(), role)
		}
		if subjects, ok, _ := unstructured.NestedSlice(o.Object, "subjects"); ok {
			require.Equal(t, []any{map[string]any{"kind": "ServiceAccount", "name": manifests.ServiceAccount, "namespace": "shoot--a--b"}}, subjects)
		}
	}
	policy, binding := objects[len(objects)-2].Object, objects[len(objects)-1].Object
	conditions, _, err := unstructured.NestedSlice(policy, "spec", "matchConditions")
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{
		"name": "manager", "expression": "request.userInfo.username == 'system:serviceaccount:shoot--a--b:machinist'",
	}}, conditions)
	bound, _, err := unstructured.NestedString(binding, "spec", "policyName")
	require.NoError(t, err)
	require.Equal(t, "machinist.shoot--a--b", bound)
	again, err := manifests.Access("default")
	require.NoError(t, err)
	require.Equal(t, "default", again[0].GetNamespace(), "the files are as they were")
}

func TestWhatIsNoNamespaceIsRefused(t *testing.T) {
	for _, name := range []string{"", "A", "a/b", "a: b", "a.b"} {
		_, err := manifests.YAML(name)
		require.ErrorIs(t, err, manifests.ErrNamespace, name)
	}
}
