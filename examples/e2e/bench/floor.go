// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// kind is a kind of objects that the loop of the floor writes.
type kind struct {
	resource schema.GroupVersionResource
	// status is the path of a field of the status that a write changes, and value its values.
	status []string
	value  func(serial int64) any
}

func text(serial int64) any   { return fmt.Sprintf("write %d", serial) }
func number(serial int64) any { return serial }

// kinds are the kinds by resource: those that the manager and the kubelets write for machines
// without pods.
var kinds = map[string]kind{
	"machinedeployments": {v1alpha1.SchemeGroupVersion.WithResource("machinedeployments"), []string{"status", "observedGeneration"}, number},
	"machinesets":        {v1alpha1.SchemeGroupVersion.WithResource("machinesets"), []string{"status", "observedGeneration"}, number},
	"machines":           {v1alpha1.SchemeGroupVersion.WithResource("machines"), []string{"status", "lastOperation", "description"}, text},
	"machineclasses":     {resource: v1alpha1.SchemeGroupVersion.WithResource("machineclasses")},
	"nodes":              {corev1.SchemeGroupVersion.WithResource("nodes"), []string{"status", "nodeInfo", "bootID"}, text},
	"secrets":            {resource: corev1.SchemeGroupVersion.WithResource("secrets")},
	"events":             {resource: corev1.SchemeGroupVersion.WithResource("events")},
}

// samples are objects by resource. The loop of the floor writes copies of them, so that its objects
// are as large as those of the manager.
type samples map[string]*unstructured.Unstructured

// samplesOf reads one object of each kind of an environment, if there is one.
func samplesOf(ctx context.Context, s *env.Env) (samples, error) {
	client, err := dynamic.NewForConfig(s.Cluster.ControlPlane.Config())
	if err != nil {
		return nil, err
	}
	out := samples{}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		all, options := client.Resource(kinds[name].resource), metav1.ListOptions{Limit: 1}
		var api dynamic.ResourceInterface = all.Namespace(s.Namespace)
		if name == "nodes" {
			api, options.LabelSelector = all, env.Label+"="+s.Namespace
		}
		list, err := api.List(ctx, options)
		if err != nil {
			return nil, err
		}
		for _, o := range list.Items {
			out[name] = &o
		}
	}
	return out, nil
}

// template returns a copy of a sample without what belongs to the one object only.
func template(sample *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	o := sample.DeepCopy()
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName",
		"managedFields", "ownerReferences", "finalizers",
	} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	if o.GetNamespace() != "" {
		o.SetNamespace(namespace)
	}
	if about, found, _ := unstructured.NestedMap(o.Object, "involvedObject"); found { // an Event is in the namespace of its object
		about["namespace"] = namespace
		o.Object["involvedObject"] = about
	}
	return o
}

// object is an object of the loop. The lock is held during a write.
type object struct {
	mu   sync.Mutex
	body *unstructured.Unstructured
	gone bool
}

// floor is the loop, which makes the writes of the manager and the kubelets, and nothing else.
type floor struct {
	client    dynamic.Interface
	namespace string
	templates samples
	serial    atomic.Int64

	mu    sync.Mutex
	pools map[string][]*object // the existing objects by resource, oldest first
}

// playFloor measures the floor of each phase.
func (r *result) playFloor(ctx context.Context, c *controlplane.ControlPlane, of samples, parallel int) (err error) {
	const agent = "floor"
	config := c.Config()
	config.UserAgent, config.QPS = agent, -1
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	namespace, err := core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "floor-"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	f := &floor{client: client, namespace: namespace.Name, templates: samples{}, pools: map[string][]*object{}}
	defer func() { err = errors.Join(err, f.clean(context.WithoutCancel(ctx), core)) }()
	for name, sample := range of {
		f.templates[name] = template(sample, f.namespace)
		if _, err := f.create(ctx, name); err != nil { // what exists before the first phase
			return err
		}
	}
	for i := range r.phases {
		p := &r.phases[i]
		began := time.Now()
		if err := f.play(ctx, p.writes, p.machines, parallel); err != nil {
			return fmt.Errorf("floor of %s: %w", p.name, err)
		}
		p.floor = time.Since(began)
		wait(ctx, logging)
		requests, err := c.Requests()
		if err != nil {
			return err
		}
		requests = slices.DeleteFunc(requests, func(q controlplane.Request) bool { return q.UserAgent != agent })
		p.played = writesOf(between(requests, began, began.Add(p.floor)))
	}
	return nil
}

// logging is how long a request may take until it is in the audit log.
const logging = 2 * time.Second

// clean deletes what the loop has left.
func (f *floor) clean(ctx context.Context, core kubernetes.Interface) error {
	var errs []error
	for _, node := range f.pools["nodes"] {
		errs = append(errs, core.CoreV1().Nodes().Delete(ctx, node.body.GetName(), metav1.DeleteOptions{}))
	}
	return errors.Join(append(errs, core.CoreV1().Namespaces().Delete(ctx, f.namespace, metav1.DeleteOptions{}))...)
}

// play makes writes for machines, so many machines at a time. It leaves out writes of a kind without
// a sample.
func (f *floor) play(ctx context.Context, of writes, machines, parallel int) error {
	known := maps.Clone(of)
	maps.DeleteFunc(known, func(w write, _ int) bool { return f.templates[w.resource] == nil })
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var loops sync.WaitGroup
	for range parallel {
		loops.Go(func() {
			for i := int(next.Add(1)) - 1; i < machines && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := f.machine(ctx, known.share(i, machines), i); err != nil {
					cancel(err)
				}
			}
		})
	}
	loops.Wait()
	return context.Cause(ctx)
}

// machine makes the writes for one machine: for each resource to the object that they create, else
// to one that they delete, else to any.
func (f *floor) machine(ctx context.Context, of writes, which int) error {
	objects := map[string]*object{}
	var err error
	for _, w := range of.inOrder() {
		for range of[w] {
			switch w.verb {
			case "create":
				objects[w.resource], err = f.create(ctx, w.resource)
			case "delete":
				o := objects[w.resource]
				if created := of[write{w.resource, "", "create"}] > 0; o == nil || created {
					o = f.take(w.resource)
				}
				delete(objects, w.resource)
				err = f.remove(ctx, w.resource, o)
			default:
				if objects[w.resource] == nil && of[write{w.resource, "", "delete"}] > 0 {
					objects[w.resource] = f.take(w.resource)
				}
				err = f.change(ctx, w, objects[w.resource], which)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", w, err)
			}
		}
	}
	return nil
}

func (f *floor) api(resource string) dynamic.ResourceInterface {
	all := f.client.Resource(kinds[resource].resource)
	if f.templates[resource].GetNamespace() == "" {
		return all
	}
	return all.Namespace(f.namespace)
}

func (f *floor) create(ctx context.Context, resource string) (*object, error) {
	body := f.templates[resource].DeepCopy()
	body.SetName(fmt.Sprintf("%s-%d", f.namespace, f.serial.Add(1)))
	created, err := f.api(resource).Create(ctx, body, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	o := &object{body: created}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pools[resource] = append(f.pools[resource], o)
	return o, nil
}

// take removes the oldest object of the pool; nil if there is none.
func (f *floor) take(resource string) *object {
	f.mu.Lock()
	defer f.mu.Unlock()
	pool := f.pools[resource]
	if len(pool) == 0 {
		return nil
	}
	f.pools[resource] = pool[1:]
	return pool[0]
}

// any returns an object that exists; nil if there is none.
func (f *floor) any(resource string, which int) *object {
	f.mu.Lock()
	defer f.mu.Unlock()
	pool := f.pools[resource]
	if len(pool) == 0 {
		return nil
	}
	return pool[which%len(pool)]
}

var errNoObject = errors.New("there is no object that it could be for")

func (f *floor) remove(ctx context.Context, resource string, o *object) error {
	if o == nil {
		return errNoObject
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = true
	return f.api(resource).Delete(ctx, o.body.GetName(), metav1.DeleteOptions{})
}

// change makes an update or a patch of an object, or of any if that is nil or gone.
func (f *floor) change(ctx context.Context, w write, o *object, which int) error {
	for {
		if o == nil {
			o = f.any(w.resource, which)
		}
		if o == nil {
			return errNoObject
		}
		if done, err := f.changeOne(ctx, w, o); done {
			return err
		}
		o = nil
	}
}

// changeOne changes an object, unless it is gone.
func (f *floor) changeOne(ctx context.Context, w write, o *object) (done bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return false, nil
	}
	after, err := f.send(ctx, w, o.body)
	for apierrors.IsConflict(err) { // the controller manager writes Nodes, too
		body, getErr := f.api(w.resource).Get(ctx, o.body.GetName(), metav1.GetOptions{})
		if getErr != nil {
			return true, getErr
		}
		o.body = body
		after, err = f.send(ctx, w, o.body)
	}
	if err == nil {
		o.body = after
	}
	return true, err
}

// send makes an update or a patch of an object, and returns the object after it.
func (f *floor) send(ctx context.Context, w write, before *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	serial := f.serial.Add(1)
	path, value := []string{"metadata", "annotations", "example.com/write"}, text(serial)
	var subresources []string
	if w.subresource == "status" {
		path, value, subresources = kinds[w.resource].status, kinds[w.resource].value(serial), []string{"status"}
	}
	if w.verb == "patch" {
		patch := map[string]any{}
		_ = unstructured.SetNestedField(patch, value, path...) // it has no fields that could be in the way
		body, err := json.Marshal(patch)
		if err != nil {
			return nil, err
		}
		return f.api(w.resource).Patch(ctx, before.GetName(), types.MergePatchType, body, metav1.PatchOptions{}, subresources...)
	}
	after := before.DeepCopy()
	if status, found, _ := unstructured.NestedMap(f.templates[w.resource].Object, "status"); found && w.subresource == "status" {
		after.Object["status"] = status
	}
	if err := unstructured.SetNestedField(after.Object, value, path...); err != nil {
		return nil, err
	}
	return f.api(w.resource).Update(ctx, after, metav1.UpdateOptions{}, subresources...)
}
