// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// requests implements [machinist.Requests] with clients without a cache: one for machine objects, and one
// for Nodes, Secrets and VolumeAttachments.
type requests struct{ machines, core client.Client }

// send sends a request with a copy of an object, which becomes the object of the response.
func (r requests) send(o machinist.Object, request func(in client.Client, o client.Object) error) (machinist.Object, error) {
	typed, ok := o.(client.Object)
	if !ok {
		return nil, fmt.Errorf("unknown object %T", o)
	}
	in, sent := r.core, typed.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	switch o.(type) {
	case *v1alpha1.Machine, *v1alpha1.MachineSet, *v1alpha1.MachineDeployment, *v1alpha1.MachineClass:
		in = r.machines
	}
	if err := request(in, sent); err != nil {
		return nil, err
	}
	return sent, nil
}

// Get implements [machinist.Requests], as the other methods do.
func (r requests) Get(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	return r.send(o, func(in client.Client, o client.Object) error { return in.Get(ctx, client.ObjectKeyFromObject(o), o) })
}

func (r requests) List(ctx context.Context, o machinist.Object, selector string) (all []machinist.Object, _ error) {
	matching, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	_, err = r.send(o, func(in client.Client, o client.Object) error {
		kind, err := in.GroupVersionKindFor(o)
		if err != nil {
			return err
		}
		into, err := in.Scheme().New(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err != nil {
			return err
		}
		all, err = list[machinist.Object](ctx, in, into.(client.ObjectList), &client.ListOptions{Namespace: o.GetNamespace(), LabelSelector: matching}) //nolint:forcetypeassert // its name says so
		return err
	})
	return all, err
}

func (r requests) Create(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	return r.send(o, func(in client.Client, o client.Object) error { return in.Create(ctx, o) })
}

func (r requests) Update(ctx context.Context, o machinist.Object, subresource string) (machinist.Object, error) {
	return r.send(o, func(in client.Client, o client.Object) error {
		if subresource != "" {
			return in.SubResource(subresource).Update(ctx, o)
		}
		return in.Update(ctx, o)
	})
}

func (r requests) Patch(ctx context.Context, o machinist.Object, subresource string, patch []byte) (machinist.Object, error) {
	return r.send(o, func(in client.Client, o client.Object) error {
		change := client.RawPatch(types.StrategicMergePatchType, patch)
		if subresource != "" {
			return in.SubResource(subresource).Patch(ctx, o, change)
		}
		return in.Patch(ctx, o, change)
	})
}

func (r requests) Delete(ctx context.Context, o machinist.Object, unchanged bool) error {
	_, err := r.send(o, func(in client.Client, o client.Object) error {
		same := client.Preconditions{UID: new(o.GetUID())}
		if unchanged {
			same.ResourceVersion = new(o.GetResourceVersion())
		}
		return in.Delete(ctx, o, same)
	})
	return err
}
