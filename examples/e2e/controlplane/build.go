// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// CacheEnv is the environment variable that moves the cache of built binaries.
// Without it, they are in machinist/controlplane below [os.UserCacheDir].
const CacheEnv = "MACHINIST_CONTROLPLANE_CACHE"

// Binaries says where the programs of a control plane are.
type Binaries struct {
	// Etcd, APIServer, ControllerManager and Scheduler are absolute file names.
	Etcd, APIServer, ControllerManager, Scheduler string
}

// Build compiles whatever is missing from the cache and says where it is. The
// first time takes minutes, and needs the go command and the Go module proxy;
// after that it is a matter of milliseconds and needs nothing.
//
// What happens is written to progress, to [os.Stderr] if that is nil. Processes
// that build at the same time wait for each other. If ctx ends, the compiler is
// stopped, and the next Build goes on with what it had compiled.
//
// The version of Kubernetes is that of [VersionEnv]. If it is unknown, the error matches
// [ErrVersion].
//
// An error of the go command carries its output. Without a go command, the error
// matches [exec.ErrNotFound].
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	r, err := chosen()
	if err != nil {
		return Binaries{}, err
	}
	return r.build(ctx, progress)
}

// build returns the programs of a control plane of this release.
func (r release) build(ctx context.Context, progress io.Writer) (Binaries, error) {
	where, err := build(ctx, progress, components(r)...)
	return Binaries{
		Etcd:              where["etcd"],
		APIServer:         where["kube-apiserver"],
		ControllerManager: where["kube-controller-manager"],
		Scheduler:         where["kube-scheduler"],
	}, err
}

// build returns the file names of the programs of components, by program name. What the
// cache does not have is compiled.
func build(ctx context.Context, progress io.Writer, components ...component) (map[string]string, error) {
	if progress == nil {
		progress = os.Stderr
	}
	cache, err := cacheFolder()
	if err != nil {
		return nil, err
	}
	where := map[string]string{}
	for _, c := range components {
		folder, err := cached(ctx, cache, c, progress, compile)
		if err != nil {
			return nil, fmt.Errorf("control plane: build %s %s: %w", c.name, c.version, err)
		}
		for _, p := range c.programs {
			where[p.name] = filepath.Join(folder, p.name)
		}
	}
	return where, nil
}

// Kubectl returns the absolute file name of kubectl, of the version of the API server. It is
// compiled like what [Build] returns, and cached beside it.
func Kubectl(ctx context.Context, progress io.Writer) (string, error) {
	r, err := chosen()
	if err != nil {
		return "", err
	}
	where, err := build(ctx, progress, kubectlComponent(r))
	return where["kubectl"], err
}

// Kubemark returns the absolute file name of kubemark, a kubelet that starts no containers. It is
// compiled like what [Build] returns, and cached beside it.
func Kubemark(ctx context.Context, progress io.Writer) (string, error) {
	r, err := chosen()
	if err != nil {
		return "", err
	}
	where, err := build(ctx, progress, kubemarkComponent(r))
	return where["kubemark"], err
}

func cacheFolder() (string, error) {
	if folder := os.Getenv(CacheEnv); folder != "" {
		return filepath.Abs(folder)
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("control plane: no folder for binaries, set %s: %w", CacheEnv, err)
	}
	return filepath.Join(folder, "machinist", "controlplane"), nil
}

// compiler builds the programs of a component into a folder, which exists.
type compiler func(ctx context.Context, c component, folder string, progress io.Writer) error

// cached returns the folder of a component in the cache, and fills it first if
// need be. The folder gets its name when all that belongs in it is there.
func cached(ctx context.Context, cache string, c component, progress io.Writer, build compiler) (folder string, err error) {
	folder = filepath.Join(cache, c.key())
	if complete(folder, c) {
		return folder, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(ctx, folder+".lock", func() {
		fmt.Fprintf(progress, "control plane: another process builds %s %s, waiting for it\n", c.name, c.version)
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if complete(folder, c) { // the other process was faster
		return folder, nil
	}
	unfinished := folder + ".unfinished" // of this process alone, which has the lock
	if err := cmp.Or(os.RemoveAll(unfinished), os.RemoveAll(folder), os.Mkdir(unfinished, 0o755)); err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	if err := build(ctx, c, unfinished, progress); err != nil {
		return "", err
	}
	return folder, os.Rename(unfinished, folder)
}

func complete(folder string, c component) bool {
	for _, p := range c.programs {
		info, err := os.Stat(filepath.Join(folder, p.name))
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			return false
		}
	}
	return true
}
