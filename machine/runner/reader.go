// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// Indexes returns the indexes that a [machinist.Reader] of all runners needs: of the machine objects, and,
// of the target cluster, of Nodes, bootstrap tokens and what a drain reads. Bootstrap tokens are the Secrets
// of the namespace kube-system with the label [v1alpha1.TokenOwnerLabel]. All other Secrets are those of the
// control cluster. A drain goes on without objects that are not cached, except pods.
func Indexes() []machinist.Index { return slices.Concat(runners.Indexes(), drainrunner.Indexes()) }

// errNoReader is the error of [Observe] without a Reader.
var errNoReader = errors.New("machine/runner: no Reader")

// Observe reads what is known about a machine without its provider and without the memory of an
// [Executor]. It returns the zero Observation if the machine does not exist.
func Observe(ctx context.Context, r machinist.Reader, key types.NamespacedName) (machine.Observation, error) {
	if r == nil {
		return machine.Observation{}, errNoReader
	}
	m, err := objects.Get[*v1alpha1.Machine](ctx, r, key.Namespace, key.Name)
	if err != nil || m == nil {
		return machine.Observation{}, err
	}
	p := pass{Executor: &Executor{Reader: r}}
	p.observe(ctx, m)
	return p.in, nil
}

// observeClass returns what is known about the class of a machine.
func observeClass(ctx context.Context, r machinist.Reader, m *v1alpha1.Machine) machine.ClassView {
	class, err := objects.Get[*v1alpha1.MachineClass](ctx, r, m.Namespace, m.Spec.Class.Name)
	if err != nil || class == nil {
		return machine.ClassView{Looked: err == nil}
	}
	secret, err := runners.MergedSecret(ctx, r, class)
	return machine.ViewClass(class, secret, err)
}

// observeProviderID finds other machines with the same provider ID or name.
func observeProviderID(ctx context.Context, r machinist.Reader, m *v1alpha1.Machine) machine.ProviderIDView {
	others, err := machinesBy(ctx, r, runners.ByName, m.Name)
	if err != nil {
		return machine.ProviderIDView{}
	}
	if id := nodeops.NormalizeProviderID(m.Spec.ProviderID); id != "" {
		same, err := machinesBy(ctx, r, runners.ByID, id)
		if err != nil {
			return machine.ProviderIDView{}
		}
		others = append(others, same...)
	}
	return machine.ProviderIDView{Compared: true, Others: others}
}

// nodeWithID returns the only Node with a provider ID. It returns nil if there are none or several.
func nodeWithID(ctx context.Context, r machinist.Reader, providerID string) *corev1.Node {
	id := nodeops.NormalizeProviderID(providerID)
	if id == "" {
		return nil
	}
	if nodes, err := objects.List[*corev1.Node](ctx, r, runners.ByID, id); err == nil && len(nodes) == 1 {
		return nodes[0]
	}
	return nil
}

// classKey returns the key of the class of a machine.
func classKey(m *v1alpha1.Machine) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.Class.Name}
}

// Affected returns the machines that have to be decided again after a change, all at once. The objects
// are a Machine, a MachineClass, a Secret, a Node, a MachineSet, a MachineDeployment, or what a drain reads
// before and after the change; the one that does not exist is nil. See also [drainrunner.Affected].
func Affected(ctx context.Context, r machinist.Reader, before, after metav1.Object) map[types.NamespacedName]time.Duration {
	affected := map[types.NamespacedName]time.Duration{}
	if r == nil {
		return affected
	}
	add := func(machines []*v1alpha1.Machine, err error) {
		for _, m := range machines {
			affected[objects.KeyOf(m)] = 0
		}
	}
	if machines := objects.Versions[*v1alpha1.Machine](before, after); len(machines) > 0 {
		if len(machines) < 2 || facts.Changed(machines[0], machines[1]) {
			add(machines, nil)
		}
		b, a := objects.Both[*v1alpha1.Machine](before, after)
		group, _ := facts.FreesReplacement(b, a)
		for _, m := range machines {
			if group {
				add(waitingWith(ctx, r, m), nil)
			}
			if id := nodeops.NormalizeProviderID(m.Spec.ProviderID); id != "" && (b == nil || a == nil || b.Spec.ProviderID != a.Spec.ProviderID) {
				add(machinesBy(ctx, r, runners.ByID, id))
			}
		}
	}
	for _, class := range changed(objects.Versions[*v1alpha1.MachineClass](before, after)) {
		add(machinesBy(ctx, r, runners.ByClass, objects.KeyOf(class).String()))
	}
	for _, node := range changed(objects.Versions[*corev1.Node](before, after)) {
		add(machinesOfNode(ctx, r, node))
	}
	for _, secret := range changed(objects.Versions[*corev1.Secret](before, after)) {
		classes, _ := objects.List[*v1alpha1.MachineClass](ctx, r, runners.BySecret, objects.KeyOf(secret).String())
		for _, class := range classes {
			add(machinesBy(ctx, r, runners.ByClass, objects.KeyOf(class).String()))
		}
	}
	if a, ok := after.(*corev1.Secret); ok && a != nil { // a token that the Reader shows late may have to be deleted
		if key, err := cache.ParseObjectName(a.Annotations[v1alpha1.TokenMachineAnnotation]); err == nil && key.Name != "" {
			affected[types.NamespacedName(key)] = 0
		}
	}
	if namespace := cmp.Or(permitted[*v1alpha1.MachineSet](before, after), permitted[*v1alpha1.MachineDeployment](before, after)); namespace != "" {
		add(machinesBy(ctx, r, runners.ByWaiting, namespace))
	}
	for _, node := range drainrunner.Affected(ctx, r, before, after) {
		add(drained(ctx, r, node), nil)
	}
	return affected
}

// permitted returns the namespace of a set or deployment for which a user has permitted the replacement of
// machines that a guard holds, or "".
func permitted[T objects.Object](before, after metav1.Object) string {
	var none T
	b, a := objects.Both[T](before, after)
	if a == none || a.GetAnnotations()[v1alpha1.ReplaceUntilAnnotation] == "" {
		return ""
	}
	if b != none && b.GetAnnotations()[v1alpha1.ReplaceUntilAnnotation] == a.GetAnnotations()[v1alpha1.ReplaceUntilAnnotation] {
		return ""
	}
	return a.GetNamespace()
}

// drained returns the machines whose Node is being drained.
func drained(ctx context.Context, r machinist.Reader, node string) (all []*v1alpha1.Machine) {
	n, err := objects.Get[*corev1.Node](ctx, r, "", node)
	if err != nil || n == nil {
		n = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	}
	machines, _ := machinesOfNode(ctx, r, n)
	return slices.DeleteFunc(machines, func(m *v1alpha1.Machine) bool { return !facts.Drains(m, n) })
}

func machinesBy(ctx context.Context, r machinist.Reader, index, key string) ([]*v1alpha1.Machine, error) {
	return objects.List[*v1alpha1.Machine](ctx, r, index, key)
}

// machinesOfNode returns the machines that a change of a Node concerns: those whose label names the Node,
// and those with its provider ID.
func machinesOfNode(ctx context.Context, r machinist.Reader, n *corev1.Node) ([]*v1alpha1.Machine, error) {
	machines, err := machinesBy(ctx, r, runners.ByNode, n.Name)
	if err != nil {
		return nil, err
	}
	id := nodeops.NormalizeProviderID(n.Spec.ProviderID)
	if id == "" {
		return machines, nil
	}
	same, err := machinesBy(ctx, r, runners.ByID, id)
	return append(machines, same...), err
}

// changed returns the versions of an object, and none if nothing has changed on which machines depend.
func changed[P interface {
	objects.Object
	*T
}, T v1alpha1.MachineClass | corev1.Node | corev1.Secret](versions []P,
) []P {
	if len(versions) == 2 && !facts.Changed[T](versions[0], versions[1]) {
		return nil
	}
	return versions
}
