// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"strings"
	"testing"

	"github.com/machinist-dev/machinist/examples/e2e/env"
)

// composition is a program of the controllers: that of examples/controllers, or that of
// examples/samples/controllerruntime.
type composition string

// options are the fast options of a scenario for a composition.
func (c composition) options() env.Options {
	o := fastOptions()
	o.Program = string(c)
	return o
}

// acted reports whether a manager has done anything to machine objects.
func (c composition) acted(m *env.Manager) bool {
	begins := "msg=decided"
	if c == env.ControllerRuntime {
		begins = `msg="Starting workers"`
	}
	return strings.Contains(m.Log(), begins)
}

// scenarios are what each composition has to pass.
var scenarios = []struct {
	name string
	play func(t *testing.T, by composition)
}{
	{"a fleet is created, scaled, rolled and deleted", twentyMachines},
	{"a disruption budget holds a drain up", drainUnderBudget},
	{"a machine without its Node is replaced", replacedWithoutNode},
	{"an orphan VM is deleted, and none of a wrong list", orphansOfWrongLists},
	{"the second manager takes over", takenOver},
	{"a roll is finished in spite of five kills", killedFiveTimes},
}

func TestCompositions_EachScenario_Passes(t *testing.T) {
	t.Parallel()
	for _, by := range []composition{env.Controllers, env.ControllerRuntime} {
		for _, s := range scenarios {
			t.Run(string(by)+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				s.play(t, by)
			})
		}
	}
}
