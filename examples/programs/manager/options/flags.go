// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/machinist-dev/machinist/driver"
)

// AddFlags adds the flags to fs. Their defaults are the values of s. A nil fs is ignored.
func (s *MCServer) AddFlags(fs *pflag.FlagSet) {
	if fs == nil {
		return
	}
	for _, f := range s.settings() {
		f.add(fs, s)
	}
	s.addIneffective(fs)
	s.addRefused(fs)
}

// settings returns the flags of the program.
func (s *MCServer) settings() []setting {
	all := slices.Concat(commonSettings, leaseSettings, otherSettings)
	if s.program != machineControllerManager {
		all = append(all, machineSettings...)
	}
	if s.program != machineController {
		all = append(all, setSettings...)
	}
	return all
}

// add adds the flag.
func (f setting) add(fs *pflag.FlagSet, s *MCServer) {
	switch value := f.field(s).(type) {
	case *string:
		fs.StringVar(value, f.name, *value, f.usage)
	case *bool:
		fs.BoolVar(value, f.name, *value, f.usage)
	case *int:
		shorthand := ""
		if len(f.name) == 1 {
			shorthand = f.name
		}
		fs.IntVarP(value, f.name, shorthand, *value, f.usage)
	case *int32:
		fs.Int32Var(value, f.name, *value, f.usage)
	case *float32:
		fs.Float32Var(value, f.name, *value, f.usage)
	case *time.Duration:
		fs.DurationVar(value, f.name, *value, f.usage)
	case *driver.Timeouts:
		fs.Var(timeouts{value}, f.name, f.usage)
	}
}
