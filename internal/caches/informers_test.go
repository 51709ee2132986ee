// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/objects"
)

// synced is an informer that has synced, or not.
type synced struct {
	cache.SharedIndexInformer
	is bool
}

func (s synced) HasSynced() bool { return s.is }

func newInformer(t *testing.T, o machinist.Object, is bool) synced {
	t.Helper()
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, nil, 0, cache.Indexers{})
	require.NoError(t, informer.GetIndexer().Add(o))
	return synced{informer, is}
}

// TestInformers_ReadWithoutACache_NothingOrAnError asserts what is read where: objects of the control cluster
// are none without an informer, and those of the target cluster are an error, also before the first list.
func TestInformers_ReadWithoutACache_NothingOrAnError(t *testing.T) {
	t.Parallel()
	errNone, node := errors.New("no target"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n"}}
	for name, c := range map[string]struct {
		add   func(c *Informers) error
		found int
		err   error
	}{
		"unknown type":         {func(c *Informers) error { return c.Control(secret, newInformer(t, secret, true), nil) }, 0, machinist.ErrNotCached},
		"control, no informer": {func(c *Informers) error { return c.Control(node, nil, nil) }, 0, nil},
		"control, not synced":  {func(c *Informers) error { return c.Control(node, newInformer(t, node, false), nil) }, 1, nil},
		"target, no informer":  {func(c *Informers) error { return c.Target(node, nil, errNone, nil) }, 0, errNone},
		"target, not synced":   {func(c *Informers) error { return c.Target(node, newInformer(t, node, false), errNone, nil) }, 0, objects.ErrNotListed},
		"target, synced":       {func(c *Informers) error { return c.Target(node, newInformer(t, node, true), errNone, nil) }, 1, nil},
		"another Reader has them": {func(c *Informers) error {
			c.Else = &Informers{}
			return c.Else.(*Informers).Control(node, newInformer(t, node, true), nil)
		}, 1, nil}, //nolint:forcetypeassert // just set
	} {
		informers := &Informers{}
		require.NoError(t, c.add(informers), name)
		found, err := objects.In[*corev1.Node](t.Context(), informers, "")
		require.ErrorIs(t, err, c.err, name)
		require.Len(t, found, c.found, name)
		one, err := objects.Get[*corev1.Node](t.Context(), informers, "", "n")
		require.ErrorIs(t, err, c.err, name)
		require.Equal(t, c.found == 1, one != nil, name)
		one, err = objects.Get[*corev1.Node](t.Context(), informers, "", "other")
		require.ErrorIs(t, err, c.err, name)
		require.Nil(t, one, name)
	}
}

// TestInformers_TypeInBothClusters_ByNameFromTheFirst has Secrets in both clusters. Those of the target cluster
// are found by their index only.
func TestInformers_TypeInBothClusters_ByNameFromTheFirst(t *testing.T) {
	t.Parallel()
	control, target := &corev1.Secret{}, &corev1.Secret{}
	control.Namespace, control.Name, target.Namespace, target.Name = "ns", "control", "ns", "target"
	index := machinist.Index{Name: "all", Of: &corev1.Secret{}, Target: true, Keys: func(machinist.Object) []string { return []string{"k"} }}
	c := &Informers{}
	require.NoError(t, c.Control(control, newInformer(t, control, true), []machinist.Index{index}))
	require.NoError(t, c.Target(target, newInformer(t, target, true), nil, nil))
	late := newInformer(t, target, true)
	require.NoError(t, c.Target(target, late, nil, []machinist.Index{index}))
	found, err := objects.In[*corev1.Secret](t.Context(), c, "ns")
	require.NoError(t, err)
	require.Equal(t, []*corev1.Secret{control}, found)
	found, err = objects.List[*corev1.Secret](t.Context(), c, "all", "k")
	require.NoError(t, err)
	require.Equal(t, []*corev1.Secret{target}, found)
}
