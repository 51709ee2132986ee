// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// optionalInterfaces are the optional interfaces by their names: a driver that has one, and its methods.
var optionalInterfaces = map[string]func(driver.Driver) (any, []reflect.Method){
	"SideResourceLister":  as[driver.SideResourceLister],
	"SideResourceDeleter": as[driver.SideResourceDeleter],
}

func as[T any](d driver.Driver) (any, []reflect.Method) {
	if found, ok := driver.As[T](d); ok {
		var methods []reflect.Method
		for i := range reflect.TypeFor[T]().NumMethod() {
			methods = append(methods, reflect.TypeFor[T]().Method(i))
		}
		return found, methods
	}
	return nil, nil
}

// declared returns the names of the exported interfaces of the package, without Driver.
func declared(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range files {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`(?m)^(?:type |\t)([A-Z]\w*) interface\b`).FindAllSubmatch(source, -1) {
			names = append(names, string(match[1]))
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "Driver" })
}

func TestAs_EveryOptionalInterface_PassesThroughEachWrapper(t *testing.T) {
	names := declared(t)
	require.Len(t, names, len(optionalInterfaces), "a row for each optional interface")
	var shut bool
	var made, seen []driver.Operation
	inner := script(func(ctx context.Context, op driver.Operation) error {
		if _, ends := ctx.Deadline(); ends {
			made = append(made, op)
		}
		return nil
	})
	gate := func(d driver.Driver) driver.Driver {
		return driver.Wrap(d, func(ctx context.Context, _ string, run func(context.Context) error) error {
			if shut {
				return status.Error(codes.Canceled, "the gate is shut")
			}
			return run(ctx)
		})
	}
	observe := func(d driver.Driver) driver.Driver {
		return driver.Observe(d, func(c driver.Call) { seen = append(seen, c.Operation) }, nil)
	}
	for order, d := range map[string]driver.Driver{
		"gate outside": gate(observe(driver.WithDeadline(inner, driver.Timeouts{}))),
		"gate inside":  observe(named{driver.WithDeadline(gate(inner), driver.Timeouts{})}),
	} {
		for _, name := range names {
			require.Contains(t, optionalInterfaces, name)
			found, methods := optionalInterfaces[name](d)
			require.NotEmpty(t, methods, name)
			for _, method := range methods {
				for _, m := range []*v1alpha1.Machine{nil, {}} {
					op := driver.Operation(method.Name)
					made, shut = nil, true
					_, err := call(t.Context(), found, op, m, nil)
					require.Equal(t, codes.Canceled, codes.Of(err), "%s with the %s", op, order)
					require.Empty(t, made, "%s with the %s", op, order)

					seen, shut = nil, false
					_, err = call(t.Context(), found, op, m, nil)
					require.NoError(t, err)
					require.Equal(t, []driver.Operation{op}, made, "once and with a deadline, with the %s", order)
					require.Equal(t, []driver.Operation{op}, seen)
				}
			}
		}
	}
}

// named is a wrapper of another package.
type named struct{ driver.Driver }

func (n named) Unwrap() driver.Driver { return n.Driver }

func TestAs_WrappedDriver_FindsOptionalInterface(t *testing.T) {
	inner := &idle
	d := driver.Observe(driver.WithDeadline(inner, driver.Timeouts{}), nil, nil)
	outermost, ok := driver.As[driver.Driver](d)
	require.True(t, ok)
	require.Same(t, d, outermost)
	itself, ok := driver.As[driver.SideResourceDeleter](named{inner})
	require.True(t, ok)
	require.Same(t, inner, itself, "no wrapper of this package is around it")
	_, ok = driver.As[*script](d)
	require.False(t, ok, "calls of another type would not pass through the wrappers")
	lister, ok := driver.As[driver.SideResourceLister](d)
	require.True(t, ok)
	_, deletes := lister.(driver.SideResourceDeleter)
	require.False(t, deletes, "As answers that question")

	for name, d := range map[string]driver.Driver{
		"no driver":                      nil,
		"a wrapper without a driver":     driver.WithDeadline(nil, driver.Timeouts{}),
		"a nil pointer":                  (*script)(nil),
		"a driver without the interface": driver.Observe(struct{ driver.Driver }{idle}, nil, nil),
	} {
		for _, find := range optionalInterfaces {
			_, methods := find(d)
			require.Empty(t, methods, name)
		}
	}
}

func TestAs_SeveralWrappers_OutermostIsFirst(t *testing.T) {
	var order []string
	note := func(name string, d driver.Driver) driver.Driver {
		return driver.Wrap(d, func(ctx context.Context, call string, run func(context.Context) error) error {
			order = append(order, name+": "+call)
			return errors.Join(run(ctx), errors.New(name))
		})
	}
	deleter, ok := driver.As[driver.SideResourceDeleter](note("outer", note("inner", idle)))
	require.True(t, ok)
	m, class, _ := objects()
	_, err := call(t.Context(), deleter, driver.OpDeleteSideResource, m, class)
	require.EqualError(t, err, "inner\nouter")
	_, err = call(t.Context(), deleter, driver.OpListSideResources, m, class)
	require.Error(t, err)
	require.Equal(t, []string{
		`outer: DeleteSideResource of machine "shoot/m-1"`, `inner: DeleteSideResource of machine "shoot/m-1"`,
		`outer: ListSideResources of class "shoot/small"`, `inner: ListSideResources of class "shoot/small"`,
	}, order)
}
