// SPDX-License-Identifier: Apache-2.0

package env

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/internal/child"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
)

// Manager is a manager that can be started, killed and started again. All its
// processes write to one log. It is safe for concurrent use.
type Manager struct {
	env     *Env
	program string // one that the cluster has built
	account string // service account that it comes to the API server with
	flags   []string
	log     string

	starting   sync.Mutex // one Launch, Stop or Kill at a time
	supervised atomic.Bool

	mu   sync.Mutex
	port int
	p    *process // nil before the first start
}

// process is one run of a program.
type process struct {
	*child.Process

	began int64 // size of the log
	meant bool  // its end was asked for
}

// Manager returns a manager that does not run yet, with flags of its own after
// those of all. The name is that of its log.
func (s *Env) Manager(name string, flags ...string) *Manager {
	m := s.Program(cmp.Or(s.options.Program, Controllers), name, s.options.Flags...)
	m.flags = append(m.flags, flags...)
	return m
}

// Program returns a process of one of the programs that does not run yet: "manager",
// "machine-controller", "machine-controller-manager" or [ControllerRuntime], or one of the first three after [Previous]. It
// has the flags that the environment needs and then those given, but not [Options.Flags], as not every program takes
// them. The name is that of its log.
func (s *Env) Program(program, name string, flags ...string) *Manager {
	file := filepath.Join(s.Cluster.folder, program)
	program = filepath.Base(program)
	m := &Manager{env: s, program: file, account: program, log: filepath.Join(s.folder, name+".log")}
	if program == Controllers || program == ControllerRuntime {
		m.account = manifests.ServiceAccount
	}
	kubeconfig := s.kubeconfigOf(m.account)
	m.flags = []string{
		"--namespace=" + s.Namespace, "--leader-elect-resource-namespace=" + s.ManagerNamespace(),
		// A leader that a busy computer leaves waiting does not end. One that ends gives the lease back.
		"--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=1m",
	}
	if program == ControllerRuntime {
		m.flags = append(m.flags, "--kubeconfig="+kubeconfig, "--metrics-bind-address=0")
	} else {
		m.flags = append(m.flags, "--target-kubeconfig="+kubeconfig, "-v=2")
	}
	if program != manifests.MachineControllerManager {
		m.flags = append(m.flags, "--simulated-cloud="+s.url)
	}
	if s.options.NoTarget {
		m.flags = append(m.flags, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig=none") // the last counts
	}
	m.flags = append(m.flags, flags...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.managers = append(s.managers, m)
	return m
}

// portTaken is the error of a manager whose port another process has taken.
const portTaken = "address already in use"

// Start starts a process, and returns when it is ready: it leads with its caches
// filled, or stands by. If the process ends instead, or ctx does, there is an
// error with the end of the log, and no process. A manager that runs is an error.
func (m *Manager) Start(ctx context.Context) error {
	for {
		err := m.Launch(ctx)
		if err != nil {
			return err
		}
		if err = m.ready(ctx); err == nil {
			return nil
		}
		text := m.said()
		m.Kill()
		if !strings.Contains(text, portTaken) || ctx.Err() != nil {
			return fmt.Errorf("%w; the end of its log:\n%s", err, lastLines(text, logLines))
		}
	}
}

// Launch is Start without waiting for anything.
func (m *Manager) Launch(ctx context.Context) error {
	m.starting.Lock()
	defer m.starting.Unlock()
	if m.Running() {
		return errors.New("env: the manager runs")
	}
	if err := m.env.access(ctx, m.account); err != nil {
		return err
	}
	port, err := controlplane.FreePort(ctx)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(m.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the process has its own
	p := &process{}
	if p.began, err = out.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	listen := "--port=" + strconv.Itoa(port)
	if filepath.Base(m.program) == ControllerRuntime {
		listen = "--health-probe-bind-address=127.0.0.1:" + strconv.Itoa(port)
	}
	cmd := exec.Command(m.program, append([]string{listen}, m.flags...)...) //nolint:noctx // it outlives ctx
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = []string{"HOME=" + m.env.folder}           // nothing else of ours leads it anywhere
	if filepath.Dir(m.program) == m.env.Cluster.folder { // it is of this checkout, where no test modifies a cache
		detector := "KUBE_CACHE_MUTATION_DETECTOR"
		cmd.Env = append(cmd.Env, detector+"="+os.Getenv(detector))
	}
	if p.Process, err = child.Start(cmd); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p, m.port = p, port
	return nil
}

// ready waits until /readyz says so.
func (m *Manager) ready(ctx context.Context) error {
	last := "not asked"
	for {
		status, text, err := m.Health(ctx, "/readyz")
		switch {
		case err == nil && status == http.StatusOK:
			return nil
		case !m.Running():
			return m.Err()
		case err == nil:
			last = text
		case ctx.Err() == nil:
			last = err.Error()
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("the manager is not ready (%s): %w", last, err)
		}
	}
}

// Health asks /healthz or /readyz of the manager, and returns the status and the
// text of the answer.
func (m *Manager) Health(ctx context.Context, path string) (status int, text string, err error) {
	return m.Get(ctx, path, "")
}

// client trusts any certificate: those of the managers are made by the tests.
var client = &http.Client{Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, //nolint:gosec // as it says
}}

// Get asks for a path at the port of the manager, with a bearer token unless it is empty, and
// returns the status and the text of the answer.
func (m *Manager) Get(ctx context.Context, path, token string) (status int, text string, err error) {
	scheme := "http"
	if slices.ContainsFunc(m.flags, func(f string) bool { return strings.HasPrefix(f, "--tls-cert-file=") }) {
		scheme = "https"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+m.Address()+path, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(body)), err
}

// Address is that of the port of the manager, once it was started.
func (m *Manager) Address() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(m.port))
}

func (m *Manager) process() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.p
}

// Running reports whether a process runs.
func (m *Manager) Running() bool {
	p := m.process()
	if p == nil {
		return false
	}
	select {
	case <-p.Done():
		return false
	default:
		return true
	}
}

// Err is how the last process ended: nil if it runs, was meant to end, or never
// was.
func (m *Manager) Err() error {
	p := m.process()
	if p == nil || m.Running() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case p.meant:
		return nil
	case p.Err() == nil:
		return errors.New("the manager ended by itself, with exit status 0")
	default:
		return fmt.Errorf("the manager ended by itself: %w", p.Err())
	}
}

// mean says that the end of a process is meant, and returns it.
func (m *Manager) mean() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.p != nil {
		select {
		case <-m.p.Done():
		default:
			m.p.meant = true
		}
	}
	return m.p
}

// Kill ends the process as kill -9 does, and returns when it is gone.
func (m *Manager) Kill() {
	m.starting.Lock()
	defer m.starting.Unlock()
	if p := m.mean(); p != nil {
		_ = p.Signal(os.Kill) // fails only if it has ended
		<-p.Done()
	}
}

// Stop ends the process as a supervisor does: it asks, and waits until it is gone.
// An exit status other than 0 is an error. When ctx ends, it is killed, which is
// an error too. If no process runs, Stop does nothing.
func (m *Manager) Stop(ctx context.Context) error {
	m.starting.Lock()
	defer m.starting.Unlock()
	if !m.Running() {
		return nil
	}
	p := m.mean()
	_ = p.Signal(syscall.SIGTERM) // fails only if it has ended
	select {
	case <-p.Done():
		if p.Err() != nil {
			return fmt.Errorf("the manager was asked to end: %w; the end of its log:\n%s", p.Err(), m.Tail(logLines))
		}
		return nil
	case <-ctx.Done():
		_ = p.Signal(os.Kill)
		<-p.Done()
		return fmt.Errorf("the manager was asked to end and did not: %w; the end of its log:\n%s", ctx.Err(), m.Tail(logLines))
	}
}

// Pause stops the process as kill -STOP does, until [Manager.Resume]. Its
// connections stay open.
func (m *Manager) Pause() error { return m.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (m *Manager) Resume() error { return m.signal(syscall.SIGCONT) }

func (m *Manager) signal(s os.Signal) error {
	p := m.process()
	if p == nil {
		return errors.New("env: the manager was never started")
	}
	return p.Signal(s)
}

// Ended waits until the process has ended by itself, which is meant then, and
// returns how it ended: nil is exit status 0. It returns the error of ctx if that
// ends before.
func (m *Manager) Ended(ctx context.Context) error {
	p := m.process()
	if p == nil {
		return errors.New("env: the manager was never started")
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p.meant = true
	return p.Err()
}

// Supervise starts the manager again whenever its process ends by itself, as a
// Deployment does, until ctx ends. It returns how often that was.
func (m *Manager) Supervise(ctx context.Context) (restarts int) {
	m.supervised.Store(true)
	defer m.supervised.Store(false)
	for pause(ctx, 100*time.Millisecond) == nil {
		if m.Err() != nil && m.Launch(ctx) == nil {
			restarts++
		}
	}
	return restarts
}

// Log returns all that the processes have logged.
func (m *Manager) Log() string {
	text, err := os.ReadFile(m.log)
	if err != nil {
		return ""
	}
	return string(text)
}

// said is what the last process has logged.
func (m *Manager) said() string {
	p := m.process()
	if text := m.Log(); p != nil && int64(len(text)) >= p.began {
		return text[p.began:]
	}
	return ""
}

// logLines is how many lines of a log an error carries.
const logLines = 30

// Tail returns the last lines of the log.
func (m *Manager) Tail(lines int) string { return lastLines(m.Log(), lines) }

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// pause waits a moment, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
