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

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// errNoReader is the error of [Observe] without a Reader.
var errNoReader = errors.New("deployment/runner: no Reader")

// Observe reads a deployment, its sets, their machines, and the Nodes of the machines. It returns the zero
// Observation if the deployment does not exist.
//
// For a report or a dry run, set Proven of the result, which [Executor] learns from the API server.
func Observe(ctx context.Context, r machinist.Reader, key types.NamespacedName) (deployment.Observation, error) {
	if r == nil {
		return deployment.Observation{}, errNoReader
	}
	d, err := objects.Get[*v1alpha1.MachineDeployment](ctx, r, key.Namespace, key.Name)
	if err != nil || d == nil {
		return deployment.Observation{}, err
	}
	in, _, err := observe(ctx, r, d)
	return in, err
}

// observe reads the sets of a deployment, their machines, and the Nodes of the machines.
func observe(ctx context.Context, r machinist.Reader, d *v1alpha1.MachineDeployment) (in deployment.Observation, claims machineset.Claims[*v1alpha1.MachineSet], _ error) {
	owned, err := objects.List[*v1alpha1.MachineSet](ctx, r, runners.ByController, runners.ControllerKey(d.Namespace, d.UID))
	free, freeErr := objects.List[*v1alpha1.MachineSet](ctx, r, runners.ByController, runners.ControllerKey(d.Namespace, ""))
	if err := errors.Join(err, freeErr); err != nil {
		return in, claims, err
	}
	free = slices.DeleteFunc(free, func(s *v1alpha1.MachineSet) bool { return !facts.SameShard(s, d) })
	claims = deployment.Claim(d, slices.Concat(owned, free))
	in = deployment.Observation{Deployment: d, NoCluster: runners.View(ctx, r, "").NoTarget}
	in.Sets, in.Released, in.Complete = claims.Owned, claims.Released, claims.Settled()
	for _, s := range in.Sets {
		machines, err := objects.List[*v1alpha1.Machine](ctx, r, runners.ByController, runners.ControllerKey(s.Namespace, s.UID))
		if err != nil {
			return in, claims, err
		}
		in.Machines = append(in.Machines, machines...)
	}
	in.Nodes = make(map[string]*corev1.Node, len(in.Machines))
	for _, m := range in.Machines {
		if name := m.Labels[v1alpha1.NodeLabelKey]; name != "" {
			if view := runners.View(ctx, r, name); view.Looked {
				in.Nodes[name] = view.Node
			}
		}
	}
	return in, claims, nil
}

// batchTime is how long changes of machines are collected before the next pass over their deployment. It
// acts upon the changes of its sets, whose time is shorter up to 2,000 machines.
const batchTime = time.Second

// Affected returns the deployments that have to be decided again after a change, each with the time for
// which changes are collected. The objects are a MachineDeployment, a MachineSet, a Machine or a Node
// before and after the change; the one that does not exist is nil.
//
// A pass counts all machines of a deployment. The time keeps the share of the time that passes take
// constant.
func Affected(ctx context.Context, r machinist.Reader, before, after metav1.Object) map[types.NamespacedName]time.Duration {
	affected := map[types.NamespacedName]time.Duration{}
	if r == nil {
		return affected
	}
	for _, m := range changedMachines(ctx, r, before, after) {
		set, err := runners.Owner[*v1alpha1.MachineSet](ctx, r, m)
		if err != nil || set == nil {
			continue
		}
		for _, d := range runners.Owners[*v1alpha1.MachineDeployment](ctx, r, set) {
			affected[objects.KeyOf(d)] = max(batchTime, collectFor(d))
		}
	}
	for _, set := range objects.Versions[*v1alpha1.MachineSet](before, after) {
		for _, d := range runners.Owners[*v1alpha1.MachineDeployment](ctx, r, set) {
			affected[objects.KeyOf(d)] = collectFor(d)
		}
	}
	deployments := objects.Versions[*v1alpha1.MachineDeployment](before, after)
	for _, d := range deployments {
		affected[objects.KeyOf(d)] = 0
		if len(deployments) == 2 && members.OnlyStatus(deployments[0], deployments[1]) {
			affected[objects.KeyOf(d)] = collectFor(d)
		}
	}
	return affected
}

// changedMachines returns a machine that has changed, or the machines of a Node that has changed.
func changedMachines(ctx context.Context, r machinist.Reader, before, after metav1.Object) (machines []*v1alpha1.Machine) {
	machines = objects.Versions[*v1alpha1.Machine](before, after)
	if len(machines) == 2 && !facts.Changed(machines[0], machines[1]) {
		return nil
	}
	nodes := objects.Versions[*corev1.Node](before, after)
	if len(nodes) == 0 || len(nodes) == 2 && !facts.Changed(nodes[0], nodes[1]) {
		return machines
	}
	machines, _ = objects.List[*v1alpha1.Machine](ctx, r, runners.ByNode, nodes[0].Name)
	return machines
}

func collectFor(d *v1alpha1.MachineDeployment) time.Duration {
	return members.CollectFor(d.Spec.Replicas, d.Status.Replicas)
}
