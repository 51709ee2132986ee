// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
)

// answering is a transport that answers with a status, or fails with zero.
type answering int

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	if a == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: int(a), Body: io.NopCloser(strings.NewReader(""))}, nil
}

func TestAnswers_StatusCodes_OnlyThoseOfAWorkingServerCount(t *testing.T) {
	for status, counts := range map[int]bool{0: false, 200: true, 404: true, 403: true, 409: true, 429: false, 500: false, 503: false} {
		a := newAnswers()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		response, err := (&answeredTransport{next: answering(status), answers: a}).RoundTrip(request)
		require.Equal(t, status == 0, err != nil)
		if response != nil {
			require.NoError(t, response.Body.Close())
		}
		require.Equal(t, counts, a.last.Load() != nil, status)
	}
}

func TestReady_EachStage_SaysWhatIsWrongWithNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth(metrics.New(metrics.Options{}), newGate(options.LeaderElection{}).lost)
		h.control, h.silence = newAnswers(), silence(&options.MCServer{})
		time.Sleep(12 * time.Second)
		require.EqualError(t, h.ready(), "waits for the API server to serve the machine objects, for 12s; the API server of the control cluster has not answered for 12s, since the start")
		answered := func() {
			now := time.Now()
			h.control.last.Store(&now)
		}
		answered()
		h.standBy()
		require.NoError(t, h.ready())
		h.lead()
		time.Sleep(3 * time.Second)
		require.EqualError(t, h.ready(), "leads, and fills its caches, for 3s; the last answer of the API server of the control cluster is 3s old")
		h.fill()
		require.NoError(t, h.ready())
		time.Sleep(88 * time.Second)
		require.EqualError(t, h.ready(), "the last answer of the API server of the control cluster is 1m31s old, more than 1m30s")
		answered()
		require.NoError(t, h.ready())
		h.stop()
		require.EqualError(t, h.ready(), "is stopping")
		h.lead()
		require.EqualError(t, h.healthy(), "is stopping", "for good")
	})
}

func TestReady_Verbose_TellsTheDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth(metrics.New(metrics.Options{}), newGate(options.LeaderElection{}).lost)
		h.control, h.target = newAnswers(), newAnswers()
		now := time.Now()
		h.control.last.Store(&now)
		h.standBy()
		time.Sleep(2 * time.Second)
		text := func(url string) string {
			recorder := httptest.NewRecorder()
			answer(h.ready, "Not ready", h.details)(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
			require.Equal(t, http.StatusOK, recorder.Code)
			return recorder.Body.String()
		}
		require.Equal(t, "OK\n", text("/readyz"))
		require.Equal(t, `OK
manager: stands by: another manager leads, for 2s
lease: not lost
the last answer of the API server of the control cluster is 2s old
the API server of the target cluster has not answered for 2s, since the start
`, text("/readyz?verbose"))
	})
}
