// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// optional is a driver with all optional interfaces. It counts the calls of them.
type optional struct {
	script
	calls int
	ends  bool // a context had a deadline
}

func (o *optional) called(ctx context.Context) {
	o.calls++
	_, o.ends = ctx.Deadline()
}

func (o *optional) ListSideResources(ctx context.Context, _ *driver.ListSideResourcesRequest) (*driver.ListSideResourcesResponse, error) {
	o.called(ctx)
	return &driver.ListSideResourcesResponse{}, nil
}

func (o *optional) DeleteSideResource(ctx context.Context, _ *driver.DeleteSideResourceRequest) (*driver.DeleteSideResourceResponse, error) {
	o.called(ctx)
	return &driver.DeleteSideResourceResponse{}, nil
}

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
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() && spec.Name.Name != "Driver" {
				if _, ok := spec.Type.(*ast.InterfaceType); ok {
					names = append(names, spec.Name.Name)
				}
			}
			return true
		})
	}
	return names
}

func TestAs_EveryOptionalInterface_PassesThroughEachWrapper(t *testing.T) {
	names := declared(t)
	require.Len(t, names, len(optionalInterfaces), "a row for each optional interface")
	for _, name := range names {
		find := optionalInterfaces[name]
		require.NotNil(t, find, name)
		inner := &optional{}
		shut := false
		gate := func(d driver.Driver) driver.Driver {
			return driver.Wrap(d, func(ctx context.Context, _ string, run func(context.Context) error) error {
				if shut {
					return status.Error(codes.Canceled, "the gate is shut")
				}
				return run(ctx)
			})
		}
		var seen []driver.Call
		observe := func(d driver.Driver) driver.Driver {
			return driver.Observe(d, func(c driver.Call) { seen = append(seen, c) }, nil)
		}
		for order, d := range map[string]driver.Driver{
			"gate outside": gate(observe(driver.WithDeadline(inner, driver.Timeouts{}))),
			"gate inside":  observe(named{driver.WithDeadline(gate(inner), driver.Timeouts{})}),
		} {
			found, methods := find(d)
			require.NotEmpty(t, methods, name)
			for _, method := range methods {
				for _, m := range []*v1alpha1.Machine{nil, {}} {
					op := driver.Operation(method.Name)
					inner.calls, inner.ends, seen, shut = 0, false, nil, true
					_, err := call(t.Context(), found, op, m, nil)
					require.Equal(t, codes.Canceled, codes.Of(err), "%s with the %s", op, order)
					require.Zero(t, inner.calls, "%s with the %s", op, order)

					shut, seen = false, nil
					_, err = call(t.Context(), found, op, m, nil)
					require.NoError(t, err)
					require.Equal(t, 1, inner.calls, "%s with the %s", op, order)
					require.True(t, inner.ends, "%s has a deadline", op)
					require.Len(t, seen, 1)
					require.Equal(t, op, seen[0].Operation)
				}
			}
		}
	}
}

// named is a wrapper of another package.
type named struct{ driver.Driver }

func (n named) Unwrap() driver.Driver { return n.Driver }

func TestAs_Result_HasNoOtherOptionalInterface(t *testing.T) {
	found, ok := driver.As[driver.SideResourceLister](driver.Observe(&optional{}, nil, nil))
	require.True(t, ok)
	_, deletes := found.(driver.SideResourceDeleter)
	require.False(t, deletes, "As answers that question")
}

func TestAs_WrappedDriver_FindsOptionalInterface(t *testing.T) {
	inner := &optional{}
	d := driver.Observe(driver.WithDeadline(inner, driver.Timeouts{}), nil, nil)
	outermost, ok := driver.As[driver.Driver](d)
	require.True(t, ok)
	require.Same(t, d, outermost)
	itself, ok := driver.As[driver.SideResourceDeleter](named{inner})
	require.True(t, ok)
	require.Same(t, inner, itself, "no wrapper of this package is around it")
	_, ok = driver.As[*optional](d)
	require.False(t, ok, "calls of another type would not pass through the wrappers")

	for name, d := range map[string]driver.Driver{
		"no driver":                      nil,
		"a wrapper without a driver":     driver.WithDeadline(nil, driver.Timeouts{}),
		"a nil pointer":                  (*optional)(nil),
		"a driver without the interface": driver.Observe(script(nil), nil, nil),
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
	deleter, ok := driver.As[driver.SideResourceDeleter](note("outer", note("inner", &optional{})))
	require.True(t, ok)
	_, class := objects()
	_, err := deleter.DeleteSideResource(t.Context(), &driver.DeleteSideResourceRequest{
		MachineClass: class, Resource: driver.SideResource{Kind: "disk", ID: "d", MachineName: "m-1"},
	})
	require.EqualError(t, err, "inner\nouter")
	_, err = deleter.ListSideResources(t.Context(), &driver.ListSideResourcesRequest{MachineClass: class})
	require.Error(t, err)
	require.Equal(t, []string{
		`outer: DeleteSideResource of machine "shoot/m-1"`, `inner: DeleteSideResource of machine "shoot/m-1"`,
		`outer: ListSideResources of class "shoot/small"`, `inner: ListSideResources of class "shoot/small"`,
	}, order)
}
