// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// The reasons of Events on a class.
const (
	orphanDeleted        machinist.Reason = "OrphanDeleted"
	orphanDeletionFailed machinist.Reason = "OrphanDeletionFailed"
)

// list lists the VMs of a class, and its side resources if the driver lists any.
func (r *orphans) list(ctx context.Context, class *v1alpha1.MachineClass, secret *corev1.Secret) safety.Listing {
	r.asking.Add(1)
	defer r.asking.Add(-1)
	var vms map[string]string
	response, err := driver.Answer(r.cfg.Driver.ListMachines(ctx, &driver.ListMachinesRequest{MachineClass: class, Secret: secret}))
	if response != nil {
		vms = response.MachineList
	}
	l := safety.NewListing(types.NamespacedName{Namespace: class.Namespace, Name: class.Name}, vms, err, r.cfg.Clock.Now())
	lister, ok := driver.As[driver.SideResourceLister](r.cfg.Driver)
	if !ok || err != nil {
		return l
	}
	_, l.DeletesSideResources = driver.As[driver.SideResourceDeleter](r.cfg.Driver)
	sides, err := driver.Answer(lister.ListSideResources(ctx, &driver.ListSideResourcesRequest{MachineClass: class, Secret: secret}))
	if err == nil {
		l.SideResources.Items = sides.Resources
	}
	if codes.Of(err) != codes.Unimplemented {
		l.SideResources.AsOf, l.SideResources.Complete = r.cfg.Clock.Now(), err == nil
	}
	return l
}

// apply deletes a VM or a side resource, after it has read the machine of its name once more.
func (r *orphans) apply(ctx context.Context, do machinist.Action) error {
	switch a := do.(type) {
	case safety.DeleteVM:
		class, secret, right, err := r.recheck(ctx, a.Namespace, a.Class, a.MachineName, a.StillValid)
		if err != nil || !right {
			return err
		}
		_, err = driver.Answer(r.cfg.Driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: a.Machine(), MachineClass: class, Secret: secret}))
		if err = r.reportDeletion(class, "VM", fmt.Sprintf("%s of machine %s", a.ProviderID, a.MachineName), a.Reason, a.Message, err); err != nil {
			r.deletionFailed(a)
			return err
		}
		r.deleteNodesOf(a)
		return nil
	case safety.DeleteSideResource:
		class, secret, right, err := r.recheck(ctx, a.Namespace, a.Class, a.Resource.MachineName, a.StillValid)
		if err != nil || !right {
			return err
		}
		deleter, ok := driver.As[driver.SideResourceDeleter](r.cfg.Driver)
		if !ok {
			return fmt.Errorf("the driver does not implement SideResourceDeleter: %s", a)
		}
		_, err = driver.Answer(deleter.DeleteSideResource(ctx, &driver.DeleteSideResourceRequest{Resource: a.Resource, MachineClass: class, Secret: secret}))
		return r.reportDeletion(class, a.Resource.Kind, fmt.Sprintf("%s of machine %s", a.Resource.ID, a.Resource.MachineName), a.Reason, a.Message, err)
	default:
		return fmt.Errorf("unknown action %T", do)
	}
}

// recheck reads the class, its Secret and the machine from the API server. It reports whether the
// deletion is still right.
func (r *orphans) recheck(ctx context.Context, namespace, className, machineName string, right func(*v1alpha1.Machine) bool) (*v1alpha1.MachineClass, *corev1.Secret, bool, error) {
	class, secret, err := r.read(ctx, cache.NewObjectName(namespace, className))
	if err != nil {
		return nil, nil, false, err
	}
	live, err := r.cfg.Machines.MachineV1alpha1().Machines(namespace).Get(ctx, machineName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		live = nil
	case err != nil:
		return nil, nil, false, err
	}
	return class, secret, right(live), nil
}

// reportDeletion records an Event about a deletion and counts it. It returns the error. An object
// that was already deleted has none of them.
func (r *orphans) reportDeletion(class *v1alpha1.MachineClass, kind, name string, reason machinist.Reason, message string, err error) error {
	what := kind + " " + name
	e := machinist.Event{Type: corev1.EventTypeNormal, Reason: orphanDeleted, Message: fmt.Sprintf("%s is being deleted (%s): %s", what, reason, message)}
	if codes.Of(err) == codes.NotFound {
		return nil
	}
	if r.cfg.Collected != nil {
		r.cfg.Collected(kind, err)
	}
	if err != nil {
		e = machinist.Event{
			Type: corev1.EventTypeWarning, Reason: orphanDeletionFailed,
			Message: fmt.Sprintf("%s could not be deleted (%s): %v; the deletion is repeated if the next listing contains it", what, reason, err),
		}
	}
	r.cfg.event(class, e)
	return err
}
