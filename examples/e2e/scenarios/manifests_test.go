// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// warnings are what an API server has to say beside its answers.
type warnings struct {
	mu   sync.Mutex
	said []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// resource returns the client of an object's kind.
func resource(client dynamic.Interface, o *unstructured.Unstructured) dynamic.ResourceInterface {
	r, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	if o.GetNamespace() == "" {
		return client.Resource(r)
	}
	return client.Resource(r).Namespace(o.GetNamespace())
}

// decode reads the documents of a YAML stream.
func decode(t *testing.T, text []byte) (all []*unstructured.Unstructured) {
	t.Helper()
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var document runtime.RawExtension
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if len(document.Raw) > 0 {
			o := &unstructured.Unstructured{}
			require.NoError(t, o.UnmarshalJSON(document.Raw))
			all = append(all, o)
		}
	}
}

// lost returns what of one value is not in another. What is null need not be.
func lost(path string, want, have any) (out []string) {
	switch want := want.(type) {
	case nil:
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok && len(want) > 0 {
			return []string{path}
		}
		for key := range want {
			out = append(out, lost(path+"."+key, want[key], have[key])...)
		}
	case []any:
		have, ok := have.([]any)
		if !ok || len(have) != len(want) {
			return []string{path}
		}
		for i := range want {
			out = append(out, lost(fmt.Sprintf("%s[%d]", path, i), want[i], have[i])...)
		}
	default:
		if want != have {
			return []string{fmt.Sprintf("%s: %v, not %v", path, have, want)}
		}
	}
	slices.Sort(out)
	return out
}

// server are the fields that an API server sets by itself, whatever it is told.
var server = []string{"uid", "resourceVersion", "creationTimestamp", "generation"}

func TestDefinitions_ManifestsOfMCM_AreAccepted(t *testing.T) { //nolint:tparallel // in the end comes what the server had to say to all
	t.Parallel()
	s := cluster.Set(t, "manifests", env.Options{}) // its manager is not started: what is stored is looked at here
	said := &warnings{}
	config := cluster.ControlPlane.Config()
	config.WarningHandler = said
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	files, err := filepath.Glob("../../../machine/v1alpha1/testdata/objects/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	kinds := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, want := range decode(t, text) {
			kinds[want.GetKind()] = true
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) { store(t, s, client, want) })
		}
	}
	require.Len(t, kinds, 4, "machines, sets, deployments, classes")
	require.Empty(t, said.said)
}

// store creates an object as it is, reads it back, and compares; its status goes
// the way of a status.
func store(t *testing.T, s *env.Env, client dynamic.Interface, want *unstructured.Unstructured) {
	_, err := s.Client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: want.GetNamespace()}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	api := resource(client, want)
	created := want.DeepCopy()
	created.SetResourceVersion("") // which no API server takes for a new object, of whatever kind
	_, err = api.Create(t.Context(), created, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err)
	if status, ok := want.Object["status"]; ok {
		require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the collector of garbage writes, too
			live, err := api.Get(t.Context(), want.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			live.Object["status"] = status
			_, err = api.UpdateStatus(t.Context(), live, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
			return err
		}))
	}
	have, err := api.Get(t.Context(), want.GetName(), metav1.GetOptions{})
	require.NoError(t, err)
	for _, field := range server {
		unstructured.RemoveNestedField(want.Object, "metadata", field)
	}
	require.Empty(t, lost("", want.Object, have.Object))
	require.Empty(t, defaulted(want, have))
	release(t, api, have)
}

// defaulted returns the fields of the spec that the server has added.
func defaulted(want, have *unstructured.Unstructured) []string {
	return lost("", have.Object["spec"], want.Object["spec"])
}

// release deletes an object and removes its finalizers.
func release(t *testing.T, api dynamic.ResourceInterface, o *unstructured.Unstructured) {
	t.Helper()
	_, err := api.Patch(t.Context(), o.GetName(), mergePatch, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	err = api.Delete(t.Context(), o.GetName(), metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) { // its owner does not exist, and a collector of garbage is about
		require.NoError(t, err)
	}
}

// TestDefinitions_ZeroTimes_AcceptedAsNull asserts that the API server accepts a zero metav1.Time,
// which is written as null, in every request, and stores no field.
func TestDefinitions_ZeroTimes_AcceptedAsNull(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "zero-times", env.Options{}) // its manager is not started
	client, err := dynamic.NewForConfig(cluster.ControlPlane.Config())
	require.NoError(t, err)
	metadata := metav1.ObjectMeta{Namespace: s.Namespace, Name: "zero"}
	summary := v1alpha1.MachineSummary{Name: "m"}
	spec := v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}}
	template := v1alpha1.MachineTemplateSpec{Spec: spec}
	for kind, object := range map[string]any{
		"Machine": v1alpha1.Machine{ObjectMeta: metadata, Spec: spec},
		"MachineSet": v1alpha1.MachineSet{ObjectMeta: metadata, Spec: v1alpha1.MachineSetSpec{Template: template}, Status: v1alpha1.MachineSetStatus{
			Conditions:     []v1alpha1.MachineSetCondition{{Type: v1alpha1.MachineSetFrozen, Status: v1alpha1.ConditionTrue}},
			FailedMachines: &[]v1alpha1.MachineSummary{summary},
		}},
		"MachineDeployment": v1alpha1.MachineDeployment{ObjectMeta: metadata, Spec: v1alpha1.MachineDeploymentSpec{
			Template: template, Strategy: v1alpha1.MachineDeploymentStrategy{Type: v1alpha1.RecreateMachineDeploymentStrategyType},
		}, Status: v1alpha1.MachineDeploymentStatus{
			Conditions:     []v1alpha1.MachineDeploymentCondition{{Type: v1alpha1.MachineDeploymentFrozen, Status: v1alpha1.ConditionTrue}},
			FailedMachines: []*v1alpha1.MachineSummary{&summary},
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			data, err := json.Marshal(object)
			require.NoError(t, err)
			require.Contains(t, string(data), `Time":null`)
			sent := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal(data, &sent.Object))
			sent.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind))
			api := resource(client, sent)

			live, err := api.Create(t.Context(), sent, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			require.NoError(t, err)
			strict := metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}
			sent.SetResourceVersion(live.GetResourceVersion())
			live, err = api.Update(t.Context(), sent, strict)
			require.NoError(t, err)
			sent.SetResourceVersion(live.GetResourceVersion())
			live, err = api.UpdateStatus(t.Context(), sent, strict)
			require.NoError(t, err)
			stored, err := json.Marshal(live.Object["status"])
			require.NoError(t, err)
			require.NotContains(t, string(stored), `null`)
			require.Empty(t, lost("", sent.Object["status"], live.Object["status"]))
		})
	}
}

func TestManifests_Printed_AreWhatInstallApplies(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "printed", env.Options{})
	printed, err := cluster.Program(t.Context(), "manifests", "--namespace="+s.Namespace)
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(cluster.ControlPlane.Config())
	require.NoError(t, err)
	kinds := map[string]int{}
	for _, want := range decode(t, printed) {
		kinds[want.GetKind()]++
		have, err := resource(client, want).Get(t.Context(), want.GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		require.Empty(t, lost("", want.Object, have.Object), "%s %s", want.GetKind(), want.GetName())
		// To apply it as kubectl does changes nothing.
		again, err := resource(client, want).Apply(t.Context(), want.GetName(), want, metav1.ApplyOptions{FieldManager: "kubectl"})
		require.NoError(t, err)
		require.Equal(t, have.GetGeneration(), again.GetGeneration())
	}
	require.Equal(t, map[string]int{
		"CustomResourceDefinition": len(v1alpha1.CRDs()), "Namespace": 1, "ServiceAccount": 1, "Role": 2, "RoleBinding": 3,
		"ClusterRole": 3, "ClusterRoleBinding": 2,
		"ValidatingAdmissionPolicy": 2, "ValidatingAdmissionPolicyBinding": 2,
	}, kinds)
}
