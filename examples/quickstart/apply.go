// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// apply creates the objects of the manifests, owners first.
func (w *world) apply(ctx context.Context, m *manifests) error {
	api := w.machines.MachineV1alpha1()
	owners := map[string]types.UID{}
	remember := func(kind string, o metav1.Object) { owners[kind+"/"+o.GetNamespace()+"/"+o.GetName()] = o.GetUID() }
	for _, s := range m.secrets {
		client := w.secrets.CoreV1().Secrets(s.Namespace)
		if _, err := create(ctx, client.Create, client.Get, s); err != nil {
			return fmt.Errorf("create secret %s: %w", s.Name, err)
		}
	}
	for _, c := range m.classes {
		client := api.MachineClasses(c.Namespace)
		if _, err := create(ctx, client.Create, client.Get, c); err != nil {
			return fmt.Errorf("create machine class %s: %w", c.Name, err)
		}
	}
	for _, d := range m.deployments {
		client := api.MachineDeployments(d.Namespace)
		created, err := create(ctx, client.Create, client.Get, d)
		if err != nil {
			return fmt.Errorf("create machine deployment %s: %w", d.Name, err)
		}
		remember("MachineDeployment", created)
	}
	for _, s := range m.sets {
		adopt(s, owners)
		client := api.MachineSets(s.Namespace)
		created, err := create(ctx, client.Create, client.Get, s)
		if err != nil {
			return fmt.Errorf("create machine set %s: %w", s.Name, err)
		}
		remember("MachineSet", created)
	}
	for _, o := range m.machines {
		adopt(o, owners)
		client := api.Machines(o.Namespace)
		if _, err := create(ctx, client.Create, client.Get, o); err != nil {
			return fmt.Errorf("create machine %s: %w", o.Name, err)
		}
	}
	return nil
}

// create creates an object and returns the stored one. It repeats failed requests. AlreadyExists is
// success, because a response may be lost.
func create[T metav1.Object](
	ctx context.Context,
	post func(context.Context, T, metav1.CreateOptions) (T, error),
	get func(context.Context, string, metav1.GetOptions) (T, error),
	object T,
) (T, error) {
	return again(func() (T, error) {
		created, err := post(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return get(ctx, object.GetName(), metav1.GetOptions{})
		}
		return created, err
	})
}

// adopt replaces the UIDs in owner references by those of the created owners. It removes references
// to owners that are not in the manifests.
func adopt(o metav1.Object, owners map[string]types.UID) {
	var refs []metav1.OwnerReference
	for _, ref := range o.GetOwnerReferences() {
		if uid, ok := owners[ref.Kind+"/"+o.GetNamespace()+"/"+ref.Name]; ok {
			ref.UID = uid
			refs = append(refs, ref)
		}
	}
	o.SetOwnerReferences(refs)
}
