// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/safety"
)

// stage is what a manager does now.
type stage string

const (
	waiting  stage = "waits for the API server to serve the machine objects"
	standing stage = "stands by: another manager leads"
	filling  stage = "leads, and fills its caches"
	working  stage = "leads, with its caches filled"
	stopping stage = "is stopping"
)

// health answers the health checks of a manager. It is safe for concurrent use.
type health struct {
	// lost returns why the lease was lost, or nil.
	lost    func() error
	metrics *metrics.Metrics
	// control and target are the last answers of the API servers; target may be nil.
	control, target *answers
	// silence is how long the API server of the control cluster may leave a manager without an
	// answer that is ready. Zero means for ever.
	silence time.Duration

	mu     sync.Mutex
	stage  stage
	since  time.Time // of the stage
	freeze machine.Freeze
	// calls returns the abandoned calls of the driver, whose timeouts are these. It is nil before the
	// manager leads.
	calls    func() []driver.Call
	timeouts driver.Timeouts
}

func newHealth(m *metrics.Metrics, lost func() error) *health {
	return &health{lost: lost, metrics: m, stage: waiting, since: time.Now()}
}

func (h *health) standBy() { h.enter(standing) }
func (h *health) lead()    { h.enter(filling) }
func (h *health) fill()    { h.enter(working) }
func (h *health) stop()    { h.enter(stopping) }

// enter begins a stage. The last stage never ends.
func (h *health) enter(s stage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stage != stopping {
		h.stage, h.since = s, time.Now()
	}
}

// probed records the result of the probes of the API servers.
func (h *health) probed(d safety.FreezeDecision) {
	h.mu.Lock()
	h.freeze = d.Freeze
	h.mu.Unlock()
	h.metrics.Probed(d)
}

// watchCalls sets the timeouts of a driver and the function that returns its abandoned calls.
func (h *health) watchCalls(timeouts driver.Timeouts, abandoned func() []driver.Call) {
	h.mu.Lock()
	h.calls, h.timeouts = abandoned, timeouts
	h.mu.Unlock()
	h.metrics.Abandoned(abandoned)
}

// abandoned returns the abandoned calls of the driver.
func (h *health) abandoned() []driver.Call {
	h.mu.Lock()
	calls := h.calls
	h.mu.Unlock()
	if calls == nil {
		return nil
	}
	return calls()
}

// endlessAfter is the duration after its deadline from which a call is held to be endless. It is more
// than the default health timeout, whose measurement begins again with each process.
const endlessAfter = 15 * time.Minute

// endless returns an error if a call is held to be endless: only the end of the process ends it.
func (h *health) endless() error {
	h.mu.Lock()
	timeouts := h.timeouts
	h.mu.Unlock()
	for _, c := range h.abandoned() { // the oldest is first
		if c.Duration = rounded(c.Duration); c.Duration > timeouts.Of(c.Operation)+endlessAfter {
			return fmt.Errorf("a call of the driver does not end, and no other call is made for its machine until a restart: %s", c)
		}
	}
	return nil
}

// errStopping is the answer of a manager that is stopping.
var errStopping = errors.New(string(stopping))

// healthy returns why the process should be restarted, or nil.
func (h *health) healthy() error {
	h.mu.Lock()
	stops := h.stage == stopping
	h.mu.Unlock()
	if stops {
		return errStopping
	}
	return errors.Join(h.lost(), h.endless())
}

// ready returns why this manager does not do its part, or nil.
func (h *health) ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	silent := h.control.age()
	switch {
	case h.stage == stopping:
		return errStopping
	case h.stage == working && h.freeze.Frozen:
		return fmt.Errorf("frozen since %s (%s): %s: nothing is created, failed or replaced",
			h.freeze.Since.UTC().Format(time.RFC3339), rounded(time.Since(h.freeze.Since)), h.freeze.Message)
	case h.stage != standing && h.stage != working:
		return fmt.Errorf("%s, for %s; %s", h.stage, rounded(time.Since(h.since)), h.control.text("control"))
	case h.silence > 0 && silent > h.silence:
		return fmt.Errorf("%s, more than %s", h.control.text("control"), h.silence)
	default:
		return nil
	}
}

// details returns the state of the manager, one line for each fact.
func (h *health) details() []string {
	abandoned, lost := h.abandoned(), h.lost()
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := []string{fmt.Sprintf("manager: %s, for %s", h.stage, rounded(time.Since(h.since))), "lease: not lost"}
	if lost != nil {
		lines[1] = "lease: " + lost.Error()
	}
	if h.freeze.Frozen {
		lines = append(lines, "frozen: "+h.freeze.Message)
	}
	for _, c := range abandoned {
		c.Duration = rounded(c.Duration)
		lines = append(lines, "abandoned: "+c.String())
	}
	lines = append(lines, h.control.text("control"))
	if h.target != nil {
		lines = append(lines, h.target.text("target"))
	}
	return lines
}

// rounded returns a duration in a short form.
func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// answer returns the handler of a check. The parameter "verbose" of a request adds the details,
// which may be nil.
func answer(check func() error, bad string, details func() []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		text := "OK"
		if err := check(); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			text = fmt.Sprintf("%s: %v", bad, err)
		}
		_, _ = fmt.Fprintln(w, text)
		if details == nil || !r.URL.Query().Has("verbose") {
			return
		}
		for _, line := range details() {
			_, _ = fmt.Fprintln(w, line)
		}
	}
}
