// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	clienttesting "k8s.io/client-go/tools/cache/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/objects"
)

func withUID(uid types.UID, version string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: uid, ResourceVersion: version}}
}

// TestOn_UIDChangesInAnUpdate_DeletedThenAdded has an informer that missed a deletion, and so reports an
// update to an object with another UID.
func TestOn_UIDChangesInAnUpdate_DeletedThenAdded(t *testing.T) {
	t.Parallel()
	source := clienttesting.NewFakeControllerSource()
	t.Cleanup(source.Shutdown)
	informer := cache.NewSharedIndexInformer(source, &corev1.Secret{}, 0, cache.Indexers{})
	told := make(chan string, 10)
	uid := func(o metav1.Object) types.UID {
		if o == nil {
			return "-"
		}
		return o.GetUID()
	}
	require.NoError(t, On(informer, func(before, after metav1.Object) { told <- fmt.Sprintf("%s %s", uid(before), uid(after)) }))
	shown := func() types.UID {
		secret, _, _ := informer.GetIndexer().GetByKey("n/s")
		return secret.(*corev1.Secret).UID //nolint:forcetypeassert // only Secrets
	}
	go informer.Run(t.Context().Done())
	source.Add(withUID("1", ""))
	require.Equal(t, "- 1", <-told)
	require.Equal(t, types.UID("1"), shown())
	source.Modify(withUID("1", ""))
	require.Equal(t, "1 1", <-told)
	source.Modify(withUID("2", ""))
	require.Equal(t, "1 -", <-told)
	require.Equal(t, "- 2", <-told)
	require.Equal(t, types.UID("2"), shown())
}

// handlers is an informer whose events a test makes.
type handlers struct {
	cache.SharedIndexInformer
	added cache.ResourceEventHandler
}

func (h *handlers) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	h.added = handler
	return nil, nil
}

func TestOn_DeletedFinalStateUnknown_CallsWithTheObject(t *testing.T) {
	t.Parallel()
	var got []string
	h := &handlers{}
	require.NoError(t, On(h, func(before, after metav1.Object) {
		for _, o := range []metav1.Object{before, after} {
			if s, ok := o.(*corev1.Secret); ok {
				got = append(got, string(s.UID))
			}
		}
	}))
	h.added.OnAdd(withUID("1", ""), false)
	h.added.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/name", Obj: withUID("2", "")})
	h.added.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/name", Obj: nil})
	h.added.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/name", Obj: &corev1.Pod{}})
	require.Equal(t, []string{"1", "2"}, got)
}

// TestOn_VersionUnchanged_IsAnAddition has a resync, after which nothing may be left out.
func TestOn_VersionUnchanged_IsAnAddition(t *testing.T) {
	t.Parallel()
	var got []string
	h := &handlers{}
	require.NoError(t, On(h, func(before, after metav1.Object) {
		got = append(got, fmt.Sprintf("before: %t, after: %t", before != nil, after != nil))
	}))
	h.added.OnUpdate(withUID("1", "1"), withUID("1", "1"))
	h.added.OnUpdate(withUID("1", "1"), withUID("1", "2"))
	require.Equal(t, []string{"before: false, after: true", "before: true, after: true"}, got)
}

func TestInformer_HandlerOrIndexPanics_ProcessContinues(t *testing.T) {
	var logged []string
	before := utilruntime.ErrorHandlers
	defer func() { utilruntime.ErrorHandlers = before }()                                                                                                   //nolint:reassign // put back
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...any) { logged = append(logged, err.Error()) }} //nolint:reassign // as client-go's own tests do
	h := &handlers{}
	require.NoError(t, On(h, func(_, _ metav1.Object) { panic(errors.New("bad node")) }))
	h.added.OnAdd(&corev1.Node{}, false)

	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Node{}, 0, cache.Indexers{})
	index := machinist.Index{Name: "test", Of: &corev1.Node{}, Keys: func(o machinist.Object) []string {
		if o.GetName() == "bad" {
			panic("no keys")
		}
		return []string{"k"}
	}}
	c, again := &Informers{}, &Informers{}
	require.NoError(t, c.Control(&corev1.Node{}, informer, []machinist.Index{index}))
	require.NoError(t, again.Control(&corev1.Node{}, informer, []machinist.Index{index}), "another runner has added it")
	for _, name := range []string{"bad", "good"} {
		require.NoError(t, informer.GetIndexer().Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	found, err := objects.List[*corev1.Node](t.Context(), again, "test", "k")
	require.NoError(t, err)
	require.Len(t, found, 1)
	_, err = objects.List[*corev1.Node](t.Context(), again, "unknown", "k")
	require.ErrorIs(t, err, machinist.ErrNotCached)
	require.Len(t, logged, 2)
	require.Contains(t, logged[0], "bad node")
	require.True(t, strings.Contains(logged[1], "no keys") && strings.Contains(logged[1], "events_test.go"), "with the stack")
}
