// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var small = component{
	name: "small", version: "v1", mod: "module machinist.invalid/small\n\ngo 1.26.0\n",
	ldflags: "-s -w", programs: []program{{pkg: "cmd/buildid", name: "buildid"}},
}

func fake(_ context.Context, c component, folder string, _ io.Writer) error {
	for _, p := range c.programs {
		if err := os.WriteFile(filepath.Join(folder, p.name), []byte("program"), 0o700); err != nil {
			return err
		}
	}
	return nil
}

func TestBuild_Concurrent_BuildsOnce(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	const many = 4
	var (
		builds atomic.Int32
		all    sync.WaitGroup
	)
	waiting := make(waits, many)
	for range many {
		all.Go(func() {
			folder, err := cached(t.Context(), cache, small, waiting, func(ctx context.Context, c component, folder string, w io.Writer) error {
				if builds.Add(1) == 1 {
					for range many - 1 { // until all others wait
						<-waiting
					}
				}
				return fake(ctx, c, folder, w)
			})
			if err != nil || !complete(folder, small) {
				t.Error(folder, err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, builds.Load())
}

// waits counts what is written to it.
type waits chan struct{}

func (w waits) Write(p []byte) (int, error) {
	w <- struct{}{}
	return len(p), nil
}

func TestBuild_Fails_CacheStaysEmpty(t *testing.T) {
	cache := t.TempDir()
	broken := errors.New("broken")
	_, err := cached(t.Context(), cache, small, io.Discard, func(ctx context.Context, c component, folder string, w io.Writer) error {
		return errors.Join(fake(ctx, c, folder, w), broken)
	})
	require.ErrorIs(t, err, broken)
	require.NoDirExists(t, filepath.Join(cache, small.key()))
	require.NoDirExists(t, filepath.Join(cache, small.key()+".unfinished"))
	_, err = cached(t.Context(), cache, small, io.Discard, fake)
	require.NoError(t, err)
}

func TestBuild_ProgramMissing_BuildsAgain(t *testing.T) {
	cache := t.TempDir()
	folder := filepath.Join(cache, small.key())
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "buildid"), nil, 0o700))
	got, err := cached(t.Context(), cache, small, io.Discard, fake)
	require.NoError(t, err)
	require.Equal(t, folder, got)
	require.True(t, complete(folder, small))
}

func TestBuild_WaiterCanceled_Returns(t *testing.T) {
	cache := t.TempDir()
	lock, err := tryLock(filepath.Join(cache, small.key()+".lock"))
	require.NoError(t, err)
	defer func() { _ = lock.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var said strings.Builder
	_, err = cached(ctx, cache, small, &said, fake)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Contains(t, said.String(), "waiting")
}

func TestBuild_UserEnvironment_IsIgnored(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=vendor")
	t.Setenv("GOOS", "plan9")
	t.Setenv("GOWORK", "/nowhere/go.work")
	folder, err := cached(t.Context(), t.TempDir(), small, io.Discard, compile)
	require.NoError(t, err)

	// It prints its usage and fails: it runs here.
	out, err := exec.CommandContext(t.Context(), filepath.Join(folder, "buildid")).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "usage")
	require.Len(t, mustList(t, folder), 1, "the module is gone")
}

func TestBuild_GoCommandFails_ErrorHasItsOutput(t *testing.T) {
	c := small
	c.programs = []program{{pkg: "machinist.invalid/none", name: "none"}}
	_, err := cached(t.Context(), t.TempDir(), c, io.Discard, compile)
	require.ErrorContains(t, err, "machinist.invalid/none")
	require.ErrorContains(t, err, "cannot find module")
}

func TestBuild_NoGoCommand_ErrorSaysWhereToGetIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := cached(t.Context(), t.TempDir(), small, io.Discard, compile)
	require.ErrorIs(t, err, exec.ErrNotFound)
	require.ErrorContains(t, err, "https://go.dev/dl")
}

func TestBuild_Output_CountedOrKept(t *testing.T) {
	var o buildOutput
	_, err := io.WriteString(&o, "go: downloading k8s.io/api v0.36.3\nk8s.io/api/core/v1\nnet/http\n# k8s.io/x\nx.go:1:2: undefined: y\nno end")
	require.NoError(t, err)
	require.Equal(t, "2 packages compiled", o.counts())
	require.Equal(t, 1, o.downloads)
	require.Equal(t, "# k8s.io/x\nx.go:1:2: undefined: y\nno end", o.rest())
}

func TestCache_Moved_StillValid(t *testing.T) {
	t.Setenv(CacheEnv, t.TempDir())
	folder, err := cacheFolder()
	require.NoError(t, err)
	require.Equal(t, os.Getenv(CacheEnv), folder)
}

func TestCache_Key_HasAllInputs(t *testing.T) {
	seen := map[string]bool{small.key(): true}
	for _, change := range []func(*component){
		func(c *component) { c.name += "x" },
		func(c *component) { c.version += "x" },
		func(c *component) { c.mod += "x" },
		func(c *component) { c.sum += "x" },
		func(c *component) { c.ldflags += "x" },
		func(c *component) { c.programs = append([]program{{pkg: "a", name: "b"}}, c.programs...) },
	} {
		c := small
		change(&c)
		require.False(t, seen[c.key()])
		seen[c.key()] = true
	}
}

func TestVersions_ModuleFiles_Match(t *testing.T) {
	require.Contains(t, moduleFile("etcd.mod"), "\tgo.etcd.io/etcd/server/v3 "+EtcdVersion+" ")
	for _, r := range releases {
		t.Run(r.version, func(t *testing.T) {
			staging := "v0" + strings.TrimPrefix(r.version, "v1")
			for _, c := range append(components(r), kubectlComponent(r), kubemarkComponent(r)) {
				require.Contains(t, c.sum, " h1:", c.name)
				for _, p := range c.programs {
					require.Contains(t, c.mod, p.pkg+"\n", "a tool of the module")
				}
				if c.version != r.version {
					continue // etcd
				}
				require.Contains(t, c.mod, "\tk8s.io/kubernetes "+r.version+" ", c.name)
				replaced := map[string]bool{}
				for _, m := range regexp.MustCompile(`(?m)^\t(\S+) => (\S+) (\S+)$`).FindAllStringSubmatch(c.mod, -1) {
					require.Equal(t, m[1], m[2])
					require.Equal(t, staging, m[3], m[1])
					replaced[m[1]] = true
				}
				require.NotEmpty(t, replaced, c.name)
				for _, m := range regexp.MustCompile(`(?m)^\t(k8s\.io/\S+) v0\.0\.0 `).FindAllStringSubmatch(c.mod, -1) {
					require.True(t, replaced[m[1]], "%s: %s is nowhere", c.name, m[1])
				}
			}
		})
	}
}

func mustList(t *testing.T, folder string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	return list
}
