// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// rulesPatience is how long a new definition or policy may take to be in force.
const rulesPatience = 30 * time.Second

// fault is something wrong in one field of an object.
type fault struct {
	kind string
	// patch is a merge patch that makes a valid object of the kind wrong.
	patch string
	// field and remedy are parts of the answer of the API server.
	field, remedy string
	// other is a merge patch of another field of the spec. Empty means that no API server
	// stores such an object, with the definitions of MCM neither.
	other string
}

const (
	otherOfMachine    = `{"spec":{"providerID":"simulated:///1"}}`
	otherOfSet        = `{"spec":{"minReadySeconds":7}}`
	otherOfDeployment = `{"spec":{"paused":true}}`
)

// faults are those that no object can be acted upon with.
var faults = map[string]fault{
	"machine without a class name":   {"Machine", `{"spec":{"class":{"name":""}}}`, "spec.class.name", "write the name of a MachineClass", otherOfMachine},
	"machine without a class kind":   {"Machine", `{"spec":{"class":{"kind":null}}}`, "spec.class.kind", "write MachineClass", otherOfMachine},
	"machine of another class":       {"Machine", `{"spec":{"class":{"kind":"AWSMachineClass"}}}`, "spec.class.kind", "write MachineClass", otherOfMachine},
	"set of another class":           {"MachineSet", `{"spec":{"template":{"spec":{"class":{"kind":"AWSMachineClass"}}}}}`, "spec.template.spec.class.kind", "write MachineClass", otherOfSet},
	"deployment of another class":    {"MachineDeployment", `{"spec":{"template":{"spec":{"class":{"kind":"AWSMachineClass"}}}}}`, "spec.template.spec.class.kind", "write MachineClass", otherOfDeployment},
	"set of fewer than no machines":  {"MachineSet", `{"spec":{"replicas":-1}}`, "spec.replicas", "should be a non-negative integer", ""},
	"set without a class":            {"MachineSet", `{"spec":{"template":{"spec":{"class":{"name":""}}}}}`, "spec.template.spec.class.name", "write the name", otherOfSet},
	"fewer than no machines":         {"MachineDeployment", `{"spec":{"replicas":-3}}`, "spec.replicas", "should be a non-negative integer", ""},
	"deployment without a class":     {"MachineDeployment", `{"spec":{"template":{"spec":{"class":{"kind":""}}}}}`, "spec.template.spec.class.kind", "write MachineClass", otherOfDeployment},
	"no strategy":                    {"MachineDeployment", `{"spec":{"strategy":{"type":null}}}`, "spec.strategy.type", "write InPlaceUpdate, Recreate or RollingUpdate", `{"spec":{"replicas":3}}`},
	"unknown strategy":               {"MachineDeployment", `{"spec":{"strategy":{"type":"Canary"}}}`, "spec.strategy.type", "write InPlaceUpdate, Recreate or RollingUpdate", otherOfDeployment},
	"rolling without bounds":         {"MachineDeployment", `{"spec":{"strategy":{"rollingUpdate":null}}}`, "spec.strategy.rollingUpdate", "write both in rollingUpdate", `{"spec":{"replicas":3}}`},
	"rolling without surge":          {"MachineDeployment", `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":null}}}}`, "spec.strategy.rollingUpdate", "write both", otherOfDeployment},
	"surge in words":                 {"MachineDeployment", `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"many"}}}}`, "spec.strategy.rollingUpdate.maxSurge", "write a value such as 1 or 10%", otherOfDeployment},
	"unavailable without a percent":  {"MachineDeployment", `{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":"1"}}}}`, "spec.strategy.rollingUpdate.maxUnavailable", "write a value such as", otherOfDeployment},
	"in place without bounds":        {"MachineDeployment", `{"spec":{"strategy":{"type":"InPlaceUpdate"}}}`, "spec.strategy.inPlaceUpdate", "write both in inPlaceUpdate", otherOfDeployment},
	"in place without orchestration": {"MachineDeployment", `{"spec":{"strategy":{"type":"InPlaceUpdate","inPlaceUpdate":{"maxSurge":0,"maxUnavailable":1}}}}`, "spec.strategy.inPlaceUpdate.orchestrationType", "write Auto or Manual", otherOfDeployment},
	"in place with surge in words":   {"MachineDeployment", `{"spec":{"strategy":{"type":"InPlaceUpdate","inPlaceUpdate":{"maxSurge":"one","maxUnavailable":1,"orchestrationType":"Auto"}}}}`, "spec.strategy.inPlaceUpdate.maxSurge", "write a value such as", otherOfDeployment},
}

// harmless are objects that MCM acts upon, however odd they look.
var harmless = map[string]fault{
	"negative surge":                  {kind: "MachineDeployment", patch: `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"-10%","maxUnavailable":-1}}}}`},
	"both bounds zero":                {kind: "MachineDeployment", patch: `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":"0%"}}}}`},
	"bounds of another strategy":      {kind: "MachineDeployment", patch: `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":{"maxSurge":"many"},"inPlaceUpdate":{"orchestrationType":"x"}}}}`},
	"left-over class of a set":        {kind: "MachineSet", patch: `{"spec":{"machineClass":{"apiGroup":"machine.sapcloud.io"}}}`},
	"more labels than the selector's": {kind: "MachineSet", patch: `{"spec":{"template":{"metadata":{"labels":{"more":"yes"}}}}}`},
}

// validObject returns an object of a kind that is acted upon, to be created.
func validObject(t *testing.T, s *env.Env, kind string) *unstructured.Unstructured {
	t.Helper()
	d := s.Deployment("valid", "small", 1, 1, 0)
	var typed any = d
	switch kind {
	case "Machine":
		typed = s.Machine("valid", "small")
	case "MachineSet":
		typed = &v1alpha1.MachineSet{ObjectMeta: d.ObjectMeta, Spec: v1alpha1.MachineSetSpec{Replicas: 1, Selector: d.Spec.Selector, Template: d.Spec.Template}}
	case "MachineClass":
		typed = s.Cloud.MachineClass(s.Namespace, "valid")
	}
	data, err := json.Marshal(typed)
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal(data, &o.Object))
	o.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind))
	o.SetGenerateName("rules-")
	o.SetName("")
	return o
}

// patched returns an object with a merge patch applied.
func patched(t *testing.T, o *unstructured.Unstructured, patch string) *unstructured.Unstructured {
	t.Helper()
	var changes map[string]any
	require.NoError(t, json.Unmarshal([]byte(patch), &changes))
	out := o.DeepCopy()
	merge(out.Object, changes)
	return out
}

// merge applies a merge patch.
func merge(to, changes map[string]any) {
	for key, value := range changes {
		below, isMap := value.(map[string]any)
		have, hasMap := to[key].(map[string]any)
		switch {
		case value == nil:
			delete(to, key)
		case isMap && hasMap:
			merge(have, below)
		default:
			to[key] = value
		}
	}
}

func TestDefinitions_InvalidObject_RefusedWithFieldAndRemedy(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "rules", env.Options{}) // its manager is not started
	client, err := dynamic.NewForConfig(cluster.ControlPlane.Config())
	require.NoError(t, err)
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			valid := validObject(t, s, f.kind)
			api := resource(client, valid)
			_, err := api.Create(t.Context(), patched(t, valid, f.patch), metav1.CreateOptions{})
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			require.ErrorContains(t, err, f.field+": Invalid value")
			require.ErrorContains(t, err, f.remedy)
			stored, err := api.Create(t.Context(), valid, metav1.CreateOptions{})
			require.NoError(t, err)
			_, err = api.Patch(t.Context(), stored.GetName(), mergePatch, []byte(f.patch), metav1.PatchOptions{})
			require.True(t, apierrors.IsInvalid(err), "%v", err)
		})
	}
	for name, f := range harmless {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := patched(t, validObject(t, s, f.kind), f.patch)
			_, err := resource(client, o).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			require.NoError(t, err)
		})
	}
}

// copies are the definitions under another group, so that other scenarios keep theirs.
func copies(t *testing.T, group string, rules bool) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, crd := range v1alpha1.CRDs() {
		for _, o := range decode(t, crd.YAML) {
			o.SetName(strings.TrimSuffix(o.GetName(), v1alpha1.GroupName) + group)
			require.NoError(t, unstructured.SetNestedField(o.Object, group, "spec", "group"))
			unstructured.RemoveNestedField(o.Object, "spec", "names", "shortNames")
			if !rules {
				require.True(t, withoutRules(o.Object) || strings.HasPrefix(crd.Name, "machineclasses."))
			}
			all = append(all, o)
		}
	}
	return all
}

// withoutRules takes the rules out of a schema, and reports whether there were any.
func withoutRules(v any) (found bool) {
	switch v := v.(type) {
	case map[string]any:
		if _, has := v["x-kubernetes-validations"]; has {
			delete(v, "x-kubernetes-validations")
			found = true
		}
		for _, below := range v {
			found = withoutRules(below) || found
		}
	case []any:
		for _, below := range v {
			found = withoutRules(below) || found
		}
	}
	return found
}

func TestDefinitions_StoredBeforeTheRules_KeepsWorking(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "stored", env.Options{}) // its manager is not started
	client, err := dynamic.NewForConfig(cluster.ControlPlane.Config())
	require.NoError(t, err)
	group := s.Namespace + ".example.com"
	force := metav1.ApplyOptions{FieldManager: "scenario", Force: true}
	install := func(rules bool) {
		for _, o := range copies(t, group, rules) {
			_, err := resource(client, o).Apply(t.Context(), o.GetName(), o, force)
			require.NoError(t, err)
		}
	}
	install(false)
	t.Cleanup(func() {
		for _, o := range copies(t, group, true) {
			_ = resource(client, o).Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}) //nolint:usetesting // the control plane goes anyway
		}
	})
	wrong := func(f fault) *unstructured.Unstructured {
		o := patched(t, validObject(t, s, f.kind), f.patch)
		o.SetAPIVersion(group + "/v1alpha1")
		return o
	}
	stored := map[string]*unstructured.Unstructured{}
	for name, f := range faults {
		if f.other == "" {
			continue
		}
		o := wrong(f)
		require.EventuallyWithT(t, func(c *assert.CollectT) { // once the new kind is served
			live, err := resource(client, o).Create(t.Context(), o, metav1.CreateOptions{})
			require.NoError(c, err, name)
			stored[name] = live
		}, rulesPatience, 100*time.Millisecond)
	}
	install(true)
	for name, f := range faults {
		o := wrong(f)
		require.Eventually(t, func() bool {
			_, err := resource(client, o).Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return apierrors.IsInvalid(err)
		}, rulesPatience, 100*time.Millisecond, "the rule works by now: %s", name)
	}
	for name, o := range stored {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			liveOn(t, resource(client, o), o.GetName(), faults[name])
		})
	}
}

// liveOn does to an invalid object what users and controllers do, and deletes it.
func liveOn(t *testing.T, api dynamic.ResourceInterface, name string, f fault) {
	t.Helper()
	for _, patch := range []string{
		`{"metadata":{"labels":{"team":"a"},"annotations":{"note":"b"},"finalizers":["` + v1alpha1.MCMFinalizerName + `"]}}`, f.other,
	} {
		_, err := api.Patch(t.Context(), name, mergePatch, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err, patch)
	}
	live, err := api.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	live.SetLabels(map[string]string{"team": "b"})
	live, err = api.Update(t.Context(), live, metav1.UpdateOptions{}) // the whole object, as MCM does
	require.NoError(t, err)
	live.Object["status"] = map[string]any{"lastOperation": map[string]any{"description": "told"}, "replicas": int64(1)}
	told, err := api.UpdateStatus(t.Context(), live, metav1.UpdateOptions{})
	if lacks := cluster.ControlPlane.Lacks(controlplane.StatusRatcheting); lacks != "" {
		t.Logf("Kubernetes %s: %s", cluster.ControlPlane.Version(), lacks)
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		require.ErrorContains(t, err, f.remedy)
	} else {
		require.NoError(t, err)
		require.NotEmpty(t, told.Object["status"])
	}
	require.NoError(t, api.Delete(t.Context(), name, metav1.DeleteOptions{}))
	live, err = api.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err, "its finalizer keeps it")
	live.SetFinalizers(nil)
	_, err = api.Update(t.Context(), live, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = api.Get(t.Context(), name, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// denied are what the optional policies refuse.
var denied = map[string]fault{
	"no selector":                    {kind: "MachineSet", patch: `{"spec":{"selector":null}}`, remedy: "spec.selector is missing or empty"},
	"empty selector":                 {kind: "MachineDeployment", patch: `{"spec":{"selector":{"matchLabels":null}}}`, remedy: "spec.selector is missing or empty"},
	"selector of other labels":       {kind: "MachineDeployment", patch: `{"spec":{"selector":{"matchLabels":{"name":"other"}}}}`, remedy: "does not match spec.template.metadata.labels"},
	"selector of a label too many":   {kind: "MachineSet", patch: `{"spec":{"selector":{"matchLabels":{"more":"yes"}}}}`, remedy: "does not match spec.template.metadata.labels"},
	"template without a class":       {kind: "MachineSet", patch: `{"spec":{"template":{"spec":{"class":null}}}}`, remedy: "spec.template.spec.class is missing"},
	"machine without a class":        {kind: "Machine", patch: `{"spec":{"class":null}}`, remedy: "spec.class is missing"},
	"no strategy":                    {kind: "MachineDeployment", patch: `{"spec":{"strategy":null}}`, remedy: "spec.strategy.type is missing"},
	"negative surge":                 {kind: "MachineDeployment", patch: `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"-10%"}}}}`, remedy: "maxSurge is negative"},
	"negative unavailable":           {kind: "MachineDeployment", patch: `{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":-1}}}}`, remedy: "maxUnavailable is negative"},
	"both bounds zero":               {kind: "MachineDeployment", patch: `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":"0%"}}}}`, remedy: "are both 0"},
	"both bounds zero in place":      {kind: "MachineDeployment", patch: `{"spec":{"strategy":{"type":"InPlaceUpdate","inPlaceUpdate":{"maxSurge":0,"maxUnavailable":0,"orchestrationType":"Auto"}}}}`, remedy: "are both 0"},
	"class without gpu":              {kind: "MachineClass", patch: `{"nodeTemplate":{"capacity":{"cpu":"1","memory":"1Gi"},"instanceType":"i","region":"r","zone":"z"}}`, remedy: "lacks cpu, gpu or memory"},
	"class without a zone":           {kind: "MachineClass", patch: `{"nodeTemplate":{"capacity":{"cpu":"1","gpu":"0","memory":"1Gi"},"instanceType":"i","region":"r","zone":""}}`, remedy: "lacks instanceType, region or zone"},
	"class of a provider's own idea": {kind: "MachineClass", patch: `{"nodeTemplate":null,"providerSpec":{"a":1}}`},
}

func TestValidationManifest_OnAPIServer_DeniesWhatTheDefinitionsTake(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "policies", env.Options{}) // its manager is not started
	client, err := dynamic.NewForConfig(cluster.ControlPlane.Config())
	require.NoError(t, err)
	old := map[string]*unstructured.Unstructured{} // stored before the policies
	for name, f := range denied {
		o := patched(t, validObject(t, s, f.kind), f.patch)
		old[name], err = resource(client, o).Create(t.Context(), o, metav1.CreateOptions{})
		require.NoError(t, err, name)
	}
	for _, o := range kustomize(t, filepath.Join(manifestFolder, "validation")) {
		o.SetName(o.GetName() + "." + s.Namespace) // other scenarios go on without
		if o.GetKind() == "ValidatingAdmissionPolicyBinding" {
			require.NoError(t, unstructured.SetNestedField(o.Object, o.GetName(), "spec", "policyName"))
			require.NoError(t, unstructured.SetNestedField(o.Object, s.Namespace, "spec", "matchResources", "namespaceSelector", "matchLabels", "kubernetes.io/metadata.name"))
		}
		_, err := resource(client, o).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = resource(client, o).Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}) //nolint:usetesting // the control plane goes anyway
		})
	}
	for name, f := range denied {
		o := patched(t, validObject(t, s, f.kind), f.patch)
		api := resource(client, o)
		if f.remedy == "" {
			_, err := api.Create(t.Context(), o, metav1.CreateOptions{})
			require.NoError(t, err, name)
			continue
		}
		require.Eventually(t, func() bool {
			_, err = api.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err != nil
		}, rulesPatience, 100*time.Millisecond, name)
		require.True(t, apierrors.IsInvalid(err), "%s: %v", name, err)
		require.ErrorContains(t, err, f.remedy, name)
		untouched(t, api, old[name].GetName())
	}
	for kind, patch := range map[string]string{
		"Machine": `{}`, "MachineSet": `{}`, "MachineDeployment": `{}`,
		"MachineClass": `{"nodeTemplate":{"capacity":{"cpu":"1","gpu":"0","memory":"1Gi"},"instanceType":"i","region":"r","zone":"z"}}`,
	} {
		o := patched(t, validObject(t, s, kind), patch)
		_, err := resource(client, o).Create(t.Context(), o, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

// untouched changes of a stored object what the policies leave alone, and deletes it.
func untouched(t *testing.T, api dynamic.ResourceInterface, name string) {
	t.Helper()
	for i, patch := range []string{`{"metadata":{"labels":{"team":"a"},"finalizers":["example.com/keep"]}}`, `{"metadata":{"finalizers":null}}`} {
		_, err := api.Patch(t.Context(), name, mergePatch, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err, fmt.Sprint(i))
		if i == 0 {
			require.NoError(t, api.Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
	}
}
