// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	// replacingAnnotation on a deployment is the name of the machine for whose replacement [Replace]
	// has added a replica, and the replicas since then: name~replicas. Fewer replicas mean that another
	// client has taken the replica back.
	replacingAnnotation = "machinist.dev/replacing"
	// reasonReplacing means that a machine of a deployment is being replaced on request.
	reasonReplacing machinist.Reason = "Replacing"
)

// errReplace is wrapped by the errors of [Replace].
var errReplace = errors.New("cannot replace the machine")

// Replace decides the next step of the replacement of one machine, for a program that carries it out
// beside the controller of the deployment. Call it again when an object has changed. The reason is
// [ReasonComplete] when the machine does not exist any more and nothing is left to do.
//
//   - A deployment with a surge gets one replica more and an annotation with the name of the machine, in
//     one write. Once as many other machines are available as there were replicas, [ScaleDown] deletes
//     the machine. If the program ends in between, the deployment has one replica more: the next call
//     continues, and [StopReplacing] takes the replica back.
//   - Otherwise the machine is deleted, and its set creates another one.
//
// It returns an error for a nil deployment, for one that is being deleted or has no replicas, for a
// machine of another owner, and while another machine of the deployment is being replaced.
func Replace(in Observation, name string, now time.Time) (Decision, error) {
	d := in.Deployment
	if d == nil {
		return Decision{}, fmt.Errorf("%w %s: no deployment", errReplace, name)
	}
	m, _ := in.find(v1alpha1.MachineKind, name).(*v1alpha1.Machine)
	if m != nil && !in.owns(m) {
		return Decision{}, fmt.Errorf("%w %s: machinedeployment %s does not own it", errReplace, name, d.Name)
	}
	replacing, added := replacingOf(d)
	switch leaving := m != nil && members.Leaving(m); {
	case replacing != "" && replacing != name:
		return Decision{}, fmt.Errorf("%w %s: machine %s of machinedeployment %s is being replaced", errReplace, name, replacing, d.Name)
	case replacing != "" && !added:
		next, _ := StopReplacing(d)
		return replaceBy(d, next, "another client has taken back the replica that was added to replace machine "+name), nil
	case replacing != "" && (m == nil || leaving):
		next, _ := StopReplacing(d)
		return replaceBy(d, next, fmt.Sprintf("%s less, because machine %s is deleted", replicas(1), name)), nil
	case m == nil && in.Complete:
		return Decision{Reason: ReasonComplete, Message: "machine " + name + " is replaced"}, nil
	case m == nil:
		return replaceHeld("machinedeployment/"+d.Name, reasonViewIncomplete, "the lists of sets and machines are not known to be complete"), nil
	case leaving, slices.Contains(counted(d), name):
		return replaceHeld("machine/"+name, reasonReplacing, "it is being deleted"), nil
	case d.DeletionTimestamp != nil || d.Spec.Replicas <= 0:
		return Decision{}, fmt.Errorf("%w %s: machinedeployment %s wants no machines", errReplace, name, d.Name)
	}
	return in.replace(m, now)
}

// replacingOf returns the machine that is being replaced, and whether the replica for it is still there.
func replacingOf(d *v1alpha1.MachineDeployment) (machine string, added bool) {
	machine, text, _ := strings.Cut(d.Annotations[replacingAnnotation], "~")
	since, err := strconv.ParseInt(text, 10, 32)
	return machine, machine != "" && err == nil && int64(d.Spec.Replicas) >= since
}

// owns reports whether a set of the observation controls a machine.
func (o Observation) owns(m *v1alpha1.Machine) bool {
	owner := metav1.GetControllerOfNoCopy(m)
	return owner != nil && slices.ContainsFunc(o.Sets, func(s *v1alpha1.MachineSet) bool { return s != nil && s.UID == owner.UID })
}

// replace decides about a machine that exists and is not being deleted.
func (o Observation) replace(m *v1alpha1.Machine, now time.Time) (Decision, error) {
	d := o.Deployment
	bounds, err := BoundsOf(d)
	if err != nil {
		return Decision{}, fmt.Errorf("%w %s: %w", errReplace, m.Name, err)
	}
	if d.Annotations[replacingAnnotation] == "" {
		if bounds.Surge == 0 {
			why := "its set creates another one: the strategy of its deployment has no surge"
			return Decision{Reason: reasonReplacing, Actions: []machinist.Action{machinist.Delete{Object: m, Message: why}}}, nil
		}
		next := d.DeepCopy()
		next.Spec.Replicas++
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, replacingAnnotation, fmt.Sprintf("%s~%d", m.Name, next.Spec.Replicas))
		return replaceBy(d, next, fmt.Sprintf("from %d to %d replicas to replace machine %s", d.Spec.Replicas, next.Spec.Replicas, m.Name)), nil
	}
	settle := time.Duration(max(0, d.Spec.MinReadySeconds)) * time.Second
	wanted := int64(d.Spec.Replicas) - 1
	available := count(o.Machines, func(other *v1alpha1.Machine) bool {
		return other != nil && other.Name != m.Name && o.owns(other) && !members.Leaving(other) && members.AvailableFor(other, settle, now)
	})
	if !o.Complete || available < wanted {
		held := replaceHeld("machinedeployment/"+d.Name, reasonWaitingForMachines, fmt.Sprintf("%d of %d other machines available", available, wanted))
		_, held.NextCheck = members.NextAvailable(o.Machines, settle, now)
		return held, nil
	}
	next, err := ScaleDown(d, []string{m.Name}, now)
	if err != nil {
		return Decision{}, err
	}
	delete(next.Annotations, replacingAnnotation)
	return replaceBy(d, next, fmt.Sprintf("from %d to %d replicas without machine %s; %d other machines available", d.Spec.Replicas, next.Spec.Replicas, m.Name, available)), nil
}

// StopReplacing returns a copy of a deployment without the replica that [Replace] has added, and whether
// something has to be written. A machine that is not available is deleted first.
func StopReplacing(d *v1alpha1.MachineDeployment) (*v1alpha1.MachineDeployment, bool) {
	if d == nil || d.Annotations[replacingAnnotation] == "" {
		return d, false
	}
	next := d.DeepCopy()
	if _, added := replacingOf(d); added {
		next.Spec.Replicas = max(0, next.Spec.Replicas-1)
	}
	delete(next.Annotations, replacingAnnotation)
	return next, true
}

func replaceBy(d, next *v1alpha1.MachineDeployment, why string) Decision {
	return Decision{Reason: reasonReplacing, Actions: []machinist.Action{machinist.Update{Before: d, Object: next, Unchanged: true, Changes: []string{why}}}}
}

func replaceHeld(subject string, reason machinist.Reason, message string) Decision {
	return Decision{Reason: reasonReplacing, Message: message, Holds: []machinist.Hold{{Subject: subject, Reason: reason, Message: message}}}
}
