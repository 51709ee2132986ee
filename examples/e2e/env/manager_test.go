// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
)

// TestMain is a manager if it is called as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && strings.HasPrefix(os.Args[1], "--port=") {
		os.Exit(pretend(strings.TrimPrefix(os.Args[1], "--port="), os.Args[len(os.Args)-1]))
	}
	os.Exit(m.Run())
}

// pretend is a manager of one kind or another. One that is dying does so when it has
// answered once.
func pretend(port, kind string) int {
	stop, asked := make(chan os.Signal, 1), make(chan struct{}, 1)
	signal.Notify(stop, syscall.SIGTERM)
	ctx := context.Background()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil { // another process was faster
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "kind", kind)
	if kind == "broken" {
		return 3
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if kind == "unready" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = fmt.Fprintln(w, "says", kind)
		select {
		case asked <- struct{}{}:
		default:
		}
	})}
	go func() { _ = server.Serve(listener) }()
	switch kind {
	case "dying":
		<-asked
		_ = server.Shutdown(ctx) // the answer is on its way first
		return 4
	case "deaf":
		select {}
	}
	<-stop
	if kind == "bad" {
		return 5
	}
	return 0
}

// manager returns a manager of a kind, on an environment that has nothing else.
func manager(t *testing.T, kind string) *Manager {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	s := &Env{Cluster: &Cluster{folder: t.TempDir()}, folder: t.TempDir(), options: Options{}, Namespace: strconv.Itoa(os.Getpid())}
	require.NoError(t, os.WriteFile(s.kubeconfigOf(manifests.ServiceAccount), nil, 0o600)) // it has its access
	m := s.Manager("manager", kind)
	m.program = program
	t.Cleanup(m.Kill)
	return m
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// answered ends when a manager has answered once, and the answer was read.
func answered(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(soon(t))
	t.Cleanup(cancel)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{PutIdleConn: func(error) { cancel() }})
}

func TestManager_StartStopKill_StartsAgain(t *testing.T) {
	t.Parallel()
	m := manager(t, "good")
	require.False(t, m.Running())
	require.NoError(t, m.Err())
	require.NoError(t, m.Stop(soon(t)), "nothing runs")
	m.Kill()
	require.NoError(t, m.Start(soon(t)))
	require.True(t, m.Running())
	require.Error(t, m.Start(soon(t)), "it runs")
	status, text, err := m.Health(soon(t), "/healthz")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "says good", text)
	require.NoError(t, m.Stop(soon(t)))
	require.False(t, m.Running())

	require.NoError(t, m.Start(soon(t)))
	m.Kill()
	require.False(t, m.Running())
	require.NoError(t, m.Err(), "that was meant")
	require.NoError(t, m.Stop(soon(t)))
	require.Equal(t, "kind good\nkind good\n", m.Log())
	require.Equal(t, "kind good\n", m.said())
	require.Equal(t, "kind good", m.Tail(1))
}

func TestManager_EndsByItself_IsReported(t *testing.T) {
	t.Parallel()
	m := manager(t, "dying")
	require.NoError(t, m.Start(soon(t)))
	<-m.process().Done()
	require.ErrorContains(t, m.Err(), "exit status 4")
	m.Kill()
	require.NoError(t, m.Stop(soon(t)))
	require.Error(t, m.Err(), "whatever is done to it then")
	require.ErrorContains(t, m.env.dead(), "exit status 4")
	m.supervised.Store(true)
	require.NoError(t, m.env.dead())
}

func TestManager_CannotStart_ErrorWithLog(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, manager(t, "broken").Start(soon(t)), "exit status 3; the end of its log:\nkind broken")
	m := manager(t, "unready")
	err := m.Start(answered(t))
	require.ErrorContains(t, err, "says unready")
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, m.Running())
}

func TestManager_ExitCode_IsAnError(t *testing.T) {
	t.Parallel()
	m := manager(t, "bad")
	require.NoError(t, m.Start(soon(t)))
	require.ErrorContains(t, m.Stop(soon(t)), "exit status 5")
	m = manager(t, "deaf")
	require.NoError(t, m.Start(soon(t)))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // however long, it does not end
	defer cancel()
	require.ErrorContains(t, m.Stop(ctx), "did not")
	require.False(t, m.Running())
}

func TestManager_Supervised_IsRestarted(t *testing.T) {
	t.Parallel()
	m := manager(t, "dying")
	require.NoError(t, m.Start(soon(t)))
	ctx, cancel := context.WithCancel(soon(t))
	restarts := make(chan int)
	go func() { restarts <- m.Supervise(ctx) }()
	for strings.Count(m.Log(), "kind dying") < 3 {
		_, _, _ = m.Health(ctx, "/healthz") // it dies of that, if it listens already
		require.NoError(t, pause(ctx, 10*time.Millisecond), m.Log())
	}
	cancel()
	require.GreaterOrEqual(t, <-restarts, 2)
}
