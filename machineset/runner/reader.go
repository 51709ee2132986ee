// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// errNoReader is the error of [Observe] without a Reader.
var errNoReader = errors.New("machineset/runner: no Reader")

// Observe reads a set, its machines, and the Nodes of Failed machines. It returns the zero Observation if
// the set does not exist.
//
// For a report or a dry run, set Proven of the result, which [Executor] learns from the API server.
func Observe(ctx context.Context, r machinist.Reader, key types.NamespacedName) (machineset.Observation, error) {
	if r == nil {
		return machineset.Observation{}, errNoReader
	}
	set, err := objects.Get[*v1alpha1.MachineSet](ctx, r, key.Namespace, key.Name)
	if err != nil || set == nil {
		return machineset.Observation{}, err
	}
	in, _, err := observe(ctx, r, set)
	return in, err
}

// observe reads the machines of a set, and the Nodes of Failed machines.
func observe(ctx context.Context, r machinist.Reader, set *v1alpha1.MachineSet) (machineset.Observation, machineset.Claims[*v1alpha1.Machine], error) {
	none := machineset.Claims[*v1alpha1.Machine]{}
	owned, err := objects.List[*v1alpha1.Machine](ctx, r, runners.ByController, runners.ControllerKey(set.Namespace, set.UID))
	if err != nil {
		return machineset.Observation{}, none, err
	}
	free, err := objects.List[*v1alpha1.Machine](ctx, r, runners.ByController, runners.ControllerKey(set.Namespace, ""))
	if err != nil {
		return machineset.Observation{}, none, err
	}
	free = slices.DeleteFunc(free, func(m *v1alpha1.Machine) bool { return !facts.SameShard(m, set) })
	claims := machineset.Claim(set, slices.Concat(owned, free))
	claims.Owned = members.Distinct(claims.Owned) // sorted once for the decision and the status
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
func Affected(ctx context.Context, r machinist.Reader, before, after metav1.Object) map[types.NamespacedName]time.Duration {
	affected := map[types.NamespacedName]time.Duration{}
	if r == nil {
		return affected
	}
	machines := objects.Versions[*v1alpha1.Machine](before, after)
	if len(machines) == 2 && !facts.Changed(machines[0], machines[1]) {
		return affected
	}
	for _, m := range machines {
		for _, set := range runners.Owners[*v1alpha1.MachineSet](ctx, r, m) {
			affected[objects.KeyOf(set)] = members.CollectFor(set.Spec.Replicas, set.Status.Replicas)
		}
	}
	sets := objects.Versions[*v1alpha1.MachineSet](before, after)
	for _, set := range sets {
		affected[objects.KeyOf(set)] = 0
		if len(sets) == 2 && members.OnlyStatus(sets[0], sets[1]) {
			affected[objects.KeyOf(set)] = members.CollectFor(set.Spec.Replicas, set.Status.Replicas)
		}
	}
	return affected
}
