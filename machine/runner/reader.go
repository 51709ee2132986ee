// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// Reader reads the objects of a machine, and those of the drain of its Node. [Informers] is a Reader. The
// results are not changed and need not be copies. An object that does not exist is nil. The error of
// what is in the target cluster is [machine.ErrNoTarget] if the machines join no cluster.
type Reader interface { //nolint:interfacebloat // each method is a lookup that a decision needs
	drainrunner.Reader
	// Machine returns a machine.
	Machine(ctx context.Context, key types.NamespacedName) (*v1alpha1.Machine, error)
	// MachinesOf returns all machines of a namespace with this controller.
	MachinesOf(ctx context.Context, namespace string, controller types.UID) ([]*v1alpha1.Machine, error)
	// MachinesNamed returns the machines of all namespaces with a name.
	MachinesNamed(ctx context.Context, name string) ([]*v1alpha1.Machine, error)
	// MachinesWithID returns all machines with a provider ID, as [nodeops.NormalizeProviderID] returns it.
	MachinesWithID(ctx context.Context, providerID string) ([]*v1alpha1.Machine, error)
	// MachinesOfNode returns all machines whose label names a Node.
	MachinesOfNode(ctx context.Context, node string) ([]*v1alpha1.Machine, error)
	// MachinesOfClass returns all machines that refer to a class.
	MachinesOfClass(ctx context.Context, class types.NamespacedName) ([]*v1alpha1.Machine, error)
	// MachinesOfGroup returns all machines for which the text of [machine.GroupOf] without a set is
	// this one.
	MachinesOfGroup(ctx context.Context, group string) ([]*v1alpha1.Machine, error)
	// MachinesWaiting returns all machines of a namespace for which [machine.NeedsSiblings] returns true.
	MachinesWaiting(ctx context.Context, namespace string) ([]*v1alpha1.Machine, error)
	// Set returns a set.
	Set(ctx context.Context, key types.NamespacedName) (*v1alpha1.MachineSet, error)
	// SetsOfGroup returns all sets for which the text of [machine.GroupOf] is this one.
	SetsOfGroup(ctx context.Context, group string) ([]*v1alpha1.MachineSet, error)
	// Class returns a class.
	Class(ctx context.Context, key types.NamespacedName) (*v1alpha1.MachineClass, error)
	// UsersOfClass returns all machines, sets and deployments for which [machine.ClassNeeded] returns a class.
	UsersOfClass(ctx context.Context, class types.NamespacedName) ([]metav1.Object, error)
	// ClassesOfSecret returns all classes that refer to a Secret.
	ClassesOfSecret(ctx context.Context, secret types.NamespacedName) ([]*v1alpha1.MachineClass, error)
	// Secret returns a Secret of the control cluster.
	Secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error)
	// NodesWithID returns all Nodes with a provider ID, as [nodeops.NormalizeProviderID] returns it.
	NodesWithID(ctx context.Context, providerID string) ([]*corev1.Node, error)
	// TokensOf returns all Secrets whose [machine.TokenOwner] is a machine.
	TokensOf(ctx context.Context, machine types.UID) ([]*corev1.Secret, error)
}

// errNoReader is the error of [Observe] without a Reader.
var errNoReader = errors.New("machine/runner: no Reader")

// Observe reads what is known about a machine without its provider and without the memory of an
// [Executor]. It returns the zero Observation if the machine does not exist.
func Observe(ctx context.Context, r Reader, key types.NamespacedName) (machine.Observation, error) {
	if r == nil {
		return machine.Observation{}, errNoReader
	}
	m, err := r.Machine(ctx, key)
	if err != nil || m == nil {
		return machine.Observation{}, err
	}
	p := pass{Executor: &Executor{Reader: r}}
	p.observe(ctx, m)
	return p.in, nil
}

// observeClass returns what is known about the class of a machine.
func observeClass(ctx context.Context, r Reader, m *v1alpha1.Machine) machine.ClassView {
	class, err := r.Class(ctx, classKey(m))
	if err != nil || class == nil {
		return machine.ClassView{Looked: err == nil}
	}
	secret, err := runners.MergedSecret(ctx, r, class)
	return machine.ViewClass(class, secret, err)
}

// observeProviderID finds other machines with the same provider ID or name.
func observeProviderID(ctx context.Context, r Reader, m *v1alpha1.Machine) machine.ProviderIDView {
	others, err := r.MachinesNamed(ctx, m.Name)
	if err != nil {
		return machine.ProviderIDView{}
	}
	if id := nodeops.NormalizeProviderID(m.Spec.ProviderID); id != "" {
		same, err := r.MachinesWithID(ctx, id)
		if err != nil {
			return machine.ProviderIDView{}
		}
		others = append(slices.Clip(others), same...)
	}
	return machine.ProviderIDView{Compared: true, Others: others}
}

// nodeWithID returns the only Node with a provider ID. It returns nil if there are none or several.
func nodeWithID(ctx context.Context, r Reader, providerID string) *corev1.Node {
	id := nodeops.NormalizeProviderID(providerID)
	if id == "" {
		return nil
	}
	if nodes, err := r.NodesWithID(ctx, id); err == nil && len(nodes) == 1 {
		return nodes[0]
	}
	return nil
}

// classKey returns the key of the class of a machine.
func classKey(m *v1alpha1.Machine) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.Class.Name}
}

// Affected returns the machines that have to be decided again after a change, all at once. The objects
// are a Machine, a MachineClass, a Secret of the control cluster, a Node, or a bootstrap token before and
// after the change; the one that does not exist is nil. A drain has changes of its own: see
// [AffectedByDrain].
func Affected(ctx context.Context, r Reader, before, after metav1.Object) map[types.NamespacedName]time.Duration {
	affected := map[types.NamespacedName]time.Duration{}
	if r == nil {
		return affected
	}
	add := func(machines []*v1alpha1.Machine, err error) {
		for _, m := range machines {
			affected[runners.KeyOf(m)] = 0
		}
	}
	if machines := runners.Versions[*v1alpha1.Machine](before, after); len(machines) > 0 {
		if len(machines) < 2 || machine.Changed(machines[0], machines[1]) {
			add(machines, nil)
		}
		b, a := runners.Both[*v1alpha1.Machine](before, after)
		group, _ := machine.FreesReplacement(b, a)
		for _, m := range machines {
			if group {
				add(waitingWith(ctx, r, m), nil)
			}
			if id := nodeops.NormalizeProviderID(m.Spec.ProviderID); id != "" && (b == nil || a == nil || b.Spec.ProviderID != a.Spec.ProviderID) {
				add(r.MachinesWithID(ctx, id))
			}
		}
	}
	for _, class := range changed(runners.Versions[*v1alpha1.MachineClass](before, after)) {
		add(r.MachinesOfClass(ctx, runners.KeyOf(class)))
	}
	for _, node := range changed(runners.Versions[*corev1.Node](before, after)) {
		add(machinesOfNode(ctx, r, node))
	}
	secrets := runners.Versions[*corev1.Secret](before, after)
	for _, secret := range changed(secrets) {
		classes, _ := r.ClassesOfSecret(ctx, runners.KeyOf(secret))
		for _, class := range classes {
			add(r.MachinesOfClass(ctx, runners.KeyOf(class)))
		}
	}
	if a, ok := after.(*corev1.Secret); ok && a != nil { // a token that the Reader shows late may have to be deleted
		if key, err := cache.ParseObjectName(a.Annotations[v1alpha1.TokenMachineAnnotation]); err == nil && key.Name != "" {
			affected[types.NamespacedName(key)] = 0
		}
	}
	return affected
}

// AffectedByDrain returns the machines whose Node is being drained, after a change that
// drain/runner's Informers report for the Node.
func AffectedByDrain(ctx context.Context, r Reader, node string) []types.NamespacedName {
	if r == nil {
		return nil
	}
	n, err := r.Node(ctx, node)
	if err != nil || n == nil {
		n = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	}
	machines, _ := machinesOfNode(ctx, r, n)
	var keys []types.NamespacedName
	for _, m := range machines {
		if machine.Drains(m, n) {
			keys = append(keys, runners.KeyOf(m))
		}
	}
	return keys
}

// machinesOfNode returns the machines that a change of a Node concerns: those whose label names the Node,
// and those with its provider ID.
func machinesOfNode(ctx context.Context, r Reader, n *corev1.Node) ([]*v1alpha1.Machine, error) {
	machines, err := r.MachinesOfNode(ctx, n.Name)
	if err != nil {
		return nil, err
	}
	id := nodeops.NormalizeProviderID(n.Spec.ProviderID)
	if id == "" {
		return machines, nil
	}
	same, err := r.MachinesWithID(ctx, id)
	return append(slices.Clip(machines), same...), err
}

// changed returns the versions of an object, and none if nothing has changed on which machines depend.
func changed[P interface {
	runners.Object
	*T
}, T v1alpha1.MachineClass | corev1.Node | corev1.Secret](versions []P,
) []P {
	if len(versions) == 2 && !machine.Changed[T](versions[0], versions[1]) {
		return nil
	}
	return versions
}
