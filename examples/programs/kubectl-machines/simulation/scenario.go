// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// scenario is a rollout to simulate.
type scenario struct {
	options options
	// from is the deployment before the change, and to after it.
	from, to *v1alpha1.MachineDeployment
	change   string // the deployment and its change, for people
	event    string // the change alone

	// observed is what the cluster has, with --live, and measured what its machines have taken.
	observed *deployment.Observation
	measured string
	start    time.Time
}

// prepare reads the files, or the cluster, and returns the scenario. It returns an error for a deployment
// that cannot be simulated.
func (c command) prepare(ctx context.Context) (scenario, error) {
	s := scenario{options: c.options}
	var err error
	if c.live {
		err = c.observe(ctx, &s)
	} else {
		s.from, err = readDeployment(c.In, c.file, c.name)
	}
	if err != nil {
		return scenario{}, err
	}
	clearHistory(s.from)
	s.to = s.from.DeepCopy()
	note := ""
	switch class := &s.to.Spec.Template.Spec.Class.Name; {
	case c.to != "":
		if s.to, err = readDeployment(c.In, c.to, s.from.Name); err != nil {
			return scenario{}, fmt.Errorf("--to: %w", err)
		}
		clearHistory(s.to)
	case c.class != "":
		*class = c.class
	case c.live && !deployment.Complete(s.observed.Deployment, s.observed.Deployment.Status):
	default:
		*class += "-next"
		note = " (assumed: no --class or --to)"
	}
	if s.change, s.event = difference(s.from, s.to, note); s.event == noChange && c.live {
		s.event = ""
	}
	if s.measured != "" {
		s.change += ", " + s.measured
	}
	// The deployment of a file has to become complete first. Then it is paused or rolled back.
	s.from.Spec.Paused, s.from.Spec.RollbackTo = false, nil
	return s, nil
}

// clearHistory removes the metadata that belongs to the cluster of a stored deployment.
func clearHistory(d *v1alpha1.MachineDeployment) {
	annotations := maps.Clone(d.Annotations)
	for _, key := range []string{
		v1alpha1.RevisionAnnotation, v1alpha1.RevisionHistoryAnnotation, "kubectl.kubernetes.io/last-applied-configuration",
	} {
		delete(annotations, key)
	}
	d.ObjectMeta = metav1.ObjectMeta{Name: d.Name, Namespace: d.Namespace, Labels: d.Labels, Annotations: annotations}
}

// apply makes the change of the scenario in a deployment.
func (s scenario) apply(d *v1alpha1.MachineDeployment) {
	next := s.to.DeepCopy()
	d.Spec = next.Spec
	for key, value := range next.Labels {
		metav1.SetMetaDataLabel(&d.ObjectMeta, key, value)
	}
	for key, value := range next.Annotations {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, value)
	}
}

// noChange is the event of a deployment whose template stays.
const noChange = "no change"

// difference returns a line about a deployment and its change, and one about the change alone. The
// first has a note behind the class.
func difference(from, to *v1alpha1.MachineDeployment, note string) (whole, changes string) {
	var parts, changed []string
	for _, p := range []struct{ before, after, note string }{
		{machines(int(from.Spec.Replicas)), machines(int(to.Spec.Replicas)), ""},
		{"class " + from.Spec.Template.Spec.Class.Name, "class " + to.Spec.Template.Spec.Class.Name, note},
		{strategyOf(from), strategyOf(to), ""},
	} {
		if p.before == p.after {
			parts = append(parts, p.before)
			continue
		}
		text := p.before + " -> " + strings.TrimPrefix(p.after, "class ")
		parts, changed = append(parts, text+p.note), append(changed, text)
	}
	switch {
	case to.Spec.Paused:
		parts, changed = append(parts, "paused"), append(changed, "paused")
	case len(changed) == 0 && apiequality.Semantic.DeepEqual(from.Spec.Template, to.Spec.Template):
		changed = append(changed, noChange)
	case len(changed) == 0:
		changed = append(changed, "another template")
	}
	return strings.Join(parts, ", "), strings.Join(changed, ", ")
}

func strategyOf(d *v1alpha1.MachineDeployment) string {
	s := d.Spec.Strategy
	name := string(s.Type)
	if s.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType && s.InPlaceUpdate != nil {
		name += " " + string(s.InPlaceUpdate.OrchestrationType)
	}
	if b := boundsOf(d); b != nil {
		name += fmt.Sprintf(" (surge %s, unavailable %s)", b.MaxSurge, b.MaxUnavailable)
	}
	return name
}

// boundsOf returns the bounds of the strategy. Nil means that it has none.
func boundsOf(d *v1alpha1.MachineDeployment) *v1alpha1.UpdateConfiguration {
	s := d.Spec.Strategy
	switch {
	case s.Type == v1alpha1.RollingUpdateMachineDeploymentStrategyType && s.RollingUpdate != nil:
		return &s.RollingUpdate.UpdateConfiguration
	case s.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType && s.InPlaceUpdate != nil:
		return &s.InPlaceUpdate.UpdateConfiguration
	default:
		return nil
	}
}

// observe reads the deployment of a cluster into a scenario, with the times of its machines unless flags
// set them.
func (c command) observe(ctx context.Context, s *scenario) error {
	_, name, err := cli.Named(c.name, explain.Deployments)
	if err != nil {
		return err
	}
	clients, err := c.Connect()
	if err != nil {
		return err
	}
	if _, err := clients.Get(ctx, explain.Deployments, name); err != nil {
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
