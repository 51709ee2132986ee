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

// Write is one accepted change of the store. A refused request, a dry run and an update without a change are no writes.
type Write struct {
	// Time is when the write was accepted, by the cluster's clock.
	Time time.Time
	// Actor is "client", "seed" for [Cluster.Add], or the simulated kubelet or controller. See [Write.ByClient].
	Actor string
	// Verb is create, update, patch or delete. The deletion of an object with finalizers or a grace period is two writes:
	// one that sets the deletion timestamp, and one that removes the object (After is nil).
	Verb string
	// Resource and Subresource are those of the URL. An eviction is a create of pods/eviction.
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace, Name and UID are those of the object.
	Namespace, Name string
	UID             types.UID
	// ResourceVersion is that of the write.
	ResourceVersion string
	// Before is nil for a new object, After is nil for a removed one. Both are copies.
	Before, After runtime.Object
}

// ByClient reports whether the write was made by a clientset of the cluster.
func (w Write) ByClient() bool { return w.Actor == byClient }

// String returns the write in one line.
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

// copied returns the write with copies of its objects.
func (w Write) copied() Write {
	if w.Before != nil {
		w.Before = w.Before.DeepCopyObject()
	}
	if w.After != nil {
		w.After = w.After.DeepCopyObject()
	}
	return w
}

// History returns all accepted writes, the oldest first. It copies all objects: call it once, at the end of a test.
func (c *Cluster) History() []Write {
	return c.HistorySince("")
}

// HistorySince returns the writes after a resource version, the oldest first. An empty or malformed version means all.
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

// ForgetHistory drops the recorded writes, for programs that run for long. Watches do not change.
func (c *Cluster) ForgetHistory() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = nil
}
