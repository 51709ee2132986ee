// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// View returns what a reader knows of a Node.
func View(ctx context.Context, r machinist.Reader, name string) machine.NodeView {
	node, err := objects.Get[*corev1.Node](ctx, r, "", name)
	if errors.Is(err, machine.ErrNoTarget) {
		return machine.NodeView{NoTarget: true}
	}
	return machine.NodeView{Looked: err == nil, Name: name, Node: node}
}

// Named reads an object of a kind that expectations have. It returns a nil pointer if there is none.
func Named(ctx context.Context, r objects.Getter, namespace, kind, name string) (metav1.Object, error) {
	switch kind {
	case v1alpha1.MachineKind:
		return objects.Get[*v1alpha1.Machine](ctx, r, namespace, name)
	case v1alpha1.MachineSetKind:
		return objects.Get[*v1alpha1.MachineSet](ctx, r, namespace, name)
	case facts.NodeKind:
		return objects.Get[*corev1.Node](ctx, r, "", name)
	default:
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
}

// Shown returns the expectations that the Reader does not show yet, of objects of a namespace and of Nodes.
func Shown(ctx context.Context, r machinist.Reader, namespace string, e machine.Expectations) machine.Expectations {
	failed := false
	find := func(kind, name string) metav1.Object {
		o, err := Named(ctx, r, namespace, kind, name)
		failed = failed || err != nil
		return o
	}
	if next := e.Observe(find, true); !failed {
		return next
	}
	return e.Observe(find, false)
}

// GroupOf returns the group of a machine.
func GroupOf(ctx context.Context, r machinist.Reader, m *v1alpha1.Machine) facts.Group {
	set, _ := Owner[*v1alpha1.MachineSet](ctx, r, m)
	return facts.GroupOf(m, set)
}

// Owner reads the controller of an object, which is of the given type. It returns nil without a controller,
// and if it does not exist.
func Owner[P objects.Pointer[T], T any](ctx context.Context, r machinist.Reader, o metav1.Object) (P, error) {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil {
		return nil, nil
	}
	return objects.Get[P](ctx, r, o.GetNamespace(), owner.Name)
}

// Owners returns the controller of an object, or all objects of its namespace that may adopt it if it has
// none.
func Owners[P objects.Pointer[T], T any](ctx context.Context, r machinist.Reader, o metav1.Object) []P {
	if metav1.GetControllerOfNoCopy(o) == nil {
		all, _ := objects.In[P](ctx, r, o.GetNamespace())
		return all
	}
	if owner, err := Owner[P](ctx, r, o); err == nil && owner != nil {
		return []P{owner}
	}
	return nil
}

// MergedSecret returns the merged data of the Secrets of a class, and their resource versions. With an
// error, it returns the data of those Secrets that it could read.
func MergedSecret(ctx context.Context, r machinist.Reader, class *v1alpha1.MachineClass) (*corev1.Secret, error) {
	merged := &corev1.Secret{Data: map[string][]byte{}}
	var missing []error
	for _, ref := range machine.SecretRefs(class) { // the user data comes first, and the credentials override it
		secret, err := objects.Get[*corev1.Secret](ctx, r, ref.Namespace, ref.Name)
		if err == nil && secret == nil {
			err = apierrors.NewNotFound(corev1.Resource("secret"), ref.Name)
		}
		if err != nil {
			missing = append(missing, fmt.Errorf("secret %s/%s of class %s: %w", ref.Namespace, ref.Name, class.Name, err))
			continue
		}
		for key, value := range secret.Data {
			merged.Data[key] = bytes.Clone(value)
		}
		merged.ResourceVersion += "/" + secret.ResourceVersion
	}
	return merged, errors.Join(missing...)
}

// SecretKeys returns the keys of the Secrets that a class refers to.
func SecretKeys(class *v1alpha1.MachineClass) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, ref := range machine.SecretRefs(class) {
		keys = append(keys, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	}
	return keys
}

// ClassNeeded returns the key of the class that a machine, set or deployment needs. It is empty without
// an object.
func ClassNeeded(o metav1.Object) []types.NamespacedName {
	if name, needed := facts.ClassNeeded(o); needed {
		return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: name}}
	}
	return nil
}
