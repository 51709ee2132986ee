// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// writer is another client that writes a number to the deployments and sets of a
// environment, as label and as annotation, and guards them. As a set takes the annotations
// of its deployment over, those of sets are called otherwise. It is for one goroutine.
type writer struct {
	s         *env.Env
	last      map[string]string // what was written last, by object; until it was let go
	writes    int
	conflicts int
	lost      []string
	failed    []error
}

// round writes to all deployments and sets. Sets that only we guard are let go.
func (w *writer) round(ctx context.Context) { w.all(ctx, false) }

// letGo lets the deployments go as well.
func (w *writer) letGo(ctx context.Context) { w.all(ctx, true) }

func (w *writer) all(ctx context.Context, end bool) {
	api := w.s.Machines.MachineV1alpha1()
	deployments, err1 := api.MachineDeployments(w.s.Namespace).List(ctx, metav1.ListOptions{})
	sets, err2 := api.MachineSets(w.s.Namespace).List(ctx, metav1.ListOptions{})
	if err1 != nil || err2 != nil {
		w.failed = append(w.failed, err1, err2)
		return
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		w.mark("deployment "+d.Name, d, end)
		_, err := api.MachineDeployments(w.s.Namespace).Update(ctx, d, metav1.UpdateOptions{})
		w.wrote("deployment "+d.Name, d, err)
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		w.mark("set "+set.Name, set, true)
		_, err := api.MachineSets(w.s.Namespace).Update(ctx, set, metav1.UpdateOptions{})
		w.wrote("set "+set.Name, set, err)
	}
}

// mark says what of the last number is missing, and gives an object another one.
func (w *writer) mark(key string, o metav1.Object, mayGo bool) {
	if last, marked := w.last[key]; marked {
		if label, annotation := o.GetLabels()[theirs], o.GetAnnotations()[annotationOf(o)]; label != last || annotation != last {
			w.lost = append(w.lost, fmt.Sprintf("%s has label %q and annotation %q, not %q", key, label, annotation, last))
		}
		if !slices.Contains(o.GetFinalizers(), theirs) {
			w.lost = append(w.lost, key+" has lost the finalizer")
		}
	} else if o.GetDeletionTimestamp() == nil {
		o.SetFinalizers(append(slices.Clone(o.GetFinalizers()), theirs))
	}
	if mayGo && o.GetDeletionTimestamp() != nil && slices.Equal(o.GetFinalizers(), []string{theirs}) {
		o.SetFinalizers(nil)
	}
	number := strconv.Itoa(w.writes)
	o.SetLabels(with(o.GetLabels(), theirs, number))
	o.SetAnnotations(with(o.GetAnnotations(), annotationOf(o), number))
}

// annotationOf returns how our annotation of an object is called.
func annotationOf(o metav1.Object) string {
	if _, ok := o.(*v1alpha1.MachineSet); ok {
		return theirs + "-on-sets"
	}
	return theirs
}

// with returns labels or annotations with one more, or another value of it.
func with(all map[string]string, key, value string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}

// wrote notes what a write came to.
func (w *writer) wrote(key string, o metav1.Object, err error) {
	switch {
	case apierrors.IsConflict(err):
		w.conflicts++
	case apierrors.IsNotFound(err):
		delete(w.last, key)
	case err != nil:
		w.failed = append(w.failed, fmt.Errorf("%s: %w", key, err))
	case slices.Contains(o.GetFinalizers(), theirs):
		w.last[key] = o.GetAnnotations()[annotationOf(o)]
		w.writes++
	default:
		delete(w.last, key)
	}
}
