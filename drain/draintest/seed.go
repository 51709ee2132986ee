// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Add adds objects, or the items of lists, without the rules of a create: status, UID, generation and deletion timestamp are
// kept. Missing UIDs, creation timestamps, generations and namespaces ("default") are set. Objects that exist are replaced.
// Add stops with an error at an object without name, or of a kind that is not served.
func (c *Cluster) Add(objects ...runtime.Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, obj := range objects {
		if obj == nil {
			return errors.New("add: nil object")
		}
		items := []runtime.Object{obj}
		if meta.IsListType(obj) {
			extracted, err := meta.ExtractList(obj)
			if err != nil {
				return fmt.Errorf("add: %w", err)
			}
			items = extracted
		}
		for _, item := range items {
			if err := c.add(item); err != nil {
				return fmt.Errorf("add %T: %w", item, err)
			}
		}
	}
	return nil
}

func (c *Cluster) add(in runtime.Object) error {
	k, err := c.kindOf(in)
	if err != nil {
		return err
	}
	obj, m, err := c.fromWire(k, in.DeepCopyObject())
	if err != nil {
		return err
	}
	if m.GetName() == "" {
		return errors.New("an object needs a name")
	}
	switch {
	case k.clusterScoped:
		m.SetNamespace("")
	case m.GetNamespace() == "":
		m.SetNamespace(metav1.NamespaceDefault)
	}
	if m.GetUID() == "" {
		m.SetUID(c.newUID())
	}
	if created := m.GetCreationTimestamp(); created.IsZero() {
		m.SetCreationTimestamp(metav1.NewTime(c.now()).Rfc3339Copy())
	}
	if m.GetGeneration() == 0 && k.generation {
		m.SetGeneration(1)
	}
	req := request{actor: bySeed, verb: "create", resource: k.gvr, namespace: m.GetNamespace(), name: m.GetName()}
	before, err := c.get(k, m.GetNamespace(), m.GetName())
	switch {
	case apierrors.IsNotFound(err):
		before = nil
	case err != nil:
		return err
	default:
		req.verb = "update"
	}
	return c.commit(k, req, before, obj)
}
