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

// A scene is everything that is needed to play a roll-out.
type scene struct {
	options options
	// from is the deployment that is brought up, to the one that it becomes.
	from, to *v1alpha1.MachineDeployment
	change   string // what that means for people: what it is, and what it becomes
	event    string // the same without what stays
}

// prepare reads the files, and refuses what cannot be played.
func (c Command) prepare(o options) (scene, error) {
	d, err := c.readDeployment(o.file)
	if err != nil {
		return scene{}, err
	}
	forget(d)
	s := scene{options: o, from: d, to: d.DeepCopy()}
	if o.to != "" {
		next, err := c.readDeployment(o.to)
		if err != nil {
			return scene{}, err
		}
		if next.Name != d.Name {
			return scene{}, fmt.Errorf("--to: the deployment in %s is %s, not %s", o.to, next.Name, d.Name)
		}
		forget(next)
		s.to = next
	} else {
		class := &s.to.Spec.Template.Spec.Class.Name
		if o.class == "" {
			o.class = *class + "-next"
		}
		*class = o.class
	}
	s.change, s.event = difference(s.from, s.to)
	// What would keep the deployment from being brought up belongs to the roll-out.
	s.from.Spec.Paused, s.from.Spec.RollbackTo = false, nil
	return s, nil
}

// forget takes off what a stored deployment remembers of a world that is not this one.
func forget(d *v1alpha1.MachineDeployment) {
	annotations := maps.Clone(d.Annotations)
	for _, key := range []string{
		v1alpha1.RevisionAnnotation, v1alpha1.RevisionHistoryAnnotation, "kubectl.kubernetes.io/last-applied-configuration",
	} {
		delete(annotations, key)
	}
	d.ObjectMeta = metav1.ObjectMeta{Name: d.Name, Namespace: d.Namespace, Labels: d.Labels, Annotations: annotations}
}

// difference says in a line what a deployment is about to become, and what of it changes.
func difference(from, to *v1alpha1.MachineDeployment) (whole, changes string) {
	var parts, changed []string
	for _, p := range [][2]string{
		{count(int(from.Spec.Replicas), "machine"), count(int(to.Spec.Replicas), "machine")},
		{"class " + from.Spec.Template.Spec.Class.Name, "class " + to.Spec.Template.Spec.Class.Name},
		{strategyOf(from), strategyOf(to)},
	} {
		if p[0] == p[1] {
			parts = append(parts, p[0])
			continue
		}
		text := p[0] + " -> " + strings.TrimPrefix(p[1], "class ")
		parts, changed = append(parts, text), append(changed, text)
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

// boundsOf returns the bounds of the strategy, nil if it has none.
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
