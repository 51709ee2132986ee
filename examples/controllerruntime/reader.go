// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// reader is the Reader of all runners: a read is a lookup in an index of a cache. The objects are shared
// with the caches and must not be changed.
type reader struct {
	*drainrunner.Informers
	control, target client.Reader // the caches
}

// The names of the indexes.
const (
	byController = "controller"
	byNode       = "node"
	byName       = "name"
	byID         = "provider-id"
	byClass      = "class"
	byGroup      = "group"
	byWaiting    = "waiting"
	byNeeded     = "class-needed"
	bySecret     = "secret"
	byOwner      = "token-owner"
)

// indexControl adds the indexes of the cache of the machine objects.
func indexControl(ctx context.Context, in client.FieldIndexer) error {
	m, set := &v1alpha1.Machine{}, &v1alpha1.MachineSet{}
	return errors.Join(
		index(ctx, in, m, byController, controllerOf),
		index(ctx, in, m, byNode, func(m *v1alpha1.Machine) []string { return []string{m.Labels[v1alpha1.NodeLabelKey]} }),
		index(ctx, in, m, byName, func(m *v1alpha1.Machine) []string { return []string{m.Name} }),
		index(ctx, in, m, byID, func(m *v1alpha1.Machine) []string { return []string{nodeops.NormalizeProviderID(m.Spec.ProviderID)} }),
		index(ctx, in, m, byClass, func(m *v1alpha1.Machine) []string { return []string{m.Spec.Class.Name} }),
		index(ctx, in, m, byGroup, func(m *v1alpha1.Machine) []string { return []string{machine.GroupOf(m, nil).String()} }),
		index(ctx, in, m, byWaiting, func(m *v1alpha1.Machine) []string {
			if machine.NeedsSiblings(m) {
				return []string{""}
			}
			return nil
		}),
		index(ctx, in, m, byNeeded, classNeeded),
		index(ctx, in, set, byNeeded, classNeeded),
		index(ctx, in, &v1alpha1.MachineDeployment{}, byNeeded, classNeeded),
		index(ctx, in, set, byController, controllerOf),
		index(ctx, in, set, byGroup, func(s *v1alpha1.MachineSet) []string { return []string{machine.GroupOf(nil, s).String()} }),
		index(ctx, in, &v1alpha1.MachineClass{}, bySecret, func(class *v1alpha1.MachineClass) (keys []string) {
			for _, ref := range machine.SecretRefs(class) {
				keys = append(keys, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}.String())
			}
			return keys
		}),
	)
}

// indexTarget adds the indexes of the cache of the cluster that the machines join.
func indexTarget(ctx context.Context, in client.FieldIndexer) error {
	return errors.Join(
		index(ctx, in, &corev1.Node{}, byID, func(n *corev1.Node) []string { return []string{nodeops.NormalizeProviderID(n.Spec.ProviderID)} }),
		index(ctx, in, &corev1.Secret{}, byOwner, func(s *corev1.Secret) []string { return []string{string(machine.TokenOwner(s))} }),
	)
}

// index adds an index by keys to a cache.
func index[T client.Object](ctx context.Context, in client.FieldIndexer, kind T, name string, keys func(T) []string) error {
	return in.IndexField(ctx, kind, name, func(o client.Object) []string { return keys(o.(T)) }) //nolint:forcetypeassert // the cache has this kind
}

// controllerOf returns the UID of the controller of an object, which may be empty.
func controllerOf[T client.Object](o T) []string {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return []string{string(owner.UID)}
	}
	return []string{""}
}

func classNeeded[T client.Object](o T) []string {
	if name, needed := machine.ClassNeeded(o); needed {
		return []string{name}
	}
	return nil
}

// get returns an object of a cache, or nil if there is none.
func get[T client.Object](ctx context.Context, from client.Reader, key types.NamespacedName, into T) (none T, _ error) {
	if err := from.Get(ctx, key, into, client.UnsafeDisableDeepCopy); err != nil {
		return none, client.IgnoreNotFound(err)
	}
	return into, nil
}

// list returns the objects of a list.
func list[T any](ctx context.Context, from client.Reader, into client.ObjectList, which *client.ListOptions) ([]T, error) {
	if err := from.List(ctx, into, which); err != nil {
		return nil, err
	}
	var all []T
	err := meta.EachListItem(into, func(o runtime.Object) error {
		all = append(all, o.(T)) //nolint:forcetypeassert // the caller names the kind of the list
		return nil
	})
	return all, err
}

// where selects the objects of a namespace, or of all, with a key of an index. Without an index it selects all.
func where(namespace, index, key string) *client.ListOptions {
	which := &client.ListOptions{Namespace: namespace, UnsafeDisableDeepCopy: new(true)}
	if index != "" {
		which.FieldSelector = fields.OneTermEqualSelector(index, key)
	}
	return which
}

func (r *reader) machines(ctx context.Context, which *client.ListOptions) ([]*v1alpha1.Machine, error) {
	return list[*v1alpha1.Machine](ctx, r.control, &v1alpha1.MachineList{}, which)
}

func (r *reader) sets(ctx context.Context, which *client.ListOptions) ([]*v1alpha1.MachineSet, error) {
	return list[*v1alpha1.MachineSet](ctx, r.control, &v1alpha1.MachineSetList{}, which)
}

func (r *reader) Deployment(ctx context.Context, key types.NamespacedName) (*v1alpha1.MachineDeployment, error) {
	return get(ctx, r.control, key, &v1alpha1.MachineDeployment{})
}

func (r *reader) DeploymentsIn(ctx context.Context, namespace string) ([]*v1alpha1.MachineDeployment, error) {
	return list[*v1alpha1.MachineDeployment](ctx, r.control, &v1alpha1.MachineDeploymentList{}, where(namespace, "", ""))
}

func (r *reader) Set(ctx context.Context, key types.NamespacedName) (*v1alpha1.MachineSet, error) {
	return get(ctx, r.control, key, &v1alpha1.MachineSet{})
}

func (r *reader) MachinesIn(ctx context.Context, namespace string) ([]*v1alpha1.Machine, error) {
	return r.machines(ctx, where(namespace, "", ""))
}

func (r *reader) SetsIn(ctx context.Context, namespace string) ([]*v1alpha1.MachineSet, error) {
	return r.sets(ctx, where(namespace, "", ""))
}

func (r *reader) SetsOf(ctx context.Context, namespace string, controller types.UID) ([]*v1alpha1.MachineSet, error) {
	return r.sets(ctx, where(namespace, byController, string(controller)))
}

func (r *reader) SetsOfGroup(ctx context.Context, group string) ([]*v1alpha1.MachineSet, error) {
	return r.sets(ctx, where("", byGroup, group))
}

func (r *reader) Machine(ctx context.Context, key types.NamespacedName) (*v1alpha1.Machine, error) {
	return get(ctx, r.control, key, &v1alpha1.Machine{})
}

func (r *reader) MachinesOf(ctx context.Context, namespace string, controller types.UID) ([]*v1alpha1.Machine, error) {
	return r.machines(ctx, where(namespace, byController, string(controller)))
}

func (r *reader) MachinesOfNode(ctx context.Context, node string) ([]*v1alpha1.Machine, error) {
	return r.machines(ctx, where("", byNode, node))
}

func (r *reader) MachinesNamed(ctx context.Context, name string) ([]*v1alpha1.Machine, error) {
	return r.machines(ctx, where("", byName, name))
}

func (r *reader) MachinesWithID(ctx context.Context, providerID string) ([]*v1alpha1.Machine, error) {
	return r.machines(ctx, where("", byID, providerID))
}

func (r *reader) MachinesOfClass(ctx context.Context, class types.NamespacedName) ([]*v1alpha1.Machine, error) {
	return r.machines(ctx, where(class.Namespace, byClass, class.Name))
}

func (r *reader) MachinesOfGroup(ctx context.Context, group string) ([]*v1alpha1.Machine, error) {
	return r.machines(ctx, where("", byGroup, group))
}

func (r *reader) MachinesWaiting(ctx context.Context, namespace string) ([]*v1alpha1.Machine, error) {
	return r.machines(ctx, where(namespace, byWaiting, ""))
}

func (r *reader) Class(ctx context.Context, key types.NamespacedName) (*v1alpha1.MachineClass, error) {
	return get(ctx, r.control, key, &v1alpha1.MachineClass{})
}

func (r *reader) ClassesIn(ctx context.Context, namespace string) ([]*v1alpha1.MachineClass, error) {
	return list[*v1alpha1.MachineClass](ctx, r.control, &v1alpha1.MachineClassList{}, where(namespace, "", ""))
}

func (r *reader) ClassesOfSecret(ctx context.Context, secret types.NamespacedName) ([]*v1alpha1.MachineClass, error) {
	return list[*v1alpha1.MachineClass](ctx, r.control, &v1alpha1.MachineClassList{}, where("", bySecret, secret.String()))
}

func (r *reader) UsersOfClass(ctx context.Context, class types.NamespacedName) (users []metav1.Object, _ error) {
	for _, kind := range []client.ObjectList{&v1alpha1.MachineList{}, &v1alpha1.MachineSetList{}, &v1alpha1.MachineDeploymentList{}} {
		some, err := list[metav1.Object](ctx, r.control, kind, where(class.Namespace, byNeeded, class.Name))
		if err != nil {
			return nil, err
		}
		users = append(users, some...)
	}
	return users, nil
}

func (r *reader) Secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	return get(ctx, r.control, key, &corev1.Secret{})
}

func (r *reader) Node(ctx context.Context, name string) (*corev1.Node, error) {
	return get(ctx, r.target, types.NamespacedName{Name: name}, &corev1.Node{})
}

func (r *reader) AllNodes(ctx context.Context) ([]*corev1.Node, error) {
	return list[*corev1.Node](ctx, r.target, &corev1.NodeList{}, where("", "", ""))
}

func (r *reader) NodesWithID(ctx context.Context, providerID string) ([]*corev1.Node, error) {
	return list[*corev1.Node](ctx, r.target, &corev1.NodeList{}, where("", byID, providerID))
}

func (r *reader) TokensOf(ctx context.Context, uid types.UID) ([]*corev1.Secret, error) {
	return list[*corev1.Secret](ctx, r.target, &corev1.SecretList{}, where("", byOwner, string(uid)))
}
