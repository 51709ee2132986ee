// SPDX-License-Identifier: Apache-2.0

// Package install applies the definitions of the machine objects, and the access of a manager, to
// a cluster:
//
//	err := install.Definitions(ctx, client) // returns when the API server serves them
//	err = install.Access(ctx, client, manifests.Installation{Machines: "default"})
//
// It uses server-side apply by force, as the field manager "machinist": it overwrites the same
// fields of other managers, and leaves other fields alone. It is idempotent, and deletes nothing.
package install

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
)

// FieldManager is the field manager of the applied fields.
const FieldManager = "machinist"

// Definitions applies the definitions of the machine objects, and waits until
// the API server serves all of them or the context ends.
func Definitions(ctx context.Context, client dynamic.Interface) error {
	objects, err := manifests.Definitions()
	if err != nil {
		return err
	}
	if err := apply(ctx, client, objects); err != nil {
		return err
	}
	for _, o := range objects {
		if err := waitEstablished(ctx, client, o); err != nil {
			return err
		}
	}
	return nil
}

// Access applies the namespace, the service account and the roles of a program. The namespace of
// the machines has to exist.
func Access(ctx context.Context, client dynamic.Interface, of manifests.Installation) error {
	objects, err := manifests.Access(of)
	if err != nil {
		return err
	}
	return apply(ctx, client, objects)
}

func apply(ctx context.Context, client dynamic.Interface, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		_, err := of(client, o).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// of returns the client of an object's kind, in its namespace if it has one.
func of(client dynamic.Interface, o *unstructured.Unstructured) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	if namespace := o.GetNamespace(); namespace != "" {
		return client.Resource(resource).Namespace(namespace)
	}
	return client.Resource(resource)
}

// lookAgain is the time between two reads of a definition.
const lookAgain = 100 * time.Millisecond

// waitEstablished waits until a definition is served. A conflict of its names with another
// definition is an error at once.
func waitEstablished(ctx context.Context, client dynamic.Interface, crd *unstructured.Unstructured) error {
	state := "no condition yet"
	err := wait.PollUntilContextCancel(ctx, lookAgain, true, func(ctx context.Context) (bool, error) {
		live, err := of(client, crd).Get(ctx, crd.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if status, message := condition(live, "NamesAccepted"); status == "False" {
			return false, fmt.Errorf("names not accepted: %s", message)
		}
		status, message := condition(live, "Established")
		if message != "" {
			state = message
		}
		return status == "True", nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s is not served: %s: %w", crd.GetName(), state, ctx.Err())
	default:
		return fmt.Errorf("%s: %w", crd.GetName(), err)
	}
}

// condition returns the status and the message of a condition.
func condition(o *unstructured.Unstructured, kind string) (status, message string) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			status, _ = c["status"].(string)
			message, _ = c["message"].(string)
			return status, message
		}
	}
	return "", ""
}
