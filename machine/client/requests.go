// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// New returns the requests over typed clients: for Machines, MachineSets, MachineDeployments and
// MachineClasses over machines, and for Nodes, Secrets and VolumeAttachments over core. A request
// for which the client is nil is an error.
func New(machines versioned.Interface, core kubernetes.Interface) machinist.Requests {
	return requests{machines, core}
}

// requests are those of the kinds of two clients.
type requests struct {
	machines versioned.Interface
	core     kubernetes.Interface
}

// of returns the requests for the kind and the namespace of an object.
func (r requests) of(o machinist.Object) (machinist.Requests, error) {
	switch o.(type) {
	case *v1alpha1.Machine, *v1alpha1.MachineSet, *v1alpha1.MachineDeployment, *v1alpha1.MachineClass:
		if r.machines != nil {
			return r.ofMachines(o), nil
		}
	case *corev1.Node, *corev1.Secret, *storagev1.VolumeAttachment:
		if r.core != nil {
			return r.ofCore(o), nil
		}
	}
	return nil, fmt.Errorf("no client for objects of type %T", o)
}

func (r requests) ofMachines(o machinist.Object) machinist.Requests {
	api := r.machines.MachineV1alpha1()
	switch o.(type) {
	case *v1alpha1.Machine:
		return kind[*v1alpha1.Machine, *v1alpha1.MachineList]{api.Machines(o.GetNamespace())}
	case *v1alpha1.MachineSet:
		return kind[*v1alpha1.MachineSet, *v1alpha1.MachineSetList]{api.MachineSets(o.GetNamespace())}
	case *v1alpha1.MachineDeployment:
		return kind[*v1alpha1.MachineDeployment, *v1alpha1.MachineDeploymentList]{api.MachineDeployments(o.GetNamespace())}
	default:
		return kind[*v1alpha1.MachineClass, *v1alpha1.MachineClassList]{api.MachineClasses(o.GetNamespace())}
	}
}

func (r requests) ofCore(o machinist.Object) machinist.Requests {
	switch o.(type) {
	case *corev1.Node:
		return kind[*corev1.Node, *corev1.NodeList]{r.core.CoreV1().Nodes()}
	case *corev1.Secret:
		return kind[*corev1.Secret, *corev1.SecretList]{r.core.CoreV1().Secrets(o.GetNamespace())}
	default:
		return kind[*storagev1.VolumeAttachment, *storagev1.VolumeAttachmentList]{r.core.StorageV1().VolumeAttachments()}
	}
}

// call makes a request with the requests for an object.
func call[R any](r requests, o machinist.Object, request func(machinist.Requests) (R, error)) (none R, _ error) {
	of, err := r.of(o)
	if err != nil {
		return none, err
	}
	return request(of)
}

// Get implements [machinist.Requests], as the other methods do.
func (r requests) Get(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	return call(r, o, func(of machinist.Requests) (machinist.Object, error) { return of.Get(ctx, o) })
}

func (r requests) List(ctx context.Context, o machinist.Object, selector string) ([]machinist.Object, error) {
	return call(r, o, func(of machinist.Requests) ([]machinist.Object, error) { return of.List(ctx, o, selector) })
}

func (r requests) Create(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	return call(r, o, func(of machinist.Requests) (machinist.Object, error) { return of.Create(ctx, o) })
}

func (r requests) Update(ctx context.Context, o machinist.Object, subresource string) (machinist.Object, error) {
	return call(r, o, func(of machinist.Requests) (machinist.Object, error) { return of.Update(ctx, o, subresource) })
}

func (r requests) Patch(ctx context.Context, o machinist.Object, subresource string, patch []byte) (machinist.Object, error) {
	return call(r, o, func(of machinist.Requests) (machinist.Object, error) { return of.Patch(ctx, o, subresource, patch) })
}

func (r requests) Delete(ctx context.Context, o machinist.Object, unchanged bool) error {
	_, err := call(r, o, func(of machinist.Requests) (any, error) { return nil, of.Delete(ctx, o, unchanged) })
	return err
}

// object is a pointer to a typed object.
type object interface {
	metav1.Object
	runtime.Object
}

// typedClient are the methods of a typed client for objects T and lists L of them.
type typedClient[T object, L runtime.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Create(ctx context.Context, o T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, o T, options metav1.UpdateOptions) (T, error)
	Patch(ctx context.Context, name string, of types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// statusClient is a typed client of objects with a status.
type statusClient[T object] interface {
	UpdateStatus(ctx context.Context, o T, options metav1.UpdateOptions) (T, error)
}

// kind are the requests for objects T.
type kind[T object, L runtime.Object] struct{ client typedClient[T, L] }

func (k kind[T, L]) Get(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	return sent(k.client.Get(ctx, o.GetName(), metav1.GetOptions{}))
}

func (k kind[T, L]) List(ctx context.Context, _ machinist.Object, selector string) (all []machinist.Object, _ error) {
	list, err := k.client.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return all, meta.EachListItem(list, func(item runtime.Object) error {
		all = append(all, item.(T)) //nolint:forcetypeassert // the items of L are T
		return nil
	})
}

func (k kind[T, L]) Create(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	return sent(k.client.Create(ctx, o.(T), metav1.CreateOptions{})) //nolint:forcetypeassert // of has chosen the kind, also below
}

func (k kind[T, L]) Update(ctx context.Context, o machinist.Object, subresource string) (machinist.Object, error) {
	status, ok := k.client.(statusClient[T])
	switch {
	case subresource == "":
		return sent(k.client.Update(ctx, o.(T), metav1.UpdateOptions{})) //nolint:forcetypeassert // see Create
	case subresource == "status" && ok:
		return sent(status.UpdateStatus(ctx, o.(T), metav1.UpdateOptions{})) //nolint:forcetypeassert // see Create
	default:
		return nil, fmt.Errorf("objects of type %T have no subresource %s", o, subresource)
	}
}

func (k kind[T, L]) Patch(ctx context.Context, o machinist.Object, subresource string, patch []byte) (machinist.Object, error) {
	var subresources []string
	if subresource != "" {
		subresources = []string{subresource}
	}
	return sent(k.client.Patch(ctx, o.GetName(), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, subresources...))
}

func (k kind[T, L]) Delete(ctx context.Context, o machinist.Object, unchanged bool) error {
	observed := o.(T) //nolint:forcetypeassert // see Create
	same := metav1.NewUIDPreconditions(string(observed.GetUID()))
	if unchanged {
		version := observed.GetResourceVersion()
		same.ResourceVersion = &version
	}
	return k.client.Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: same})
}

// sent returns the object of a response, and nil with an error.
func sent[T object](o T, err error) (machinist.Object, error) {
	if err != nil {
		return nil, err
	}
	return o, nil
}
