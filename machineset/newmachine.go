// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// maxNameLength is the longest name that is also a host name and a label value.
const maxNameLength = 63

// NewMachine returns a machine of a creation with a name: the name of the set, a dash and the
// suffix. The name of the set is cut if the result has more than 63 characters. A suffix that is used
// again after a crash makes a creation idempotent. The result shares no memory with its argument.
//
// It returns an error if the suffix or the name of the set is invalid, or if the template has no
// labels. It also returns one for the creation of another object.
func NewMachine(c machinist.Create, suffix string) (*v1alpha1.Machine, error) {
	m, ok := c.Object.(*v1alpha1.Machine)
	if !ok || m == nil || len(m.Labels) == 0 || len(m.OwnerReferences) == 0 {
		return nil, errors.New("there is no machine with labels and an owner")
	}
	if problems := validation.IsDNS1123Label(suffix); len(problems) > 0 || len(suffix) > maxNameLength/2 {
		return nil, fmt.Errorf("suffix %q is not usable", suffix)
	}
	base := m.OwnerReferences[0].Name + "-"
	name := base[:min(len(base), maxNameLength-len(suffix))] + suffix
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return nil, fmt.Errorf("name %q is not usable: %s", name, problems[0])
	}
	m = m.DeepCopy()
	m.Name = name
	return m, nil
}

// newMachine returns a machine without a name from the template of a set.
//
// Labels, annotations, finalizers and spec are copies, and the set is the controller. The machine
// has the finalizer and the priority from the beginning, which saves a write. The
// effective-creation-timeout annotation of the set is copied and, if it is readable, becomes the
// creation timeout. So is [facts.JoinHeldAnnotation]. The result shares no memory with the set.
func newMachine(set *v1alpha1.MachineSet) *v1alpha1.Machine {
	template := set.Spec.Template.DeepCopy()
	annotations := map[string]string{v1alpha1.MachinePriority: strconv.Itoa(v1alpha1.DefaultMachinePriority)}
	maps.Copy(annotations, template.Annotations)
	if timeout, found := set.Annotations[v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout]; found {
		annotations[v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout] = timeout
	}
	if facts.JoinHeld(set) {
		annotations[facts.JoinHeldAnnotation] = set.Annotations[facts.JoinHeldAnnotation]
	}
	finalizers := template.Finalizers
	if !slices.Contains(finalizers, v1alpha1.MCMFinalizerName) {
		finalizers = append(finalizers, v1alpha1.MCMFinalizerName)
	}
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Labels: template.Labels, Annotations: annotations, Finalizers: finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.MachineSetKind))},
		},
		Spec: template.Spec,
	}
	m.Spec.MachineConfiguration = noneIfEmpty(configurationFor(m.Spec.MachineConfiguration, annotations))
	return m
}
