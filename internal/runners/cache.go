// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// The names of the indexes.
const (
	byController = "machinist.dev/controller"
	byNode       = "machinist.dev/node"
	byClass      = "machinist.dev/class"
	byID         = "machinist.dev/provider-id"
	byName       = "machinist.dev/name"
	byGroup      = "machinist.dev/group"
	bySecret     = "machinist.dev/secret" //nolint:gosec // the name of an index
	byWaiting    = "machinist.dev/waiting"
	byOwner      = "machinist.dev/token-owner"
	byNeeded     = "machinist.dev/class-needed"
)

// Cache reads the objects of shared informers, by the indexes that the methods need. A runner sets the
// informers that it uses. The objects are shared with the informers and must not be changed. Objects
// that do not exist are nil. It is safe for concurrent use.
type Cache struct {
	Deployments, Sets, Machines, Classes cache.SharedIndexInformer
	// Secrets are those of the control cluster, and Tokens those of kube-system in the target cluster.
	Secrets, Tokens cache.SharedIndexInformer
	// Nodes are those of the target cluster. Nil means that there is none.
	Nodes cache.SharedIndexInformer
}

// NodesOf returns the informer of the Nodes of a factory, or nil without a factory.
func NodesOf(target informers.SharedInformerFactory) cache.SharedIndexInformer {
	if target == nil {
		return nil
	}
	return target.Core().V1().Nodes().Informer()
}

// NewCache returns the cache of machines, of sets if withSets is true, and of Nodes. A nil target means that
// there is no target cluster. It fails only for a stopped informer.
func NewCache(machines externalversions.SharedInformerFactory, withSets bool, target informers.SharedInformerFactory) (Cache, error) {
	api := machines.Machine().V1alpha1()
	c := Cache{Machines: api.Machines().Informer(), Nodes: NodesOf(target)}
	var err error
	if withSets {
		c.Sets = api.MachineSets().Informer()
		err = indexController[*v1alpha1.MachineSet](c.Sets)
	}
	if c.Nodes != nil {
		err = errors.Join(err, AddIndex(c.Nodes, byID, func(n *corev1.Node) []string { return idKeys(n.Spec.ProviderID) }))
	}
	return c, errors.Join(err, indexController[*v1alpha1.Machine](c.Machines),
		AddIndex(c.Machines, byNode, func(m *v1alpha1.Machine) []string { return []string{m.Labels[v1alpha1.NodeLabelKey]} }))
}

// IndexMachines adds the indexes for the reconciliation of machines. A cluster may have no sets. It fails
// only for a stopped informer.
func (c *Cache) IndexMachines() error {
	errs := []error{
		AddIndex(c.Machines, byClass, func(m *v1alpha1.Machine) []string { return []string{m.Namespace + "/" + m.Spec.Class.Name} }),
		AddIndex(c.Machines, byID, func(m *v1alpha1.Machine) []string { return idKeys(m.Spec.ProviderID) }),
		AddIndex(c.Machines, byName, func(m *v1alpha1.Machine) []string { return []string{m.Name} }),
		AddIndex(c.Machines, byGroup, func(m *v1alpha1.Machine) []string { return []string{machine.GroupOf(m, nil).String()} }),
		AddIndex(c.Machines, byWaiting, func(m *v1alpha1.Machine) []string {
			if machine.NeedsSiblings(m) {
				return []string{m.Namespace}
			}
			return nil
		}),
		AddIndex(c.Classes, bySecret, func(class *v1alpha1.MachineClass) (keys []string) {
			for _, key := range SecretKeys(class) {
				keys = append(keys, key.String())
			}
			return keys
		}),
	}
	for _, informer := range c.users() {
		errs = append(errs, AddIndex(informer, byNeeded, func(o metav1.Object) (keys []string) {
			for _, key := range ClassNeeded(o) {
				keys = append(keys, key.String())
			}
			return keys
		}))
	}
	if c.Sets != nil {
		errs = append(errs, AddIndex(c.Sets, byGroup, func(s *v1alpha1.MachineSet) []string { return []string{machine.GroupOf(nil, s).String()} }))
	}
	if c.Tokens != nil {
		errs = append(errs, AddIndex(c.Tokens, byOwner, func(s *corev1.Secret) []string { return []string{string(machine.TokenOwner(s))} }))
	}
	return errors.Join(errs...)
}

// Informers returns the informers that are set.
func (c *Cache) Informers() []cache.SharedIndexInformer {
	all := []cache.SharedIndexInformer{c.Deployments, c.Sets, c.Machines, c.Classes, c.Secrets, c.Tokens, c.Nodes}
	return slices.DeleteFunc(all, func(i cache.SharedIndexInformer) bool { return i == nil })
}

// users returns the informers of the kinds that need classes.
func (c *Cache) users() []cache.SharedIndexInformer {
	return slices.DeleteFunc([]cache.SharedIndexInformer{c.Machines, c.Sets, c.Deployments}, func(i cache.SharedIndexInformer) bool { return i == nil })
}

// UsersOfClass returns the machines, sets and deployments that need a class.
func (c *Cache) UsersOfClass(_ context.Context, class types.NamespacedName) (users []metav1.Object, _ error) {
	for _, informer := range c.users() {
		users = append(users, ByIndex[metav1.Object](informer, byNeeded, class.String())...)
	}
	return users, nil
}

// idKeys returns the index key of a provider ID. It returns nil for an empty ID.
func idKeys(id string) []string {
	if id = nodeops.NormalizeProviderID(id); id != "" {
		return []string{id}
	}
	return nil
}

// OnChange calls f with each key that an event of one of the informers affects. It fails only for a
// stopped informer.
func OnChange(
	affected func(before, after metav1.Object) map[types.NamespacedName]time.Duration, f func(key types.NamespacedName, after time.Duration),
	informers ...cache.SharedIndexInformer,
) error {
	var errs []error
	for _, informer := range informers {
		if informer != nil {
			errs = append(errs, On(informer, func(before, after metav1.Object) {
				keys := affected(before, after)
				for _, key := range slices.SortedFunc(maps.Keys(keys), compareKeys) { // the same order each time
					f(key, keys[key])
				}
			}))
		}
	}
	return errors.Join(errs...)
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Deployment returns a deployment.
func (c *Cache) Deployment(_ context.Context, key types.NamespacedName) (*v1alpha1.MachineDeployment, error) {
	if c.Deployments == nil {
		return nil, nil
	}
	return ByKey[*v1alpha1.MachineDeployment](c.Deployments, key), nil
}

// DeploymentsIn returns the deployments of a namespace, or all for an empty namespace.
func (c *Cache) DeploymentsIn(_ context.Context, namespace string) ([]*v1alpha1.MachineDeployment, error) {
	return in[*v1alpha1.MachineDeployment](c.Deployments, namespace), nil
}

// Set returns a set.
func (c *Cache) Set(_ context.Context, key types.NamespacedName) (*v1alpha1.MachineSet, error) {
	if c.Sets == nil {
		return nil, nil
	}
	return ByKey[*v1alpha1.MachineSet](c.Sets, key), nil
}

// SetsIn returns the sets of a namespace, or all for an empty namespace.
func (c *Cache) SetsIn(_ context.Context, namespace string) ([]*v1alpha1.MachineSet, error) {
	return in[*v1alpha1.MachineSet](c.Sets, namespace), nil
}

// SetsOf returns the sets of a controller: see [Cache.MachinesOf].
func (c *Cache) SetsOf(_ context.Context, namespace string, controller types.UID) ([]*v1alpha1.MachineSet, error) {
	return ByIndex[*v1alpha1.MachineSet](c.Sets, byController, controllerKey(namespace, controller)), nil
}

// MachinesIn returns the machines of a namespace, or all for an empty namespace.
func (c *Cache) MachinesIn(_ context.Context, namespace string) ([]*v1alpha1.Machine, error) {
	return in[*v1alpha1.Machine](c.Machines, namespace), nil
}

// Machine returns a machine.
func (c *Cache) Machine(_ context.Context, key types.NamespacedName) (*v1alpha1.Machine, error) {
	return ByKey[*v1alpha1.Machine](c.Machines, key), nil
}

// MachinesOf returns the machines of a namespace with this controller, or without a controller if the UID
// is empty.
func (c *Cache) MachinesOf(_ context.Context, namespace string, controller types.UID) ([]*v1alpha1.Machine, error) {
	return ByIndex[*v1alpha1.Machine](c.Machines, byController, controllerKey(namespace, controller)), nil
}

// MachinesOfNode returns the machines whose label names a Node.
func (c *Cache) MachinesOfNode(_ context.Context, node string) ([]*v1alpha1.Machine, error) {
	return ByIndex[*v1alpha1.Machine](c.Machines, byNode, node), nil
}

// MachinesNamed returns the machines of all namespaces with a name.
func (c *Cache) MachinesNamed(_ context.Context, name string) ([]*v1alpha1.Machine, error) {
	return ByIndex[*v1alpha1.Machine](c.Machines, byName, name), nil
}

// MachinesWithID returns the machines with a normalized provider ID.
func (c *Cache) MachinesWithID(_ context.Context, providerID string) ([]*v1alpha1.Machine, error) {
	return ByIndex[*v1alpha1.Machine](c.Machines, byID, providerID), nil
}

// MachinesOfClass returns the machines that refer to a class.
func (c *Cache) MachinesOfClass(_ context.Context, class types.NamespacedName) ([]*v1alpha1.Machine, error) {
	return ByIndex[*v1alpha1.Machine](c.Machines, byClass, class.String()), nil
}

// MachinesOfGroup returns the machines whose own labels name a group.
func (c *Cache) MachinesOfGroup(_ context.Context, group string) ([]*v1alpha1.Machine, error) {
	return ByIndex[*v1alpha1.Machine](c.Machines, byGroup, group), nil
}

// MachinesWaiting returns the machines of a namespace that may wait for the limit of their group.
func (c *Cache) MachinesWaiting(_ context.Context, namespace string) ([]*v1alpha1.Machine, error) {
	return ByIndex[*v1alpha1.Machine](c.Machines, byWaiting, namespace), nil
}

// SetsOfGroup returns the sets of a group.
func (c *Cache) SetsOfGroup(_ context.Context, group string) ([]*v1alpha1.MachineSet, error) {
	if c.Sets == nil {
		return nil, nil
	}
	return ByIndex[*v1alpha1.MachineSet](c.Sets, byGroup, group), nil
}

// ClassesIn returns the classes of a namespace, or all for an empty namespace.
func (c *Cache) ClassesIn(_ context.Context, namespace string) ([]*v1alpha1.MachineClass, error) {
	return in[*v1alpha1.MachineClass](c.Classes, namespace), nil
}

// Class returns a class.
func (c *Cache) Class(_ context.Context, key types.NamespacedName) (*v1alpha1.MachineClass, error) {
	return ByKey[*v1alpha1.MachineClass](c.Classes, key), nil
}

// ClassesOfSecret returns the classes that refer to a Secret.
func (c *Cache) ClassesOfSecret(_ context.Context, secret types.NamespacedName) ([]*v1alpha1.MachineClass, error) {
	return ByIndex[*v1alpha1.MachineClass](c.Classes, bySecret, secret.String()), nil
}

// Secret returns a Secret of the control cluster.
func (c *Cache) Secret(_ context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	return ByKey[*corev1.Secret](c.Secrets, key), nil
}

// AllNodes returns all Nodes.
func (c *Cache) AllNodes(context.Context) ([]*corev1.Node, error) {
	if err := joined(c.Nodes); err != nil {
		return nil, err
	}
	return in[*corev1.Node](c.Nodes, ""), nil
}

// NodesWithID returns the Nodes with a normalized provider ID.
func (c *Cache) NodesWithID(_ context.Context, providerID string) ([]*corev1.Node, error) {
	if c.Nodes == nil {
		return nil, machine.ErrNoTarget
	}
	return ByIndex[*corev1.Node](c.Nodes, byID, providerID), nil
}

// TokensOf returns the bootstrap tokens of a machine.
func (c *Cache) TokensOf(_ context.Context, uid types.UID) ([]*corev1.Secret, error) {
	if err := joined(c.Tokens); err != nil {
		return nil, err
	}
	return ByIndex[*corev1.Secret](c.Tokens, byOwner, string(uid)), nil
}

// errNotListed means that the informer has no first list yet.
var errNotListed = errors.New("the objects of the target cluster were not listed yet")

// joined returns why an informer of the target cluster cannot be read, or nil.
func joined(informer cache.SharedIndexInformer) error {
	switch {
	case informer == nil:
		return machine.ErrNoTarget
	case !informer.HasSynced():
		return errNotListed
	default:
		return nil
	}
}

// Node returns a Node. The error is [machine.ErrNoTarget] without a target cluster.
func (c *Cache) Node(_ context.Context, name string) (*corev1.Node, error) {
	if err := joined(c.Nodes); err != nil {
		return nil, err
	}
	return ByKey[*corev1.Node](c.Nodes, types.NamespacedName{Name: name}), nil
}

func indexController[T metav1.Object](informer cache.SharedIndexInformer) error {
	return AddIndex(informer, byController, func(o T) []string {
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
			return []string{controllerKey(o.GetNamespace(), owner.UID)}
		}
		return []string{controllerKey(o.GetNamespace(), "")}
	})
}

func controllerKey(namespace string, controller types.UID) string {
	return namespace + "/" + string(controller)
}
