// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
)

// FreezePolicy says how long an API server may fail to answer, and how often it is asked.
type FreezePolicy struct {
	// Timeout is how long a server may fail to answer until there is a freeze. While one
	// does not answer, it is asked five times in that time. Zero or less means 30 seconds,
	// as in MCM.
	Timeout time.Duration
	// Period is the time between two probes while all servers answer. Zero or less means 1
	// minute, as in MCM.
	Period time.Duration
}

func (p FreezePolicy) withDefaults() FreezePolicy {
	if p.Timeout <= 0 {
		p.Timeout = 30 * time.Second
	}
	if p.Period <= 0 {
		p.Period = time.Minute
	}
	p.Timeout, p.Period = min(p.Timeout, maxDuration), min(p.Period, maxDuration)
	return p
}

// suspended returns the longest time between two steps of a process that works. After a
// longer one the process was suspended and has seen nothing meanwhile.
func (p FreezePolicy) suspended() time.Duration { return 2*p.Period + p.Timeout }

// Probe is the result of one request to an API server. The request needs a deadline of
// its own.
type Probe struct {
	// Server names the API server, such as "control" or "target".
	Server string
	// Err is the error of the request, nil for success. See [Answered].
	Err error
}

// Answered reports whether an API server has answered a request that returned err. It
// has if it succeeded, and if the error is NotFound, Forbidden or Unauthorized: the server
// works and knows what it may tell. A deadline, a connection that fails, TooManyRequests
// and every error of the server are no answer.
func Answered(err error) bool {
	return err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// FreezeState is what [StepFreeze] remembers. It can be stored as JSON. The zero state
// remembers nothing: there is a freeze until every server has answered once.
type FreezeState struct {
	// Down is since when a server does not answer, by its name.
	Down map[string]time.Time `json:"down,omitempty"`
	// ClocksFrom is since when there is no freeze. Zero means that there is one.
	ClocksFrom time.Time `json:"clocksFrom,omitzero"`
	// Last is the time of the last step.
	Last time.Time `json:"last,omitzero"`
}

// FreezeDecision says whether there is a freeze, and when to probe again.
type FreezeDecision struct {
	// Freeze is what the observations of packages machine, machineset and deployment take.
	Freeze machine.Freeze
	// Began and Ended report that the freeze began or ended with this step.
	Began, Ended bool
	// NextCheck is when to probe again. It is after now.
	NextCheck time.Time
}

// String returns the decision in one line.
func (d FreezeDecision) String() string {
	if d.Freeze.Frozen {
		return "frozen since " + d.Freeze.Since.UTC().Format(time.RFC3339) + ": " + d.Freeze.Message
	}
	return "not frozen since " + d.Freeze.ClocksFrom.UTC().Format(time.RFC3339)
}

// StepFreeze decides from one probe of each API server whether there is a freeze: a time
// in which nothing that was observed proves that a machine is unhealthy. It returns what to
// remember for the next step; state is not changed.
//
// A freeze begins when a server has not answered for [FreezePolicy.Timeout], counted from
// the first probe that failed. One answer ends that count. The freeze ends with the first
// step in which every probe was answered. [machine.Freeze.ClocksFrom] is then the time of
// that step: every timeout that rests on reports of Nodes counts from it, as Nodes could
// not report before. Nothing else has to be done to end a freeze, so that it cannot fail
// to end.
//
// A process that was suspended has seen nothing meanwhile: after a gap between two steps
// that is longer than two periods and a timeout, timeouts begin anew too. So they do in a
// process that starts, which begins with the zero state. That is how a freeze outlives a
// restart.
//
// Every step needs one probe of each server. A step without probes ends no freeze, but one
// may begin with it. Extra steps with probes change nothing as long as servers fail and
// answer at the same times.
func StepFreeze(state FreezeState, probes []Probe, policy FreezePolicy, now time.Time) (FreezeState, FreezeDecision) {
	p := policy.withDefaults()
	next := state.at(p, now)
	problems := next.learn(probes, now)
	for _, since := range next.Down {
		if now.Sub(since) >= p.Timeout {
			next.ClocksFrom = time.Time{}
		}
	}
	if next.ClocksFrom.IsZero() && len(probes) > 0 && len(next.Down) == 0 {
		next.ClocksFrom = now
	}
	first, was, frozen := state.Last.IsZero(), state.ClocksFrom.IsZero(), next.ClocksFrom.IsZero()
	d := FreezeDecision{
		Freeze: machine.Freeze{Frozen: frozen, ClocksFrom: next.ClocksFrom},
		Began:  frozen && (first || !was), Ended: was && !frozen && !first, NextCheck: now.Add(p.Period),
	}
	if frozen || len(next.Down) > 0 {
		d.NextCheck = now.Add(max(p.Timeout/5, time.Millisecond))
	}
	if frozen {
		d.Freeze.Since = machinist.Earliest(append(slices.Collect(maps.Values(next.Down)), now)...)
		d.Freeze.Message = strings.Join(problems, "; ")
	}
	return next, d
}

// learn notes what the probes show, and returns for people which servers do not answer.
func (s FreezeState) learn(probes []Probe, now time.Time) (problems []string) {
	for _, probe := range probes {
		if Answered(probe.Err) {
			delete(s.Down, probe.Server)
		}
	}
	for _, probe := range probes { // a failure counts, also beside an answer of the same server
		if Answered(probe.Err) {
			continue
		}
		since, known := s.Down[probe.Server]
		if !known {
			since = now
			s.Down[probe.Server] = since
		}
		problems = append(problems, fmt.Sprintf("the %s API server has not answered since %s: %v", probe.Server, since.UTC().Format(time.RFC3339), probe.Err))
	}
	return problems
}

// at returns a copy of the state without times after now, as the clock may have been set
// back. After a gap nothing is known.
func (s FreezeState) at(p FreezePolicy, now time.Time) FreezeState {
	next := FreezeState{Down: map[string]time.Time{}, ClocksFrom: s.ClocksFrom, Last: now}
	for server, since := range s.Down {
		if since.After(now) {
			since = now
		}
		next.Down[server] = since
	}
	if next.ClocksFrom.After(now) {
		next.ClocksFrom = now
	}
	if !s.Last.IsZero() && now.Sub(s.Last) > p.suspended() {
		next.ClocksFrom = time.Time{}
	}
	return next
}
