// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machinist-dev/machinist"
	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// podsOfNode is the index of pods by the name of their Node.
var podsOfNode = func() string {
	for _, i := range drainrunner.Indexes() {
		if _, ok := i.Of.(*corev1.Pod); ok {
			return i.Name
		}
	}
	return ""
}()

// reader is the Reader of all runners. It returns an error for a resource that cannot be read, so that
// no object of it counts as missing. Drains do without lists that cannot be read.
type reader struct {
	machinist.Reader
	missing map[string]error // by resource
}

// Get returns an object.
func (r reader) Get(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	if err := r.unreadable(o, ""); err != nil {
		return nil, err
	}
	return r.Reader.Get(ctx, o)
}

// List returns objects.
func (r reader) List(ctx context.Context, o machinist.Object, index, key string) ([]machinist.Object, error) {
	if err := r.unreadable(o, index); err != nil {
		return nil, err
	}
	return r.Reader.List(ctx, o, index, key)
}

// unreadable returns why objects of the type of o cannot be read, or nil.
func (r reader) unreadable(o machinist.Object, index string) error {
	resource, ofDrain := "", true
	switch o.(type) {
	case *policyv1.PodDisruptionBudget:
		resource = budgets
	case *storagev1.VolumeAttachment:
		resource = attachments
	case *corev1.PersistentVolumeClaim:
		resource = claims
	case *appsv1.DaemonSet, *corev1.PersistentVolume:
		return machinist.ErrNotCached
	default:
		ofDrain = false
	}
	switch o.(type) {
	case *v1alpha1.MachineDeployment:
		resource = deployments
	case *v1alpha1.MachineSet:
		resource = sets
	case *v1alpha1.MachineClass:
		resource = classes
	case *corev1.Node:
		resource = nodes
	case *corev1.Pod:
		resource = pods
	case *corev1.Secret:
		if resource = secrets; index == runners.ByOwner {
			resource = tokens
		}
	}
	err := r.missing[resource]
	switch {
	case err == nil:
		return nil
	case ofDrain:
		return machinist.ErrNotCached
	default:
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", err)
	}
}
