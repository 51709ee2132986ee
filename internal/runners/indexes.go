// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/caches"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// The names of the indexes.
const (
	// ByController has the keys of [ControllerKey].
	ByController = "machinist.dev/controller"
	// ByNode has the name of the Node that the label of a machine names.
	ByNode = "machinist.dev/node"
	// ByName has names without namespaces.
	ByName = "machinist.dev/name"
	// ByID has provider IDs, as [nodeops.NormalizeProviderID] returns them.
	ByID = "machinist.dev/provider-id"
	// ByClass has the namespace/name of the class of a machine.
	ByClass = "machinist.dev/class"
	// ByGroup has the text of [facts.GroupOf] of a machine without its set, or of a set.
	ByGroup = "machinist.dev/group"
	// ByWaiting has the namespace of a machine for which [machine.NeedsSiblings] returns true.
	ByWaiting = "machinist.dev/waiting"
	// ByNeeded has the namespace/name of [facts.ClassNeeded].
	ByNeeded = "machinist.dev/class-needed"
	// BySecret has the namespace/name of each Secret of a class.
	BySecret = "machinist.dev/secret" //nolint:gosec // the name of an index
	// ByOwner has the [facts.TokenOwner] of a bootstrap token.
	ByOwner = "machinist.dev/token-owner"
)

// Indexes returns the indexes of the machine objects, of Nodes and of bootstrap tokens.
func Indexes() []machinist.Index {
	return []machinist.Index{
		index(ByController, controllerOf[*v1alpha1.Machine]),
		index(ByController, controllerOf[*v1alpha1.MachineSet]),
		index(ByNode, func(m *v1alpha1.Machine) []string { return some(m.Labels[v1alpha1.NodeLabelKey]) }),
		index(ByName, func(m *v1alpha1.Machine) []string { return []string{m.Name} }),
		index(ByID, func(m *v1alpha1.Machine) []string { return some(nodeops.NormalizeProviderID(m.Spec.ProviderID)) }),
		index(ByClass, func(m *v1alpha1.Machine) []string { return []string{m.Namespace + "/" + m.Spec.Class.Name} }),
		index(ByGroup, func(m *v1alpha1.Machine) []string { return []string{facts.GroupOf(m, nil).String()} }),
		index(ByGroup, func(s *v1alpha1.MachineSet) []string { return []string{facts.GroupOf(nil, s).String()} }),
		index(ByWaiting, func(m *v1alpha1.Machine) []string {
			if machine.NeedsSiblings(m) {
				return []string{m.Namespace}
			}
			return nil
		}),
		index(ByNeeded, needed[*v1alpha1.Machine]),
		index(ByNeeded, needed[*v1alpha1.MachineSet]),
		index(ByNeeded, needed[*v1alpha1.MachineDeployment]),
		index(BySecret, func(class *v1alpha1.MachineClass) []string { return texts(SecretKeys(class)) }),
		inTarget(index(ByID, func(n *corev1.Node) []string { return some(nodeops.NormalizeProviderID(n.Spec.ProviderID)) })),
		inTarget(index(ByOwner, func(s *corev1.Secret) []string { return some(string(facts.TokenOwner(s))) })),
	}
}

// index returns an index of the objects of a type.
func index[P objects.Pointer[T], T any](name string, keys func(o P) []string) machinist.Index {
	return machinist.Index{Name: name, Of: P(new(T)), Keys: func(o machinist.Object) []string {
		if p, ok := o.(P); ok {
			return keys(p)
		}
		return nil
	}}
}

func inTarget(i machinist.Index) machinist.Index {
	i.Target = true
	return i
}

// some returns the key, and none if it is empty.
func some(key string) []string {
	if key == "" {
		return nil
	}
	return []string{key}
}

func texts(keys []types.NamespacedName) (all []string) {
	for _, key := range keys {
		all = append(all, key.String())
	}
	return all
}

func needed[O metav1.Object](o O) []string { return texts(ClassNeeded(o)) }

func controllerOf[O metav1.Object](o O) []string {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return []string{ControllerKey(o.GetNamespace(), owner.UID)}
	}
	return []string{ControllerKey(o.GetNamespace(), "")}
}

// ControllerKey returns the key of the objects of a namespace with a controller, or without one if the UID
// is empty.
func ControllerKey(namespace string, controller types.UID) string {
	return namespace + "/" + string(controller)
}

// NewInformers returns the informers of some types of machine objects, and of Nodes. With noSets, there are
// no sets and deployments. A nil target means that there is no target cluster. It fails only for a stopped
// informer.
func NewInformers(machines externalversions.SharedInformerFactory, noSets bool, target informers.SharedInformerFactory, of ...machinist.Object) (*caches.Informers, error) {
	c, api, all := &caches.Informers{}, machines.Machine().V1alpha1(), Indexes()
	var errs []error
	for _, o := range of {
		var informer cache.SharedIndexInformer
		switch o.(type) {
		case *v1alpha1.Machine:
			informer = api.Machines().Informer()
		case *v1alpha1.MachineClass:
			informer = api.MachineClasses().Informer()
		case *v1alpha1.MachineSet:
			if !noSets {
				informer = api.MachineSets().Informer()
			}
		case *v1alpha1.MachineDeployment:
			if !noSets {
				informer = api.MachineDeployments().Informer()
			}
		}
		errs = append(errs, c.Control(o, informer, all))
	}
	var nodes cache.SharedIndexInformer
	if target != nil {
		nodes = target.Core().V1().Nodes().Informer()
	}
	return c, errors.Join(append(errs, c.Target(&corev1.Node{}, nodes, machine.ErrNoTarget, all))...)
}
