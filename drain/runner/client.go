// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	storageclient "k8s.io/client-go/kubernetes/typed/storage/v1"
	"k8s.io/client-go/rest"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/objects"
)

// Client makes the requests of drains. [NewClient] returns that of client-go, and
// examples/samples/nodetools/maintenance has one over controller-runtime in 40 lines. Errors are those of the API
// server: see package k8s.io/apimachinery/pkg/api/errors. It is safe for concurrent use and makes no
// request twice.
type Client interface {
	// The Reader reads from the API server: the Node, a DaemonSet, a PersistentVolumeClaim or a
	// PersistentVolume by name, the pods of a Node and the VolumeAttachments of a Node or a volume by
	// their index (see [Indexes]), and the PodDisruptionBudgets and DaemonSets of a namespace.
	// [machinist.ErrNotCached] means that it does not read objects of a type.
	machinist.Reader
	// PatchNode changes a Node by a JSON merge patch, and returns it as stored.
	PatchNode(ctx context.Context, name string, patch []byte, options metav1.PatchOptions) (*corev1.Node, error)
	// Evict creates an eviction of a pod.
	Evict(ctx context.Context, eviction *policyv1.Eviction) error
	// DeletePod deletes a pod.
	DeletePod(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error
}

// typed are the typed clients of a clientset.
type typed interface {
	CoreV1() coreclient.CoreV1Interface
	AppsV1() appsclient.AppsV1Interface
	PolicyV1() policyclient.PolicyV1Interface
	StorageV1() storageclient.StorageV1Interface
}

// NewClient returns the client of a clientset of client-go. [Executor.Run] watches what this client may
// watch. With a nil clientset, each call is an error.
//
// As a Reader it makes requests in each call, so it is for one observation, such as a dry run. In a loop
// use the caches of a program, or Run.
func NewClient(c typed) Client {
	if v := reflect.ValueOf(c); v.Kind() == reflect.Pointer && v.IsNil() { // as client-go returns it with an error
		c = nil
	}
	return clientset{c}
}

// clientset is the client of a clientset.
type clientset struct{ typed }

func usableClient(c Client) error {
	if own, ok := c.(clientset); c == nil || ok && own.typed == nil {
		return missing("client")
	}
	return nil
}

// Get implements [machinist.Reader].
func (c clientset) Get(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	if err := usableClient(c); err != nil {
		return nil, err
	}
	kind := c.kind(o)
	switch {
	case kind.get == nil:
		return nil, fmt.Errorf("%w: %T", machinist.ErrNotCached, o)
	case o.GetName() == "": // the clientset would return an error
		return nil, nil
	}
	found, err := kind.get(ctx, o.GetName())
	if err != nil {
		return nil, objects.IgnoreNotFound(err)
	}
	return found, nil
}

// List implements [machinist.Reader]. It lists all VolumeAttachments, because the API server cannot select
// them by an index.
func (c clientset) List(ctx context.Context, o machinist.Object, index, key string) ([]machinist.Object, error) {
	if err := usableClient(c); err != nil {
		return nil, err
	}
	kind := c.kind(o)
	if kind.list == nil {
		return nil, fmt.Errorf("%w: %T", machinist.ErrNotCached, o)
	}
	var of metav1.ListOptions
	if _, pods := o.(*corev1.Pod); pods {
		if key == "" {
			return nil, missing("name of a node")
		}
		of.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", key).String()
	}
	list, err := kind.list(ctx, of)
	if err != nil {
		return nil, err
	}
	var all []machinist.Object
	err = meta.EachListItem(list, func(item runtime.Object) error {
		one, ok := item.(machinist.Object)
		if ok && (index == "" || hasKey(one, index, key)) {
			all = append(all, one)
		}
		return nil
	})
	return all, err
}

// hasKey reports whether an object has a key of an index.
func hasKey(o machinist.Object, index, key string) bool {
	return slices.ContainsFunc(Indexes(), func(i machinist.Index) bool {
		return i.Name == index && slices.Contains(i.Keys(o), key)
	})
}

// PatchNode implements [Client].
func (c clientset) PatchNode(ctx context.Context, name string, patch []byte, options metav1.PatchOptions) (*corev1.Node, error) {
	if err := usableClient(c); err != nil {
		return nil, err
	}
	return c.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, options)
}

// Evict implements [Client]. Typed clients retry refused evictions, so it uses the REST client if there is one.
func (c clientset) Evict(ctx context.Context, eviction *policyv1.Eviction) error {
	if err := usableClient(c); err != nil {
		return err
	}
	if direct := c.rest(); direct != nil {
		return once(direct.Post(), eviction.Namespace, eviction.Name).SubResource("eviction").Body(eviction).Do(ctx).Error()
	}
	return c.CoreV1().Pods(eviction.Namespace).EvictV1(ctx, eviction)
}

// DeletePod implements [Client], without retries.
func (c clientset) DeletePod(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
	if err := usableClient(c); err != nil {
		return err
	}
	if direct := c.rest(); direct != nil {
		return once(direct.Delete(), namespace, name).Body(&options).Do(ctx).Error()
	}
	return c.CoreV1().Pods(namespace).Delete(ctx, name, options)
}

// rest returns the REST client, or nil for the fakes of client-go.
func (c clientset) rest() *rest.RESTClient {
	direct, _ := c.CoreV1().RESTClient().(*rest.RESTClient)
	return direct
}

// once returns a request for a pod without retries. The next decision repeats it.
func once(r *rest.Request, namespace, name string) *rest.Request {
	return r.MaxRetries(0).Namespace(namespace).Resource("pods").Name(name)
}

// requests has the requests for the objects of one type.
type requests struct {
	get   func(ctx context.Context, name string) (machinist.Object, error)
	list  func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	watch func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// kind returns the requests for the type of an object, in its namespace, and none for other types.
func (c clientset) kind(o machinist.Object) requests {
	switch o.(type) {
	case *corev1.Node:
		return kindOf(c.CoreV1().Nodes())
	case *corev1.Pod:
		return kindOf(c.CoreV1().Pods(o.GetNamespace()))
	case *policyv1.PodDisruptionBudget:
		return kindOf(c.PolicyV1().PodDisruptionBudgets(o.GetNamespace()))
	case *appsv1.DaemonSet:
		return kindOf(c.AppsV1().DaemonSets(o.GetNamespace()))
	case *storagev1.VolumeAttachment:
		return kindOf(c.StorageV1().VolumeAttachments())
	case *corev1.PersistentVolumeClaim:
		return kindOf(c.CoreV1().PersistentVolumeClaims(o.GetNamespace()))
	case *corev1.PersistentVolume:
		return kindOf(c.CoreV1().PersistentVolumes())
	default:
		return requests{}
	}
}

// kindOf returns the requests of a typed client.
func kindOf[O machinist.Object, L runtime.Object](client interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (O, error)
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}) requests {
	return requests{
		get: func(ctx context.Context, name string) (machinist.Object, error) {
			return client.Get(ctx, name, metav1.GetOptions{})
		},
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		watch: client.Watch,
	}
}
