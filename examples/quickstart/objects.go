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

// objects returns the objects of manifests/demo.yaml.
func objects() (secret corev1.Secret, c v1alpha1.MachineClass, d v1alpha1.MachineDeployment, err error) {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), len(manifests))
	for _, into := range []any{&secret, &c, &d} {
		if err = documents.Decode(into); err != nil {
			return
		}
	}
	secret.Data = map[string][]byte{} // like an API server
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	return
}

// apply creates the objects.
func (w *world) apply(ctx context.Context, replicas int) error {
	secret, c, d, err := objects()
	if err != nil {
		return err
	}
	d.Spec.Replicas = int32(replicas) //nolint:gosec // bounded by the flag
	api, o := w.machines.MachineV1alpha1(), metav1.CreateOptions{}
	for _, create := range []func() error{
		func() error { _, err := w.secrets.CoreV1().Secrets(namespace).Create(ctx, &secret, o); return err },
		func() error { _, err := api.MachineClasses(namespace).Create(ctx, &c, o); return err },
		func() error { _, err := api.MachineDeployments(namespace).Create(ctx, &d, o); return err },
	} {
		if err := again(create, apierrors.IsAlreadyExists); err != nil { // a response may be lost
			return err
		}
	}
	return nil
}

// copyClass creates a class like that of the manifests, with another name.
func (w *world) copyClass(ctx context.Context, name string) error {
	_, c, _, err := objects()
	if err != nil {
		return err
	}
	c.Name = name
	return again(func() error {
		_, err := w.machines.MachineV1alpha1().MachineClasses(namespace).Create(ctx, &c, metav1.CreateOptions{})
		return err
	}, apierrors.IsAlreadyExists)
}

// change updates the deployment, and repeats the update on conflicts.
func (w *world) change(ctx context.Context, f func(*v1alpha1.MachineDeployment)) error {
	api := w.machines.MachineV1alpha1().MachineDeployments(namespace)
	return again(func() error {
		current, err := api.Get(ctx, workers, metav1.GetOptions{})
		if err != nil {
			return err
		}
		f(current)
		_, err = api.Update(ctx, current, metav1.UpdateOptions{})
		return err
	}, nil)
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
