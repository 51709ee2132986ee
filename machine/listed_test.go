// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

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
	t.Parallel()
	live := []*v1alpha1.Machine{listed("same", "1", "10", false), nil, listed("written", "2", "20", false), listed("new", "3", "30", false),
		listed("leaving", "4", "40", true), listed("again", "6", "60", false), listed("newer in the cache", "7", "70", false)}
	cached := []*v1alpha1.Machine{listed("same", "1", "10", false), listed("written", "2", "9", false), listed("leaving", "4", "8", false),
		listed("gone", "5", "7", false), listed("again", "5b", "6", false), nil, listed("newer in the cache", "7", "71", false)}
	e := machine.Listed(nil, live, cached, now)
	texts := map[string]string{}
	for _, x := range e {
		require.Equal(t, machine.KindMachine, x.Kind)
		texts[x.Name] = x.Call + " " + string(x.UID)
	}
	require.Equal(t, map[string]string{"written": "update 2", "new": "create 3", "leaving": "delete 4", "gone": "delete 5", "again": "create 6"}, texts)
	require.Len(t, e.Updates(), 1)

	cache := map[string]*v1alpha1.Machine{}
	for _, m := range cached {
		if m != nil {
			cache[m.Name] = m
		}
	}
	find := func(_, name string) metav1.Object {
		if m := cache[name]; m != nil {
			return m
		}
		return nil
	}
	require.Len(t, e.Observe(find, true), len(e), "the cache shows none of it")
	delete(cache, "gone")
	for n, m := range []*v1alpha1.Machine{live[2], live[3], live[4], live[5]} {
		require.Len(t, e.Observe(find, true), 4-n)
		cache[m.Name] = m
	}
	require.Empty(t, e.Observe(find, true))
	require.Empty(t, machine.Listed[*v1alpha1.Machine](nil, nil, nil, now))
}
