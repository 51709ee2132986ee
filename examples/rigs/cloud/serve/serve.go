// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/cloud"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
)

// patience is how long open calls may take at the end.
const patience = 5 * time.Second

// serve runs a cloud until ctx or one of its parts ends, and leaves no goroutine. With a client
// the VMs become Nodes of its cluster.
func serve(ctx context.Context, s settings, client kubernetes.Interface, out, errOut io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return err
	}
	simulated := drivertest.NewCloud(s.cloud)
	notes := &notes{out: errOut, silent: !s.verbose}
	defer simulated.Subscribe(func(e drivertest.Event) { notes.line(e) })()

	server := &http.Server{
		Handler:           cloud.Handler(simulated),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(errOut, "serve: ", 0),
	}
	parts := []func(context.Context) error{
		func(ctx context.Context) error { return serveHTTP(ctx, server, listener) },
	}
	if client != nil {
		nodes := &hollow.Nodes{
			Client: client, VMs: hollow.VMsOf(simulated), JoinAfter: s.join,
			Observe: func(err error) { notes.line(err) },
		}
		scheduler := &hollow.Scheduler{Client: client, Observe: func(err error) { notes.line(err) }}
		parts = append(parts, nodes.Run, scheduler.Run)
	}
	_, _ = fmt.Fprintf(out, "http://%s\n", listener.Addr())
	return together(ctx, parts...)
}

// serveHTTP serves until ctx ends, and then waits for open calls.
func serveHTTP(ctx context.Context, server *http.Server, listener net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // which ends the contexts of the calls
	}
	if ended := <-ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// together runs functions until ctx or one of them ends. It returns their errors.
func together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() {
			defer cancel()
			errs[i] = part(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// notes writes lines of output. It is safe for use by multiple goroutines.
type notes struct {
	silent bool

	mu  sync.Mutex
	out io.Writer
}

func (n *notes) line(what any) {
	if n.silent {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	_, _ = fmt.Fprintln(n.out, what)
}
