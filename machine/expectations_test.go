// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// version returns a set with the name x and a resource version.
func version(uid types.UID, resourceVersion string) *v1alpha1.MachineSet {
	return &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: uid, ResourceVersion: resourceVersion}}
}

func ownedBy(owner types.UID, s *v1alpha1.MachineSet) *v1alpha1.MachineSet {
	s.OwnerReferences = []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}}
	return s
}

func deletedAt(s *v1alpha1.MachineSet) *v1alpha1.MachineSet {
	s.DeletionTimestamp = &metav1.Time{Time: now}
	return s
}

// shows returns a cache with one object. Nil is an empty cache.
func shows(o metav1.Object) func(kind, name string) metav1.Object {
	return func(kind, name string) metav1.Object {
		if s, ok := o.(*v1alpha1.MachineSet); ok && kind == v1alpha1.MachineSetKind && name == "x" {
			return s
		}
		return nil
	}
}

func TestExpectations_CacheAndLiveReads_EndThem(t *testing.T) {
	const complete, partial = true, false
	creating := machine.Expectations{}.Creating(v1alpha1.MachineSetKind, "x", now)
	deleting := machine.Expectations{}.Deleting(v1alpha1.MachineSetKind, "x", "a", now)
	created := machine.Expectations{}.Created(ownedBy("d", version("a", "10")), now)
	updated := machine.Expectations{}.Updated(ownedBy("d", version("a", "10")), now)
	var none *v1alpha1.MachineSet
	for name, c := range map[string]struct {
		of       machine.Expectations
		object   metav1.Object
		complete bool
		observed bool // still expected after Observe
		looked   bool // still expected after Looked
	}{
		"creating, not in the cache":           {creating, nil, complete, true, false},
		"creating, in the cache":               {creating, version("a", "1"), partial, false, true},
		"created, not in the cache":            {created, none, complete, true, false},
		"created, in the cache":                {created, ownedBy("d", version("a", "10")), partial, false, true},
		"created, in the cache, released":      {created, version("a", "12"), partial, false, false},
		"created, earlier object in the cache": {created, version("b", "9"), complete, true, false},
		"created, replaced":                    {created, version("b", "11"), partial, false, false},
		"updated, earlier version":             {updated, ownedBy("d", version("a", "9")), complete, true, true},
		"updated, later version":               {updated, ownedBy("d", version("a", "100")), partial, false, true},
		"updated, version without order":       {updated, version("a", "?"), partial, false, true},
		"updated, deleted":                     {updated, nil, complete, false, false},
		"updated, not in a partial view":       {updated, none, partial, true, false},
		"deleting, in the cache":               {deleting, version("a", "9"), complete, true, false},
		"deleting, being deleted":              {deleting, deletedAt(version("a", "9")), partial, false, true},
		"deleting, deleted":                    {deleting, nil, complete, false, true},
		"deleting, not in a partial view":      {deleting, nil, partial, true, true},
		"deleting, replaced":                   {deleting, version("b", "9"), partial, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Len(t, c.of, 1)
			require.Equal(t, c.observed, len(c.of.Observe(shows(c.object), c.complete)) == 1)
			later := now.Add(time.Minute)
			left := c.of.Looked(v1alpha1.MachineSetKind, "x", c.object, later)
			require.Equal(t, c.looked, len(left) == 1)
			for _, x := range left {
				require.Equal(t, later, x.At)
			}
			require.Equal(t, now, c.of[0].At, "the receiver is not changed")
			require.Equal(t, c.of, c.of.Looked(v1alpha1.MachineSetKind, "y", c.object, later), "another name")
			require.Equal(t, c.of, c.of.Looked(v1alpha1.MachineSetKind, "x", &corev1.Node{}, later), "another kind")
		})
	}
}

func TestExpectations_FailedCall_OnlyRefusedDeletionEnds(t *testing.T) {
	machines := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "machines"}
	for name, c := range map[string]struct {
		err        error
		kept, look bool
	}{
		"no error":                     {nil, true, false},
		"conflict":                     {apierrors.NewConflict(machines, "m", errors.New("old")), false, false},
		"already exists":               {apierrors.NewAlreadyExists(machines, "m"), false, false},
		"too many requests":            {apierrors.NewTooManyRequests("later", 1), false, false},
		"forbidden":                    {apierrors.NewForbidden(machines, "m", errors.New("no")), false, false},
		"not found, wrapped":           {fmt.Errorf("deleting: %w", apierrors.NewNotFound(machines, "m")), false, false},
		"timeout of the server":        {apierrors.NewServerTimeout(machines, "create", 1), true, false},
		"timeout of the request":       {apierrors.NewTimeoutError("late", 1), true, false},
		"end of the context":           {context.DeadlineExceeded, true, false},
		"internal error":               {apierrors.NewInternalError(errors.New("etcd")), true, true},
		"text with the word forbidden": {errors.New("machines \"m\" is forbidden"), true, false},
	} {
		other := machine.Expectations{}.Creating(v1alpha1.MachineKind, "n", now)
		next, look := other.Deleting(v1alpha1.MachineKind, "m", "u", now).Failed(v1alpha1.MachineKind, "m", c.err)
		require.Equal(t, c.kept, len(next.Deletes()) == 1, name)
		require.Equal(t, c.look, look, name)
		require.Equal(t, other, next.Creates(), name)

		next, look = other.Creating(v1alpha1.MachineKind, "m", now).Failed(v1alpha1.MachineKind, "m", c.err)
		require.Len(t, next, 2, "%s: a failed creation stays expected", name)
		require.Equal(t, c.look || !c.kept, look, "%s: an error of the API server needs a live read", name)
	}
}

func FuzzExpectations(f *testing.F) {
	f.Add([]byte(`[{"kind":"MachineSet","name":"x","call":"update","uid":"u","resourceVersion":"7","at":"2026-03-01T12:00:00Z"}]`), "8", true)
	f.Add([]byte(`[{"kind":"?","resourceVersion":"-"},{"call":"create"}]`), "", false)
	f.Fuzz(func(t *testing.T, text []byte, resourceVersion string, complete bool) {
		var e machine.Expectations
		if json.Unmarshal(text, &e) != nil {
			return
		}
		back, err := json.Marshal(e)
		require.NoError(t, err)
		var again machine.Expectations
		require.NoError(t, json.Unmarshal(back, &again))
		object := version("u", resourceVersion)
		left := e.Observe(shows(object), complete)
		require.LessOrEqual(t, len(left), len(e))
		require.Equal(t, left, left.Observe(shows(object), complete))
		require.LessOrEqual(t, len(e.Looked(v1alpha1.MachineSetKind, "x", object, now)), len(e))
		require.LessOrEqual(t, len(e.Creates())+len(e.Deletes()), len(e))
		require.Empty(t, cmp.Diff(e, again), "the receiver is not changed")
	})
}

// listed returns a machine with a UID and a resource version, which may be leaving.
func listed(name, uid, version string, leaving bool) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid), ResourceVersion: version}}
	if leaving {
		m.DeletionTimestamp = &metav1.Time{Time: now}
	}
	return m
}

// TestListed_CacheOlderThanTheList_ShownWhenItCatchesUp asserts that the expectations end exactly when
// the cache is as new as the list.
func TestListed_CacheOlderThanTheList_ShownWhenItCatchesUp(t *testing.T) {
	live := []*v1alpha1.Machine{listed("same", "1", "10", false), nil, listed("written", "2", "20", false), listed("new", "3", "30", false),
		listed("leaving", "4", "40", true), listed("again", "6", "60", false), listed("newer in the cache", "7", "70", false)}
	cached := []*v1alpha1.Machine{listed("same", "1", "10", false), listed("written", "2", "9", false), listed("leaving", "4", "8", false),
		listed("gone", "5", "7", false), listed("again", "5b", "6", false), nil, listed("newer in the cache", "7", "71", false)}
	e := machine.Listed(nil, live, cached, now)
	texts := map[string]string{}
	for _, x := range e {
		texts[x.Name] = fmt.Sprint(x.Kind, " ", x.Call, " ", x.UID)
	}
	require.Equal(t, map[string]string{
		"written": "Machine update 2", "new": "Machine create 3", "leaving": "Machine delete 4", "gone": "Machine delete 5", "again": "Machine create 6",
	}, texts)
	require.Len(t, e.Updates(), 1)

	cache := map[string]*v1alpha1.Machine{}
	for _, m := range slices.DeleteFunc(cached, func(m *v1alpha1.Machine) bool { return m == nil }) {
		cache[m.Name] = m
	}
	find := func(_, name string) metav1.Object {
		if m := cache[name]; m != nil {
			return m
		}
		return nil
	}
	require.Len(t, e.Observe(find, true), len(e), "the cache shows none of it")
	delete(cache, "gone")
	for n, m := range live[2:6] {
		require.Len(t, e.Observe(find, true), 4-n)
		cache[m.Name] = m
	}
	require.Empty(t, e.Observe(find, true))
}
