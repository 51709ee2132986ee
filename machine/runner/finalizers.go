// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/caches"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Finalizers keeps a finalizer on the classes that machines, sets and deployments need, and on the Secrets
// that classes refer to. The first lists of a process may lack such objects, so it lists them from the
// API server before a finalizer is removed. Use one for all objects of a process. Different objects may be
// reconciled at the same time, and the fields must not be changed.
type Finalizers struct {
	// Reader reads the observations. Required.
	Reader machinist.Reader
	// Requests are sent to the API server of the machine objects and of the Secrets of classes. Required.
	Requests machinist.Requests
	// Namespace is the namespace of the objects. Empty means all namespaces.
	Namespace string
	// NoSets means that the cluster serves no MachineSets and MachineDeployments.
	NoSets bool
	// Shard is the value of the label machinist.dev/shard of the classes that are reconciled. Others are
	// skipped. A Secret may be that of classes of several shards.
	Shard string
	// Clock is the clock of the decisions. Nil means the real clock.
	Clock clock.PassiveClock
	// Decided receives each decision before its action. The object is a *v1alpha1.MachineClass or a
	// *corev1.Secret, which is nil if it does not exist. Nil means none.
	Decided func(key types.NamespacedName, o metav1.Object, d machine.Decision)

	classes runners.Own[*v1alpha1.MachineClass]
	secrets runners.Own[*corev1.Secret]
}

// errUnusable is the error of Finalizers without a required field.
var errUnusable = errors.New("machine/runner: the Finalizers have no Reader or no Requests")

// ReconcileClass makes one pass over a class: see [Executor.Reconcile].
func (f *Finalizers) ReconcileClass(ctx context.Context, key types.NamespacedName) (time.Time, error) {
	if f.Reader == nil || f.Requests == nil {
		return time.Time{}, errUnusable
	}
	class, err := objects.Get[*v1alpha1.MachineClass](ctx, f.Reader, key.Namespace, key.Name)
	if err != nil {
		return time.Time{}, err
	}
	if class != nil && class.Labels[v1alpha1.ShardLabelKey] != f.Shard {
		class = nil // nothing is remembered of it
	}
	return reconcile(ctx, f, key, class, &f.classes, func(class *v1alpha1.MachineClass, live bool) (machine.Decision, error) {
		users, err := f.users(ctx, key, live)
		return machine.DecideClass(machine.ClassObservation{Class: class, Users: users, Complete: live}, runners.Now(f.Clock)), err
	})
}

// ReconcileSecret makes one pass over a Secret: see [Executor.Reconcile].
func (f *Finalizers) ReconcileSecret(ctx context.Context, key types.NamespacedName) (time.Time, error) {
	if f.Reader == nil || f.Requests == nil {
		return time.Time{}, errUnusable
	}
	secret, err := objects.Get[*corev1.Secret](ctx, f.Reader, key.Namespace, key.Name)
	if err != nil {
		return time.Time{}, err
	}
	return reconcile(ctx, f, key, secret, &f.secrets, func(secret *corev1.Secret, live bool) (machine.Decision, error) {
		classes, err := objects.List[*v1alpha1.MachineClass](ctx, f.Reader, runners.BySecret, key.String())
		if live {
			classes, err = runners.List[*v1alpha1.MachineClass](ctx, f.Requests, f.Namespace, nil)
		}
		return machine.DecideSecret(machine.SecretObservation{Secret: secret, Classes: classes, Complete: live}, runners.Now(f.Clock)), err
	})
}

// reconcile decides about an object, with the lists of the API server if the decision needs them, and
// writes it.
func reconcile[T objects.Object](
	ctx context.Context, f *Finalizers, key types.NamespacedName, o T, own *runners.Own[T],
	decide func(o T, live bool) (machine.Decision, error),
) (time.Time, error) {
	var none T
	if o == none {
		own.Forget(key)
		f.decided(key, o, machine.Decision{})
		return time.Time{}, nil
	}
	o, _ = own.Newest(o)
	d, err := decide(o, false)
	if err == nil && d.Reason == machine.ReasonNotObserved { // the finalizer is removed only after a live list
		d, err = decide(o, true)
	}
	if err != nil {
		return time.Time{}, err
	}
	f.decided(key, o, d)
	if d.Action == nil {
		return d.NextCheck, nil
	}
	u, ok := d.Action.(machinist.Update)
	if !ok {
		return time.Time{}, fmt.Errorf("unknown action %T", d.Action)
	}
	next, err := runners.Update(ctx, f.Requests, u)
	if stored, ok := next.(T); ok && err == nil {
		own.Put(stored)
	}
	return time.Time{}, objects.IgnoreNotFound(err)
}

func (f *Finalizers) decided(key types.NamespacedName, o metav1.Object, d machine.Decision) {
	if f.Decided != nil {
		f.Decided(key, o, d)
	}
}

// users returns the objects that need a class, or, live, all objects of its namespace that may need it from
// the API server.
func (f *Finalizers) users(ctx context.Context, class types.NamespacedName, live bool) (users []metav1.Object, _ error) {
	in := metav1.ObjectMeta{Namespace: class.Namespace}
	for _, o := range []machinist.Object{&v1alpha1.Machine{ObjectMeta: in}, &v1alpha1.MachineSet{ObjectMeta: in}, &v1alpha1.MachineDeployment{ObjectMeta: in}} {
		found, err := f.Reader.List(ctx, o, runners.ByNeeded, class.String())
		if live {
			found, err = f.Requests.List(ctx, o, "")
		}
		some, err := objects.All[metav1.Object](found, err)
		if err != nil {
			return nil, err
		}
		if users = append(users, some...); f.NoSets {
			break
		}
	}
	return users, nil
}

// AffectedClasses returns the classes that have to be decided again after a change, each with the time for
// which changes are collected. The objects are a MachineClass, or a Machine, MachineSet or
// MachineDeployment before and after the change; the one that does not exist is nil.
func AffectedClasses(ctx context.Context, r machinist.Reader, before, after metav1.Object) map[types.NamespacedName]time.Duration {
	affected := map[types.NamespacedName]time.Duration{}
	for _, class := range objects.Versions[*v1alpha1.MachineClass](before, after) {
		affected[objects.KeyOf(class)] = 0
	}
	was, is := runners.ClassNeeded(before), runners.ClassNeeded(after)
	if r == nil || slices.Equal(was, is) {
		return affected
	}
	for _, key := range was {
		affected[key] = time.Second // one pass for all machines that end in this second
	}
	for _, key := range is { // the removal of the finalizer changes the class, which causes a pass
		class, err := objects.Get[*v1alpha1.MachineClass](ctx, r, key.Namespace, key.Name)
		if err == nil && class != nil && !slices.Contains(class.Finalizers, v1alpha1.MCMFinalizerName) {
			affected[key] = 0 // the creation of the VM waits for the finalizer
		}
	}
	return affected
}

// AffectedSecrets returns the Secrets that have to be decided again after a change of a Secret of the
// control cluster or of a MachineClass.
func AffectedSecrets(_ context.Context, _ machinist.Reader, before, after metav1.Object) map[types.NamespacedName]time.Duration {
	affected := map[types.NamespacedName]time.Duration{}
	for _, secret := range objects.Versions[*corev1.Secret](before, after) {
		affected[objects.KeyOf(secret)] = 0
	}
	for _, class := range objects.Versions[*v1alpha1.MachineClass](before, after) {
		for _, key := range runners.SecretKeys(class) {
			affected[key] = 0
		}
	}
	return affected
}

// OnClassChange calls f with each class that has to be decided again: see [AffectedClasses]. It fails only
// for a stopped informer.
func (i *Informers) OnClassChange(f func(class types.NamespacedName, after time.Duration)) error {
	return caches.OnChange(i.informers, i, AffectedClasses, f, &v1alpha1.MachineClass{}, &v1alpha1.Machine{}, &v1alpha1.MachineSet{}, &v1alpha1.MachineDeployment{})
}

// OnSecretChange calls f with each Secret that has to be decided again: see [AffectedSecrets]. It fails
// only for a stopped informer.
func (i *Informers) OnSecretChange(f func(secret types.NamespacedName, after time.Duration)) error {
	return caches.OnChange(i.informers, i, AffectedSecrets, f, &corev1.Secret{}, &v1alpha1.MachineClass{})
}
