// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
)

// managerFlags returns the flags of the manager.
func (s settings) managerFlags() []string {
	return []string{fmt.Sprintf("--kube-api-qps=%d", s.qps), fmt.Sprintf("--kube-api-burst=%d", s.burst), "--machine-settle-time=0"}
}

const (
	// settling is how long the manager is left alone before its idle time is
	// measured, and idling is for how long that is. A manager that has asked for
	// nothing for the time of settling has nothing left to say.
	settling = 2 * time.Second
	idling   = 4 * time.Second
)

// round is what was measured in one round.
type round struct {
	planned  int // machines
	machines []moments
	up, down time.Duration // of the whole; zero if it is not known
	requests []controlplane.Request
	cpu      time.Duration // above the idle process; zero if too little to measure, or not known
	idle     float64       // CPU time for each second of idleness
	peak     int           // bytes; zero if not known
	figures  fmt.Stringer
	timeline []string // of the first machine
}

// measure plays plans, each on an environment of its own.
func measure(ctx context.Context, h *env.Cluster, s settings, title string, plans []plan) (result, error) {
	r := result{title: title}
	for _, p := range plans {
		one, err := play(ctx, h, s, p)
		if err != nil {
			return r, fmt.Errorf("%s: %w", title, err)
		}
		r.rounds = append(r.rounds, one)
	}
	return r, nil
}

func play(ctx context.Context, h *env.Cluster, with settings, p plan) (r round, err error) {
	ctx, cancel := context.WithTimeout(ctx, with.timeout)
	defer cancel()
	r.planned = p.machines
	s, err := h.New(ctx, "bench", env.Options{Flags: with.managerFlags()})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }() //nolint:contextcheck // whatever becomes of ctx
	if err := s.Class(ctx, class); err != nil {
		return r, err
	}
	manager := s.Manager("manager")
	if err := manager.Start(ctx); err != nil {
		return r, err
	}
	id := managerOf(s.Namespace)
	wait(ctx, settling)
	atRest, before := id.cpu(), time.Now()
	wait(ctx, idling)
	busy, began := id.cpu(), time.Now()
	r.idle = float64(busy-atRest) / float64(began.Sub(before))

	var t timing
	if err := p.play(ctx, s, &t); err != nil {
		return r, err
	}
	if err := silence(ctx, s); err != nil {
		return r, err
	}
	ended := time.Now()
	r.cpu = max(0, id.cpu()-busy-time.Duration(r.idle*float64(ended.Sub(began))))
	r.peak = id.peak()
	return r, errors.Join(r.look(ctx, s, t, began, ended), manager.Stop(ctx))
}

// electing reports whether a request is about who leads.
func electing(q controlplane.Request) bool { return q.UserAgent == "machinist/leader-election" }

// silence waits until the manager has nothing left to say: Events come late.
func silence(ctx context.Context, s *env.Env) error {
	for {
		requests, err := s.Requests(ctx)
		if err != nil {
			return err
		}
		requests = slices.DeleteFunc(requests, electing)
		if len(requests) == 0 || time.Since(requests[len(requests)-1].Time) > settling {
			return nil
		}
		wait(ctx, settling/4)
	}
}

// look reads the records of a round.
func (r *round) look(ctx context.Context, s *env.Env, t timing, began, ended time.Time) error {
	requests, err := s.Requests(ctx)
	if err != nil {
		return err
	}
	all, err := s.Cluster.ControlPlane.Requests()
	if err != nil {
		return err
	}
	r.requests = slices.DeleteFunc(requests, func(q controlplane.Request) bool {
		return q.Time.Before(began) || q.Time.After(ended) || electing(q)
	})
	figures, err := s.Figures()
	if r.figures = figures; !figures.Complete() {
		err = errors.Join(err, fmt.Errorf("the journal has missed something: %s", figures))
	}
	r.machines = momentsOf(s.AuditLog(), s.Cloud.History(), all, s.NodeName)
	r.up, r.down = whole(r.machines, t)
	r.timeline = timelineOf(s.AuditLog(), r.requests, s.NodeName)
	return err
}

// wait waits a while, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
