// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
)

// bringUpTime is how much virtual time a deployment has to come up before its roll-out.
const bringUpTime = longest

// play brings the deployment up, changes it, and watches until nothing happens any more.
func (s scene) play(ctx context.Context) (Document, error) {
	p := &provider{options: s.options, quota: noQuota}
	w, err := deploymenttest.New(s.from, p.model())
	if err != nil {
		return Document{}, &notUpError{why: oneLine(err)}
	}
	if _, rest := w.Run(bringUpTime); !rest || w.Decision().Reason != deployment.ReasonComplete {
		return Document{}, &notUpError{why: w.Decision().String()}
	}
	t := &theatre{scene: s, world: w, provider: p, start: w.Now()}
	t.film(deploymenttest.Frame{At: w.Now(), Decision: w.Decision(), Sizes: w.Sizes()})
	t.frames[0].Before = true
	p.begin(w)
	t.schedule()
	rest, err := t.run(ctx)
	if err != nil {
		return Document{}, err
	}
	t.frames[0].Sets = asIn(t.frames[min(1, len(t.frames)-1)], t.frames[0].Sets)
	return t.document(rest), nil
}

// begin has machines behave as the flags say from now on.
func (p *provider) begin(w *deploymenttest.World) {
	p.begun, p.quota, p.old = true, p.options.quota, map[string]bool{}
	for _, s := range w.Sets() {
		p.old[s.Name] = true
	}
}

// A theatre is where a roll-out is played.
type theatre struct {
	scene    scene
	world    *deploymenttest.World
	provider *provider
	start    time.Time
	happened []string // from outside, since the last step
	frames   []Frame
	actions  []deployment.Action // of the last frame
}

// schedule arranges for everything that is to happen from outside.
func (t *theatre) schedule() {
	t.world.At(t.start, func(w *deploymenttest.World) {
		t.tell(t.scene.event, w.Edit(t.scene.become))
	})
	for _, e := range t.scene.options.events {
		t.world.At(t.start.Add(e.after), func(*deploymenttest.World) { t.tell(e.text, t.happen(e)) })
	}
}

func (t *theatre) tell(event string, err error) {
	if err != nil {
		event += " (" + oneLine(err) + ")"
	}
	t.happened = append(t.happened, event)
}

// run steps until the world is at rest, and says whether it came to rest before the time was over.
func (t *theatre) run(ctx context.Context) (rest bool, err error) {
	end := t.start.Add(t.scene.options.limit)
	for {
		if err := ctx.Err(); err != nil {
			return false, fmt.Errorf("interrupted after %s: %w", span(t.world.Now().Sub(t.start)), err)
		}
		step, moving := t.world.Step()
		switch {
		case !moving:
			return true, nil
		case step.At.After(end):
			return false, nil
		}
		t.film(step)
	}
}

// asIn returns the sets with the word of a later frame on which of them is the new one.
func asIn(later Frame, sets []Set) []Set {
	sets = slices.Clone(sets)
	for i := range sets {
		sets[i].New = slices.ContainsFunc(later.Sets, func(s Set) bool { return s.Name == sets[i].Name && s.New })
	}
	return sets
}

// document is what was played.
func (t *theatre) document(rest bool) Document {
	decision := t.world.Decision()
	d := Document{
		APIVersion: APIVersion, Kind: Kind, Deployment: t.scene.to.Name, Strategy: string(t.scene.to.Spec.Strategy.Type),
		Change: t.scene.change, Outcome: OutcomeUnfinished, Reason: string(decision.Reason), Frames: t.frames, Summary: summarize(t.frames),
	}
	d.Summary.Decisions, d.Summary.Created, d.Summary.Gone = t.provider.decisions, t.provider.created, t.provider.gone
	switch {
	case rest && decision.Reason == deployment.ReasonComplete:
		d.Outcome = OutcomeComplete
	case rest:
		d.Outcome = OutcomeStopped
	default:
		d.Summary.Duration = offset(t.scene.options.limit)
	}
	if d.Outcome != OutcomeComplete {
		d.Holds = t.holds(decision)
	}
	return d
}
