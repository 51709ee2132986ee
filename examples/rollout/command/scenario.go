// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"maps"
	"strings"

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
}

// prepare reads the files and returns the scenario. It returns an error for a deployment that
// cannot be simulated.
func (c Command) prepare(o options) (scenario, error) {
	d, err := c.readDeployment(o.file, o.name)
	if err != nil {
		return scenario{}, err
	}
	clearHistory(d)
	s := scenario{options: o, from: d, to: d.DeepCopy()}
	assumed := ""
	switch class := &s.to.Spec.Template.Spec.Class.Name; {
	case o.to != "":
		if s.to, err = c.readDeployment(o.to, d.Name); err != nil {
			return scenario{}, fmt.Errorf("--to: %w", err)
		}
		clearHistory(s.to)
	case o.class != "":
		*class = o.class
	default:
		*class += "-next"
		assumed = " (assumed: no --class or --to)"
	}
	s.change, s.event = difference(s.from, s.to, assumed)
	// The deployment has to become complete first. Then it is paused or rolled back.
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
		changed = append(changed, "no change")
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

var errNoBounds = errors.New("the strategy has no bounds")
