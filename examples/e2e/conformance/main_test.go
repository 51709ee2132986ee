// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// plane is the control plane of all scenarios, and whatever went wrong when it was prepared.
var (
	plane        *controlplane.ControlPlane
	errPreparing error
)

func TestMain(m *testing.M) {
	// The cluster in memory has no scheduler, which would write to pods that no Node takes.
	os.Exit(controlplane.Run(m, controlplane.Options{WithoutScheduler: true}, func(c *controlplane.ControlPlane) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		plane, errPreparing = c, installKinds(ctx, c)
	}))
}

// installKinds applies the definitions of the machine kinds and waits until they are served.
func installKinds(ctx context.Context, c *controlplane.ControlPlane) error {
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, crd := range v1alpha1.CRDs() {
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(crd.YAML, &definition.Object); err != nil {
			return fmt.Errorf("definition of %s: %w", crd.Name, err)
		}
		withoutRules(definition.Object)
		if _, err := definitions.Create(ctx, definition, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("definition of %s: %w", crd.Name, err)
		}
	}
	for _, resource := range []string{"machines", "machinesets", "machinedeployments", "machineclasses"} {
		served := func(ctx context.Context) (bool, error) {
			_, err := client.Resource(v1alpha1.SchemeGroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{})
			return err == nil, nil
		}
		if err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, served); err != nil {
			return fmt.Errorf("%s are not served: %w", resource, err)
		}
	}
	return nil
}

// withoutRules takes the validation rules out of a schema: the scenarios store objects that
// hold no more than what a scenario is about.
func withoutRules(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "x-kubernetes-validations")
		for _, below := range v {
			withoutRules(below)
		}
	case []any:
		for _, below := range v {
			withoutRules(below)
		}
	}
}

// onServer is a world on the control plane.
func onServer(t testing.TB) *world {
	require.NoError(t, errPreparing)
	config := plane.Config()
	config.WarningHandler = rest.NoWarnings{}
	kube, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	machines, err := versioned.NewForConfig(config)
	require.NoError(t, err)
	return &world{t: t, kube: kube, machines: machines, ns: plane.Namespace(t, "conformance"), patience: time.Minute, tick: func() {}}
}
