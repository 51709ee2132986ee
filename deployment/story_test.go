// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A story is a roll-out told round by round: one decision, then one pass of each
// set, then its report; starting machines become available and deleted ones are
// gone one round later.
type story struct {
	*world
	text strings.Builder
}

func (s *story) tell(format string, args ...any) { fmt.Fprintf(&s.text, format+"\n", args...) }

func (s *story) sets() string {
	var out []string
	for _, x := range s.world.sets {
		out = append(out, fmt.Sprintf("%s wants %d, has %d, %d available", s.nick(x.Name), x.Spec.Replicas, x.Status.Replicas, x.Status.AvailableReplicas))
	}
	return strings.Join(out, "; ")
}

// nick calls the sets by their class, as their names are hashes.
func (s *story) nick(text string) string {
	for _, x := range s.world.sets {
		text = strings.ReplaceAll(text, x.Name, x.Spec.Template.Spec.Class.Name)
	}
	return text
}

// round says whether anything was decided or happened.
func (s *story) round(n int) bool {
	dec := deployment.Decide(s.observe(), deployment.Policy{}, s.now)
	s.d.Status = dec.Status
	_, _, available := s.count()
	s.tell("%2d  %s", n, s.sets())
	for _, a := range dec.Actions {
		s.act(a)
		s.tell("      %s", s.nick(a.String()))
	}
	for _, h := range dec.Holds {
		s.tell("      %s", s.nick(h.String()))
	}
	if dec.Reason == deployment.ReasonComplete {
		s.tell("      complete, %d available", available)
	}
	s.now = s.now.Add(time.Minute)
	for _, x := range s.world.sets {
		s.live(x)
		s.control(x)
		s.deliver(x)
	}
	return dec.Reason != deployment.ReasonComplete || len(dec.Actions) > 0
}

// live lets everything happen to the machines of a set that can.
func (s *story) live(x *worldSet) {
	kept := x.machines[:0]
	for _, m := range x.machines {
		if !m.leaving {
			m.available = !m.broken
			kept = append(kept, m)
		}
	}
	x.machines = kept
}

func (s *story) until(n int, stop func(round int) bool) int {
	for s.round(n) {
		n++
		if n > 60 || stop != nil && stop(n) {
			return n
		}
	}
	return n + 1
}

func TestRolloutsReadAsStories(t *testing.T) {
	stories := []struct {
		name               string
		replicas           int32
		surge, unavailable int32
		middle             func(s *story) // after the third round of the roll-out
	}{
		{"three-machines-one-more-none-less", 3, 1, 0, nil},
		{"three-machines-none-more-one-less", 3, 0, 1, nil},
		{"ten-machines-three-more-two-less", 10, 3, 2, nil},
		{"scaled-in-on-the-way", 8, 2, 0, func(s *story) {
			s.tell("    now 3 machines are wanted")
			s.d.Spec.Replicas = 3
		}},
		{"changed-again-on-the-way", 4, 1, 1, func(s *story) {
			s.tell("    now machines of class c3 are wanted")
			s.d.Spec.Template.Spec.Class.Name = "c3"
		}},
		{"an-old-machine-is-broken", 3, 1, 0, func(s *story) {
			s.tell("    one of c1 breaks")
			s.world.sets[0].machines[0].broken = true
		}},
	}
	for _, x := range stories {
		t.Run(x.name, func(t *testing.T) {
			s := &story{world: newWorld(t, 1)}
			s.loud = true
			s.d.Spec.Replicas = x.replicas
			s.d.Spec.Strategy = strategy(string(v1alpha1.RollingUpdateMachineDeploymentStrategyType), "", new(intstr.FromInt32(x.surge)), new(intstr.FromInt32(x.unavailable)))
			n := s.until(1, nil)
			s.tell("    now machines of class c2 are wanted")
			s.d.Spec.Template.Spec.Class.Name = "c2"
			s.d.Generation++
			if x.middle != nil {
				end := n + 3
				n = s.until(n, func(round int) bool { return round == end })
				x.middle(s)
				s.d.Generation++
			}
			s.until(n, nil)
			golden(t, filepath.Join("testdata", x.name+".golden"), s.text.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
