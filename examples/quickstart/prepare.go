// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// simulated is the provider of classes without a provider.
const simulated = "simulated"

// prepare makes manifests ready to be applied. It removes fields that belong to another API server,
// and adds missing classes and Secrets. It returns an error for an invalid object.
func (m *manifests) prepare() error {
	m.clean()
	m.release()
	m.addDeployment()
	m.addClasses()
	m.addSecrets()
	return m.validate()
}

// objects returns all objects except Secrets in the order of creation.
func (m *manifests) objects() []metav1.Object {
	var all []metav1.Object
	for _, c := range m.classes {
		all = append(all, c)
	}
	for _, d := range m.deployments {
		all = append(all, d)
	}
	for _, s := range m.sets {
		all = append(all, s)
	}
	for _, o := range m.machines {
		all = append(all, o)
	}
	return all
}

// clean removes the fields that the original API server and cloud have set.
func (m *manifests) clean() {
	for _, o := range m.objects() {
		cleanMeta(o)
	}
	for _, s := range m.secrets {
		cleanMeta(s)
		for key, value := range s.StringData { // like an API server
			if s.Data == nil {
				s.Data = map[string][]byte{}
			}
			s.Data[key] = []byte(value)
		}
		s.StringData = nil
	}
	for _, d := range m.deployments {
		d.Status = v1alpha1.MachineDeploymentStatus{}
	}
	for _, s := range m.sets {
		s.Status = v1alpha1.MachineSetStatus{}
	}
	for _, o := range m.machines {
		if o.Spec.ProviderID != "" {
			m.note("machine %s: VM %s is not in the simulated cloud; the machine gets a new VM", o.Name, o.Spec.ProviderID)
		}
		o.Spec.ProviderID, o.Status = "", v1alpha1.MachineStatus{}
		delete(o.Labels, v1alpha1.NodeLabelKey)
	}
}

func cleanMeta(o metav1.Object) {
	o.SetNamespace(cmp.Or(o.GetNamespace(), metav1.NamespaceDefault))
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetCreationTimestamp(metav1.Time{})
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	o.SetManagedFields(nil)
	o.SetSelfLink("")
}

// settled is the maximum of minReadySeconds.
const settled = 5

// release removes what would delay the demo: a pause, a freeze, a rollback to a
// revision that does not exist here, a manual selection of Nodes.
func (m *manifests) release() {
	for _, d := range m.deployments {
		if d.Spec.Paused || d.Spec.RollbackTo != nil || d.Labels[v1alpha1.FreezeLabelKey] != "" {
			m.note("machine deployment %s is paused, frozen or rolled back in the manifest; the demo ignores that", d.Name)
		}
		d.Spec.Paused, d.Spec.RollbackTo = false, nil
		delete(d.Labels, v1alpha1.FreezeLabelKey)
		if d.Spec.MinReadySeconds > settled {
			m.note("machine deployment %s has minReadySeconds %d; the demo uses %d", d.Name, d.Spec.MinReadySeconds, settled)
			d.Spec.MinReadySeconds = settled
		}
		if in := d.Spec.Strategy.InPlaceUpdate; in != nil && in.OrchestrationType == v1alpha1.OrchestrationTypeManual {
			m.note("machine deployment %s has the orchestration type Manual; the demo uses Auto", d.Name)
			in.OrchestrationType = v1alpha1.OrchestrationTypeAuto
		}
	}
	for _, s := range m.sets {
		_, disabled := s.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled]
		if s.Labels[v1alpha1.FreezeLabelKey] != "" || disabled {
			m.note("machine set %s is frozen; the demo unfreezes it", s.Name)
		}
		delete(s.Labels, v1alpha1.FreezeLabelKey)
		delete(s.Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
	}
}

// rolling reports whether all deployments replace their machines step by step, so that pods always
// have a Node and a PodDisruptionBudget can be kept.
func (m *manifests) rolling() bool {
	for _, d := range m.deployments {
		b, err := deployment.BoundsOf(d)
		rolling := err == nil && d.Spec.Strategy.Type == v1alpha1.RollingUpdateMachineDeploymentStrategyType
		if !rolling || b.Surge == 0 && b.Least() == 0 {
			return false
		}
	}
	return true
}

// addDeployment adds a deployment for an unused class.
func (m *manifests) addDeployment() {
	if len(m.machines)+len(m.sets)+len(m.deployments) > 0 || len(m.classes) == 0 {
		return
	}
	class, one, none := m.classes[0], intstr.FromInt32(1), intstr.FromInt32(0)
	labels := map[string]string{v1alpha1.LabelKeyMachineDeploymentName: "workers"}
	m.note("machine class %s is not used; the demo adds a machine deployment for it", class.Name)
	m.deployments = append(m.deployments, &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: class.Namespace, Name: "workers"},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: 3,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &one, MaxUnavailable: &none},
				},
			},
			Template: v1alpha1.MachineTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: class.Name}},
			},
		},
	})
}

// classRef is a reference to a class.
type classRef struct{ namespace, name, user string }

func (m *manifests) classRefs() []classRef {
	var refs []classRef
	for _, d := range m.deployments {
		refs = append(refs, classRef{d.Namespace, d.Spec.Template.Spec.Class.Name, "machine deployment " + d.Name})
	}
	for _, s := range m.sets {
		refs = append(refs, classRef{s.Namespace, s.Spec.Template.Spec.Class.Name, "machine set " + s.Name})
	}
	for _, o := range m.machines {
		refs = append(refs, classRef{o.Namespace, o.Spec.Class.Name, "machine " + o.Name})
	}
	return refs
}

// hasClass reports whether a class is in the manifests.
func (m *manifests) hasClass(namespace, name string) bool {
	return slices.ContainsFunc(m.classes, func(c *v1alpha1.MachineClass) bool { return c.Namespace == namespace && c.Name == name })
}

// addClasses adds the missing classes.
func (m *manifests) addClasses() {
	for _, ref := range m.classRefs() {
		if m.hasClass(ref.namespace, ref.name) || ref.name == "" {
			continue
		}
		m.note("machine class %s of %s is not in the manifests; the demo adds an empty one", ref.name, ref.user)
		m.classes = append(m.classes, &v1alpha1.MachineClass{
			ObjectMeta:   metav1.ObjectMeta{Namespace: ref.namespace, Name: ref.name},
			Provider:     m.provider(),
			ProviderSpec: runtime.RawExtension{Raw: []byte(`{}`)},
			SecretRef:    &corev1.SecretReference{Namespace: ref.namespace, Name: ref.name},
		})
	}
	for _, c := range m.classes {
		c.Provider = cmp.Or(c.Provider, m.provider())
	}
}

// provider returns the provider of the classes.
func (m *manifests) provider() string {
	for _, c := range m.classes {
		if c.Provider != "" {
			return c.Provider
		}
	}
	return simulated
}

// addSecrets adds the missing Secrets. A class without a Secret gets one for its user data.
func (m *manifests) addSecrets() {
	for _, c := range m.classes {
		if c.SecretRef == nil {
			c.SecretRef = &corev1.SecretReference{Namespace: c.Namespace, Name: c.Name}
		}
		for _, ref := range machine.SecretRefs(c) {
			there := slices.ContainsFunc(m.secrets, func(s *corev1.Secret) bool {
				return s.Namespace == ref.Namespace && s.Name == ref.Name
			})
			if there {
				continue
			}
			m.note("Secret %s of machine class %s is not in the manifests; the demo adds one", ref.Name, c.Name)
			m.secrets = append(m.secrets, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name},
				Data:       map[string][]byte{machine.UserDataKey: []byte("#!/bin/sh\necho " + machine.MachineNamePlaceholder + "\n")},
			})
		}
	}
}

// validate returns an error for an invalid object.
func (m *manifests) validate() error {
	for _, c := range m.classes {
		if c.Provider != m.provider() {
			return fmt.Errorf("machine classes have two providers, %q and %q; the demo has one cloud", m.provider(), c.Provider)
		}
	}
	for _, d := range m.deployments {
		if errs := deployment.Validate(d); len(errs) > 0 {
			return invalid("MachineDeployment", d.Name, errs)
		}
	}
	for _, s := range m.sets {
		if errs := machineset.Validate(s); len(errs) > 0 {
			return invalid("MachineSet", s.Name, errs)
		}
	}
	for _, o := range m.machines {
		if errs := machine.Validate(o); len(errs) > 0 {
			return invalid("Machine", o.Name, errs)
		}
	}
	return m.validateNames()
}

// validateNames returns an error for an object without a name or with a duplicate one.
func (m *manifests) validateNames() error {
	seen := map[string]bool{}
	for _, o := range m.objects() {
		key := fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())
		switch {
		case o.GetName() == "":
			return fmt.Errorf("%T without metadata.name", o)
		case seen[key]:
			return fmt.Errorf("%s/%s is in the manifests twice", o.GetNamespace(), o.GetName())
		}
		seen[key] = true
	}
	return nil
}

func invalid(kind, name string, errs field.ErrorList) error {
	return fmt.Errorf("%s %s: %s", kind, name, oneLine(errs.ToAggregate()))
}
