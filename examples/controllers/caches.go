// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/machine"
	machineinformers "github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// caches are the informer caches of the clusters. A factory starts only those informers that a
// controller has requested.
type caches struct {
	part     Part
	machines machineinformers.SharedInformerFactory
	control  informers.SharedInformerFactory // nil without the controllers of machines
	target   informers.SharedInformerFactory // nil without a target cluster
	tokens   informers.SharedInformerFactory // only the bootstrap tokens of machines; nil without target or control

	ofClass    func(key cache.ObjectName) []*v1alpha1.Machine      // machines that refer to a class
	ofSecret   func(key cache.ObjectName) []*v1alpha1.MachineClass // classes that refer to a secret
	ofNode     func(node string) []*v1alpha1.Machine               // machines whose label names a Node
	ofID       func(providerID string) []*v1alpha1.Machine         // machines with a normalized provider ID
	ofName     func(machine string) []*v1alpha1.Machine            // machines of all namespaces with a name
	nodesOfID  func(providerID string) []*corev1.Node              // Nodes with a normalized provider ID; nil without a target cluster
	machinesOf func(ownerKey string) []*v1alpha1.Machine           // machines of an owner
	node       func(name string) (*corev1.Node, error)             // a Node; fails before nodesSynced; nil without a target cluster

	nodesSynced func() bool // reports whether the Nodes of the target cluster were listed
}

func newCaches(cfg *Config) *caches {
	c := &caches{
		part: cfg.Part,
		machines: machineinformers.NewSharedInformerFactoryWithOptions(cfg.Machines, cfg.Resync,
			machineinformers.WithNamespace(cfg.Namespace), machineinformers.WithTransform(withoutUnread)),
	}
	if cfg.Target != nil {
		c.target = informers.NewSharedInformerFactoryWithOptions(cfg.Target, cfg.Resync, informers.WithTransform(withoutUnread))
	}
	if cfg.Part.machines() {
		c.control = informers.NewSharedInformerFactoryWithOptions(cfg.Control, cfg.Resync,
			informers.WithNamespace(cfg.Namespace), informers.WithTransform(withoutUnread))
	}
	if cfg.Part.machines() && cfg.Target != nil {
		_ = c.target.Core().V1().PersistentVolumeClaims().Informer().SetTransform(onlyVolume) // fails only once it has started
		c.tokens = informers.NewSharedInformerFactoryWithOptions(cfg.Target, cfg.Resync, informers.WithNamespace(metav1.NamespaceSystem), informers.WithTransform(withoutUnread),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = machine.TokenOwnerLabel }))
	}
	c.index()
	return c
}

// withoutUnread removes what no controller reads of an object: the managed fields, which take more than
// a third of a Machine, and the images of a Node. The API server keeps both, because an update without
// managed fields does not change them, and Nodes are patched.
func withoutUnread(o any) (any, error) {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
	}
	if node, ok := o.(*corev1.Node); ok {
		node.Status.Images = nil
	}
	return o, nil
}

// onlyVolume returns a PersistentVolumeClaim with only those fields that a drain reads.
func onlyVolume(o any) (any, error) {
	claim, ok := o.(*corev1.PersistentVolumeClaim)
	if !ok {
		return o, nil
	}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: claim.Spec.VolumeName},
	}, nil
}

// index adds the indexes that several controllers use.
func (c *caches) index() {
	machines := c.machines.Machine().V1alpha1().Machines().Informer()
	c.ofNode = index(machines, "node-of-machine", func(m *v1alpha1.Machine) []string { return []string{m.Labels[v1alpha1.NodeLabelKey]} })
	c.machinesOf = index(machines, "owner-of-machine", ownerKey[*v1alpha1.Machine])
	if c.target != nil {
		nodes := c.target.Core().V1().Nodes()
		c.nodesSynced = nodes.Informer().HasSynced
		c.node = func(name string) (*corev1.Node, error) {
			if !c.nodesSynced() {
				return nil, errNodesNotSynced
			}
			return nodes.Lister().Get(name)
		}
	}
	if !c.part.machines() {
		return
	}
	c.ofClass = index(machines, "class-of-machine", func(m *v1alpha1.Machine) []cache.ObjectName { return []cache.ObjectName{classKey(m)} })
	c.ofID = index(machines, "provider-id-of-machine", func(m *v1alpha1.Machine) []string { return providerIDs(m.Spec.ProviderID) })
	c.ofName = index(machines, "name-of-machine", func(m *v1alpha1.Machine) []string { return []string{m.Name} })
	if c.target != nil {
		c.nodesOfID = index(c.target.Core().V1().Nodes().Informer(), "provider-id-of-node", func(n *corev1.Node) []string { return providerIDs(n.Spec.ProviderID) })
	}
	c.ofSecret = index(c.machines.Machine().V1alpha1().MachineClasses().Informer(), "secrets-of-class", secretKeys)
}

// providerIDs returns the index key of a provider ID. It returns nil for an empty ID.
func providerIDs(id string) []string {
	if id = nodeops.NormalizeProviderID(id); id != "" {
		return []string{id}
	}
	return nil
}

// machinesOfNode returns the machines that a change of a Node concerns: those whose label names the
// Node, and those with its provider ID.
func (c *caches) machinesOfNode(n *corev1.Node) []*v1alpha1.Machine {
	machines := c.ofNode(n.Name)
	for _, id := range providerIDs(n.Spec.ProviderID) {
		for _, m := range c.ofID(id) {
			if m.Labels[v1alpha1.NodeLabelKey] != n.Name {
				machines = append(machines, m)
			}
		}
	}
	return machines
}

// nodeOfID returns the only Node with a provider ID. It returns nil if there are none or several.
func (c *caches) nodeOfID(id string) *corev1.Node {
	for _, id := range providerIDs(id) {
		if nodes := c.nodesOfID(id); len(nodes) == 1 {
			return nodes[0]
		}
	}
	return nil
}

// secret returns a function that reads a Secret from the cache.
func (c *caches) secret() secretReader {
	lister := c.control.Core().V1().Secrets().Lister()
	return func(namespace, name string) (*corev1.Secret, error) { return lister.Secrets(namespace).Get(name) }
}

// targetWait is how long the first passes wait for the target cluster. Machines can be deleted while
// it does not answer.
const targetWait = 30 * time.Second

// errNodesNotSynced means that the Nodes were not listed yet.
var errNodesNotSynced = errors.New("the Nodes of the target cluster were not listed yet")

// start starts the requested informers and waits until they are synced. It waits for those of the
// target cluster at most targetWait.
func (c *caches) start(ctx context.Context) error {
	c.machines.Start(ctx.Done())
	for _, f := range c.ofClusters() {
		f.Start(ctx.Done())
	}
	synced := allSynced(c.machines.WaitForCacheSync(ctx.Done()))
	if c.control != nil {
		synced = allSynced(c.control.WaitForCacheSync(ctx.Done())) && synced
	}
	if !synced {
		return fmt.Errorf("caches not synced: %w", context.Cause(ctx))
	}
	soon, cancel := context.WithTimeout(ctx, targetWait)
	defer cancel()
	for _, f := range c.ofClusters() {
		f.WaitForCacheSync(soon.Done())
	}
	return ctx.Err()
}

// allSynced reports whether all informers of a factory are synced.
func allSynced(informers map[reflect.Type]bool) bool {
	return !slices.Contains(slices.Collect(maps.Values(informers)), false)
}

// ofClusters returns the factories of the built-in kinds.
func (c *caches) ofClusters() []informers.SharedInformerFactory {
	var all []informers.SharedInformerFactory
	for _, f := range []informers.SharedInformerFactory{c.control, c.target, c.tokens} {
		if f != nil {
			all = append(all, f)
		}
	}
	return all
}

func (c *caches) shutdown() {
	c.machines.Shutdown()
	for _, f := range c.ofClusters() {
		f.Shutdown()
	}
}
