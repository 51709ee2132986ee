// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/util/retry"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

//go:embed manifests/demo.yaml
var manifests []byte

// The names of the objects in manifests/demo.yaml.
const (
	namespace = "demo"
	workers   = "workers"
	class     = "small"
	userData  = "small-userdata"
)

// apply creates the objects of manifests/demo.yaml, and a class like that of the manifest with the name newClass.
func (w *world) apply(ctx context.Context, replicas int) error {
	var secret corev1.Secret
	var c v1alpha1.MachineClass
	var d v1alpha1.MachineDeployment
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), len(manifests))
	for _, into := range []any{&secret, &c, &d} {
		if err := documents.Decode(into); err != nil {
			return err
		}
	}
	secret.Data = map[string][]byte{} // like an API server
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData, d.Spec.Replicas = nil, int32(replicas) //nolint:gosec // bounded by the flag
	next := c.DeepCopy()
	next.Name = newClass
	requests := client.New(w.machines, w.secrets)
	for _, o := range []machinist.Object{&secret, &c, next, &d} {
		create := func() error { _, err := requests.Create(ctx, o); return err }
		if err := again(create, apierrors.IsAlreadyExists); err != nil { // a response may be lost
			return err
		}
	}
	return nil
}

// deleteAll deletes all objects at once, and the workload. Finalizers keep the classes and Secrets until
// the machines are deleted.
func (w *world) deleteAll(ctx context.Context) error {
	w.idle.Store(true)
	api, o := w.machines.MachineV1alpha1(), metav1.DeleteOptions{}
	for _, remove := range []func() error{
		func() error { return api.MachineDeployments(namespace).Delete(ctx, workers, o) },
		func() error { return api.MachineClasses(namespace).Delete(ctx, class, o) },
		func() error { return api.MachineClasses(namespace).Delete(ctx, newClass, o) },
		func() error { return w.secrets.CoreV1().Secrets(namespace).Delete(ctx, userData, o) },
	} {
		if err := again(remove, apierrors.IsNotFound); err != nil {
			return err
		}
	}
	return nil
}

// again repeats a request until it succeeds or its error is as good, because injected faults are meant for
// the controllers only.
func again(request func() error, isGood func(error) bool) error {
	patience := wait.Backoff{Steps: 12, Duration: time.Millisecond, Factor: 2, Jitter: 0.1}
	return retry.OnError(patience, func(error) bool { return true }, func() error {
		err := request()
		if err != nil && isGood != nil && isGood(err) {
			return nil
		}
		return err
	})
}
