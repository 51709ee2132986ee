// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist/examples/programs/manager/install"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
)

// server keeps what is applied, and says of definitions what it is told.
type server struct {
	*dynamicfake.FakeDynamicClient
	applied    []string
	conditions []any
}

func newServer(t *testing.T, conditions ...any) *server {
	t.Helper()
	s := &server{FakeDynamicClient: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), conditions: conditions}
	kept := map[string]*unstructured.Unstructured{}
	s.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch, ok := a.(clienttesting.PatchActionImpl)
		require.True(t, ok)
		require.Equal(t, types.ApplyPatchType, patch.PatchType)
		require.Equal(t, "machinist", patch.PatchOptions.FieldManager)
		require.True(t, *patch.PatchOptions.Force)
		o := &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal(patch.Patch, &o.Object))
		s.applied = append(s.applied, a.GetResource().Resource+" "+a.GetNamespace()+"/"+patch.Name)
		kept[patch.Name] = o
		return true, o, nil
	})
	s.PrependReactor("get", "customresourcedefinitions", func(a clienttesting.Action) (bool, runtime.Object, error) {
		get, ok := a.(clienttesting.GetAction)
		require.True(t, ok)
		o := kept[get.GetName()].DeepCopy()
		o.Object["status"] = map[string]any{"conditions": s.conditions}
		return true, o, nil
	})
	return s
}

func condition(kind, status, message string) any {
	return map[string]any{"type": kind, "status": status, "message": message}
}

func TestInstall_Definitions_AppliedAndEstablished(t *testing.T) {
	s := newServer(t, condition("NamesAccepted", "True", ""), condition("Established", "True", ""))
	require.NoError(t, install.Definitions(t.Context(), s))
	require.Equal(t, []string{
		"customresourcedefinitions /machineclasses.machine.sapcloud.io", "customresourcedefinitions /machinedeployments.machine.sapcloud.io",
		"customresourcedefinitions /machines.machine.sapcloud.io", "customresourcedefinitions /machinesets.machine.sapcloud.io",
	}, s.applied)
}

func TestInstall_DefinitionsNotServed_AreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, condition("Established", "False", "not yet"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := install.Definitions(ctx, s)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "machineclasses.machine.sapcloud.io is not served: not yet")
	})
}

func TestInstall_NameConflict_FailsAtOnce(t *testing.T) {
	s := newServer(t, condition("NamesAccepted", "False", "mc is taken"))
	require.ErrorContains(t, install.Definitions(t.Context(), s), "mc is taken")
}

func TestInstall_Access_InItsNamespace(t *testing.T) {
	s := newServer(t)
	require.NoError(t, install.Access(t.Context(), s, manifests.Installation{Machines: "n", Manager: "m"}))
	require.Equal(t, []string{
		"namespaces /m", "serviceaccounts m/machinist", "roles m/machinist:n", "rolebindings m/machinist:n",
		"clusterroles /machinist-control:n", "rolebindings n/machinist-control",
		"clusterroles /machinist-reviews:n", "clusterrolebindings /machinist-reviews:n",
		"validatingadmissionpolicies /machinist-shards.n", "validatingadmissionpolicybindings /machinist-shards.n",
		"clusterroles /machinist:n", "clusterrolebindings /machinist:n",
		"roles kube-system/machinist:n", "rolebindings kube-system/machinist:n",
		"validatingadmissionpolicies /machinist.n", "validatingadmissionpolicybindings /machinist.n",
	}, s.applied)
	require.Error(t, install.Access(t.Context(), s, manifests.Installation{Machines: "no namespace"}))
}
