// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/safety"
)

func TestMetrics_FreezeAndOrphans_AreShown(t *testing.T) {
	t.Parallel()
	h := newHealth()
	scrape := func() string {
		recorder := httptest.NewRecorder()
		h.metrics.handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		require.Equal(t, http.StatusOK, recorder.Code)
		return recorder.Body.String()
	}
	require.Contains(t, scrape(), "mcm_machine_controller_frozen 0\n")
	h.probed(safety.FreezeDecision{Freeze: machine.Freeze{Frozen: true}})
	require.Contains(t, scrape(), "mcm_machine_controller_frozen 1\n")
	h.probed(safety.FreezeDecision{})
	require.Contains(t, scrape(), "mcm_machine_controller_frozen 0\n")
	h.metrics.collected("VM", nil)
	h.metrics.collected("VM", status.Error(codes.Unavailable, "no"))
	h.metrics.collected("disk", nil)
	text := scrape()
	require.Contains(t, text, `machinist_orphan_deletions_total{code="OK",kind="VM"} 1`)
	require.Contains(t, text, `machinist_orphan_deletions_total{code="Unavailable",kind="VM"} 1`)
	require.Contains(t, text, `machinist_orphan_deletions_total{code="OK",kind="disk"} 1`)
}
