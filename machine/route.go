// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Wake says who has to be looked at because an object has changed. Several may.
type Wake uint8

// Who is looked at.
const (
	// WakeMachine is the machine, or are those that use the object.
	WakeMachine Wake = 1 << iota
	// WakeOwner is whoever owns the machine.
	WakeOwner
	// WakeSiblings are the machines of the same deployment that wait for the
	// replacement limit: there may be room for one of them.
	WakeSiblings
	// WakeClass is the class, or are the classes, before and now.
	WakeClass
	// WakeSecret is the secret, or are the secrets, before and now.
	WakeSecret
	// WakeOrphans is the search for VMs that nobody owns.
	WakeOrphans
)

var wakeNames = [...]string{"machine", "owner", "siblings", "class", "secret", "orphans"}

// String names those who are woken.
func (w Wake) String() string {
	var names []string
	for i, name := range wakeNames {
		if w&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ",")
}

// OnMachine says who has to be looked at because a machine has changed from before
// to after. A nil before is one that was added, a nil after one that is gone, and
// two of different UIDs are one of each. Whatever [Decide] reads of a machine
// wakes it; what nobody reads, such as who manages which field, wakes nobody.
//
// Unlike the reference system, a change of status, labels, annotations and
// finalizers counts too: whoever changes them, the machine is looked at.
func OnMachine(before, after *v1alpha1.Machine) Wake {
	switch {
	case before == after:
		return 0
	case before == nil:
		return WakeMachine | WakeOwner | WakeClass
	case after == nil:
		return WakeOwner | WakeSiblings | WakeClass | WakeOrphans
	case before.UID != after.UID:
		return OnMachine(before, nil) | OnMachine(nil, after)
	}
	var w Wake
	if !sameMeta(&before.ObjectMeta, &after.ObjectMeta) || !sameSpec(&before.Spec, &after.Spec) || !sameStatus(&before.Status, &after.Status) {
		w |= WakeMachine | WakeOwner
	}
	if !slices.EqualFunc(before.OwnerReferences, after.OwnerReferences, sameOwner) {
		w |= WakeOwner | WakeSiblings
	}
	deployment := v1alpha1.LabelKeyMachineDeploymentName
	if replacements(after) < replacements(before) || before.Labels[deployment] != after.Labels[deployment] {
		w |= WakeSiblings
	}
	if before.Spec.Class != after.Spec.Class {
		w |= WakeClass
	}
	const conflict = codes.OutOfRange // the provider knows several VMs of the machine
	if code := after.Status.LastOperation.ErrorCode; code != before.Status.LastOperation.ErrorCode && code == conflict.String() {
		w |= WakeOrphans
	}
	return w
}

// OnNode says whether the machines that name a Node have to be looked at because
// it has changed from before to after. A nil before is a Node that was added, a nil
// after one that is gone. What a Node reports all the time does not matter: its
// heartbeats, images, volumes and addresses.
func OnNode(before, after *corev1.Node) bool {
	if before == nil || after == nil {
		return before != after
	}
	return before != after && (before.UID != after.UID ||
		!sameMeta(&before.ObjectMeta, &after.ObjectMeta) ||
		before.Spec.ProviderID != after.Spec.ProviderID ||
		before.Spec.Unschedulable != after.Spec.Unschedulable ||
		!slices.EqualFunc(before.Spec.Taints, after.Spec.Taints, sameTaint) ||
		!sameResources(before.Status.Capacity, after.Status.Capacity) ||
		!slices.EqualFunc(before.Status.Conditions, after.Status.Conditions, sameCondition))
}

// OnClass says who has to be looked at because a class has changed from before to
// after: the class, the machines that refer to it, and the secrets that it refers
// to or did. A nil before is a class that was added, a nil after one that is gone.
func OnClass(before, after *v1alpha1.MachineClass) Wake {
	switch {
	case before == after:
		return 0
	case before == nil || after == nil || before.UID != after.UID:
		return WakeClass | WakeMachine | WakeSecret
	}
	var w Wake
	if !same(before.SecretRef, after.SecretRef) || !same(before.CredentialsSecretRef, after.CredentialsSecretRef) {
		w |= WakeMachine | WakeSecret
	}
	if !sameMeta(&before.ObjectMeta, &after.ObjectMeta) || !sameClassContent(before, after) {
		w |= WakeClass | WakeMachine
	}
	return w
}

// OnSecret says who has to be looked at because a secret has changed from before to
// after: the secret, and the machines whose class refers to it. A nil before is a
// secret that was added, a nil after one that is gone. What is in it is compared,
// and nothing of it is kept.
func OnSecret(before, after *corev1.Secret) Wake {
	switch {
	case before == after:
		return 0
	case before == nil || after == nil || before.UID != after.UID:
		return WakeSecret | WakeMachine
	}
	var w Wake
	if !sameMeta(&before.ObjectMeta, &after.ObjectMeta) {
		w |= WakeSecret
	}
	if !sameData(before.Data, after.Data) {
		w |= WakeMachine
	}
	return w
}
