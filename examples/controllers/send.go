// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// clients sends the actions that all decisions have. It is safe for several goroutines.
type clients struct {
	machines versioned.Interface  // of machines, sets, deployments and classes
	core     kubernetes.Interface // of Nodes, Secrets and VolumeAttachments
}

// update writes an object and returns the written one.
func (c clients) update(ctx context.Context, u machinist.Update) (metav1.Object, error) {
	to, err := c.of(u.Object)
	if err != nil {
		return nil, err
	}
	return to.update(ctx, u)
}

// create creates an object and returns the created one.
func (c clients) create(ctx context.Context, o machinist.Object) (metav1.Object, error) {
	to, err := c.of(o)
	if err != nil {
		return nil, err
	}
	return to.create(ctx, o)
}

// remove deletes an object. It returns the error NotFound if the object does not exist.
func (c clients) remove(ctx context.Context, d machinist.Delete) error {
	to, err := c.of(d.Object)
	if err != nil {
		return err
	}
	return to.remove(ctx, d)
}

// of returns the requests for the kind and the namespace of an object.
func (c clients) of(o machinist.Object) (sender, error) {
	switch o := o.(type) {
	case *v1alpha1.Machine:
		return kind[*v1alpha1.Machine]{c.machines.MachineV1alpha1().Machines(o.Namespace)}, nil
	case *v1alpha1.MachineSet:
		return kind[*v1alpha1.MachineSet]{c.machines.MachineV1alpha1().MachineSets(o.Namespace)}, nil
	case *v1alpha1.MachineDeployment:
		return kind[*v1alpha1.MachineDeployment]{c.machines.MachineV1alpha1().MachineDeployments(o.Namespace)}, nil
	case *v1alpha1.MachineClass:
		return kind[*v1alpha1.MachineClass]{c.machines.MachineV1alpha1().MachineClasses(o.Namespace)}, nil
	case *corev1.Secret:
		return kind[*corev1.Secret]{c.core.CoreV1().Secrets(o.Namespace)}, nil
	case *corev1.Node:
		return kind[*corev1.Node]{c.core.CoreV1().Nodes()}, nil
	case *storagev1.VolumeAttachment:
		return kind[*storagev1.VolumeAttachment]{c.core.StorageV1().VolumeAttachments()}, nil
	default:
		return nil, fmt.Errorf("no client for objects of type %T", o)
	}
}

// sender sends requests for objects of one kind.
type sender interface {
	update(ctx context.Context, u machinist.Update) (metav1.Object, error)
	create(ctx context.Context, o machinist.Object) (metav1.Object, error)
	remove(ctx context.Context, d machinist.Delete) error
}

// kind is the sender for objects of type T.
type kind[T object] struct{ typedClient[T] }

// typedClient are the methods of the typed clients.
type typedClient[T object] interface {
	Create(ctx context.Context, o T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, o T, options metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
	Patch(ctx context.Context, name string, of types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (T, error)
}

// statusWriter is a typed client of objects with a status.
type statusWriter[T object] interface {
	UpdateStatus(ctx context.Context, o T, options metav1.UpdateOptions) (T, error)
}

// update patches a Node: a cache may lack a part of it, and the frequent writes of others to other
// fields are no conflicts. It writes the whole of any other object.
func (k kind[T]) update(ctx context.Context, u machinist.Update) (metav1.Object, error) {
	before, after := u.Before.(T), u.Object.(T) //nolint:forcetypeassert // a decision has objects of one kind
	if _, node := u.Object.(*corev1.Node); node {
		data, err := patch(before, after, u.Unchanged)
		if err != nil {
			return nil, err
		}
		var subresources []string
		if u.Subresource != "" {
			subresources = []string{u.Subresource}
		}
		return sent(k.Patch(ctx, after.GetName(), types.StrategicMergePatchType, data, metav1.PatchOptions{}, subresources...))
	}
	if u.Subresource == "" {
		return sent(k.Update(ctx, after, metav1.UpdateOptions{}))
	}
	status, ok := k.typedClient.(statusWriter[T])
	if !ok {
		return nil, fmt.Errorf("objects of type %T have no subresource %s", after, u.Subresource)
	}
	return sent(status.UpdateStatus(ctx, after, metav1.UpdateOptions{}))
}

func (k kind[T]) create(ctx context.Context, o machinist.Object) (metav1.Object, error) {
	return sent(k.Create(ctx, o.(T), metav1.CreateOptions{})) //nolint:forcetypeassert // of has chosen the kind
}

func (k kind[T]) remove(ctx context.Context, d machinist.Delete) error {
	o := d.Object.(T) //nolint:forcetypeassert // of has chosen the kind
	same := metav1.NewUIDPreconditions(string(o.GetUID()))
	if d.Unchanged {
		version := o.GetResourceVersion()
		same.ResourceVersion = &version
	}
	return k.Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: same})
}

// sent returns the object of a response, and nil with an error.
func sent[T object](o T, err error) (metav1.Object, error) {
	if err != nil {
		return nil, err
	}
	return o, nil
}

// patch returns the strategic merge patch from before to after. Its preconditions are the UID and, if
// unchanged is true, the resource version.
func patch[T object](before, after T, unchanged bool) ([]byte, error) {
	base := any(before).(runtime.Object).DeepCopyObject().(T) //nolint:forcetypeassert // it is a typed object
	base.SetUID("")                                           // the patch has what the base lacks
	if unchanged {
		base.SetResourceVersion("")
	}
	old, err := fields(base)
	if err != nil {
		return nil, err
	}
	changed, err := fields(after)
	if err != nil {
		return nil, err
	}
	keepEmpty(old, changed)
	difference, err := strategicpatch.CreateTwoWayMergeMapPatch(old, changed, base)
	if err != nil {
		return nil, fmt.Errorf("patch of %s: %w", after.GetName(), err)
	}
	return json.Marshal(difference)
}

// fields returns an object as its JSON fields.
func fields(o any) (map[string]any, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(data, &out)
}

// keepEmpty adds the maps and lists of the metadata that have become empty to the changed object. The
// patch then removes their entries, and not those that others have added since.
func keepEmpty(old, changed map[string]any) {
	before, _ := old["metadata"].(map[string]any)
	after, _ := changed["metadata"].(map[string]any)
	for key, value := range before {
		if _, found := after[key]; found {
			continue
		}
		switch value.(type) {
		case map[string]any:
			after[key] = map[string]any{}
		case []any:
			after[key] = []any{}
		}
	}
}
