// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"bytes"
	"errors"
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
	printed, err := manifests.YAML(manifests.Namespaces{Machines: "default"})
	require.NoError(t, err)
	var files []map[string]any
	for _, crd := range v1alpha1.CRDs() {
		files = append(files, decode(t, crd.YAML)...)
	}
	for _, name := range []string{"serviceaccount.yaml", "control.yaml", "shards.yaml", "target.yaml"} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		files = append(files, decode(t, data)...)
	}
	require.Empty(t, cmp.Diff(files, decode(t, printed)))
	found, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	require.Len(t, found, 4, "every file is printed")
}

func TestANamespaceIsPutWhereItBelongsAndNowhereElse(t *testing.T) {
	objects, err := manifests.Access(manifests.Namespaces{Machines: "shoot--a--b"})
	require.NoError(t, err)
	var names []string
	for _, o := range objects {
		names = append(names, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	require.Equal(t, []string{
		"Namespace /shoot--a--b-machinist", "ServiceAccount shoot--a--b-machinist/machinist",
		"Role shoot--a--b-machinist/machinist:shoot--a--b", "RoleBinding shoot--a--b-machinist/machinist:shoot--a--b",
		"ClusterRole /machinist-control:shoot--a--b", "RoleBinding shoot--a--b/machinist-control",
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
	selected, _, err := unstructured.NestedString(objects[6].Object, "spec", "matchConstraints", "namespaceSelector", "matchLabels", "kubernetes.io/metadata.name")
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
	again, err := manifests.Access(manifests.Namespaces{Machines: "default", Manager: "else"})
	require.NoError(t, err)
	require.Equal(t, "else", again[1].GetNamespace())
	require.Equal(t, "default", again[5].GetNamespace(), "the files are as they were")
}

func TestWhatIsNoNamespaceIsRefused(t *testing.T) {
	for _, name := range []string{"", "A", "a/b", "a: b", "a.b"} {
		_, err := manifests.YAML(manifests.Namespaces{Machines: name})
		require.ErrorIs(t, err, manifests.ErrNamespace, name)
		if name != "" {
			_, err = manifests.YAML(manifests.Namespaces{Machines: "default", Manager: name})
			require.ErrorIs(t, err, manifests.ErrNamespace, name)
		}
	}
	_, err := manifests.YAML(manifests.Namespaces{Machines: strings.Repeat("a", 54)})
	require.ErrorIs(t, err, manifests.ErrNamespace, "with its suffix it is too long")
}
