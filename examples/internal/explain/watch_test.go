// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

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

// TestWatch_MachinesAreCreated_TreeIsDrawnOnChanges watches until the context ends.
func TestWatch_MachinesAreCreated_TreeIsDrawnOnChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.create(secret("small"), class("small"), workers(1))
		w.run()
		v := w.live()
		v.Now = func() time.Time { return time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC) } // ages do not change
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out bytes.Buffer
		require.NoError(t, v.Watch(ctx, "mcd/workers", &explain.Screen{Out: &out}, clock.RealClock{}, time.Second))
		trees := strings.Split(out.String(), "\x1b[J")
		require.Greater(t, len(trees), 2)
		require.Less(t, len(trees), 20, "not each second")
		require.Contains(t, trees[len(trees)-1], "Running")
		require.ErrorContains(t, v.Watch(t.Context(), "mcd/other", &explain.Screen{}, clock.RealClock{}, 0), "does not exist")
	})
}
