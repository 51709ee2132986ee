// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/examples/e2e/env"
)

// class is the class of all machines.
const class = "small"

// plan is a sequence of phases in one environment.
type plan struct {
	title    string
	parallel int // machines that the manager handles concurrently
	phases   []step
	budgeted bool // the budget is that of its phases
}

// lives returns how many machines are created.
func (p plan) lives() int {
	n := 0
	for _, s := range p.phases {
		if s.creates {
			n += s.machines
		}
	}
	return n
}

// step is a phase that is still to be measured.
type step struct {
	name     string
	machines int  // machines that are created, replaced or deleted
	creates  bool // the machines are created or replaced
	idles    bool // the idle manager is measured after the phase
	// play makes the requests and waits for their result. It calls asked before each request.
	play func(ctx context.Context, s *env.Env, asked func()) error
}

// The names of phases.
const (
	creation = "create"
	rollout  = "roll"
	toZero   = "scale to 0"
	deletion = "delete"
)

// fleetOf returns the plan of a deployment. A rollout replaces a tenth of the machines at a time.
func fleetOf(size int) plan {
	const name = "fleet"
	change := func(patch string) func(context.Context, *env.Env) error {
		return func(ctx context.Context, s *env.Env) error {
			_, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		}
	}
	create := func(ctx context.Context, s *env.Env) error {
		d := s.Deployment(name, class, int32(size), int32(max(1, size/10)), 0) //nolint:gosec // up to 20000
		_, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Create(ctx, d, metav1.CreateOptions{})
		return err
	}
	until := func(what string, machines int, request func(context.Context, *env.Env) error) func(context.Context, *env.Env, func()) error {
		return func(ctx context.Context, s *env.Env, asked func()) error {
			asked()
			if err := request(ctx, s); err != nil {
				return err
			}
			if err := s.Until(ctx, what, s.Complete(name)); err != nil {
				return err
			}
			return s.Until(ctx, what, count(s, machines))
		}
	}
	return plan{title: fmt.Sprintf("fleet of %d", size), parallel: workers, budgeted: true, phases: []step{
		{name: creation, machines: size, creates: true, play: until("all machines run", size, create)},
		{
			name: rollout, machines: size, creates: true, idles: true,
			play: until("all machines are replaced", size, change(`{"spec":{"template":{"metadata":{"annotations":{"example.com/template":"2"}}}}}`)),
		},
		{name: toZero, machines: size, play: until("no machine is left", 0, change(`{"spec":{"replicas":0}}`))},
	}}
}

// alone is how many single machines there are.
const alone = 20

// singles returns the plan of machines without an owner, one after the other.
func singles() plan {
	eachName := func(f func(name string) error) error {
		for i := range alone {
			if err := f(fmt.Sprintf("single-%d", i)); err != nil {
				return err
			}
		}
		return nil
	}
	create := func(ctx context.Context, s *env.Env, asked func()) error {
		return eachName(func(name string) error {
			asked()
			if _, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).Create(ctx, s.Machine(name, class), metav1.CreateOptions{}); err != nil {
				return err
			}
			err := s.Until(ctx, "the machine runs", runs(s, name))
			wait(ctx, recording)
			return err
		})
	}
	remove := func(ctx context.Context, s *env.Env, asked func()) error {
		api := s.Machines.MachineV1alpha1().Machines(s.Namespace)
		return eachName(func(name string) error {
			asked()
			if err := api.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				return err
			}
			err := s.Until(ctx, "the machine is gone", env.Gone("machine", api.Get, name))
			wait(ctx, recording)
			return err
		})
	}
	return plan{title: "single machines, one after the other", parallel: 1, phases: []step{
		{name: creation, machines: alone, creates: true, play: create},
		{name: deletion, machines: alone, play: remove},
	}}
}

// recording is how long the record of a change may take after the change.
const recording = 100 * time.Millisecond

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

// count holds when there are so many machines. It reads one machine and the number of the others.
func count(s *env.Env, want int) env.Condition {
	return func(ctx context.Context) (string, error) {
		list, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return "machines", err
		}
		n := len(list.Items)
		if list.RemainingItemCount != nil {
			n += int(*list.RemainingItemCount)
		}
		if n == want {
			return "", nil
		}
		return fmt.Sprintf("there are %d machines, and not %d", n, want), nil
	}
}
