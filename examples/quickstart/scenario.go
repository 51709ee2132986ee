// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// more is the number of machines that the demo adds.
const more = 2

// scenario is a run of the demo, one chapter after the other.
type scenario struct {
	w        *world
	m        *manifests
	progress *progress
	failures bool // machines fail
}

// play runs all chapters and returns the first error.
func (s *scenario) play(ctx context.Context) error {
	for _, c := range s.chapters() {
		s.progress.headline(c.title)
		since := s.w.version()
		if err := c.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
		if err := s.wait(ctx, c.until); err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
		if c.facts == nil {
			continue
		}
		says, err := c.facts(lifecyclesSince(s.w, since))
		for _, text := range says {
			s.progress.line("-- " + text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
	}
	return nil
}

// chapter is a step of the scenario.
type chapter struct {
	title string
	do    func(context.Context) error
	until func(context.Context) (string, error)
	// facts checks what must have happened, and describes it. Nil means that the end of
	// the chapter is sufficient.
	facts func([]*lifecycle) ([]string, error)
}

// chapters returns the chapters of the scenario.
func (s *scenario) chapters() []chapter {
	begin := []chapter{
		{title: "apply the manifests", do: func(ctx context.Context) error { return s.w.apply(ctx, s.m) }, until: s.allUp},
		{title: "roll to a new machine class", do: func(ctx context.Context) error { return s.rollTo(ctx, "v2") }, until: s.allUp},
	}
	grow := []chapter{{title: fmt.Sprintf("scale up by %d", more), do: s.scale, until: s.allUp}}
	end := chapter{title: "delete everything", do: s.delete, until: s.allDeleted}
	if s.failures {
		begin = append(begin, s.pauses(), s.rollsBack(), s.doesNotWork(), s.updatesInPlace())
		if slices.ContainsFunc(s.m.deployments, func(d *v1alpha1.MachineDeployment) bool { return d.Spec.Replicas < 2 }) {
			begin = slices.Delete(begin, 2, 4) // Recreate has no partial rollout
		}
		grow = []chapter{s.neverJoins(), s.isAway(), s.hasOrphan(), s.allSilent(), s.fallsSilent(), s.isPreserved()}
		if s.grown() <= s.w.guard.AlwaysFew { // the guard allows that few replacements
			grow = slices.Delete(grow, 3, 4)
		}
		end.facts = func([]*lifecycle) ([]string, error) {
			text, err := joinedWithTokens(s.w.target.History())
			return []string{text}, err
		}
	}
	return append(append(begin, grow...), end)
}

// wait waits until a function returns nothing missing.
func (s *scenario) wait(ctx context.Context, until func(context.Context) (string, error)) error {
	for {
		missing, err := until(ctx)
		if err == nil && missing == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while waiting: %s", context.Cause(ctx), missing)
		case <-s.w.clock.After(500 * time.Millisecond):
		}
	}
}

// allUp returns what is not available yet.
func (s *scenario) allUp(ctx context.Context) (string, error) {
	api := s.w.machines.MachineV1alpha1()
	for _, want := range s.m.deployments {
		d, err := api.MachineDeployments(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
		if err != nil {
			return "machine deployment " + want.Name, err
		}
		if !deployment.Complete(d, d.Status) {
			return fmt.Sprintf("machine deployment %s has %d of %d machines available, %d of the newest template, %d in all",
				d.Name, d.Status.AvailableReplicas, d.Spec.Replicas, d.Status.UpdatedReplicas, d.Status.Replicas), nil
		}
	}
	for _, want := range s.m.sets {
		set, err := api.MachineSets(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
		if err != nil {
			return "machine set " + want.Name, err
		}
		if set.Status.ObservedGeneration < set.Generation || set.Status.AvailableReplicas < set.Spec.Replicas || set.Status.Replicas > set.Spec.Replicas {
			return fmt.Sprintf("machine set %s has %d of %d machines available", set.Name, set.Status.AvailableReplicas, set.Spec.Replicas), nil
		}
	}
	for _, want := range s.m.machines {
		m, err := api.Machines(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
		if err != nil {
			return "machine " + want.Name, err
		}
		if m.Status.CurrentStatus.Phase != v1alpha1.MachineRunning {
			return fmt.Sprintf("machine %s is not Running", m.Name), nil
		}
	}
	return "", nil
}

// allDeleted returns what still exists.
func (s *scenario) allDeleted(ctx context.Context) (string, error) {
	api, all := s.w.machines.MachineV1alpha1(), metav1.ListOptions{}
	machines, err := api.Machines(metav1.NamespaceAll).List(ctx, all)
	if err != nil || len(machines.Items) > 0 {
		return fmt.Sprintf("%d machines", lenOf(machines)), err
	}
	sets, err := api.MachineSets(metav1.NamespaceAll).List(ctx, all)
	if err != nil || len(sets.Items) > 0 {
		return "machine sets", err
	}
	deployments, err := api.MachineDeployments(metav1.NamespaceAll).List(ctx, all)
	if err != nil || len(deployments.Items) > 0 {
		return "machine deployments", err
	}
	classes, err := api.MachineClasses(metav1.NamespaceAll).List(ctx, all)
	if err != nil || len(classes.Items) > 0 {
		return "machine classes", err
	}
	secrets, err := s.w.secrets.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, all)
	if err != nil || len(secrets.Items) > 0 {
		return "secrets", err
	}
	nodes, err := s.w.nodes.CoreV1().Nodes().List(ctx, all)
	if err != nil || len(nodes.Items) > 0 {
		return "nodes " + namesOf(nodes), err
	}
	tokens, err := s.w.nodes.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, all)
	if err != nil || len(tokens.Items) > 0 {
		return "bootstrap tokens", err
	}
	if snapshot := s.w.cloud.Snapshot(); !snapshot.Empty() {
		return "the cloud is not empty", nil
	}
	return "", nil
}

func namesOf(nodes *corev1.NodeList) string {
	if nodes == nil {
		return ""
	}
	var names []string
	for i := range nodes.Items {
		names = append(names, nodes.Items[i].Name)
	}
	return strings.Join(names, ", ")
}

func lenOf(machines *v1alpha1.MachineList) int {
	if machines == nil {
		return 0
	}
	return len(machines.Items)
}

// rollTo creates a new version of the class of every deployment, and sets it in the deployment.
func (s *scenario) rollTo(ctx context.Context, version string) error {
	api := s.w.machines.MachineV1alpha1()
	if len(s.m.deployments) == 0 {
		s.progress.line("no machine deployment to roll")
	}
	for _, d := range s.m.deployments {
		old, err := again(func() (*v1alpha1.MachineClass, error) {
			return api.MachineClasses(d.Namespace).Get(ctx, d.Spec.Template.Spec.Class.Name, metav1.GetOptions{})
		})
		if err != nil {
			return err
		}
		next := &v1alpha1.MachineClass{
			ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, Name: old.Name + "-" + version, Labels: old.Labels},
			Provider:   old.Provider, ProviderSpec: old.ProviderSpec, NodeTemplate: old.NodeTemplate,
			SecretRef: old.SecretRef, CredentialsSecretRef: old.CredentialsSecretRef,
		}
		if !s.m.hasClass(next.Namespace, next.Name) {
			client := api.MachineClasses(next.Namespace)
			if _, err = create(ctx, client.Create, client.Get, next); err != nil {
				return err
			}
			s.m.classes = append(s.m.classes, next)
		}
		if err := s.change(ctx, d, func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = next.Name }); err != nil {
			return err
		}
	}
	return nil
}

// change updates a deployment, and repeats the update on conflicts.
func (s *scenario) change(ctx context.Context, d *v1alpha1.MachineDeployment, f func(*v1alpha1.MachineDeployment)) error {
	api := s.w.machines.MachineV1alpha1().MachineDeployments(d.Namespace)
	_, err := again(func() (*v1alpha1.MachineDeployment, error) {
		current, err := api.Get(ctx, d.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		f(current)
		return api.Update(ctx, current, metav1.UpdateOptions{})
	})
	return err
}

// scale adds machines to every deployment and set.
func (s *scenario) scale(ctx context.Context) error {
	for _, d := range s.m.deployments {
		want := d.Spec.Replicas + more
		if err := s.change(ctx, d, func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = want }); err != nil {
			return err
		}
	}
	api := s.w.machines.MachineV1alpha1()
	for _, set := range s.m.sets {
		want := set.Spec.Replicas + more
		if owned(set, s.m.deployments) {
			continue
		}
		if _, err := again(func() (*v1alpha1.MachineSet, error) {
			current, err := api.MachineSets(set.Namespace).Get(ctx, set.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			current.Spec.Replicas = want
			return api.MachineSets(set.Namespace).Update(ctx, current, metav1.UpdateOptions{})
		}); err != nil {
			return err
		}
	}
	return nil
}

// owned reports whether a set belongs to one of the deployments.
func owned(set *v1alpha1.MachineSet, deployments []*v1alpha1.MachineDeployment) bool {
	owner := metav1.GetControllerOf(set)
	for _, d := range deployments {
		if owner != nil && owner.Kind == "MachineDeployment" && owner.Name == d.Name && set.Namespace == d.Namespace {
			return true
		}
	}
	return false
}

// delete deletes everything at once: the workload, the machines, and their classes and Secrets,
// whose finalizers keep them until the machines are deleted.
func (s *scenario) delete(ctx context.Context) error {
	s.w.idle.Store(true)
	api, options := s.w.machines.MachineV1alpha1(), metav1.DeleteOptions{}
	var errs []error
	for _, d := range s.m.deployments {
		errs = append(errs, s.deleted(func() error { return api.MachineDeployments(d.Namespace).Delete(ctx, d.Name, options) }))
	}
	for _, set := range s.m.sets {
		errs = append(errs, s.deleted(func() error { return api.MachineSets(set.Namespace).Delete(ctx, set.Name, options) }))
	}
	for _, m := range s.m.machines {
		errs = append(errs, s.deleted(func() error { return api.Machines(m.Namespace).Delete(ctx, m.Name, options) }))
	}
	for _, c := range s.m.classes {
		errs = append(errs, s.deleted(func() error { return api.MachineClasses(c.Namespace).Delete(ctx, c.Name, options) }))
	}
	for _, secret := range s.m.secrets {
		errs = append(errs, s.deleted(func() error { return s.w.secrets.CoreV1().Secrets(secret.Namespace).Delete(ctx, secret.Name, options) }))
	}
	return errors.Join(errs...)
}

// deleted deletes an object. NotFound is success.
func (s *scenario) deleted(del func() error) error {
	_, err := again(func() (struct{}, error) { return struct{}{}, ignoreNotFound(del()) })
	return err
}

// again repeats a request until it succeeds, because injected faults are meant for the controllers
// only.
func again[T any](f func() (T, error)) (T, error) {
	var result T
	patience := wait.Backoff{Steps: 12, Duration: time.Millisecond, Factor: 2, Jitter: 0.1}
	err := retry.OnError(patience, func(error) bool { return true }, func() error {
		var err error
		result, err = f()
		return err
	})
	return result, err
}
