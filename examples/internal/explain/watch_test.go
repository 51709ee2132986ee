// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/internal/explain"
)

func TestScreen_EachText_ReplacesTheLastAndFits(t *testing.T) {
	var out bytes.Buffer
	s := &explain.Screen{Out: &out, Size: func() (int, int) { return 6, 4 }}
	for _, step := range []struct{ text, want string }{
		{"a\nb\n", "a\nb\n"},
		{"c\n", "\x1b[2A\x1b[Jc\n"},
		{"too long\n1\n2\n3\n", "\x1b[1A\x1b[Jtoo …\n1\n… an…\n"},
		{"", "\x1b[3A\x1b[J"},
		{"├─ d\n", "├─ d\n"},
	} {
		s.Draw(step.text)
		require.Equal(t, step.want, out.String())
		out.Reset()
	}
	(&explain.Screen{}).Draw("nothing happens")
	explain.Terminal(&out).Draw("nothing happens")
	require.Empty(t, out.String())
}

// TestFollow_MachinesAreCreated_LooksOnChanges looks until the context ends.
func TestFollow_MachinesAreCreated_LooksOnChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.create(secret("small"), class("small"), workers(1))
		w.run()
		v := w.live()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var looks []time.Time
		var last string
		err := v.Follow(ctx, clock.RealClock{}, time.Second, func() (bool, time.Time, error) {
			looks = append(looks, time.Now())
			r, err := v.Tree(t.Context(), "mcd/workers")
			last = r.String()
			return false, time.Time{}, err
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Contains(t, last, "Running")
		require.Greater(t, len(looks), 2)
		require.Less(t, len(looks), 100, "not each second")
		for i := range looks[1:] {
			require.GreaterOrEqual(t, looks[i+1].Sub(looks[i]), time.Second)
		}
	})
}

func TestFollow_TimeOrErrorOrDone_LooksOrEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newWorld(t).live()
		began, broken := time.Now(), errors.New("broken")
		err := v.Follow(t.Context(), clock.RealClock{}, 0, func() (bool, time.Time, error) {
			return time.Since(began) > time.Minute, began.Add(2 * time.Minute), nil
		})
		require.NoError(t, err)
		require.Equal(t, 2*time.Minute, time.Since(began), "nothing has changed before")
		require.ErrorIs(t, v.Follow(t.Context(), clock.RealClock{}, 0, func() (bool, time.Time, error) { return false, time.Time{}, broken }), broken)
	})
}

// TestFollow_RightsAreLost_ListsOrEnds takes the right to watch, and then that to list.
func TestFollow_RightsAreLost_ListsOrEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.create(secret("small"), class("small"), workers(1))
		w.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "watch", Resource: "machinedeployments"})
		v, err := explain.LiveRollouts(t.Context(), explain.Clients{Machines: w.machines, Control: w.core, Target: w.core}, shop)
		require.NoError(t, err)
		defer v.Close()
		key, seen := types.NamespacedName{Namespace: shop, Name: "workers"}, []int32{}
		ended := make(chan error, 1)
		go func() {
			ended <- v.Follow(t.Context(), clock.RealClock{}, 0, func() (bool, time.Time, error) {
				in, err := v.Deployment(t.Context(), key)
				seen = append(seen, in.Deployment.Spec.Replicas)
				return false, time.Time{}, err
			})
		}()
		sleep(time.Minute)
		w.patch(`{"spec":{"replicas":2}}`)
		sleep(2 * time.Minute)
		require.Equal(t, int32(2), seen[len(seen)-1], "it was listed again")
		w.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "list", Resource: "machinedeployments"})
		require.ErrorContains(t, <-ended, "not readable: machinedeployments: ")
		_, err = explain.LiveRollouts(t.Context(), explain.Clients{Machines: w.machines, Control: w.core, Target: w.core}, shop)
		require.ErrorContains(t, err, "not readable: machinedeployments: ")
	})
}
