// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// observe reads the deployment of a cluster into a scenario, with the times of its machines unless flags
// set them.
func (c command) observe(ctx context.Context, s *scenario) error {
	_, name, err := cli.Named(c.name, cli.Deployments)
	if err != nil {
		return err
	}
	clients, err := c.Connect()
	if err != nil {
		return err
	}
	if _, err := clients.Get(ctx, cli.Deployments, name); err != nil {
		return err
	}
	err = c.Watch(ctx, clients, name, func(in deployment.Observation) (bool, time.Time, error) {
		s.observed = &in
		return true, time.Time{}, check(in.Deployment)
	})
	if err != nil {
		return err
	}
	s.start, s.from = c.Clock.Now(), s.observed.Deployment.DeepCopy()
	s.from.Status = v1alpha1.MachineDeploymentStatus{}
	if m := s.from.Spec.Template.Spec.MachineConfiguration; m != nil && !c.never {
		if d := m.MachineCreationTimeout; d != nil && !c.changed("creation-timeout") {
			s.options.creationTimeout = d.Duration
		}
		if d := m.MachineHealthTimeout; d != nil && !c.changed("health-timeout") {
			s.options.healthTimeout = d.Duration
		}
	}
	join, of := joined(s.observed.Machines)
	switch {
	case c.changed("join"):
	case of == 0:
		s.measured = fmt.Sprintf("join %s (no machine to measure)", span(c.join))
	default:
		s.options.join = join
		s.measured = fmt.Sprintf("join %s (median of %s)", span(join), machines(of))
	}
	return nil
}

// joined returns the median time from the creation of a machine until its Node is ready, and of how many
// machines. The Node of a machine may have become ready again since; the median is not moved by a few.
func joined(all []*v1alpha1.Machine) (time.Duration, int) {
	var times []time.Duration
	for _, m := range all {
		for _, c := range m.Status.Conditions {
			ready := c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			if took := c.LastTransitionTime.Sub(m.CreationTimestamp.Time); ready && took > 0 {
				times = append(times, took.Round(time.Second))
			}
		}
	}
	if len(times) == 0 {
		return 0, 0
	}
	slices.Sort(times)
	return times[len(times)/2], len(times)
}
