// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

// profiler writes profiles of the manager into a folder, for go tool pprof. The zero value writes none.
type profiler struct {
	folder, address string
}

// newProfiler returns the profiler of one manager, and the flags with which that serves its profiles.
func newProfiler(ctx context.Context, folder string) (profiler, []string, error) {
	if folder == "" {
		return profiler{}, nil, nil
	}
	port, err := controlplane.FreePort(ctx)
	if err == nil {
		err = os.MkdirAll(folder, 0o750)
	}
	return profiler{folder, fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/", port)}, []string{"--profiling", fmt.Sprintf("--profiling-port=%d", port)}, err
}

// during writes CPU profiles of 5 seconds each until stop is called, and then one of the heap. Their names begin with
// the name.
func (p profiler) during(ctx context.Context, name string) (stop func() error) {
	if p.folder == "" {
		return func() error { return nil }
	}
	name = strings.ReplaceAll(name, " ", "-")
	var (
		running sync.WaitGroup
		err     error
	)
	done := make(chan struct{})
	running.Go(func() {
		for i := 0; err == nil; i++ {
			select {
			case <-done:
				err = p.write(ctx, "heap?gc=1", name+"-heap")
				return
			default:
				err = p.write(ctx, "profile?seconds=5", fmt.Sprintf("%s-cpu-%02d", name, i))
			}
		}
	})
	return func() error {
		close(done)
		running.Wait()
		return err
	}
}

func (p profiler) write(ctx context.Context, what, name string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+what, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", what, response.Status)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.folder, name+".pb.gz"), data, 0o600)
}
