// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
)

// simulate brings the deployment up, changes it, and runs until nothing changes any more.
func (s scenario) simulate(ctx context.Context) (Document, error) {
	p := &provider{options: s.options, quota: noQuota, failed: map[string]bool{}}
	w, err := s.world(p)
	if err != nil {
		return Document{}, err
	}
	run := &simulation{scenario: s, world: w, provider: p, start: w.Now()}
	run.record(deploymenttest.Frame{At: w.Now(), Decision: w.Decision(), Sizes: w.Sizes()})
	run.frames[0].Before = true
	p.start(w)
	run.schedule()
	rest, err := run.run(ctx)
	if err != nil {
		return Document{}, err
	}
	run.frames[0].Sets = withNewSet(run.frames[0].Sets, run.frames[min(1, len(run.frames)-1)])
	return run.document(rest), nil
}

// world returns the world before the change: that of the cluster, or one in which the deployment has come
// up.
func (s scenario) world(p *provider) (*deploymenttest.World, error) {
	m := p.model()
	if s.observed != nil {
		m.Start = s.start
		w, err := deploymenttest.Restore(*s.observed, m)
		if err != nil {
			return nil, cli.Refuse("%w", err)
		}
		return w, nil
	}
	const notUp = "the deployment does not become complete before its rollout: "
	w, err := deploymenttest.New(s.from, m)
	if err != nil {
		return nil, cli.Refuse(notUp+"%s", cli.OneLine(err))
	}
	if _, rest := w.Run(longest); !rest || w.Decision().Reason != deployment.ReasonComplete {
		return nil, cli.Refuse(notUp+"%s", w.Decision())
	}
	return w, nil
}

// simulation is a rollout that is being simulated.
type simulation struct {
	scenario scenario
	world    *deploymenttest.World
	provider *provider
	start    time.Time
	events   []string // since the last step
	frames   []Frame
}

// schedule schedules the change of the deployment and the events.
func (s *simulation) schedule() {
	s.world.At(s.start, func(w *deploymenttest.World) {
		s.addEvent(s.scenario.event, w.Edit(s.scenario.apply))
	})
	for _, e := range s.scenario.options.events {
		s.world.At(s.start.Add(e.after), func(*deploymenttest.World) { s.addEvent(e.text, s.applyEvent(e)) })
	}
}

func (s *simulation) addEvent(text string, err error) {
	if err != nil {
		text += " (" + cli.OneLine(err) + ")"
	}
	if text != "" {
		s.events = append(s.events, text)
	}
}

// run steps until nothing changes any more, and reports whether that was before the end of --for.
func (s *simulation) run(ctx context.Context) (rest bool, err error) {
	end := s.start.Add(s.scenario.options.limit)
	for {
		if err := ctx.Err(); err != nil {
			return false, fmt.Errorf("interrupted after %s: %w", span(s.world.Now().Sub(s.start)), err)
		}
		step, moving := s.world.Step()
		switch {
		case !moving:
			return true, nil
		case step.At.After(end):
			return false, nil
		}
		s.record(step)
	}
}

// withNewSet returns the sets with the new one of a later frame marked as new.
func withNewSet(sets []Set, later Frame) []Set {
	sets = slices.Clone(sets)
	for i := range sets {
		sets[i].New = slices.ContainsFunc(later.Sets, func(s Set) bool { return s.Name == sets[i].Name && s.New })
	}
	return sets
}

// document returns the simulated rollout.
func (s *simulation) document(rest bool) Document {
	d := Document{
		APIVersion: APIVersion, Kind: Kind, Deployment: s.scenario.to.Name, Strategy: string(s.scenario.to.Spec.Strategy.Type),
		Change: s.scenario.change, Start: s.start, Outcome: OutcomeUnfinished, Decision: s.world.Decision(),
		Frames: s.frames, Summary: summarize(s.frames),
	}
	d.Summary.Decisions, d.Summary.Created, d.Summary.Gone = s.provider.decisions, s.provider.created, s.provider.gone
	switch {
	case rest && d.Decision.Reason == deployment.ReasonComplete:
		d.Outcome = OutcomeComplete
	case rest:
		d.Outcome = OutcomeStopped
	default:
		d.Summary.Duration = offset(s.scenario.options.limit)
	}
	return d
}
