// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/internal/explain"
)

// decided returns the decision in the form of the log: without times, in one line.
func decided(text string) string {
	var parts []string
	for line := range strings.Lines(text) {
		switch label, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " "); {
		case label == "decides":
			parts = append(parts, strings.TrimSpace(rest))
		case label == "waits" && strings.HasPrefix(rest, "for "):
			hold := strings.TrimSpace(strings.TrimPrefix(rest, "for "))
			hold, _, _ = strings.Cut(hold, ", since 2000")
			hold, _, _ = strings.Cut(hold, ", until 2000")
			parts = append(parts, "waits for "+hold)
		}
	}
	return strings.Join(parts, "; ")
}

// dumped returns the view of the dump of a world at a time.
func (w *world) dumped(at time.Time) *explain.View {
	file := filepath.Join(w.t.TempDir(), "dump.yaml")
	require.NoError(w.t, os.WriteFile(file, w.dump(), 0o600))
	v, err := explain.Dump(w.t.Context(), file, "", at)
	require.NoError(w.t, err)
	v.Machines, v.Assumed = w.policy, false
	return v
}

// TestExplain_FleetInMidRoll_DumpAndLiveAndLogSayTheSame rolls three machines, and looks each five seconds.
func TestExplain_FleetInMidRoll_DumpAndLiveAndLogSayTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.budget = true
		w.create(secret("small"), class("small"), secret("large"), class("large"), workers(3))
		w.run()
		live := w.live()
		sleep(time.Minute)
		w.patch(`{"spec":{"template":{"spec":{"class":{"name":"large"}}}}}`)
		same, logged := 0, 0
		for range 24 {
			sleep(5*time.Second + time.Millisecond)
			at := time.Now()
			live.Now = func() time.Time { return at }
			told, subjects, texts := w.told(), w.subjects(), map[string]string{}
			for _, subject := range subjects {
				r, err := live.Explain(t.Context(), subject)
				require.NoError(t, err)
				text := r.String()
				texts[subject] = text
				if says, waits := told[subject]; waits && !strings.Contains(text, "\nnote ") {
					require.Equal(t, says, decided(text), subject)
					logged++
				}
			}
			dump := w.dumped(at)
			for _, subject := range subjects {
				r, err := dump.Explain(t.Context(), subject)
				require.NoError(t, err)
				require.Equal(t, texts[subject], strings.Replace(r.String(), ", at "+at.UTC().Format(time.RFC3339)+", from a dump", "", 1))
				same++
			}
		}
		require.Greater(t, logged, 50)
		require.Greater(t, same, 100)
	})
}
