// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"
)

// withoutEffect are the flags of MCM that are accepted and have no effect, and why.
var withoutEffect = []struct {
	name, why string
}{
	{"cloud-provider", "it has no effect in MCM either"},
	{"controller-start-interval", "it has no effect in MCM either"},
	{"kube-api-content-type", "it has no effect in MCM either"},
	{"log-flush-frequency", "logs are not buffered"},
	{maxEvictRetries, "evictions are repeated until --machine-drain-timeout"},
	{"vmodule", "all files have the same verbosity"},
}

// Ineffective returns the names of the flags that were set and have no effect, in the order of the
// command line, without duplicates. The caller owns the result.
func (s *MCServer) Ineffective() []string { return slices.Clone(s.ineffective) }

func (s *MCServer) addIneffective(fs *pflag.FlagSet) {
	for _, f := range withoutEffect {
		if f.name == maxEvictRetries && s.program == machineControllerManager {
			continue
		}
		fs.VarPF(&given{server: s, name: f.name}, f.name, "", "no effect: "+f.why).Hidden = true
	}
}

// given records that a flag was set.
type given struct {
	server      *MCServer
	name, value string
}

// Set implements [pflag.Value]. It accepts any value.
func (g *given) Set(value string) error {
	g.value = value
	if !slices.Contains(g.server.ineffective, g.name) {
		g.server.ineffective = append(g.server.ineffective, g.name)
	}
	return nil
}

// String implements [pflag.Value].
func (g *given) String() string { return g.value }

// Type implements [pflag.Value].
func (g *given) Type() string { return "ignored" }

// maxEvictRetries is a flag of the machine-controller only.
const maxEvictRetries = "machine-max-evict-retries"

// addRefused adds the flags of the other program. Their values are refused.
func (s *MCServer) addRefused(fs *pflag.FlagSet) {
	other, all := "machine-controller", pflag.NewFlagSet("", pflag.ContinueOnError)
	if s.program == machineController {
		other = "machine-controller-manager"
	}
	everyFlag := NewManagerServer()
	for _, f := range everyFlag.settings() {
		f.add(all, everyFlag)
	}
	everyFlag.addIneffective(all)
	all.VisitAll(func(f *pflag.Flag) {
		if fs.Lookup(f.Name) == nil {
			fs.VarPF(refused(other), f.Name, "", "refused: a flag of the "+other).Hidden = true
		}
	})
}

// refused is the value of a flag that belongs to another program. It has the name of that program.
type refused string

// Set implements [pflag.Value].
func (r refused) Set(string) error {
	return fmt.Errorf("it is a flag of the %s", string(r))
}

// String implements [pflag.Value].
func (refused) String() string { return "" }

// Type implements [pflag.Value].
func (refused) Type() string { return "refused" }
