// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Why a machine cannot be made; see [NewMachine] and [Name].
var (
	// ErrNoSet means that there is no set, or that it has no name.
	ErrNoSet = errors.New("no MachineSet")
	// ErrNoUID means that the set has no UID, so that nothing can refer to it.
	ErrNoUID = errors.New("MachineSet has no UID")
	// ErrNoLabels means that the template has no labels.
	ErrNoLabels = errors.New("template has no labels")
	// ErrNotSelected means that the set would not select the machine, and so
	// would create another one, and another one.
	ErrNotSelected = errors.New("selector does not match the labels of the template")
	// ErrBadName means that a name, or the suffix of one, is not usable.
	ErrBadName = errors.New("not a usable name")
)

// maxNameLength keeps names usable as host names and label values.
const maxNameLength = 63

// Name returns the name of a new machine: that of the set, a dash and the
// suffix. It is cut before the suffix if it would be longer than 63 characters.
// The caller chooses the suffix: that of [Suffix] does, and a choice that can be repeated after a crash makes creations idempotent.
//
// Errors wrap [ErrNoSet] or [ErrBadName].
func Name(set *v1alpha1.MachineSet, suffix string) (string, error) {
	if set == nil || set.Name == "" {
		return "", ErrNoSet
	}
	if problems := validation.IsDNS1123Label(suffix); len(problems) > 0 || len(suffix) > maxNameLength/2 {
		return "", fmt.Errorf("%w: suffix %q", ErrBadName, suffix)
	}
	base := set.Name + "-"
	name := base[:min(len(base), maxNameLength-len(suffix))] + suffix
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", fmt.Errorf("%w: %q: %s", ErrBadName, name, problems[0])
	}
	return name, nil
}

// Suffix returns five random characters for [Name], without vowels so that they
// spell nothing. random returns numbers from 0 up to 1; nil returns always 0, which
// makes one name for all.
func Suffix(random func() float64) string {
	const characters = "bcdfghjklmnpqrstvwxz2456789"
	var s [5]byte
	for i := range s {
		var r float64
		if random != nil {
			r = random()
		}
		s[i] = characters[min(max(int(r*float64(len(characters))), 0), len(characters)-1)]
	}
	return string(s[:])
}

// NewMachine returns a machine of this name, made from the template of a set:
// labels, annotations, finalizers and spec are copied, and the set is its
// controller. It has the machine's finalizer and priority from birth, which the
// machine would otherwise have to be given before anything can be made of it:
// one write less in every life, and no moment in which it is unguarded. If the
// set carries the effective-creation-timeout annotation, so does the machine, and
// if it is readable it is the creation timeout of its configuration. The result
// shares nothing with the set.
//
// Errors wrap [ErrNoSet], [ErrNoUID], [ErrNoLabels], [ErrNotSelected] or
// [ErrBadName].
func NewMachine(set *v1alpha1.MachineSet, name string) (*v1alpha1.Machine, error) {
	if err := canCreate(set); err != nil {
		return nil, err
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return nil, fmt.Errorf("%w: %q: %s", ErrBadName, name, problems[0])
	}
	template := &set.Spec.Template
	annotations := map[string]string{v1alpha1.MachinePriority: strconv.Itoa(v1alpha1.DefaultMachinePriority)}
	maps.Copy(annotations, template.Annotations)
	if timeout, found := set.Annotations[v1alpha1.EffectiveCreationTimeout]; found {
		annotations[v1alpha1.EffectiveCreationTimeout] = timeout
	}
	finalizers := slices.Clone(template.Finalizers)
	if !slices.Contains(finalizers, v1alpha1.MCMFinalizerName) {
		finalizers = append(finalizers, v1alpha1.MCMFinalizerName)
	}
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: set.Namespace,
			Labels: maps.Clone(template.Labels), Annotations: annotations,
			Finalizers:      finalizers,
			OwnerReferences: []metav1.OwnerReference{OwnerSet(set).Reference()},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	m.Spec.MachineConfiguration = noneIfEmpty(configurationFor(template.Spec.MachineConfiguration, annotations))
	return m, nil
}

func canCreate(set *v1alpha1.MachineSet) error {
	switch {
	case set == nil || set.Name == "":
		return ErrNoSet
	case set.UID == "":
		return fmt.Errorf("%w: %s", ErrNoUID, set.Name)
	case len(set.Spec.Template.Labels) == 0:
		return fmt.Errorf("%w: %s", ErrNoLabels, set.Name)
	}
	selector, err := selectorOf(set.Spec.Selector)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(set.Spec.Template.Labels)) {
		return fmt.Errorf("%w: %s", ErrNotSelected, set.Name)
	}
	return nil
}
