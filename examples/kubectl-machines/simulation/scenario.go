// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
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
	case len(changed) == 0 && deployment.EqualIgnoreHash(from.Spec.Template, to.Spec.Template):
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
