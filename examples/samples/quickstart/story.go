// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// newClass is the class to which the demo rolls the machines.
const newClass = "small-v2"

// heldFor is how long the demo lets a drain wait. It is shorter than its drain timeout.
const heldFor = 12 * time.Second

// story is a run of the demo, one chapter after the other.
type story struct {
	w        *world
	progress *progress
	replicas int

	leaving []string // the machines that the chapter deletes, or whose Nodes become silent
}

// chapter is a step of the demo. until returns what is missing at its end, or "".
type chapter struct {
	title string
	do    func(context.Context) error
	until func(context.Context) (string, error)
}

func (s *story) chapters() []chapter {
	return []chapter{
		{"CREATE  a deployment asks for machines: each gets a VM, and its Node joins the cluster", func(ctx context.Context) error { return s.w.apply(ctx, s.replicas) }, s.available},
		{"ROLL    a new class: a new machine first, then an old one is drained and deleted", s.roll, s.available},
		{"DRAIN   a user deletes a machine while a PodDisruptionBudget allows no eviction", s.drain, s.gone},
		{"REPAIR  Nodes become silent at once: one after the other is given up and replaced", s.silence, s.gone},
		{"DELETE  everything at once: pods, machines, VMs, Nodes, classes and Secrets", s.w.deleteAll, s.deleted},
	}
}

// play plays all chapters and returns the first error.
func (s *story) play(ctx context.Context) error {
	for _, c := range s.chapters() {
		s.progress.line("== " + c.title)
		err := c.do(ctx)
		if err == nil {
			err = s.wait(ctx, c.until)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", strings.Fields(c.title)[0], err)
		}
	}
	return nil
}

// wait waits until a function returns nothing missing. Its errors are injected faults.
func (s *story) wait(ctx context.Context, until func(context.Context) (string, error)) error {
	for {
		missing, err := until(ctx)
		if err == nil && missing == "" {
			return nil
		}
		if err := s.sleep(ctx, 500*time.Millisecond); err != nil {
			return fmt.Errorf("%w while waiting: %s", err, missing)
		}
	}
}

// sleep waits for a time on the clock of the demo.
func (s *story) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.w.clock.After(d):
		return nil
	}
}

// machines returns all machines, sorted by name.
func (s *story) machines(ctx context.Context) ([]v1alpha1.Machine, error) {
	list, err := s.w.machines.MachineV1alpha1().Machines(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// available returns what is missing until all desired machines are available and no others exist.
func (s *story) available(ctx context.Context) (string, error) {
	d, err := s.w.machines.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, workers, metav1.GetOptions{})
	if err != nil {
		return "the deployment", err
	}
	machines, err := s.machines(ctx)
	if err != nil {
		return "the machines", err
	}
	running := 0
	for _, m := range machines {
		if m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning && m.DeletionTimestamp == nil && m.Spec.Class.Name == d.Spec.Template.Spec.Class.Name {
			running++
		}
	}
	if !deployment.Complete(d, d.Status) || running != s.replicas || len(machines) != s.replicas {
		return fmt.Sprintf("%d of %d machines run, and there are %d", running, s.replicas, len(machines)), nil
	}
	return "", nil
}

// roll changes the class of the deployment.
func (s *story) roll(ctx context.Context) error {
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"class":{"name":%q}}}}}`, newClass)
	return again(func() error {
		_, err := s.w.machines.MachineV1alpha1().MachineDeployments(namespace).Patch(ctx, workers, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}, nil)
}

// running returns up to n Running machines.
func (s *story) running(ctx context.Context, n int) (found []v1alpha1.Machine, _ error) {
	err := again(func() error {
		machines, err := s.machines(ctx)
		found = machines[:min(n, len(machines))]
		return err
	}, nil)
	if err == nil && len(found) == 0 {
		err = errors.New("no machine is Running")
	}
	return found, err
}

// drain deletes a machine while the budget of the workload allows no eviction, and changes the budget
// when the controller has said that it waits for it.
func (s *story) drain(ctx context.Context) error {
	if err := s.allow(ctx, 0); err != nil {
		return err
	}
	found, err := s.running(ctx, s.replicas)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(found, func(m v1alpha1.Machine) bool {
		on := metav1.ListOptions{FieldSelector: "spec.nodeName=" + m.Labels[v1alpha1.NodeLabelKey]}
		n, _ := count(s.w.nodes.CoreV1().Pods(workloadNamespace).List(ctx, on)) // 0 after an error
		return n > 0
	})
	if i < 0 {
		return errors.New("no Node has a pod")
	}
	m := found[i]
	s.leave(&m)
	s.progress.line("a user deletes machine " + m.Name)
	remove := func() error {
		return s.w.machines.MachineV1alpha1().Machines(namespace).Delete(ctx, m.Name, metav1.DeleteOptions{})
	}
	if err := again(remove, nil); err != nil {
		return err
	}
	if err := s.wait(ctx, func(ctx context.Context) (string, error) { return s.saysWhy(ctx, m.Name) }); err != nil {
		return err
	}
	if err := s.sleep(ctx, heldFor); err != nil {
		return err
	}
	if missing, err := s.gone(ctx); err == nil && missing == "" {
		return fmt.Errorf("machine %s was deleted although the budget allowed no eviction", m.Name)
	}
	s.progress.explain(ctx, "machine/"+m.Name)
	s.progress.line("the user changes the budget: one pod may be missing")
	return s.allow(ctx, 1)
}

// leave records that a machine will be deleted, and may be unavailable from now on.
func (s *story) leave(m *v1alpha1.Machine) {
	s.leaving = append(s.leaving, m.Name)
	s.w.harmed[m.UID] = s.w.control.ResourceVersion()
}

// saysWhy returns what is missing until the controller has written that the drain of a machine waits for a budget.
func (s *story) saysWhy(ctx context.Context, machine string) (string, error) {
	m, err := s.w.machines.MachineV1alpha1().Machines(namespace).Get(ctx, machine, metav1.GetOptions{})
	if err != nil || strings.Contains(m.Status.LastOperation.Description, "budget "+workloadNamespace+"/"+workload) {
		return "", err
	}
	return fmt.Sprintf("the drain does not wait for a budget: %s", m.Status.LastOperation.Description), nil
}

// allow changes how many pods of the workload may be missing.
func (s *story) allow(ctx context.Context, pods int) error {
	patch := fmt.Appendf(nil, `{"spec":{"maxUnavailable":%d}}`, pods)
	return again(func() error {
		_, err := s.w.nodes.PolicyV1().PodDisruptionBudgets(workloadNamespace).Patch(ctx, workload, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}, nil)
}

// gone returns what is missing until the leaving machines are deleted and replaced.
func (s *story) gone(ctx context.Context) (string, error) {
	machines, err := s.machines(ctx)
	if err != nil {
		return "the machines", err
	}
	for _, m := range machines {
		if slices.Contains(s.leaving, m.Name) {
			return fmt.Sprintf("machine %s is not deleted", m.Name), nil
		}
	}
	return s.available(ctx)
}

// silence stops the heartbeats of two Nodes at once.
func (s *story) silence(ctx context.Context) error {
	found, err := s.running(ctx, 2)
	for _, m := range found {
		s.leave(&m)
		node := m.Labels[v1alpha1.NodeLabelKey]
		s.w.target.SetNodeSilent(node, true) // the kubelets of the cluster in memory do not stop its pods either
		s.w.kubelets.Silence(node, true)
		s.progress.line(fmt.Sprintf("Node %s becomes silent", node))
	}
	return err
}

// deleted returns what still exists.
func (s *story) deleted(ctx context.Context) (string, error) {
	api, all := s.w.machines.MachineV1alpha1(), metav1.ListOptions{}
	for _, kind := range []struct {
		name string
		list func() (int, error)
	}{
		{"machine deployments", func() (int, error) { return count(api.MachineDeployments(namespace).List(ctx, all)) }},
		{"machine sets", func() (int, error) { return count(api.MachineSets(namespace).List(ctx, all)) }},
		{"machines", func() (int, error) { return count(api.Machines(namespace).List(ctx, all)) }},
		{"machine classes", func() (int, error) { return count(api.MachineClasses(namespace).List(ctx, all)) }},
		{"secrets", func() (int, error) { return count(s.w.secrets.CoreV1().Secrets(namespace).List(ctx, all)) }},
		{"nodes", func() (int, error) { return count(s.w.nodes.CoreV1().Nodes().List(ctx, all)) }},
		{"bootstrap tokens", func() (int, error) { return count(s.w.nodes.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, all)) }},
	} {
		if n, err := kind.list(); err != nil || n > 0 {
			return fmt.Sprintf("%d %s are left", n, kind.name), err
		}
	}
	if !s.w.cloud.Snapshot().Empty() {
		return "the cloud is not empty", nil
	}
	return "", nil
}
