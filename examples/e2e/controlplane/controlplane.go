// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// ControlPlane is a control plane that runs. Its methods are safe for concurrent
// use. [Start] makes one; the zero value is a stopped one.
type ControlPlane struct {
	options     Options
	release     release
	binaries    Binaries
	folder      *folder
	logDir      string
	keys        *keys
	etcdURL     string
	etcdPeerURL string
	port        int
	config      *rest.Config
	audit       auditLog

	mu                                 sync.Mutex // for what follows
	running                            bool       // from Start to Stop, whatever becomes of the components
	etcd, apiServer, controllerManager *process
	scheduler                          *process
}

// attempts to start a component whose port another process has taken.
const attempts = 5

// Start builds what is missing, see [Build], starts a control plane and waits
// until it works: the API server is ready, and the controller manager makes
// service accounts. It also deletes the data of control planes whose process has
// died. The caller calls Stop when done.
//
// If ctx ends, or a component dies, nothing is left behind, and the error carries
// the end of the log of the component. The end of ctx after Start means nothing.
// Where control planes do not run, the error matches [errors.ErrUnsupported].
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	if !supported {
		return nil, fmt.Errorf("control plane: on this system: %w", errors.ErrUnsupported)
	}
	o = o.orDefaults()
	r, err := chosen()
	if err != nil {
		return nil, err
	}
	binaries, err := r.build(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	sweep(os.TempDir(), now)
	keys, err := newKeys(now)
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	data, err := newFolder(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("control plane: data folder: %w", err)
	}
	c := &ControlPlane{options: o, release: r, binaries: binaries, folder: data, keys: keys, running: true}
	if err := c.start(ctx); err != nil {
		return nil, fmt.Errorf("control plane: %w", errors.Join(err, c.Stop()))
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context) error {
	if err := c.makeFolders(); err != nil {
		return err
	}
	if err := retry(ctx, c.startEtcd, func() error { return c.etcd.kill() }); err != nil {
		return err
	}
	if err := retry(ctx, c.startAPIServer, func() error { return c.apiServer.kill() }); err != nil {
		return err
	}
	if err := c.startControllerManager(ctx); err != nil {
		return err
	}
	if err := c.allowJoining(ctx); err != nil || c.options.WithoutScheduler {
		return err
	}
	return c.startScheduler()
}

// retry starts a component anew, on other ports, when its ports were taken
// between choosing and binding.
func retry(ctx context.Context, start func(context.Context) error, kill func() error) error {
	for attempt := 1; ; attempt++ {
		err := start(ctx)
		if err == nil || attempt == attempts || !errors.Is(err, errAddressInUse) {
			return err
		}
		if err := kill(); err != nil {
			return err
		}
	}
}

func (c *ControlPlane) makeFolders() error {
	c.logDir = c.options.LogDir
	if c.logDir == "" {
		c.logDir = c.folder.file("logs")
	}
	var err error
	if c.logDir, err = filepath.Abs(c.logDir); err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(c.logDir, 0o755), os.Mkdir(c.folder.file("pki"), 0o700)); err != nil {
		return err
	}
	return c.keys.write(c.folder.file("pki"))
}

func (c *ControlPlane) pki(name string) string     { return c.folder.file("pki", name) }
func (c *ControlPlane) logFile(name string) string { return filepath.Join(c.logDir, name) }

// Stop kills all components and deletes their data. There is nothing to save, so
// it does not ask them to end. Again, it does nothing and returns nil.
func (c *ControlPlane) Stop() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return nil
	}

	// Those that use the others go first, so that the logs do not end in a lament.
	err := errors.Join(c.scheduler.kill(), c.controllerManager.kill(), c.apiServer.kill(), c.etcd.kill())
	if err != nil {
		return fmt.Errorf("control plane: %w", err) // still ours: what runs has its data, and Stop may be called again
	}
	c.running = false
	return c.folder.remove()
}

// TempDir makes a folder, as [os.MkdirTemp] does, that is deleted with the data of
// the control plane: by Stop, or by the next Start of the same user if the process
// was killed. Only that user can read it. After Stop it fails with [ErrStopped].
func (c *ControlPlane) TempDir(pattern string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return "", ErrStopped
	}
	return os.MkdirTemp(c.folder.path, pattern)
}

// LogDir is where the logs of the components are: etcd.log, kube-apiserver.log,
// kube-controller-manager.log, kube-scheduler.log, and audit.log.
func (c *ControlPlane) LogDir() string {
	return c.logDir
}
