// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// orphan is the machine name of the orphan VM. No such machine exists.
const orphan = "lost"

// awayTime is the duration of the outage of the target cluster.
const awayTime = 90 * time.Second

// isAway stops the API server of the Nodes for longer than the health timeout.
func (s *scenario) isAway() chapter {
	from := 0
	return chapter{
		title: fmt.Sprintf("the API server of the Nodes does not answer for %s", awayTime),
		do: func(ctx context.Context) error {
			all, err := s.running(ctx, s.grown())
			if err != nil {
				return err
			}
			for _, m := range all { // the heartbeats of their Nodes are old after the outage
				s.harm(m)
			}
			from = s.progress.noteCount()
			s.w.away.Store(true)
			defer s.w.away.Store(false)
			return s.sleep(ctx, awayTime)
		},
		until: s.allRunning,
		facts: func(lifecycles []*lifecycle) ([]string, error) {
			if err := noneReplaced(lifecycles); err != nil {
				return nil, err
			}
			text, err := s.noteWith(from, "freeze", "the target API server has not answered")
			return []string{"no machine failed, was created or deleted during the outage: " + text}, err
		},
	}
}

// hasOrphan adds a VM without a machine to the cloud, and waits until it is deleted.
func (s *scenario) hasOrphan() chapter {
	var vm drivertest.VM
	from := 0
	return chapter{
		title: "an orphan VM appears",
		do: func(context.Context) error {
			if len(s.m.deployments) == 0 {
				return errors.New("no machine deployment with a class for the VM")
			}
			from = s.progress.noteCount()
			d := s.m.deployments[0]
			vm = s.w.cloud.AddVM(drivertest.VM{Namespace: d.Namespace, Machine: orphan, Class: d.Spec.Template.Spec.Class.Name})
			return nil
		},
		until: func(ctx context.Context) (string, error) {
			for _, other := range s.w.cloud.Snapshot().VMs {
				if other.ProviderID == vm.ProviderID {
					return fmt.Sprintf("VM %s exists", vm.ProviderID), nil
				}
			}
			return s.allRunning(ctx)
		},
		facts: func(lifecycles []*lifecycle) ([]string, error) {
			if err := noneReplaced(lifecycles); err != nil {
				return nil, err
			}
			waits, err := s.noteWith(from, "orphan", "WaitingForGrace")
			if err != nil {
				return nil, err
			}
			deletes, err := s.noteWith(from, "orphan", "delete vm/"+vm.ProviderID)
			return []string{"first: " + waits, "then: " + deletes}, err
		},
	}
}

// allSilent makes all Nodes silent for longer than the health timeout.
func (s *scenario) allSilent() chapter {
	from := 0
	var silenced []*v1alpha1.Machine
	return chapter{
		title: "all Nodes become silent at once, and recover",
		do: func(ctx context.Context) error {
			all, err := s.running(ctx, s.grown())
			if err != nil {
				return err
			}
			from = s.progress.noteCount()
			for _, m := range all {
				s.silence(m)
			}
			silenced = all
			if err := s.wait(ctx, s.allUnknown); err != nil {
				return err
			}
			if err := s.sleep(ctx, 3*s.w.policy.HealthTimeout); err != nil {
				return err
			}
			for _, m := range silenced {
				s.speak(m)
			}
			return nil
		},
		until: s.allRunning,
		facts: func(lifecycles []*lifecycle) ([]string, error) {
			if err := noneReplaced(lifecycles); err != nil {
				return nil, err
			}
			text, err := s.noteWith(from, "machine", "ReplacementsHeld")
			return []string{fmt.Sprintf("none of %d machines was replaced: %s", len(silenced), text)}, err
		},
	}
}

// noneReplaced returns an error if a machine was created, failed or deleted.
func noneReplaced(lifecycles []*lifecycle) error {
	for _, l := range lifecycles {
		if !l.made.never() || !l.failed.never() || !l.deleted.never() {
			return fmt.Errorf("machine %s was created, failed or deleted (%q)", l.name, l.why)
		}
	}
	return nil
}

// noteWith returns the text of the first note of a controller since from that contains words, or only
// its holds if it has some.
func (s *scenario) noteWith(from int, kind, words string) (string, error) {
	for _, n := range s.progress.notesSince(from) {
		if n.Kind == kind && strings.Contains(n.Text, words) {
			if _, holds, waits := strings.Cut(n.Text, "; waits for "); waits {
				return holds, nil
			}
			return n.Text, nil
		}
	}
	return "", fmt.Errorf("the %s controller did not report %q", kind, words)
}

// sleep waits for a time on the clock of the demo.
func (s *scenario) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.w.clock.After(d):
		return nil
	}
}
