// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The actors of writes.
const (
	byClient               = "client"
	bySeed                 = "seed" // Cluster.Add
	byKubelet              = "kubelet"
	byGarbageCollector     = "garbage-collector"
	byDisruptionController = "disruption-controller"
	byAttachController     = "attach-controller"
)

// Write is one accepted change of the store. A request that was refused, a dry run and an update that changes
// nothing leave no Write.
type Write struct {
	// Time is the cluster's clock when the write was accepted.
	Time time.Time
	// Actor is who made it: a client, the seed ([Cluster.Add]), or what stands in for a kubelet, the garbage collector,
	// the disruption controller or the attach controller. See [Write.ByClient].
	Actor string
	// Verb is create, update, patch or delete. A delete which has to wait for finalizers or a grace period is
	// recorded with the verb delete twice: when the object is marked (After is set) and when it is gone (After is nil).
	Verb string
	// Resource and Subresource are what the request was sent to; an eviction is a create of pods/eviction.
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace, Name and UID name the object.
	Namespace, Name string
	UID             types.UID
	// ResourceVersion is the one which this write made.
	ResourceVersion string
	// Before is nil for a new object, After is nil for one that is gone. Both are copies.
	Before, After runtime.Object
}

// ByClient reports whether the write was made by a clientset of the cluster.
func (w Write) ByClient() bool { return w.Actor == byClient }

// String renders the write in one line, for failure messages.
func (w Write) String() string {
	resource := w.Resource.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	name := w.Name
	if w.Namespace != "" {
		name = w.Namespace + "/" + name
	}
	effect := "changed"
	switch {
	case w.Before == nil:
		effect = "created"
	case w.After == nil:
		effect = "removed"
	}
	return fmt.Sprintf("%s %s %s %s %s: %s (rv %s)", w.Time.UTC().Format(time.RFC3339), w.Actor, w.Verb, resource, name, effect, w.ResourceVersion)
}

// copied returns the write with objects that the caller may keep and change.
func (w Write) copied() Write {
	if w.Before != nil {
		w.Before = w.Before.DeepCopyObject()
	}
	if w.After != nil {
		w.After = w.After.DeepCopyObject()
	}
	return w
}

// History returns every accepted write since the cluster was made, oldest first. All objects are copies, so that
// the cost grows with the history: ask once, when the test is over.
func (c *Cluster) History() []Write {
	return c.HistorySince("")
}

// HistorySince returns the writes after the one that made the given resource version, oldest first. An empty or
// malformed version means all of them.
func (c *Cluster) HistorySince(resourceVersion string) []Write {
	since, err := parseVersion(resourceVersion)
	if err != nil {
		since = 0
	}
	c.mu.Lock()
	shared := c.history
	c.mu.Unlock()
	writes := make([]Write, 0, len(shared))
	for _, w := range shared {
		if rv, err := parseVersion(w.ResourceVersion); err == nil && rv > since {
			writes = append(writes, w.copied())
		}
	}
	return writes
}

// ForgetHistory drops the recorded writes, for programs that run for long. Watches are not affected.
func (c *Cluster) ForgetHistory() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = nil
}
