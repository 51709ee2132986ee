// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Call is a request of a client.
type Call struct {
	// Time is the time of the request by the cluster's clock.
	Time time.Time
	// Verb is get, list, watch, create, update, patch, delete or delete-collection.
	Verb string
	// Resource and Subresource are those of the URL. An eviction is a create of pods/eviction.
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace and Name are those of the object. The name of lists, watches and generated names is empty.
	Namespace, Name string
	// Object is the body of a create or update, Patch that of a patch. They must not be changed.
	Object runtime.Object
	Patch  []byte
}

// FaultKind is what happens to a request that matches a [Fault].
type FaultKind int

const (
	// InternalError is the zero value. The request fails with 500 and has no effect.
	InternalError FaultKind = iota
	// Conflict fails the request with 409, as after a write of another client.
	Conflict
	// TooManyRequests fails the request with 429 without a cause, like an overloaded API server.
	TooManyRequests
	// Timeout fails the request with 504. It has no effect.
	Timeout
	// TimeoutAfterEffect carries the request out and then returns 504.
	TimeoutAfterEffect
	// Unavailable fails the request with 503, like an API server that starts or stops.
	Unavailable
	// Forbidden fails the request with 403.
	Forbidden
	// DropWatches closes the open watches of the resource, or all watches for a fault without resource. Then it carries the
	// request out.
	DropWatches
)

// String returns the name of the kind.
func (k FaultKind) String() string {
	names := [...]string{
		"InternalError", "Conflict", "TooManyRequests", "Timeout", "TimeoutAfterEffect", "Unavailable", "Forbidden", "DropWatches",
	}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("FaultKind(%d)", int(k))
	}
	return names[k]
}

// Fault is a failure of requests. It applies to requests that match all fields that are set. The first fault that matches
// a request counts. The zero Fault fails every request with 500.
type Fault struct {
	// Kind is what happens to the request.
	Kind FaultKind
	// Verb, Resource (the plural), Subresource, Namespace and Name select requests. Empty selects all. The Resource
	// "pods/eviction" is a Resource and a Subresource. To select only requests without subresource, use Match.
	Verb, Resource, Subresource, Namespace, Name string
	// Match must also return true. Nil selects all. It must not use the cluster or its clients.
	Match func(Call) bool
	// Skip is how many matching requests pass first.
	Skip int
	// Times is how many requests fail. Zero or less means all.
	Times int
	// Probability is the share of the matching requests that fail, by the cluster's seed. Zero or less, and one or more,
	// mean all.
	Probability float64
	// RetryAfter is the Retry-After of 429 and 504, in whole seconds.
	RetryAfter time.Duration
}

// faults are the faults of a cluster.
type faults struct {
	mu   sync.Mutex
	rand *rand.Rand
	list []*injected
}

// injected is a fault and how many requests it skipped and failed.
type injected struct {
	Fault
	skipped, failed int
}

// Inject adds faults. The returned function removes them.
func (c *Cluster) Inject(list ...Fault) (remove func()) {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	added := make([]*injected, 0, len(list))
	for _, fault := range list {
		added = append(added, &injected{Fault: fault})
	}
	c.faults.list = append(c.faults.list, added...)
	return func() {
		c.faults.mu.Lock()
		defer c.faults.mu.Unlock()
		c.faults.list = slices.DeleteFunc(c.faults.list, func(f *injected) bool { return slices.Contains(added, f) })
	}
}

// ClearFaults removes all faults.
func (c *Cluster) ClearFaults() {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.faults.list = nil
}

// strike returns the error of a request before it is carried out, or after.
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

// next returns the fault of a request, or nil, and counts the request.
func (f *faults) next(call Call) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.list {
		if a.Times > 0 && a.failed >= a.Times || !a.matches(call) {
			continue
		}
		if a.skipped < a.Skip {
			a.skipped++
			continue
		}
		if a.Probability > 0 && a.Probability < 1 && f.rand.Float64() >= a.Probability {
			continue
		}
		a.failed++
		return &a.Fault
	}
	return nil
}

func (f *Fault) matches(call Call) bool {
	resource, subresource, _ := strings.Cut(f.Resource, "/")
	subresource = cmp.Or(f.Subresource, subresource)
	return agrees(f.Verb, call.Verb) && agrees(resource, call.Resource.Resource) && agrees(subresource, call.Subresource) &&
		agrees(f.Namespace, call.Namespace) && agrees(f.Name, call.Name) && (f.Match == nil || f.Match(call))
}

func agrees(want, got string) bool { return want == "" || want == "*" || want == got }

// err returns the error of a request with the fault.
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
