// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/env"
)

// class is that of all machines.
const class = "small"

// plan is what happens in a round, and to how many machines.
type plan struct {
	machines int
	play     func(ctx context.Context, s *env.Env, t *timing) error
}

// timing is when requests were made, and when the round was over.
type timing struct {
	created, deleted []time.Time
}

// deploymentOf returns the plan of a deployment of a size.
func deploymentOf(size int) plan {
	return plan{machines: size, play: func(ctx context.Context, s *env.Env, t *timing) error {
		api := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace)
		d := s.Deployment("bench", class, int32(size), 1, 0) //nolint:gosec // up to 5000
		t.created = append(t.created, time.Now())
		if _, err := api.Create(ctx, d, metav1.CreateOptions{}); err != nil {
			return err
		}
		if err := s.Until(ctx, "all machines run", s.Complete(d.Name)); err != nil {
			return err
		}
		t.deleted = append(t.deleted, time.Now())
		if err := api.Delete(ctx, d.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return s.Until(ctx, "nothing is left", gone(s))
	}}
}

// machines returns the plan of machines without an owner, one after the other.
func machines(n int) plan {
	return plan{machines: n, play: func(ctx context.Context, s *env.Env, t *timing) error {
		api := s.Machines.MachineV1alpha1().Machines(s.Namespace)
		for i := range n {
			m := s.Machine(fmt.Sprintf("single-%d", i), class)
			t.created = append(t.created, time.Now())
			if _, err := api.Create(ctx, m, metav1.CreateOptions{}); err != nil {
				return err
			}
			if err := s.Until(ctx, "the machine runs", runs(s, m.Name)); err != nil {
				return err
			}
			t.deleted = append(t.deleted, time.Now())
			if err := api.Delete(ctx, m.Name, metav1.DeleteOptions{}); err != nil {
				return err
			}
			if err := s.Until(ctx, "the machine is gone", env.Gone("machine", api.Get, m.Name)); err != nil {
				return err
			}
		}
		return nil
	}}
}

// runs holds when a machine is Running.
func runs(s *env.Env, name string) env.Condition {
	return func(ctx context.Context) (string, error) {
		m, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || m.Status.CurrentStatus.Phase == "Running" {
			return "", err
		}
		return "machine " + name + " is not Running", nil
	}
}

// gone holds when there are no machine objects, but for the class.
func gone(s *env.Env) env.Condition {
	return func(ctx context.Context) (string, error) {
		api := s.Machines.MachineV1alpha1()
		sets, err := api.MachineSets(s.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "machine sets", err
		}
		machines, err := api.Machines(s.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "machines", err
		}
		deployments, err := api.MachineDeployments(s.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "machine deployments", err
		}
		if n := len(machines.Items) + len(sets.Items) + len(deployments.Items); n > 0 {
			return fmt.Sprintf("%d machine objects are left", n), nil
		}
		return "", nil
	}
}
