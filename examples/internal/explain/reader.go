// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// reader is the Reader of all runners. It returns an error for a resource that cannot be read, so that
// no object of it counts as missing.
type reader struct {
	*runner.Informers
	missing map[string]error // by resource
}

// known returns what read returns, or that the resource cannot be read.
func known[T any](r reader, resource string, read func() (T, error)) (T, error) {
	if err := r.missing[resource]; err != nil {
		var none T
		return none, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", err)
	}
	return read()
}

// Set returns a set.
func (r reader) Set(ctx context.Context, key types.NamespacedName) (*v1alpha1.MachineSet, error) {
	return known(r, sets, func() (*v1alpha1.MachineSet, error) { return r.Informers.Set(ctx, key) })
}

// SetsOf returns the sets of a controller.
func (r reader) SetsOf(ctx context.Context, namespace string, controller types.UID) ([]*v1alpha1.MachineSet, error) {
	return known(r, sets, func() ([]*v1alpha1.MachineSet, error) { return r.Informers.SetsOf(ctx, namespace, controller) })
}

// SetsOfGroup returns the sets of a group.
func (r reader) SetsOfGroup(ctx context.Context, group string) ([]*v1alpha1.MachineSet, error) {
	return known(r, sets, func() ([]*v1alpha1.MachineSet, error) { return r.Informers.SetsOfGroup(ctx, group) })
}

// Class returns a class.
func (r reader) Class(ctx context.Context, key types.NamespacedName) (*v1alpha1.MachineClass, error) {
	return known(r, classes, func() (*v1alpha1.MachineClass, error) { return r.Informers.Class(ctx, key) })
}

// Secret returns a Secret.
func (r reader) Secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	return known(r, secrets, func() (*corev1.Secret, error) { return r.Informers.Secret(ctx, key) })
}
