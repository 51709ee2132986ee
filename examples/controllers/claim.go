// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// ownerKey returns the index key for the owner of an object: the UID of its controller, or the
// namespace of an object without controller.
func ownerKey[T metav1.Object](o T) []string {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return []string{string(owner.UID)}
	}
	return []string{o.GetNamespace()}
}

// claim finds the objects of an owner, and those to adopt and to release. of returns the objects with
// an ownerKey. Objects of other shards are not adopted.
func claim[T interface {
	metav1.Object
	runtime.Object
}](owner machineset.Owner, object metav1.Object, selector *metav1.LabelSelector, of func(ownerKey string) []T) machineset.Claims[T] {
	orphans := slices.DeleteFunc(of(owner.Namespace), func(o T) bool { return o.GetLabels()[ShardLabel] != object.GetLabels()[ShardLabel] })
	return machineset.Claim(owner, selector, slices.Concat(of(string(owner.UID)), orphans))
}

// liveMachines lists the machines of a namespace that a selector matches from the API server. The first
// lists of a new process may be older than the last writes of the process before it. A nil selector
// matches all.
func liveMachines(ctx context.Context, client versioned.Interface, namespace string, selector *metav1.LabelSelector) ([]*v1alpha1.Machine, error) {
	list, err := client.MachineV1alpha1().Machines(namespace).List(ctx, listOptions(selector))
	if err != nil {
		return nil, err
	}
	return pointers(list.Items), nil
}

// pointers returns pointers to the items of a list.
func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// listOptions returns the options of a list of the objects that a selector matches. A nil selector
// matches all.
func listOptions(selector *metav1.LabelSelector) (options metav1.ListOptions) {
	if selector != nil {
		options.LabelSelector = metav1.FormatLabelSelector(selector)
	}
	return options
}

// setClients returns the clients of sets and deployments.
func (c *Config) setClients() clients {
	return clients{machines: c.SetClient, core: c.Target}
}

// writeClaims adopts and releases objects for an owner. live is the owner, just read from the API
// server.
func writeClaims[T metav1.Object](ctx context.Context, send clients, claims machineset.Claims[T], owner machineset.Owner, live metav1.Object) error {
	if len(claims.Adopt) > 0 {
		if err := owner.MayAdopt(live); err != nil {
			return err
		}
	}
	for _, u := range slices.Concat(claims.Adopt, claims.Release) {
		if _, err := send.update(ctx, u); ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
