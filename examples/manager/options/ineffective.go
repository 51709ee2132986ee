// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"
)

// withoutEffect are the flags of the reference system's two managers that are
// taken here and do nothing, and why. Some have no effect there either.
var withoutEffect = []struct {
	name, why string
}{
	{"cloud-provider", "it has no effect in the reference system either"},
	{"controller-start-interval", "it has no effect in the reference system either"},
	{"kube-api-content-type", "it has no effect in the reference system either"},
	{"log-flush-frequency", "logs are not buffered"},
	{maxEvictRetries, "evictions are repeated until --machine-drain-timeout"},
	{"vmodule", "verbosity is the same everywhere"},
}

// Ineffective returns the flags that were given although they have no effect
// here, in the order in which they were given, each once. The caller owns the
// result.
func (s *MCServer) Ineffective() []string { return slices.Clone(s.ineffective) }

func (s *MCServer) addIneffective(fs *pflag.FlagSet) {
	for _, f := range withoutEffect {
		if f.name == maxEvictRetries && s.program == machineControllerManager {
			continue
		}
		fs.VarPF(&given{server: s, name: f.name}, f.name, "", "no effect here: "+f.why).Hidden = true
	}
}

// given remembers that a flag was given, and with which value.
type given struct {
	server      *MCServer
	name, value string
}

// Set takes any value.
func (g *given) Set(value string) error {
	g.value = value
	if !slices.Contains(g.server.ineffective, g.name) {
		g.server.ineffective = append(g.server.ineffective, g.name)
	}
	return nil
}

// String returns the last value.
func (g *given) String() string { return g.value }

// Type names the type in the usage.
func (g *given) Type() string { return "ignored" }

// maxEvictRetries is a flag of the controllers of machines alone.
const maxEvictRetries = "machine-max-evict-retries"

// addRefused adds the flags of the other program, which are refused with the reason.
func (s *MCServer) addRefused(fs *pflag.FlagSet) {
	other, all := "machine-controller", pflag.NewFlagSet("", pflag.ContinueOnError)
	if s.program == machineController {
		other = "machine-controller-manager"
	}
	everyFlag := NewManagerServer()
	everyFlag.addMachineFlags(all)
	everyFlag.addSetFlags(all)
	everyFlag.addIneffective(all)
	all.VisitAll(func(f *pflag.Flag) {
		if fs.Lookup(f.Name) == nil {
			fs.VarPF(refused(other), f.Name, "", "refused here: a flag of the "+other).Hidden = true
		}
	})
}

// refused takes no value: it names the program that a flag belongs to.
type refused string

// Set implements [pflag.Value].
func (r refused) Set(string) error {
	return fmt.Errorf("it has no meaning for these controllers; give it to the %s", string(r))
}

// String implements [pflag.Value].
func (refused) String() string { return "" }

// Type implements [pflag.Value].
func (refused) Type() string { return "refused" }
