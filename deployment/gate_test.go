// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// denies is a gate that keeps the machines of these names.
func denies(names ...string) deployment.Gate {
	return func(c deployment.Choice) (bool, machinist.Hold) {
		if slices.Contains(names, c.Machine.Name) {
			return false, machinist.Hold{Reason: "Keep", Message: "it holds data"}
		}
		return true, machinist.Hold{}
	}
}

func TestAGateSaysWhenToAskAgain(t *testing.T) {
	d := rolling(3, 1, 0)
	d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
	in := rollSee(d, rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 1, 1, 1))
	asked := map[string]int{}
	p := rollPolicy
	p.Gates = []deployment.Gate{func(c deployment.Choice) (bool, machinist.Hold) {
		asked[c.Machine.Name]++
		a := machinist.Hold{Reason: "Busy", Message: "ask later", Until: rollNow.Add(time.Hour)}
		if c.Machine.Name == "md-c0-01" {
			a.Until = rollNow.Add(time.Minute)
		}
		return false, a
	}}
	dec := deployment.Decide(in, p, rollNow)
	require.Empty(t, rollLines(dec))
	require.Equal(t, rollNow.Add(time.Minute), dec.NextCheck)
	require.Equal(t, map[string]int{"md-c0-00": 1, "md-c0-01": 1, "md-c0-02": 1}, asked, "each once")
}

func TestManyRefusalsAreToldInFewWords(t *testing.T) {
	d := rolling(50, 5, 0)
	in := rollSee(d, rollSet(d, "c0", 50, 50, 50), rollSet(d, "c1", 5, 5, 5))
	p := rollPolicy
	p.Gates = []deployment.Gate{func(c deployment.Choice) (bool, machinist.Hold) {
		if c.Machine.Name >= "md-c0-49" {
			return true, machinist.Hold{}
		}
		return false, machinist.Hold{Until: rollNow.Add(time.Hour)}
	}}
	dec := deployment.Decide(in, p, rollNow)
	require.Equal(t, []string{"scale md-c0 from 50 to 49: 54 machines available, minimum 50"}, rollLines(dec), "the only one that is allowed")
	gates := 0
	for _, h := range dec.Holds {
		if h.Reason == deployment.ReasonGate {
			gates++
		}
	}
	require.Equal(t, 21, gates)
	require.Contains(t, dec.String(), "md: Gate: gates keep 29 more machines")
}

func ExampleGate() {
	d := rolling(3, 0, 1)
	in := rollSee(d, rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 0, 0, 0))
	quorum := func(c deployment.Choice) (bool, machinist.Hold) {
		if strings.HasSuffix(c.Machine.Name, "-00") {
			return false, machinist.Hold{Reason: "Leader", Message: "it leads the quorum", Until: c.Now.Add(time.Minute)}
		}
		return true, machinist.Hold{}
	}
	p := deployment.Policy{Gates: []deployment.Gate{quorum}, Discourage: deployment.DiscourageNone}
	dec := deployment.Decide(in, p, rollNow)
	for _, t := range dec.Targets {
		fmt.Println(t)
	}
	for _, h := range dec.Holds {
		fmt.Println(h)
	}
	// Output:
	// md-c0 3 -> 2 without md-c0-01: 2 machines available, minimum 2
	// md-c1 0 -> 0
	// md-c1: SurgeUsedUp: 3 machines >= 3 replicas + 0 max surge
	// md-c0-00: Gate: Leader: it leads the quorum
}
