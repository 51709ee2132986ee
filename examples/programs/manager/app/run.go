// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
)

// Run runs the controllers until SIGTERM or SIGINT, and logs to standard error. It returns nil
// after such a stop, and otherwise the error that ended it. A second signal ends the process with
// status 1.
func Run(s *options.MCServer, d driver.Driver) error {
	if s == nil {
		return errNoOptions
	}
	setUpLogs(NewLogger(os.Stderr, s.LoggingFormat, s.Verbosity), s.Verbosity)
	ctx, stop := untilSignal(context.Background())
	defer stop()
	return RunContext(ctx, s, d)
}

// RunContext runs the controllers until the context ends. Unlike [Run], it installs no signal
// handler and leaves the loggers of the process alone: it logs to the logger that
// [logr.NewContextWithSlogLogger] has put into the context, or else to [slog.Default]. When it returns, everything that it started
// has ended, unless the driver ignores its context, or the API server does not answer which kinds it serves: that
// request ends after 32 seconds.
func RunContext(ctx context.Context, s *options.MCServer, d driver.Driver) error {
	if s == nil {
		return errNoOptions
	}
	if err := s.Validate(); err != nil {
		return err
	}
	if d == nil && s.Part() != controllers.Sets {
		return errNoDriver
	}
	g, m := newGate(s.LeaderElection), metrics.New(metrics.Options{PerMachine: s.MetricsPerMachine})
	c, err := newClients(s, g, m)
	if err != nil {
		return err
	}
	defer c.close()
	return newManager(s, d, c, g, m, loggerOf(ctx)).run(ctx)
}

// loggerOf returns the logger of a context, or that of the process.
func loggerOf(ctx context.Context) *slog.Logger {
	return cmp.Or(logr.FromContextAsSlogLogger(ctx), slog.Default())
}

var (
	errNoOptions = errors.New("manager: no options")
	errNoDriver  = errors.New("manager: no driver")
)

// untilSignal returns a context that ends with the first signal. The second signal ends the
// process.
func untilSignal(parent context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case s := <-signals:
				if ctx.Err() != nil {
					os.Exit(1)
				}
				slog.Info("asked to stop", "signal", s.String())
				cancel()
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// manager is one run of the controllers.
type manager struct {
	s        *options.MCServer
	part     controllers.Part // what runs, which the served kinds may narrow
	driver   driver.Driver
	clients  clients
	gate     *gate
	log      *slog.Logger
	identity string
	listen   func() (net.Listener, error)
	profiles func() (net.Listener, error) // for the profiles
	grace    time.Duration                // for driver calls in flight when the end comes
	unwind   time.Duration                // for everything to end when every context has
	patience time.Duration                // with an API server that does not serve the machine objects
	health   *health
	fail     context.CancelCauseFunc // ends the run with an error
}

const (
	stopGrace       = 15 * time.Second
	stopUnwind      = 5 * time.Second
	servingPatience = time.Minute
)

func newManager(s *options.MCServer, d driver.Driver, c clients, g *gate, metrics *metrics.Metrics, log *slog.Logger) *manager {
	metrics.Lease(g.state)
	h := newHealth(metrics, g.lost)
	h.control, h.target, h.silence = c.controlAnswers, c.targetAnswers, silence(s)
	return &manager{
		s: s, part: s.Part(), driver: d, clients: c, gate: g, log: log, identity: identity(), grace: stopGrace, unwind: stopUnwind, patience: servingPatience, health: h,
		listen:   func() (net.Listener, error) { return bind(s.Address, s.Port) },
		profiles: func() (net.Listener, error) { return bind(loopback, s.ProfilingPort) },
	}
}

// silence returns the maximum age of the last answer of the control cluster for a manager that is
// ready: a probe is due after the period, and has failed after the timeout.
func silence(s *options.MCServer) time.Duration {
	return cmp.Or(s.FreezePeriod, time.Minute) + cmp.Or(s.FreezeTimeout, 30*time.Second)
}

// loopback is the address of the profiles.
const loopback = "127.0.0.1"

// bind listens on a port.
func bind(address string, port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port))) //nolint:noctx // binds at once
}

// component returns the source of Events. A manager of all controllers is a machine-controller, as
// in MCM.
func (m *manager) component() string {
	if m.s.Part() == controllers.Sets {
		return manifests.MachineControllerManager
	}
	return manifests.MachineController
}

// identity returns a name for this process that is unique among the processes that use the lease.
// The host name alone would be the same for two processes of one host.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "_" + string(uuid.NewUUID())
}

// run runs the stages of the manager.
func (m *manager) run(ctx context.Context) error {
	for _, name := range m.s.Ineffective() {
		m.log.Warn("flag has no effect", "flag", "--"+name)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, m.health.stop)()
	m.fail = cancel
	endServing, err := m.serveAll(cancel) //nolint:contextcheck // health is told until the end
	if err != nil {
		return err
	}
	defer endServing()
	m.log.Info("started", "identity", m.identity, "namespace", m.s.Namespace, "target", m.clients.target != nil)

	if err := m.waitServed(ctx); err != nil {
		return stopped(ctx, err)
	}
	events := newEvents(ctx, m.clients.events, m.component())
	defer events.close()
	if m.s.LeaderElection.LeaderElect {
		if m.leaseNamespace() == m.s.Namespace {
			m.log.Warn("the lease is in the namespace of the machines: deleting that namespace ends this manager before the machines, and VMs stay",
				"flag", "--leader-elect-resource-namespace")
		}
		err = m.elect(ctx, events)
	} else {
		err = m.work(ctx, context.WithoutCancel(ctx), events)
	}
	m.log.Info("ended")
	return stopped(ctx, err)
}

// stopped returns the error of a run, or nil if it was asked to stop.
func stopped(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return errors.Join(cause, err)
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
