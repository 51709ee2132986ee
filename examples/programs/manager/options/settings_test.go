// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/driver"
)

// other returns a value of a flag that is not its default.
func other(t *testing.T, field any) string {
	t.Helper()
	switch f := field.(type) {
	case *string:
		return *f + "x"
	case *bool:
		return fmt.Sprint(!*f)
	case *int:
		return fmt.Sprint(*f + 1)
	case *int32:
		return fmt.Sprint(*f + 1)
	case *float32:
		return fmt.Sprint(*f + 1)
	case *time.Duration:
		return (*f + time.Minute).String()
	case *driver.Timeouts:
		return "3m,ListMachines=4m"
	}
	t.Fatalf("no flag has the type %T", field)
	return ""
}

// read returns the fields of the options that package app reads: those named in a selector after s or
// after the configuration of the lease.
func read(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../app/*.go")
	require.NoError(t, err)
	found := map[string]bool{}
	for _, path := range append(files, "mcserver.go") { // which has the names of the leases
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of := ""
			switch x := selector.X.(type) {
			case *ast.Ident:
				of = x.Name
			case *ast.SelectorExpr:
				of = x.Sel.Name
			}
			if slices.Contains([]string{"s", "o", "election", "LeaderElection"}, of) {
				found[selector.Sel.Name] = true
			}
			return true
		})
	}
	return found
}

// TestSettings_EachFlag_ReachesItsDecision sets each flag to another value. It has to change what the
// controllers get, or the program has to read its field. A flag with one valid value is refused.
func TestSettings_EachFlag_ReachesItsDecision(t *testing.T) {
	read := read(t)
	for _, f := range NewManagerServer().settings() {
		s := NewManagerServer()
		field, before := fieldName(t, s, f), s.Config()
		fs := pflag.NewFlagSet(f.name, pflag.ContinueOnError)
		s.AddFlags(fs)
		value := other(t, f.field(s))
		was := reflect.ValueOf(f.field(s)).Elem().Interface()
		require.NoError(t, fs.Set(f.name, value), f.name)
		require.NotEqual(t, was, reflect.ValueOf(f.field(s)).Elem().Interface(), "--%s sets no field", f.name)
		if f.reach == nil {
			if !read[field] { // unless there is one valid value
				require.ErrorContains(t, s.Validate(), "--"+f.name+": ", "no program reads MCServer.%s", field)
			}
			require.Equal(t, before, s.Config(), "--%s has a setter of another flag", f.name)
			continue
		}
		require.NotEqual(t, before, s.Config(), "--%s=%s changes nothing that the controllers get", f.name, value)
		for _, g := range NewManagerServer().settings() { // its own setter, and no other one
			if g.reach != nil && g.name != f.name {
				own, with := NewManagerServer().Config(), NewManagerServer().Config()
				g.reach(NewManagerServer(), &own)
				g.reach(s, &with)
				require.Equal(t, own, with, "the setter of --%s uses the value of --%s", g.name, f.name)
			}
		}
	}
}

// fieldName returns the name of the field of a flag.
func fieldName(t *testing.T, s *MCServer, f setting) string {
	t.Helper()
	for name, address := range fields(s) {
		if address == f.field(s) {
			return name
		}
	}
	t.Fatalf("--%s: its field is none of MCServer", f.name)
	return ""
}

// fields returns the addresses of the fields of the options by name.
func fields(s *MCServer) map[string]any {
	all := map[string]any{}
	var add func(v reflect.Value)
	add = func(v reflect.Value) {
		for i := range v.NumField() {
			switch f := v.Type().Field(i); {
			case !f.IsExported():
			case f.Name == "LeaderElection" || f.Anonymous:
				add(v.Field(i))
			default:
				all[f.Name] = v.Field(i).Addr().Interface()
			}
		}
	}
	add(reflect.ValueOf(s).Elem())
	return all
}

func TestSettings_EachFieldAndFlag_HasOneRow(t *testing.T) {
	s, rows := NewManagerServer(), map[string]int{}
	fs := pflag.NewFlagSet("all", pflag.ContinueOnError)
	s.AddFlags(fs)
	for _, f := range s.settings() {
		rows[fieldName(t, s, f)]++
		require.NotNil(t, fs.Lookup(f.name), f.name)
		require.NotEmpty(t, f.usage, f.name)
	}
	for name := range fields(s) {
		require.Equal(t, 1, rows[name], "flags of MCServer.%s", name)
	}
	fs.VisitAll(func(f *pflag.Flag) {
		known := slices.ContainsFunc(s.settings(), func(g setting) bool { return g.name == f.Name })
		require.True(t, known || f.Value.Type() == "ignored", "--%s has no row", f.Name)
	})
}

func TestSettings_EachNumberAndDuration_HasBounds(t *testing.T) {
	for _, f := range NewManagerServer().settings() {
		s := NewManagerServer()
		s.Profiling = true // its port counts only then
		fs := pflag.NewFlagSet(f.name, pflag.ContinueOnError)
		s.AddFlags(fs)
		switch f.field(s).(type) {
		case *string, *bool:
			continue
		}
		value := "-1"
		if fs.Set(f.name, value) != nil {
			value = "-1s"
			require.NoError(t, fs.Set(f.name, value))
		}
		require.ErrorContains(t, s.Validate(), "--"+f.name+": ", value)
	}
}

func TestDriverTimeout_Values_ByOperation(t *testing.T) {
	for text, want := range map[string]driver.Timeouts{
		"5m":                    {Default: 5 * time.Minute},
		"5m, CreateMachine=20m": {Default: 5 * time.Minute, CreateMachine: 20 * time.Minute},
		"InitializeMachine=1s,DeleteMachine=2s,GetMachineStatus=3s,ListMachines=4s,GetVolumeIDs=5s": {
			InitializeMachine: time.Second, DeleteMachine: 2 * time.Second, GetMachineStatus: 3 * time.Second, ListMachines: 4 * time.Second, GetVolumeIDs: 5 * time.Second,
		},
	} {
		got := driver.Timeouts{Default: time.Hour, CreateMachine: time.Hour}
		require.NoError(t, timeouts{&got}.Set(text))
		require.Equal(t, want, got, "a value replaces the default")
		again := driver.Timeouts{}
		require.NoError(t, timeouts{&again}.Set(timeouts{&got}.String()))
		require.Equal(t, want, again)
	}
	for _, text := range []string{"", "x", "5m,Else=1s", "=5m", "CreateMachine=", "CreateMachine"} {
		require.Error(t, timeouts{&driver.Timeouts{}}.Set(text), text)
	}
}
