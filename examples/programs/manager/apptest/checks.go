// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Check is one of the checks. [Checks] returns them.
type Check struct {
	// Name says what has to happen.
	Name string

	run func(*Suite, context.Context) error
}

// Checks returns the checks, which build on each other and are carried out in this order. A check whose predecessor has
// failed fails at the latest after the Timeout. The last one also makes sense after a failure.
func Checks() []Check {
	return []Check{
		{"machine creation adds one Node", (*Suite).createMachine},
		{"machine deletion removes its Node", (*Suite).deleteMachine},
		{"deletion of a missing machine changes nothing", (*Suite).deleteMissing},
		{"deployment of 0 machines is scaled to 1", (*Suite).createDeployment},
		{"deployment is scaled to 6", (*Suite).scaleUp},
		{"deployment is scaled to 2, its set is frozen and unfrozen", (*Suite).scaleDown},
		{"deployment is updated to the next class with 4 machines", (*Suite).update},
		{"deployment deletion leaves the first Nodes", (*Suite).deleteDeployment},
		{"no orphaned resources are left", (*Suite).noOrphans},
	}
}

// Check carries out a check. The error says what it waited for, what is missing, how machines and Nodes are, and how the log of a
// controller ends that has ended.
func (s *Suite) Check(ctx context.Context, c Check) error {
	if s == nil || c.run == nil {
		return errNotOpen
	}
	return c.run(s, ctx)
}

func (s *Suite) createMachine(ctx context.Context) error {
	if err := s.rememberNodes(ctx); err != nil {
		return err
	}
	if _, err := s.machines.MachineV1alpha1().Machines(s.o.Namespace).Create(ctx, s.machine(), metav1.CreateOptions{}); err != nil {
		return err
	}
	return s.waitNodes(ctx, 1)
}

func (s *Suite) deleteMachine(ctx context.Context) error {
	if err := s.machines.MachineV1alpha1().Machines(s.o.Namespace).Delete(ctx, machineName, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := s.wait(ctx, "the deletion of machine "+machineName, s.noMachines); err != nil {
		return err
	}
	return s.waitNodes(ctx, 0)
}

func (s *Suite) deleteMissing(ctx context.Context) error {
	const missing = machineName + "-missing"
	before, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	err = s.machines.MachineV1alpha1().Machines(s.o.Namespace).Delete(ctx, missing, metav1.DeleteOptions{})
	if err == nil {
		return fmt.Errorf("machine %s did not exist, and its deletion is no error", missing)
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	after, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	if !maps.Equal(nodeNames(before), nodeNames(after)) {
		return fmt.Errorf("the Nodes have changed: %v, before %v", slices.Sorted(maps.Keys(nodeNames(after))), slices.Sorted(maps.Keys(nodeNames(before))))
	}
	return nil
}

func (s *Suite) createDeployment(ctx context.Context) error {
	if err := s.rememberNodes(ctx); err != nil {
		return err
	}
	if _, err := s.machines.MachineV1alpha1().MachineDeployments(s.o.Namespace).Create(ctx, s.deployment(), metav1.CreateOptions{}); err != nil {
		return err
	}
	err := s.wait(ctx, "the set of the deployment", func(ctx context.Context) (string, error) {
		sets, err := s.sets(ctx)
		if err != nil || len(sets) == 1 {
			return "", err
		}
		return fmt.Sprintf("it has %d sets", len(sets)), nil
	})
	if err != nil {
		return err
	}
	if err := s.patchDeployment(ctx, `{"spec":{"replicas":1}}`); err != nil {
		return err
	}
	if err := s.waitComplete(ctx); err != nil {
		return err
	}
	return s.waitNodes(ctx, 1)
}

func (s *Suite) scaleUp(ctx context.Context) error {
	if err := s.patchDeployment(ctx, `{"spec":{"replicas":6}}`); err != nil {
		return err
	}
	return s.waitNodes(ctx, 6)
}

// scaleDown freezes the set by its label, as people do. A set with too many machines that are being deleted is not
// frozen by the controller. The controller ends the freeze, since the set has not too many machines.
func (s *Suite) scaleDown(ctx context.Context) error {
	sets, err := s.sets(ctx)
	if err != nil {
		return err
	}
	if len(sets) != 1 {
		return fmt.Errorf("the deployment has %d sets, not 1", len(sets))
	}
	api, name := s.machines.MachineV1alpha1().MachineSets(s.o.Namespace), sets[0].Name
	freeze := fmt.Sprintf(`{"metadata":{"labels":{%q:"True"}}}`, v1alpha1.FreezeLabelKey)
	if _, err := api.Patch(ctx, name, types.MergePatchType, []byte(freeze), metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := s.patchDeployment(ctx, `{"spec":{"replicas":2}}`); err != nil {
		return err
	}
	if err := s.waitNodes(ctx, 2); err != nil {
		return err
	}
	return s.wait(ctx, "the end of the freeze of set "+name, func(ctx context.Context) (string, error) { return s.frozen(ctx, name) })
}

// frozen returns how a set is frozen, or "" when the controller has ended that.
func (s *Suite) frozen(ctx context.Context, name string) (string, error) {
	set, err := s.machines.MachineV1alpha1().MachineSets(s.o.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if value, frozen := set.Labels[v1alpha1.FreezeLabelKey]; frozen {
		return fmt.Sprintf("its label %s is %q", v1alpha1.FreezeLabelKey, value), nil
	}
	events, err := s.control.CoreV1().Events(s.o.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=UnfrozeMachineSet,involvedObject.name=" + name})
	if err != nil || len(events.Items) > 0 {
		return "", err
	}
	return "it has no Event UnfrozeMachineSet", nil
}

func (s *Suite) update(ctx context.Context) error {
	if err := s.patchDeployment(ctx, `{"spec":{"replicas":4,"template":{"spec":{"class":{"name":"`+NextClassName+`"}}}}}`); err != nil {
		return err
	}
	if err := s.waitComplete(ctx); err != nil {
		return err
	}
	if err := s.wait(ctx, "4 machines of class "+NextClassName+", each with one Node", s.outdated); err != nil {
		return err
	}
	return s.waitNodes(ctx, 4)
}

// outdated returns what is missing until there are 4 machines of the next class, each with one Node.
func (s *Suite) outdated(ctx context.Context) (string, error) {
	list, err := s.machines.MachineV1alpha1().Machines(s.o.Namespace).List(ctx, metav1.ListOptions{LabelSelector: machineLabel + "=" + machineLabel})
	if err != nil {
		return "", err
	}
	nodes := map[string]bool{}
	for _, m := range list.Items {
		if m.Spec.Class.Name != NextClassName {
			return fmt.Sprintf("machine %s has class %s", m.Name, m.Spec.Class.Name), nil
		}
		nodes[m.Labels[v1alpha1.NodeLabelKey]] = true
	}
	joined, err := s.joined(ctx)
	if err != nil || len(list.Items) == 4 && maps.Equal(nodes, joined) {
		return "", err
	}
	return fmt.Sprintf("%d machines with the Nodes %v, and the new Nodes are %v", len(list.Items), slices.Sorted(maps.Keys(nodes)), slices.Sorted(maps.Keys(joined))), nil
}

func (s *Suite) deleteDeployment(ctx context.Context) error {
	if err := s.machines.MachineV1alpha1().MachineDeployments(s.o.Namespace).Delete(ctx, deploymentName, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := s.wait(ctx, "the deletion of deployment "+deploymentName, s.noMachines); err != nil {
		return err
	}
	return s.waitNodes(ctx, 0)
}

// rememberNodes reads the Nodes before the first machine.
func (s *Suite) rememberNodes(ctx context.Context) error {
	nodes, err := s.nodes(ctx)
	s.first = nodeNames(nodes)
	return err
}

// joined returns the names of the Nodes that are new.
func (s *Suite) joined(ctx context.Context) (map[string]bool, error) {
	nodes, err := s.nodes(ctx)
	joined := nodeNames(nodes)
	maps.DeleteFunc(joined, func(name string, _ bool) bool { return s.first[name] })
	return joined, err
}

// waitNodes waits until there are the first Nodes and n new ones, all of them ready.
func (s *Suite) waitNodes(ctx context.Context, n int) error {
	return s.wait(ctx, fmt.Sprintf("%d new Nodes beside the first %d, all ready", n, len(s.first)), func(ctx context.Context) (string, error) {
		nodes, err := s.nodes(ctx)
		if err != nil {
			return "", err
		}
		names := nodeNames(nodes)
		for first := range s.first {
			if !names[first] {
				return fmt.Sprintf("the first Node %s is missing", first), nil
			}
		}
		if joined := len(names) - len(s.first); joined != n {
			return fmt.Sprintf("%d new Nodes", joined), nil
		}
		return unready(nodes), nil
	})
}

// waitComplete waits until the rollout of the deployment is complete, and its conditions say so.
func (s *Suite) waitComplete(ctx context.Context) error {
	return s.wait(ctx, "the completion of deployment "+deploymentName, func(ctx context.Context) (string, error) {
		d, err := s.machines.MachineV1alpha1().MachineDeployments(s.o.Namespace).Get(ctx, deploymentName, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		available := hasCondition(d, v1alpha1.MachineDeploymentAvailable, "MinimumReplicasAvailable")
		progressed := hasCondition(d, v1alpha1.MachineDeploymentProgressing, "NewMachineSetAvailable")
		if available && progressed && deployment.Complete(d, d.Status) {
			return "", nil
		}
		return fmt.Sprintf("of %d machines it has %d, %d of its template, %d available; conditions: %+v",
			d.Spec.Replicas, d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.Conditions), nil
	})
}

func hasCondition(d *v1alpha1.MachineDeployment, kind v1alpha1.MachineDeploymentConditionType, reason string) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
		return c.Type == kind && c.Status == v1alpha1.ConditionTrue && c.Reason == reason
	})
}
