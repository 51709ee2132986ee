// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ClassObservation is what is known of one class.
type ClassObservation struct {
	// Class as last read. Nil decides nothing.
	Class *v1alpha1.MachineClass
	// Machines that may refer to the class, in any order.
	Machines []*v1alpha1.Machine
	// Complete says that Machines is the whole list of the namespace; without it
	// no finalizer is removed.
	Complete bool
}

// DecideClass returns the next step of one class: it is guarded by a finalizer
// as long as a machine refers to it, and let go when none does. A class that is
// being deleted gets no finalizer.
func DecideClass(in ClassObservation, now time.Time) Decision {
	c := in.Class
	if c == nil {
		return Decision{Reason: ReasonNotObserved}
	}
	i := slices.IndexFunc(in.Machines, func(m *v1alpha1.Machine) bool {
		return m != nil && m.Namespace == c.Namespace &&
			m.Spec.Class.Kind == v1alpha1.MachineClassKind && m.Spec.Class.Name == c.Name
	})
	var user string
	if i >= 0 {
		user = "machine/" + in.Machines[i].Name
	}
	return decideFinalizer(c, v1alpha1.MCMFinalizerName, user, in.Complete, now, func(finalizers []string, what string) Action {
		class := c.DeepCopy()
		class.Finalizers = finalizers
		return UpdateClass{Class: class, What: what}
	})
}

// SecretObservation is what is known of one secret.
type SecretObservation struct {
	// Secret as last read. Nil decides nothing.
	Secret *corev1.Secret
	// Classes that may refer to the secret, in any order.
	Classes []*v1alpha1.MachineClass
	// Complete says that Classes is the whole list; without it no finalizer is
	// removed.
	Complete bool
}

// DecideSecret returns the next step of one secret: it is guarded by a finalizer
// as long as a class refers to it, by name and namespace, and let go when none
// does. Nothing of a secret's data is read.
func DecideSecret(in SecretObservation, now time.Time) Decision {
	s := in.Secret
	if s == nil {
		return Decision{Reason: ReasonNotObserved}
	}
	i := slices.IndexFunc(in.Classes, func(c *v1alpha1.MachineClass) bool {
		return slices.Contains(SecretRefs(c), corev1.SecretReference{Name: s.Name, Namespace: s.Namespace})
	})
	var user string
	if i >= 0 {
		user = "machineclass/" + in.Classes[i].Name
	}
	return decideFinalizer(s, v1alpha1.MCFinalizerName, user, in.Complete, now, func(finalizers []string, what string) Action {
		secret := s.DeepCopy()
		secret.Finalizers = finalizers
		return UpdateSecret{Secret: secret, What: what}
	})
}

// ViewClass returns the view of a class which was looked for: of nil if there is
// none. data is what could be read of its secrets, merged by [MergeSecrets], and
// missing is what could not be read. The problem of the class is the one, or that
// the other has no user data to make a VM of. Nothing of the data is kept.
func ViewClass(c *v1alpha1.MachineClass, data map[string][]byte, missing error) ClassView {
	view := ClassView{Looked: true, Class: c}
	if c == nil {
		return view
	}
	view.NeedsToken = NeedsToken(data)
	_, complete := data[UserDataKey]
	switch {
	case missing != nil:
		view.Problem = missing.Error()
	case !complete:
		view.Problem = fmt.Sprintf("machine class %q: %v", c.Name, errNoUserData)
	}
	return view
}

// SecretRefs returns the secrets that a class refers to, user data first, each
// with a namespace: a reference without one means that of the class. A nil class
// refers to none.
func SecretRefs(c *v1alpha1.MachineClass) []corev1.SecretReference {
	if c == nil {
		return nil
	}
	var refs []corev1.SecretReference
	for _, ref := range []*corev1.SecretReference{c.SecretRef, c.CredentialsSecretRef} {
		if ref != nil && ref.Name != "" {
			refs = append(refs, corev1.SecretReference{Name: ref.Name, Namespace: cmp.Or(ref.Namespace, c.Namespace)})
		}
	}
	return refs
}

// MarshalText returns [UpdateSecret.String], so that the data of the secret is not
// logged as JSON. It never fails.
func (a UpdateSecret) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// decideFinalizer decides about a finalizer that stays as long as user is not empty. write
// makes the action that writes finalizers.
func decideFinalizer(o metav1.Object, finalizer, user string, complete bool, now time.Time, write func(finalizers []string, what string) Action) Decision {
	guarded, deleting := hasFinalizer(o, finalizer), o.GetDeletionTimestamp() != nil
	switch {
	case user != "" && !guarded && !deleting:
		do := write(append(slices.Clone(o.GetFinalizers()), finalizer), "finalizer")
		return Decision{Action: do, Reason: ReasonReferenced, Message: user, NextCheck: now.Add(recheckAfter)}
	case user != "" && deleting:
		return hold(machinist.Hold{Subject: user, Reason: ReasonReferenced, Message: "refers to it"})
	case user != "":
		return settled(ReasonReferenced)
	case !guarded:
		return settled(ReasonReleased)
	case !complete:
		return hold(machinist.Hold{Subject: "list", Reason: ReasonNotObserved, Message: "what may refer to it is not known", Until: now.Add(recheckAfter)})
	default:
		do := write(withoutFinalizer(o.GetFinalizers(), finalizer), "no finalizer")
		return Decision{Action: do, Reason: ReasonReleased, NextCheck: now.Add(recheckAfter)}
	}
}
