// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// twoClasses is a Reader of two classes, each with a Secret of its name.
type twoClasses struct {
	missing  string // the Secret that does not exist
	machines []machinist.Object
}

func (r *twoClasses) Get(_ context.Context, o machinist.Object) (machinist.Object, error) {
	if o.GetName() == r.missing {
		return nil, nil
	}
	if _, class := o.(*v1alpha1.MachineClass); class {
		return classOf(o.GetName()), nil
	}
	return &corev1.Secret{}, nil
}

// classOf returns a class with a Secret of its name.
func classOf(name string) *v1alpha1.MachineClass {
	return &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, SecretRef: &corev1.SecretReference{Namespace: "n", Name: name}}
}

func (r *twoClasses) List(_ context.Context, o machinist.Object, _, _ string) (all []machinist.Object, _ error) {
	switch o.(type) {
	case *corev1.Node:
		return nil, machine.ErrNoTarget
	case *v1alpha1.Machine:
		return r.machines, nil
	}
	for _, name := range []string{"a", "b"} {
		all = append(all, classOf(name))
	}
	return all, nil
}

// countedLists is a driver that counts the listings of each class, and the deletions.
type countedLists struct {
	driver.Driver
	vms     map[string]string
	mu      sync.Mutex
	of      map[string]int
	deleted int
}

func (d *countedLists) ListMachines(_ context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of[r.MachineClass.Name]++
	return &driver.ListMachinesResponse{MachineList: d.vms}, nil
}

func (d *countedLists) DeleteMachine(context.Context, *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	d.deleted++
	return &driver.DeleteMachineResponse{}, nil
}

// TestOrphans_SecretMissingInARound_ClassIsListedOnceItExists loses the Secret of one class when a round begins.
func TestOrphans_SecretMissingInARound_ClassIsListedOnceItExists(t *testing.T) {
	t.Parallel()
	reader, lists, clock := &twoClasses{}, &countedLists{of: map[string]int{}}, clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	e := &Executor{Reader: reader, Requests: client.New(fake.NewClientset(), nil), Driver: lists, Clock: clock, Policy: safety.Policy{Period: time.Hour}}
	next, err := e.Reconcile(t.Context(), Orphans)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, lists.of)

	clock.SetTime(next)
	reader.missing = "a"
	_, err = e.Reconcile(t.Context(), Orphans)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.Equal(t, map[string]int{"a": 1, "b": 2}, lists.of, "the other class does not wait for it")
	reader.missing = ""
	_, err = e.Reconcile(t.Context(), Orphans)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, lists.of, "it does not wait for the next round")
}

// TestOrphans_EachCache_APIServerIsAskedBeforeADeletion lists the machine of one of some VMs, or not, in the cache and at
// the API server. If it is the only VM, its namespace seems to have no machine, which is an Event instead of a deletion.
func TestOrphans_EachCache_APIServerIsAskedBeforeADeletion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		vms                  int
		cached, live, hidden bool // hidden: the API server returns it, and its lists lack it
		asked, deleted, told bool
	}{
		"in both":                      {vms: 10, cached: true, live: true},
		"not yet in a cache":           {vms: 10, live: true, asked: true},
		"in none":                      {vms: 10, asked: true, deleted: true},
		"in no list":                   {vms: 10, live: true, hidden: true, asked: true},
		"deleted, in an old cache":     {vms: 10, cached: true},
		"the only, not yet in a cache": {vms: 1, live: true, asked: true},
		"the only, in none":            {vms: 1, asked: true, told: true},
	} {
		reader, lists := &twoClasses{}, &countedLists{of: map[string]int{}, vms: map[string]string{}}
		var stored []runtime.Object
		shown := &v1alpha1.MachineList{}
		for i := range tc.vms {
			m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint("m-", i)}, Spec: v1alpha1.MachineSpec{ProviderID: fmt.Sprint("cloud:///", i)}}
			lists.vms[m.Spec.ProviderID] = m.Name
			if tc.cached || i > 0 {
				reader.machines = append(reader.machines, m)
			}
			if tc.live || i > 0 {
				stored = append(stored, m)
			}
			if i > 0 {
				shown.Items = append(shown.Items, *m)
			}
		}
		machines, clock, told, proposed := fake.NewClientset(stored...), clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0)), 0, 0
		machines.PrependReactor("list", "machines", func(clienttesting.Action) (bool, runtime.Object, error) { return tc.hidden, shown, nil })
		e := &Executor{
			Reader: reader, Requests: client.New(machines, nil), Driver: lists, Clock: clock, Policy: safety.Policy{Grace: time.Minute, Period: time.Minute, MaxDeletions: 5, MaxPercent: 20},
			Decided: func(_ Concern, d safety.Decision[machinist.Action]) {
				told, proposed = told+len(d.Events), proposed+len(d.Actions)
			},
		}
		for i := range 10 {
			next, err := e.Reconcile(t.Context(), Orphans)
			require.NoError(t, err, name)
			require.False(t, i == 0 && tc.vms > 1 && len(machines.Actions()) > 0, "%s: it waits for its grace", name)
			clock.SetTime(next)
		}
		asked := slices.ContainsFunc(machines.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "list" })
		require.Equal(t, tc.asked, asked, name)
		require.Equal(t, tc.deleted, lists.deleted > 0, name)
		require.Equal(t, tc.told, told > 0, name)
		require.True(t, !tc.hidden || proposed > 0, "%s: the live read has to keep its VM", name)
	}
}

// badLists is a driver whose listings wait for hang, if it is set, and then panic, if they shall.
type badLists struct {
	countedLists
	hang   chan struct{}
	panics bool
}

func (d *badLists) ListMachines(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	if d.hang != nil {
		<-d.hang
	}
	if d.panics {
		panic("bad driver")
	}
	return d.countedLists.ListMachines(ctx, r)
}

func TestOrphans_ListingOfALaterRoundIsSlow_NextIsLater(t *testing.T) {
	t.Parallel()
	lists, clock := &badLists{countedLists: countedLists{of: map[string]int{}}}, clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	e := &Executor{Reader: &twoClasses{}, Requests: client.New(fake.NewClientset(), nil), Driver: lists, Clock: clock, Policy: safety.Policy{Period: time.Hour}}
	next, err := e.Reconcile(t.Context(), Orphans)
	require.NoError(t, err)
	clock.SetTime(next)
	lists.hang = make(chan struct{})
	defer e.Wait()
	defer close(lists.hang)
	go func() {
		for !clock.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
		clock.Step(listingTime)
	}()
	for range 3 {
		next, err = e.Reconcile(t.Context(), Orphans)
		require.NoError(t, err)
		require.True(t, next.After(clock.Now()), "%s before now", clock.Now().Sub(next))
	}
}

// TestOrphans_DriverPanics_CallerRecoversAndTriesAgain asserts that a panic in the goroutine of a listing ends the
// pass, and not the process.
func TestOrphans_DriverPanics_CallerRecoversAndTriesAgain(t *testing.T) {
	t.Parallel()
	lists := &badLists{countedLists: countedLists{of: map[string]int{}}, panics: true}
	e := &Executor{Reader: &twoClasses{}, Requests: client.New(fake.NewClientset(), nil), Driver: lists}
	require.Panics(t, func() { _, _ = e.Reconcile(t.Context(), Orphans) })
	lists.panics = false
	_, err := e.Reconcile(t.Context(), Orphans)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, lists.of)
}
