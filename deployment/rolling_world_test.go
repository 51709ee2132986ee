// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// rollNow is the time at which the tests of roll-outs begin.
var rollNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// rollPolicy leaves the Nodes alone.
var rollPolicy = deployment.Policy{Discourage: deployment.DiscourageNone}

// rollDeployment wants machines of class c1.
func rollDeployment(replicas int32, kind v1alpha1.MachineDeploymentStrategyType, surge, unavailable intstr.IntOrString) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{}
	d.Name, d.Namespace, d.UID, d.Generation = "md", "ns", "uid-md", 1
	d.Finalizers = []string{v1alpha1.MCMFinalizerName}
	d.Spec.Replicas = replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}
	d.Spec.Template.Labels = map[string]string{"app": "w"}
	d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "c1"}
	d.Spec.Strategy.Type = kind
	u := v1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &unavailable}
	switch kind {
	case v1alpha1.RollingUpdateMachineDeploymentStrategyType:
		d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: u}
	case v1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
		d.Spec.Strategy.InPlaceUpdate = &v1alpha1.InPlaceUpdateMachineDeployment{UpdateConfiguration: u, OrchestrationType: v1alpha1.OrchestrationTypeAuto}
	}
	return d
}

func rolling(replicas, surge, unavailable int32) *v1alpha1.MachineDeployment {
	return rollDeployment(replicas, v1alpha1.RollingUpdateMachineDeploymentStrategyType, intstr.FromInt32(surge), intstr.FromInt32(unavailable))
}

// rollSet is a set of a class that has reported.
func rollSet(d *v1alpha1.MachineDeployment, class string, spec, replicas, available int32) *v1alpha1.MachineSet {
	d = d.DeepCopy()
	d.Spec.Template.Spec.Class.Name = class
	s := deployment.BuildSet(d, nil, spec)
	s.Name, s.UID, s.Generation = "md-"+class, types.UID(class), 1
	s.Finalizers = []string{v1alpha1.MCMFinalizerName}
	s.Annotations[v1alpha1.RevisionAnnotation] = "1"
	if deployment.EqualIgnoreHash(s.Spec.Template, d.Spec.Template) && class == "c1" {
		s.Annotations[v1alpha1.RevisionAnnotation] = "2"
	}
	s.CreationTimestamp = metav1.NewTime(rollNow.Add(-time.Hour))
	s.Status = v1alpha1.MachineSetStatus{Replicas: replicas, AvailableReplicas: available, ReadyReplicas: available, FullyLabeledReplicas: replicas, ObservedGeneration: 1}
	return s
}

// rollMachine is a machine of a set.
func rollMachine(s *v1alpha1.MachineSet, name string, phase v1alpha1.MachinePhase) *v1alpha1.Machine {
	m := &v1alpha1.Machine{}
	m.Name, m.Namespace, m.UID = name, s.Namespace, types.UID("uid-"+name)
	m.Labels = map[string]string{v1alpha1.NodeLabelKey: "node-" + name}
	maps.Copy(m.Labels, s.Spec.Template.Labels)
	m.Spec = *s.Spec.Template.Spec.DeepCopy()
	m.CreationTimestamp = metav1.NewTime(rollNow.Add(-time.Hour))
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))}
	m.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: metav1.NewTime(rollNow.Add(-time.Hour))}
	return m
}

// rollMachines fit the statuses of sets: the first ones are available.
func rollMachines(sets ...*v1alpha1.MachineSet) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	for _, s := range sets {
		if s == nil {
			continue
		}
		for i := range min(max(0, s.Status.Replicas), 50) {
			phase := v1alpha1.MachineRunning
			if i >= s.Status.AvailableReplicas {
				phase = v1alpha1.MachinePending
			}
			out = append(out, rollMachine(s, fmt.Sprintf("%s-%02d", s.Name, i), phase))
		}
	}
	return out
}

// rollSee is a complete view of sets and the machines that fit them.
func rollSee(d *v1alpha1.MachineDeployment, sets ...*v1alpha1.MachineSet) deployment.Observation {
	return deployment.Observation{Deployment: d, Sets: sets, Machines: rollMachines(sets...), Complete: true}
}

func rollPlan(d *v1alpha1.MachineDeployment, sets ...*v1alpha1.MachineSet) deployment.Decision {
	return deployment.Decide(rollSee(d, sets...), rollPolicy, rollNow)
}

// rollLines are the actions on sets.
func rollLines(dec deployment.Decision) []string {
	var out []string
	for _, a := range dec.Actions {
		switch a := a.(type) {
		case deployment.WriteSet:
			if a.From != a.Set.Spec.Replicas {
				out = append(out, a.String())
			}
		case deployment.CreateSet, deployment.DeleteSet:
			out = append(out, a.String())
		}
	}
	return out
}

func rollReasons(dec deployment.Decision) []machinist.Reason {
	var out []machinist.Reason
	for _, h := range dec.Holds {
		out = append(out, h.Reason)
	}
	return out
}

func rollVictims(t deployment.Target) []string {
	var out []string
	for _, v := range t.Victims {
		out = append(out, v.Machine.Name)
	}
	return out
}
