// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The judge knows which objects name a class or a Secret. It does not ask package machine.

// namesClass reports whether a stored object names the class small for machines that exist or may be
// created. Sets of a deployment count while they have replicas.
func (w *world) namesClass() string {
	named := func(spec v1alpha1.MachineSpec) bool {
		return spec.Class.Name == "small" && spec.Class.Kind == v1alpha1.MachineClassKind
	}
	for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
		if named(m.Spec) {
			return "machine " + m.Name
		}
	}
	for _, s := range all[*v1alpha1.MachineSet](w.control, "machinesets") {
		if s.DeletionTimestamp.IsZero() && s.Spec.Replicas > 0 && named(s.Spec.Template.Spec) {
			return "set " + s.Name
		}
	}
	for _, d := range all[*v1alpha1.MachineDeployment](w.control, "machinedeployments") {
		if d.DeletionTimestamp.IsZero() && named(d.Spec.Template.Spec) {
			return "deployment " + d.Name
		}
	}
	return ""
}

// assessNeeded checks that no write removes the finalizer of a class or Secret that another object
// names.
func (w *world) assessNeeded(write draintest.Write) {
	removed := func(finalizer string) bool {
		was, _ := write.Before.(metav1.Object)
		is, _ := write.After.(metav1.Object)
		return was != nil && guarded(was, finalizer) && (is == nil || !guarded(is, finalizer))
	}
	switch write.Before.(type) {
	case *v1alpha1.MachineClass:
		if user := w.namesClass(); user != "" && removed(v1alpha1.MCMFinalizerName) {
			w.violate("class %s lost its finalizer, and %s names it", write.Name, user)
		}
	case *corev1.Secret:
		if w.class() != nil && removed(v1alpha1.MCFinalizerName) {
			w.violate("secret %s lost its finalizer, and its class exists", write.Name)
		}
	}
}

func (w *world) class() *v1alpha1.MachineClass {
	return stored[*v1alpha1.MachineClass](w.control, "machineclasses", keyOf(ns, "small"))
}
