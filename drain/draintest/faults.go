// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Call is a request as a fault sees it.
type Call struct {
	// Time is the cluster's clock.
	Time time.Time
	// Verb is get, list, watch, create, update, patch, delete or delete-collection.
	Verb string
	// Resource and Subresource are what the request is sent to; an eviction is a create of pods/eviction.
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace and Name name the object; the name of lists, watches and generated names is empty.
	Namespace, Name string
	// Object is the body of a create or update, Patch the one of a patch. Not to be changed.
	Object runtime.Object
	Patch  []byte
}

// FaultKind is what happens to a request that meets a fault.
type FaultKind int

const (
	// InternalError is the zero value: the request fails with 500 and has no effect.
	InternalError FaultKind = iota
	// Conflict fails the request with 409, as after a write of another client.
	Conflict
	// TooManyRequests fails the request with 429 and no mention of a disruption budget, as a server under load does.
	TooManyRequests
	// Timeout fails the request with 504; it has no effect.
	Timeout
	// TimeoutAfterEffect carries the request out and then answers 504, as when the connection breaks too late.
	TimeoutAfterEffect
	// Unavailable fails the request with 503, as a server that is starting or going away.
	Unavailable
	// Forbidden fails the request with 403.
	Forbidden
	// DropWatches closes the open watches of the request's resource (all watches if the fault names no resource) and
	// then carries the request out.
	DropWatches
)

// String returns the kind's name.
func (k FaultKind) String() string {
	names := [...]string{
		"InternalError", "Conflict", "TooManyRequests", "Timeout", "TimeoutAfterEffect", "Unavailable", "Forbidden", "DropWatches",
	}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("FaultKind(%d)", int(k))
	}
	return names[k]
}

// Fault is something that goes wrong with requests of clients. A request meets a fault if it agrees with every field that is
// set; the zero Fault fails every request with 500. The first fault that a request meets decides.
type Fault struct {
	// Kind is what happens.
	Kind FaultKind
	// Verb, Resource (the plural), Subresource, Namespace and Name say which requests; empty means any. A Resource of
	// "pods/eviction" is a Resource and a Subresource. To match requests without subresource only, use Match.
	Verb, Resource, Subresource, Namespace, Name string
	// Match has the last word, if it is not nil. It must not use the cluster or its clients.
	Match func(Call) bool
	// Skip lets that many matching requests pass first.
	Skip int
	// Times is how many requests meet the fault before it is over; zero or less means all of them, for ever.
	Times int
	// Probability makes the fault hit only some of the matching requests, by the cluster's seed. Zero or less, and one
	// or more, means every one.
	Probability float64
	// RetryAfter is what 429 and 504 tell the client, in whole seconds.
	RetryAfter time.Duration
}

// faults is the fault programme of a cluster.
type faults struct {
	mu   sync.Mutex
	rand *rand.Rand
	list []*armed
}

type armed struct {
	Fault
	skipped, struck int
}

// Inject adds faults to the programme. The returned function takes them out again.
func (c *Cluster) Inject(program ...Fault) (remove func()) {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	added := make([]*armed, 0, len(program))
	for _, fault := range program {
		added = append(added, &armed{Fault: fault})
	}
	c.faults.list = append(c.faults.list, added...)
	return func() {
		c.faults.mu.Lock()
		defer c.faults.mu.Unlock()
		c.faults.list = slices.DeleteFunc(c.faults.list, func(f *armed) bool { return slices.Contains(added, f) })
	}
}

// ClearFaults ends the fault programme.
func (c *Cluster) ClearFaults() {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.faults.list = nil
}

// strike returns the error that a request fails with before it is carried out, or after.
func (f *faults) strike(c *Cluster, call Call) (before, after error) {
	fault := f.next(call)
	if fault == nil {
		return nil, nil
	}
	switch fault.Kind {
	case TimeoutAfterEffect:
		return nil, fault.err(call)
	case DropWatches:
		var resources []string
		if fault.Resource != "" {
			resources = []string{call.Resource.Resource}
		}
		c.DropWatches(resources...)
		return nil, nil
	default:
		return fault.err(call), nil
	}
}

// next finds the fault that a request meets, and counts.
func (f *faults) next(call Call) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.list {
		if a.Times > 0 && a.struck >= a.Times || !a.meets(call) {
			continue
		}
		if a.skipped < a.Skip {
			a.skipped++
			continue
		}
		if a.Probability > 0 && a.Probability < 1 && f.rand.Float64() >= a.Probability {
			continue
		}
		a.struck++
		return &a.Fault
	}
	return nil
}

func (f *Fault) meets(call Call) bool {
	resource, subresource := f.Resource, f.Subresource
	if i := slices.Index([]byte(resource), '/'); i >= 0 {
		resource, subresource = resource[:i], cmp.Or(subresource, resource[i+1:])
	}
	return agrees(f.Verb, call.Verb) && agrees(resource, call.Resource.Resource) && agrees(subresource, call.Subresource) &&
		agrees(f.Namespace, call.Namespace) && agrees(f.Name, call.Name) && (f.Match == nil || f.Match(call))
}

func agrees(want, got string) bool { return want == "" || want == "*" || want == got }

// err is the answer to a request that meets the fault.
func (f *Fault) err(call Call) error {
	resource, retry := call.Resource.GroupResource(), int(f.RetryAfter/time.Second)
	switch f.Kind {
	case Conflict:
		return apierrors.NewConflict(resource, call.Name, errModified)
	case TooManyRequests:
		return apierrors.NewTooManyRequests("the server has received too many requests and has asked us to try again later", retry)
	case Timeout, TimeoutAfterEffect:
		return apierrors.NewTimeoutError("the request did not complete in time (injected)", retry)
	case Unavailable:
		return apierrors.NewServiceUnavailable("the server is currently unable to handle the request (injected)")
	case Forbidden:
		return apierrors.NewForbidden(resource, call.Name, errors.New("injected"))
	default:
		return apierrors.NewInternalError(errors.New("injected"))
	}
}
