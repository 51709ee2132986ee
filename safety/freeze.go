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

// FreezePolicy defines when an unreachable API server causes a freeze.
type FreezePolicy struct {
	// Timeout is how long a server may fail to answer before the freeze. During this time it
	// is probed five times. Zero or less means 30s, as in MCM.
	Timeout time.Duration
	// Period is the time between two probes while all servers answer. Zero or less means 1m,
	// as in MCM.
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

// suspended returns the longest time between two steps of a running process. After a longer
// time the process was suspended.
func (p FreezePolicy) suspended() time.Duration { return 2*p.Period + p.Timeout }

// Probe is the result of one request to an API server. Give each request its own deadline.
type Probe struct {
	// Server names the API server, such as "control" or "target".
	Server string
	// Err is the error of the request. Nil means success. NotFound, Forbidden and Unauthorized are
	// answers, too.
	Err error
}

// answered reports whether an API server answered a request that returned err. Success,
// NotFound, Forbidden and Unauthorized are answers. A deadline, a failed connection,
// TooManyRequests and internal errors are not.
func answered(err error) bool {
	return err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// FreezeState is the memory of [StepFreeze]. It can be stored as JSON. The zero state is
// frozen until every server has answered once.
type FreezeState struct {
	// Down has the time of the first failed probe of each server that does not answer.
	Down map[string]time.Time `json:"down,omitempty"`
	// ClocksFrom is the time of the end of the last freeze. Zero means frozen.
	ClocksFrom time.Time `json:"clocksFrom,omitzero"`
	// Last is the time of the last step.
	Last time.Time `json:"last,omitzero"`
}

// FreezeDecision is the result of [StepFreeze].
type FreezeDecision struct {
	// Freeze is the input for the observations of packages machine, machineset and
	// deployment.
	Freeze machine.Freeze `json:"freeze"`
	// Began reports that the freeze began with this step.
	Began bool `json:"began,omitempty"`
	// Ended reports that the freeze ended with this step.
	Ended bool `json:"ended,omitempty"`
	// NextCheck is when to probe again. It is after now.
	NextCheck time.Time `json:"nextCheck"`
}

// String returns the decision in one line.
func (d FreezeDecision) String() string {
	if d.Freeze.Frozen {
		return "frozen since " + d.Freeze.Since.UTC().Format(time.RFC3339) + ": " + d.Freeze.Message
	}
	return "not frozen since " + d.Freeze.ClocksFrom.UTC().Format(time.RFC3339)
}

// StepFreeze decides from one probe of each API server whether health timeouts are frozen.
// During a freeze the observed health of a machine proves nothing. It returns the state for
// the next call and does not change state.
//
// A freeze begins when a server has not answered for [FreezePolicy.Timeout], counted from the
// first failed probe. One answer ends the count. The freeze ends with the first step in which
// every server answered. Health timeouts then count from [machine.Freeze.ClocksFrom], the
// time of that step. To end a freeze needs no write.
//
// A pause of more than two periods and a timeout means that the process was suspended. Then
// the timeouts start again. They also start again with the zero state of a new process.
//
// Every step needs one probe of each server. A step without probes may begin a freeze, but
// does not end one.
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

// learn records the probes and returns a message for each server that does not answer.
func (s FreezeState) learn(probes []Probe, now time.Time) (problems []string) {
	for _, probe := range probes {
		if answered(probe.Err) {
			delete(s.Down, probe.Server)
		}
	}
	for _, probe := range probes { // a failure counts even if the same server answered another probe
		if answered(probe.Err) {
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

// at returns a copy of the state in which times after now count as now, because the clock may
// have been set back. After a suspension it is frozen.
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
