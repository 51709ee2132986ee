// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/examples/internal/child"
	"github.com/machinist-dev/machinist/examples/programs/manager/app"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
)

// process is a run of a controller.
type process interface {
	// Done is closed when it has ended.
	Done() <-chan struct{}
	// Err returns how it has ended.
	Err() error
	// Signal asks it to end: SIGTERM, or SIGKILL at once.
	Signal(how os.Signal) error
}

// controller is a program that can be started again. All its runs write to one log.
type controller struct {
	name, log string
	launch    func(port int, out *os.File) (process, error)
	out       *os.File
	port      int
	process   process
}

// The verbosity of the logs, and the time between two checks of sets for too many machines.
const (
	verbosity = 3
	overshoot = 300 * time.Millisecond
)

// startControllers starts the controllers of sets in this process, and those of machines in this process or as a program.
// It returns when they are ready.
func (s *Suite) startControllers(ctx context.Context) error {
	if err := s.makeLogDir(); err != nil {
		return err
	}
	if err := s.findControllers(ctx); err != nil {
		return err
	}
	for _, c := range s.controllers {
		if err := os.Remove(c.log); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := c.start(ctx); err != nil {
			return err
		}
	}
	for _, c := range s.controllers {
		if err := c.ready(ctx, s.o.Timeout); err != nil {
			return err
		}
	}
	s.started = true
	return nil
}

func (s *Suite) makeLogDir() (err error) {
	if s.o.LogDir == "" {
		s.o.LogDir, err = os.MkdirTemp("", "apptest-")
		return err
	}
	if s.o.LogDir, err = filepath.Abs(s.o.LogDir); err != nil {
		return err
	}
	return os.MkdirAll(s.o.LogDir, 0o755)
}

// findControllers builds the program, unless there is a driver.
func (s *Suite) findControllers(ctx context.Context) error {
	if s.o.Driver != nil {
		s.controllers = []*controller{s.controller("manager", "mcm_process.log", s.inProcess(options.NewManagerServer(), s.o.Driver))} //nolint:contextcheck // they end with Close
		return nil
	}
	binary, err := s.build(ctx)
	if err != nil {
		return err
	}
	s.controllers = []*controller{
		s.controller("machine-controller", "mc_process.log", s.program(binary)),
		s.controller("machine-controller-manager", "mcm_process.log", s.inProcess(options.NewMCMServer(), nil)), //nolint:contextcheck // as above
	}
	return nil
}

func (s *Suite) controller(name, log string, launch func(int, *os.File) (process, error)) *controller {
	return &controller{name: name, log: filepath.Join(s.o.LogDir, log), launch: launch}
}

// build builds the program of the provider.
func (s *Suite) build(ctx context.Context) (string, error) {
	var err error
	if s.folder, err = os.MkdirTemp("", "apptest-"); err != nil {
		return "", err
	}
	binary := filepath.Join(s.folder, "machine-controller")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", binary, ".")
	cmd.Dir, cmd.Env = s.o.Program, append(os.Environ(), "PWD="+s.o.Program)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build in %s: %w:\n%s", s.o.Program, err, text)
	}
	return binary, nil
}

// program returns how a built machine controller is started.
func (s *Suite) program(binary string) func(int, *os.File) (process, error) {
	return func(port int, out *os.File) (process, error) {
		cmd := exec.Command(binary, //nolint:noctx // it ends with Close
			"--control-kubeconfig="+s.o.ControlKubeconfig, "--target-kubeconfig="+s.o.TargetKubeconfig, "--namespace="+s.o.Namespace,
			"--leader-elect=false", "--port="+strconv.Itoa(port), "--v="+strconv.Itoa(verbosity))
		cmd.Stdout, cmd.Stderr = out, out
		return child.Start(cmd)
	}
}

// inProcess returns how controllers are started in this process.
func (s *Suite) inProcess(server *options.MCServer, d driver.Driver) func(int, *os.File) (process, error) {
	server.ControlKubeconfig, server.TargetKubeconfig, server.Namespace = s.o.ControlKubeconfig, s.o.TargetKubeconfig, s.o.Namespace
	server.LeaderElection.LeaderElect, server.OvershootPeriod = false, overshoot
	return func(port int, out *os.File) (process, error) {
		server.Port = port
		ctx, cancel := context.WithCancel(logr.NewContextWithSlogLogger(context.Background(), app.NewLogger(out, server.LoggingFormat, verbosity)))
		r := &run{done: make(chan struct{}), cancel: cancel}
		go func() {
			defer close(r.done)
			r.err = app.RunContext(ctx, server, d)
		}()
		return r, nil
	}
}

// run is a run of controllers in this process.
type run struct {
	done   chan struct{}
	err    error
	cancel context.CancelFunc
}

func (r *run) Done() <-chan struct{}    { return r.done }
func (r *run) Err() error               { <-r.done; return r.err }
func (r *run) Signal(_ os.Signal) error { r.cancel(); return nil }

// start starts a run.
func (c *controller) start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c.port = listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of the network tcp
	if err := listener.Close(); err != nil {
		return err
	}
	if c.out == nil {
		if c.out, err = os.OpenFile(c.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
			return err
		}
	}
	if c.process, err = c.launch(c.port, c.out); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

// ready waits until the controller answers that it is ready, or has ended.
func (c *controller) ready(ctx context.Context, timeout time.Duration) error {
	state := "no answer"
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		if err := c.ended(); err != nil {
			return false, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", c.port), nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		defer func() { _ = response.Body.Close() }()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		state = strings.TrimSpace(string(text))
		return response.StatusCode == http.StatusOK, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("%s is not ready after %s: %s; the end of %s:\n%s", c.name, timeout, state, c.log, c.tail())
	}
	return err
}

// ended returns an error with the end of the log if the controller does not run.
func (c *controller) ended() error {
	if c.process == nil {
		return fmt.Errorf("%s was not started", c.name)
	}
	select {
	case <-c.process.Done():
	default:
		return nil
	}
	how := "exit status 0"
	if err := c.process.Err(); err != nil {
		how = err.Error()
	}
	return fmt.Errorf("%s has ended: %s; the end of %s:\n%s", c.name, how, c.log, c.tail())
}

// restart starts a controller that has ended, and waits until it is ready.
func (c *controller) restart(ctx context.Context) error {
	if c.ended() == nil {
		return nil
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	return c.ready(ctx, ends)
}

// tailLines is how many lines of a log an error has.
const tailLines = 20

// tail returns the last lines of the log.
func (c *controller) tail() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// stopControllers ends the controllers, and waits until they have ended. A program that does not end with ctx is killed.
func (s *Suite) stopControllers(ctx context.Context) error {
	var errs []error
	for _, c := range s.controllers {
		if c.process != nil && c.ended() == nil {
			_ = c.process.Signal(syscall.SIGTERM) // fails only if it has ended
		}
	}
	for _, c := range s.controllers {
		errs = append(errs, c.stop(ctx))
	}
	s.controllers = nil
	return errors.Join(errs...)
}

func (c *controller) stop(ctx context.Context) (err error) {
	if c.process != nil {
		select {
		case <-c.process.Done():
		case <-ctx.Done():
			_ = c.process.Signal(os.Kill)
			err = fmt.Errorf("%s did not end when it was asked to; the end of %s:\n%s", c.name, c.log, c.tail())
		}
	}
	if c.out != nil {
		err = errors.Join(err, c.out.Close())
	}
	return err
}
