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

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// Reader reads the objects of a set. [Informers] is a Reader. The results are not changed and need not be
// copies. An object that does not exist is nil.
type Reader interface {
	// Set returns a set.
	Set(ctx context.Context, key types.NamespacedName) (*v1alpha1.MachineSet, error)
	// SetsIn returns all sets of a namespace.
	SetsIn(ctx context.Context, namespace string) ([]*v1alpha1.MachineSet, error)
	// Machine returns a machine of any set.
	Machine(ctx context.Context, key types.NamespacedName) (*v1alpha1.Machine, error)
	// MachinesOf returns all machines of a namespace with this controller, or without a controller if
	// the UID is empty.
	MachinesOf(ctx context.Context, namespace string, controller types.UID) ([]*v1alpha1.Machine, error)
	// Node returns a Node. The error is [machine.ErrNoTarget] if the machines join no cluster.
	Node(ctx context.Context, name string) (*corev1.Node, error)
}

// errNoReader is the error of [Observe] without a Reader.
var errNoReader = errors.New("machineset/runner: no Reader")

// Observe reads a set, its machines, and the Nodes of Failed machines. It returns the zero Observation if
// the set does not exist.
//
// For a report or a dry run, set Proven of the result, which [Executor] learns from the API server.
func Observe(ctx context.Context, r Reader, key types.NamespacedName) (machineset.Observation, error) {
	if r == nil {
		return machineset.Observation{}, errNoReader
	}
	set, err := r.Set(ctx, key)
	if err != nil || set == nil {
		return machineset.Observation{}, err
	}
	in, _, err := observe(ctx, r, set)
	return in, err
}

// observe reads the machines of a set, and the Nodes of Failed machines.
func observe(ctx context.Context, r Reader, set *v1alpha1.MachineSet) (machineset.Observation, machineset.Claims[*v1alpha1.Machine], error) {
	none := machineset.Claims[*v1alpha1.Machine]{}
	owned, err := r.MachinesOf(ctx, set.Namespace, set.UID)
	if err != nil {
		return machineset.Observation{}, none, err
	}
	free, err := r.MachinesOf(ctx, set.Namespace, "")
	if err != nil {
		return machineset.Observation{}, none, err
	}
	free = slices.DeleteFunc(slices.Clone(free), func(m *v1alpha1.Machine) bool { return !facts.SameShard(m, set) })
	claims := machineset.Claim(machineset.OwnerSet(set), machineset.ClaimSelector(set), slices.Concat(owned, free))
	in := machineset.Observation{Set: set, Machines: claims.Owned, Complete: claims.Settled(), Released: claims.Released, Nodes: map[string]machine.NodeView{}}
	for _, m := range in.Machines {
		if name := m.Labels[v1alpha1.NodeLabelKey]; name != "" && members.Failed(m) {
			in.Nodes[name] = runners.View(ctx, r, name)
		}
	}
	return in, claims, nil
}

// Affected returns the sets that have to be decided again after a change, each with the time for which
// changes are collected. The objects are a MachineSet or a Machine before and after the change; the one
// that does not exist is nil.
//
// A pass counts all machines of a set. The time keeps the share of the time that passes take constant.
func Affected(ctx context.Context, r Reader, before, after metav1.Object) map[types.NamespacedName]time.Duration {
	affected := map[types.NamespacedName]time.Duration{}
	if r == nil {
		return affected
	}
	machines := runners.Versions[*v1alpha1.Machine](before, after)
	if len(machines) == 2 && !machine.Changed(machines[0], machines[1]) {
		return affected
	}
	for _, m := range machines {
		for _, set := range owners(ctx, r, m) {
			affected[runners.KeyOf(set)] = members.CollectFor(set.Spec.Replicas, set.Status.Replicas)
		}
	}
	sets := runners.Versions[*v1alpha1.MachineSet](before, after)
	for _, set := range sets {
		affected[runners.KeyOf(set)] = 0
		if len(sets) == 2 && members.OnlyStatus(sets[0], sets[1]) {
			affected[runners.KeyOf(set)] = members.CollectFor(set.Spec.Replicas, set.Status.Replicas)
		}
	}
	return affected
}

// owners returns the controller of a machine, or all sets of the namespace of a machine without a
// controller, which may adopt it.
func owners(ctx context.Context, r Reader, m *v1alpha1.Machine) []*v1alpha1.MachineSet {
	owner := metav1.GetControllerOfNoCopy(m)
	if owner == nil {
		sets, _ := r.SetsIn(ctx, m.Namespace)
		return sets
	}
	set, err := r.Set(ctx, types.NamespacedName{Namespace: m.Namespace, Name: owner.Name})
	if err != nil || set == nil {
		return nil
	}
	return []*v1alpha1.MachineSet{set}
}
