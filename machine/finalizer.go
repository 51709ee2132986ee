// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ClassObservation is what is known about one class.
type ClassObservation struct {
	// Class is the class as last read. Nil decides nothing.
	Class *v1alpha1.MachineClass
	// Users are the machines, sets and deployments that may need the class: pointers, in any order.
	Users []metav1.Object
	// Complete means that Users are all of them. Without it no finalizer is removed.
	Complete bool
}

// DecideClass returns the next step for one class. The class has a finalizer while a machine, a set
// or a deployment needs it. A set or deployment that is being deleted creates no machine. An empty set
// of a deployment is only kept for a rollback, so that an old class can be deleted. A class that is being
// deleted gets no finalizer.
func DecideClass(in ClassObservation, now time.Time) Decision {
	c := in.Class
	if c == nil {
		return Decision{Reason: ReasonNotObserved}
	}
	var user string
	for _, o := range in.Users {
		if name, needed := facts.ClassNeeded(o); needed && o.GetNamespace() == c.Namespace && name == c.Name {
			user = subjectOf(o)
			break
		}
	}
	return decideFinalizer(c, v1alpha1.MCMFinalizerName, user, in.Complete, now)
}

// SecretObservation is what is known about one secret.
type SecretObservation struct {
	// Secret is the secret as last read. Nil decides nothing.
	Secret *corev1.Secret
	// Classes are the classes that may refer to the secret, in any order.
	Classes []*v1alpha1.MachineClass
	// Complete means that Classes are all classes. Without it no finalizer is removed.
	Complete bool
}

// DecideSecret returns the next step for one secret. The secret has a finalizer while a class
// refers to it, by name and namespace. It does not read the data of the secret.
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
	return decideFinalizer(s, v1alpha1.MCFinalizerName, user, in.Complete, now)
}

// object is a pointer to a typed object.
type object[T any] interface {
	metav1.Object
	DeepCopy() T
}

// decideFinalizer returns the next step for a finalizer that stays while user is not empty.
func decideFinalizer[T object[T]](o T, finalizer, user string, complete bool, now time.Time) Decision {
	write := func(finalizers []string, what string, why machinist.Reason) Decision {
		next := o.DeepCopy()
		next.SetFinalizers(finalizers)
		do := machinist.Update{Before: o, Object: next, Unchanged: true, Changes: []string{what}}
		return Decision{Action: do, Reason: why, Message: user, NextCheck: now.Add(recheckAfter)}
	}
	has, deleting := facts.HasFinalizer(o, finalizer), o.GetDeletionTimestamp() != nil
	switch {
	case user != "" && !has && !deleting:
		return write(append(slices.Clone(o.GetFinalizers()), finalizer), "finalizer", reasonReferenced)
	case user != "" && deleting:
		return hold(machinist.Hold{Subject: user, Reason: reasonReferenced, Message: "refers to it", Until: now.Add(recheckAfter)})
	case user != "":
		return settled(reasonReferenced)
	case !has:
		return settled(reasonReleased)
	case !complete:
		return hold(machinist.Hold{
			Subject: subjectOf(o), Reason: ReasonNotObserved, Message: "the list of objects that may refer to it is incomplete",
			Until: now.Add(recheckAfter),
		})
	default:
		return write(withoutFinalizer(o.GetFinalizers(), finalizer), "no finalizer", reasonReleased)
	}
}

// withoutFinalizer returns the finalizers without name, in the same order.
func withoutFinalizer(finalizers []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == name })
}
