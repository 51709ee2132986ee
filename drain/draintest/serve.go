// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"cmp"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// request has the common fields of writes.
type request struct {
	actor       string
	verb        string
	resource    schema.GroupVersionResource
	subresource string
	namespace   string
	name        string
	dryRun      bool
}

// react serves the actions of an attached clientset, except watches. client-go serves actions that are no requests for
// objects, such as discovery, logs, proxies and access reviews.
func (c *Cluster) react(f *clienttesting.Fake, action clienttesting.Action) (bool, runtime.Object, error) {
	call, isRequest := c.callOf(action)
	if !isRequest || isReview(call.Resource) {
		return false, nil, nil
	}
	call = c.travel(f, call)
	before, after := c.faults.strike(c, call)
	if before != nil {
		return true, nil, before
	}
	obj, err := c.serve(action, call)
	if after != nil {
		return true, nil, after
	}
	if err != nil {
		return true, nil, err
	}
	return true, obj, nil
}

// reactWatch serves the watches of an attached clientset.
func (c *Cluster) reactWatch(f *clienttesting.Fake, action clienttesting.Action) (bool, watch.Interface, error) {
	call, isRequest := c.callOf(action)
	impl, isWatch := action.(clienttesting.WatchActionImpl)
	if !isRequest || !isWatch {
		return false, nil, nil
	}
	call = c.travel(f, call)
	if before, after := c.faults.strike(c, call); before != nil || after != nil {
		return true, nil, cmp.Or(before, after)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kinds[call.Resource]
	if k == nil {
		return true, nil, notServed()
	}
	w, err := c.watch(k, call.Namespace, impl.ListOptions)
	if err != nil {
		return true, nil, err
	}
	return true, w, nil
}

// serve carries out one request.
func (c *Cluster) serve(action clienttesting.Action, call Call) (runtime.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kinds[call.Resource]
	if k == nil || call.Subresource == "status" && k.status == statusInline {
		return nil, notServed()
	}
	req := request{
		actor: byClient, verb: call.Verb, resource: call.Resource, subresource: call.Subresource,
		namespace: call.Namespace, name: call.Name,
	}
	switch a := action.(type) {
	case clienttesting.GetActionImpl:
		return c.read(k, call)
	case clienttesting.ListActionImpl:
		return c.list(k, call.Namespace, a.ListOptions)
	case clienttesting.CreateActionImpl:
		req.dryRun = len(a.CreateOptions.DryRun) > 0
		return c.serveCreate(k, req, a.Object)
	case clienttesting.UpdateActionImpl:
		req.dryRun = len(a.UpdateOptions.DryRun) > 0
		return c.update(k, req, a.Object)
	case clienttesting.PatchActionImpl:
		req.dryRun = len(a.PatchOptions.DryRun) > 0
		return c.patch(k, req, a)
	case clienttesting.DeleteActionImpl:
		req.dryRun = len(a.DeleteOptions.DryRun) > 0
		return nil, c.delete(k, req, a.DeleteOptions)
	case clienttesting.DeleteCollectionActionImpl:
		req.dryRun = len(a.DeleteOptions.DryRun) > 0
		return nil, c.deleteCollection(k, req, a)
	default:
		return nil, apierrors.NewMethodNotSupported(k.resource(), call.Verb)
	}
}

// serveCreate carries out a create of an object or of a subresource.
func (c *Cluster) serveCreate(k *kind, req request, obj runtime.Object) (runtime.Object, error) {
	switch {
	case req.subresource == "":
		return c.create(k, req, obj)
	case k.isPod() && req.subresource == "eviction":
		return c.evict(k, req, obj)
	case k.isPod() && req.subresource == "binding":
		return c.bind(k, req, obj)
	default:
		return nil, notServed()
	}
}

// read serves a get of an object or of its status.
func (c *Cluster) read(k *kind, call Call) (runtime.Object, error) {
	if call.Subresource != "" && call.Subresource != "status" {
		return nil, notServed()
	}
	return c.get(k, call.Namespace, call.Name)
}

// get returns a copy of the stored object, or 404.
func (c *Cluster) get(k *kind, namespace, name string) (runtime.Object, error) {
	return c.tracker.Get(k.gvr, namespace, name)
}

// callOf returns the call of an action, or false if it is not a request for objects.
func (c *Cluster) callOf(action clienttesting.Action) (Call, bool) {
	call := Call{
		Time: c.clock.Now(), Verb: action.GetVerb(), Resource: action.GetResource(),
		Subresource: action.GetSubresource(), Namespace: action.GetNamespace(),
	}
	switch a := action.(type) {
	case clienttesting.GetActionImpl:
		call.Name = a.Name
	case clienttesting.CreateActionImpl:
		call.Name, call.Object = a.Name, a.Object
	case clienttesting.UpdateActionImpl:
		call.Object = a.Object
	case clienttesting.PatchActionImpl:
		call.Name, call.Patch = a.Name, a.Patch
	case clienttesting.DeleteActionImpl:
		call.Name = a.Name
	case clienttesting.ListActionImpl, clienttesting.DeleteCollectionActionImpl, clienttesting.WatchActionImpl:
	default:
		return Call{}, false
	}
	if m, err := meta.Accessor(call.Object); err == nil && call.Name == "" {
		call.Name = m.GetName()
	}
	return call, true
}

func isReview(gvr schema.GroupVersionResource) bool {
	return gvr.Group == "authentication.k8s.io" || gvr.Group == "authorization.k8s.io"
}

// notServed returns the error of a request for a resource or subresource that does not exist.
func notServed() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

// discovery returns the custom kinds for discovery clients.
func discovery(custom []Kind) []*metav1.APIResourceList {
	var lists []*metav1.APIResourceList
	for _, k := range custom {
		gv := k.GroupVersionKind.GroupVersion().String()
		i := slices.IndexFunc(lists, func(l *metav1.APIResourceList) bool { return l.GroupVersion == gv })
		if i < 0 {
			i, lists = len(lists), append(lists, &metav1.APIResourceList{GroupVersion: gv})
		}
		plural, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
		lists[i].APIResources = append(lists[i].APIResources, metav1.APIResource{Name: plural.Resource, Kind: k.GroupVersionKind.Kind, Namespaced: true})
	}
	return lists
}
