// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// addFinalizer returns the update that adds the finalizer of this controller to a set.
func addFinalizer(set *v1alpha1.MachineSet) machinist.Update {
	next := set.DeepCopy()
	next.Finalizers = append(next.Finalizers, v1alpha1.MCMFinalizerName)
	return machinist.Update{Before: set, Object: next, Unchanged: true, Changes: []string{"finalizer added"}}
}

// removeFinalizer returns the update that removes the finalizer of this controller from a set.
func removeFinalizer(set *v1alpha1.MachineSet) machinist.Update {
	next := set.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == v1alpha1.MCMFinalizerName })
	return machinist.Update{Before: set, Object: next, Unchanged: true, Changes: []string{"finalizer removed"}}
}

// withoutRetry returns the update that removes the annotation retry-now from a set.
func withoutRetry(set *v1alpha1.MachineSet) machinist.Update {
	next := set.DeepCopy()
	delete(next.Annotations, v1alpha1.RetryNowAnnotation)
	return machinist.Update{Before: set, Object: next, Unchanged: true, Changes: []string{"retry now"}}
}

// deletion returns the deletion of a machine. by is why it was chosen and not another: see [Victim].
// A Failed machine may recover before the request, so it has to be unchanged.
func deletion(m *v1alpha1.Machine, reason machinist.Reason, by string) machinist.Delete {
	d := machinist.Delete{Object: m, Reason: reason, Unchanged: reason == reasonFailed}
	if by != "" {
		d.Message = "chosen by " + by
	}
	return d
}

// reasonOf returns the reason of an action.
func reasonOf(a machinist.Action) machinist.Reason {
	switch a := a.(type) {
	case machinist.Create:
		return reasonTooFew
	case machinist.Delete:
		return a.Reason
	case machinist.Refresh:
		if a == allMachines {
			return reasonIncomplete
		}
		return reasonNotSeen
	case machinist.Update:
		set, ok := a.Before.(*v1alpha1.MachineSet)
		switch {
		case !ok:
			return reasonOutOfSync
		case set.DeletionTimestamp != nil:
			return reasonSetDeleting
		case slices.Contains(set.Finalizers, v1alpha1.MCMFinalizerName):
			return reasonRetryNow
		default:
			return reasonNoFinalizer
		}
	}
	return ""
}

// allMachines requests a list of the machines of the set.
var allMachines = machinist.Refresh{Kind: v1alpha1.MachineKind}

// Event returns the Event after the response to an action of a set for the machine of this name. err is the
// error of the response or nil. The Event of an update is about the machine, and the others are about
// the set. It has no reason if there is nothing to report: of the updates, only one that puts back what a
// user has changed is reported. Report nothing for a machine that did not exist, or for a response that
// the end of the caller has canceled.
func Event(set *v1alpha1.MachineSet, a machinist.Action, name string, err error) machinist.Event {
	switch a := a.(type) {
	case machinist.Create:
		if err != nil {
			return machinist.Event{Type: corev1.EventTypeWarning, Reason: eventNotCreated, Message: "Error creating: " + err.Error()}
		}
		return machinist.Event{Type: corev1.EventTypeNormal, Reason: eventCreated, Message: "Created Machine: " + name}
	case machinist.Delete:
		if err != nil {
			return machinist.Event{Type: corev1.EventTypeWarning, Reason: eventNotDeleted, Message: "Error deleting: " + err.Error()}
		}
		return machinist.Event{Type: corev1.EventTypeNormal, Reason: eventDeleted, Message: "Deleted machine: " + name}
	case machinist.Update:
		if err == nil {
			return putBackEvent(set, a)
		}
	}
	return machinist.Event{}
}

// putBackEvent returns the Event of a machine whose update by its set puts back what a user has changed: the
// set has not changed since its last pass. It has no reason for any other update.
func putBackEvent(set *v1alpha1.MachineSet, u machinist.Update) machinist.Event {
	m, ok := u.Before.(*v1alpha1.Machine)
	if !ok || m == nil || set == nil || set.Generation == 0 || set.Status.ObservedGeneration != set.Generation || updatedInPlace(set, m) {
		return machinist.Event{}
	}
	fields := slices.DeleteFunc(slices.Clone(u.Changes), func(c string) bool { return !slices.Contains(templateFields, c) })
	if len(fields) == 0 {
		return machinist.Event{}
	}
	owner := "machineset " + set.Name
	if d := metav1.GetControllerOfNoCopy(set); d != nil {
		owner = strings.ToLower(d.Kind) + " " + d.Name
	}
	return machinist.Event{
		Type: corev1.EventTypeNormal, Reason: eventPutBack,
		Message: fmt.Sprintf("Put back to the template of machineset %s: %s. To change machines, change the template of %s", set.Name, strings.Join(fields, ", "), owner),
	}
}
