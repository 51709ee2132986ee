// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
)

// complete is a driver with all optional interfaces. It counts the calls of them, and notes when
// the context of one ended.
type complete struct {
	*drivertest.Cloud
	calls int
	wait  func(context.Context)
}

func (c *complete) called(ctx context.Context) error {
	c.calls++
	c.wait(ctx)
	return ctx.Err()
}

func (c *complete) ListSideResources(ctx context.Context, _ *driver.ListSideResourcesRequest) (*driver.ListSideResourcesResponse, error) {
	return nil, c.called(ctx)
}

func (c *complete) DeleteSideResource(ctx context.Context, _ *driver.DeleteSideResourceRequest) (*driver.DeleteSideResourceResponse, error) {
	return nil, c.called(ctx)
}

// as returns the methods of an optional interface of a driver, by their names.
func as[T any](d driver.Driver) (map[string]reflect.Value, bool) {
	found, ok := driver.As[T](d)
	methods, of := map[string]reflect.Value{}, reflect.TypeFor[T]()
	for i := range of.NumMethod() {
		if ok {
			methods[of.Method(i).Name] = reflect.ValueOf(found).MethodByName(of.Method(i).Name)
		}
	}
	return methods, ok
}

// optionalInterfaces are the optional interfaces of drivers by their names.
var optionalInterfaces = map[string]func(driver.Driver) (map[string]reflect.Value, bool){
	"SideResourceLister":  as[driver.SideResourceLister],
	"SideResourceDeleter": as[driver.SideResourceDeleter],
}

// requireAllOptionalInterfaces compares the table with the sources of package driver.
func requireAllOptionalInterfaces(t *testing.T) {
	t.Helper()
	packages, err := parser.ParseDir(token.NewFileSet(), "../../../../driver", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // no build tags
	require.NoError(t, err)
	found := 0
	ast.Inspect(packages["driver"], func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !spec.Name.IsExported() || spec.Name.Name == "Driver" {
			return true
		}
		if _, ok := spec.Type.(*ast.InterfaceType); ok {
			found++
			require.Contains(t, optionalInterfaces, spec.Name.Name)
		}
		return true
	})
	require.Len(t, optionalInterfaces, found)
}

func TestGatedDriver_EveryOptionalInterface_PassesTheGate(t *testing.T) {
	requireAllOptionalInterfaces(t)
	for name, find := range optionalInterfaces {
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t)
			p := r.prepare()
			inner := &complete{Cloud: r.cloud, wait: func(context.Context) {}}
			p.driver = inner
			stopping, stop := context.WithCancel(t.Context())
			defer stop()
			methods, ok := find(p.gatedDriver(stopping, driver.WithDeadline(inner, driver.Timeouts{})))
			require.True(t, ok, name)
			var last func(context.Context) error
			for operation, method := range methods {
				call := func(ctx context.Context) error {
					err, _ := reflect.TypeAssert[error](method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.New(method.Type().In(1).Elem())})[1])
					return err
				}
				last, inner.calls, inner.wait = call, 0, func(context.Context) {}
				require.Equal(t, codes.Canceled, codes.Of(call(t.Context())), "%s: a standby", operation)
				require.Zero(t, inner.calls)
				require.NoError(t, p.gate.renew(p.gate.now()))
				ended, end := context.WithCancel(t.Context())
				end()
				require.Equal(t, codes.Canceled, codes.Of(call(ended)), "%s: a stopped pass", operation)
				require.Zero(t, inner.calls)

				inner.wait = func(ctx context.Context) {
					_, bounded := ctx.Deadline()
					require.True(t, bounded, "%s has a deadline", operation)
				}
				require.NoError(t, call(t.Context()))
				require.Equal(t, 1, inner.calls)
				require.Contains(t, p.scrape(), fmt.Sprintf(`machinist_driver_calls_total{code="OK",operation=%q} 1`, operation))

				passing, pass := context.WithCancel(t.Context())
				inner.wait = func(context.Context) { pass() }
				require.NoError(t, call(passing), "%s continues after the end of its pass", operation)
				p.gate.renewed = time.Time{}
			}
			require.NoError(t, p.gate.renew(p.gate.now()))
			p.gate.giveBack()
			require.Equal(t, codes.Canceled, codes.Of(last(t.Context())), "%s: a lost lease", name)
		})
	}
}

// scrape returns the metrics.
func (p *process) scrape() string {
	recorder := httptest.NewRecorder()
	p.manager.health.metrics.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil))
	return recorder.Body.String()
}

// pausing is a cloud that stops the process at the end of one of its calls, as SIGSTOP and SIGCONT
// would, for longer than the lease is valid: no timer has fired yet.
type pausing struct {
	*drivertest.Cloud
	calls, at atomic.Int64 // calls until now, and the call of the pause
	pause     func()
}

func during[R any](p *pausing, call func() (*R, error)) (*R, error) {
	n := p.calls.Add(1)
	answer, err := call()
	if n == p.at.Load() {
		p.pause()
	}
	return answer, err
}

func (p *pausing) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return during(p, func() (*driver.CreateMachineResponse, error) { return p.Cloud.CreateMachine(ctx, r) })
}

func (p *pausing) InitializeMachine(ctx context.Context, r *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return during(p, func() (*driver.InitializeMachineResponse, error) { return p.Cloud.InitializeMachine(ctx, r) })
}

func (p *pausing) DeleteMachine(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return during(p, func() (*driver.DeleteMachineResponse, error) { return p.Cloud.DeleteMachine(ctx, r) })
}

func (p *pausing) GetMachineStatus(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return during(p, func() (*driver.GetMachineStatusResponse, error) { return p.Cloud.GetMachineStatus(ctx, r) })
}

func (p *pausing) ListMachines(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return during(p, func() (*driver.ListMachinesResponse, error) { return p.Cloud.ListMachines(ctx, r) })
}

func (p *pausing) ListSideResources(ctx context.Context, r *driver.ListSideResourcesRequest) (*driver.ListSideResourcesResponse, error) {
	return during(p, func() (*driver.ListSideResourcesResponse, error) { return p.Cloud.ListSideResources(ctx, r) })
}

func (p *pausing) DeleteSideResource(ctx context.Context, r *driver.DeleteSideResourceRequest) (*driver.DeleteSideResourceResponse, error) {
	return during(p, func() (*driver.DeleteSideResourceResponse, error) { return p.Cloud.DeleteSideResource(ctx, r) })
}

// withoutSides hides the optional interfaces of a driver, and listing one of them.
type (
	withoutSides struct{ driver.Driver }
	listing      struct {
		driver.Driver
		driver.SideResourceLister
	}
)

var (
	lossSeed  = flag.Uint64("losses.seed", 0, "play the lost lease of this seed only")
	lossCount = flag.Int("losses.count", 24, "the number of random losses of the lease")
)

// TestLostLease_RandomCall_NoDriverCallBegins loses the lease during a random call of drivers with and
// without optional interfaces, while VMs, and side resources without a machine, are deleted.
func TestLostLease_RandomCall_NoDriverCallBegins(t *testing.T) {
	first, count := uint64(1), *lossCount
	if *lossSeed != 0 {
		first, count = *lossSeed, 1
	}
	for i := range count {
		seed := first + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { loseLease(t, rand.New(rand.NewPCG(seed, 3))) })
		})
	}
}

func loseLease(t *testing.T, rng *rand.Rand) {
	t.Helper()
	r := newHarnessWith(t, 100*time.Millisecond)
	s := options.NewManagerServer()
	s.OrphanVMsPeriod, s.OrphanVMsGrace, s.ConcurrentSyncs = 2*time.Second, 2*time.Second, 1
	p := r.prepareAs(s)
	s.LeaderElection.RetryPeriod = 400 * time.Millisecond
	var pause atomic.Int64
	p.gate.now = func() time.Time { return time.Now().Add(time.Duration(pause.Load())) }
	inner := &pausing{Cloud: r.cloud, pause: func() { pause.Store(int64(time.Minute)) }}
	p.driver = []driver.Driver{inner, inner, listing{inner, inner}, withoutSides{inner}}[rng.IntN(4)]
	p.start()
	r.class("c")
	for i := range 3 {
		name := fmt.Sprintf("lost-%d", i)
		r.cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Machine: name, Kind: drivertest.Partial, Code: codes.Internal})
		r.machine(name, "c")
		r.machine(fmt.Sprintf("m-%d", i), "c")
	}
	r.eventually("all run", func() bool { return r.running() == 3 })
	machines := r.machines.MachineV1alpha1().Machines(namespace)
	for i := range 3 {
		name := fmt.Sprintf("lost-%d", i)
		_, err := machines.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		require.NoError(t, machines.Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	inner.at.Store(inner.calls.Load() + 1 + rng.Int64N(30))
	time.AfterFunc(10*time.Second, func() { _ = machines.Delete(context.WithoutCancel(t.Context()), "m-0", metav1.DeleteOptions{}) })
	for i := 0; pause.Load() == 0; i++ {
		require.Less(t, i, 1000, "the class is listed every two seconds")
		time.Sleep(time.Second)
	}
	require.ErrorIs(t, p.result(), ErrLeaseLost)
	require.Equal(t, inner.at.Load(), inner.calls.Load(), "calls after the lease was lost")
}
