// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/machinist-dev/machinist/driver"
)

// timeouts is the value of a flag with the timeouts of driver calls: a duration for all operations,
// and durations for single operations, such as "10m,CreateMachine=20m".
type timeouts struct{ of *driver.Timeouts }

var _ pflag.Value = timeouts{}

// field returns the timeout of an operation, or nil for another name. The empty name is that of the
// default.
func (t timeouts) field(name string) *time.Duration {
	return map[driver.Operation]*time.Duration{
		"":                         &t.of.Default,
		driver.OpCreateMachine:     &t.of.CreateMachine,
		driver.OpInitializeMachine: &t.of.InitializeMachine,
		driver.OpDeleteMachine:     &t.of.DeleteMachine,
		driver.OpGetMachineStatus:  &t.of.GetMachineStatus,
		driver.OpListMachines:      &t.of.ListMachines,
		driver.OpGetVolumeIDs:      &t.of.GetVolumeIDs,
	}[driver.Operation(name)]
}

// Set implements [pflag.Value].
func (t timeouts) Set(value string) error {
	*t.of = driver.Timeouts{}
	for part := range strings.SplitSeq(value, ",") {
		name, text, single := strings.Cut(strings.TrimSpace(part), "=")
		if !single {
			name, text = "", name
		}
		field := t.field(name)
		if field == nil || single && name == "" {
			return fmt.Errorf("%q is not an operation: one of %s", name, driver.Operations())
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		*field = d
	}
	return nil
}

// String implements [pflag.Value].
func (t timeouts) String() string {
	if t.of == nil {
		return ""
	}
	var parts []string
	if t.of.Default != 0 {
		parts = append(parts, t.of.Default.String())
	}
	for _, op := range driver.Operations() {
		if d := *t.field(op.String()); d != 0 {
			parts = append(parts, fmt.Sprintf("%s=%s", op, d))
		}
	}
	return strings.Join(parts, ",")
}

// Type implements [pflag.Value].
func (timeouts) Type() string { return "durations" }
