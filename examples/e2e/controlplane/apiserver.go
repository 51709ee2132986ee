// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

const (
	serviceRange = "10.96.0.0/16"
	serviceIP    = "10.96.0.1" // of the service kubernetes, the first of the range
	issuer       = "https://kubernetes.default.svc"
	auditFile    = "audit.log"
	// stopGrace is how long an API server may take to finish what it has begun. By
	// itself it would wait a minute for clients to end their watches.
	stopGrace = 2 * time.Second
)

// auditPolicy logs who asked for what: all requests when they are answered, and
// watches when they begin as well, as they may not end.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  omitManagedFields: true
`

// ErrRunning is what StartAPIServer and StartEtcd return if the component runs.
var ErrRunning = errors.New("control plane: the component runs")

// ErrStopped is what methods say of a control plane that has been stopped.
var ErrStopped = errors.New("control plane: stopped")

// StopAPIServer stops the API server and nothing else: etcd keeps the data, and
// the controller manager keeps trying. New requests are refused at once; those in
// flight, and watches, have two seconds until they break off. It returns when the
// process is gone, at once if there is none.
func (c *ControlPlane) StopAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return ErrStopped
	}
	if err := c.apiServer.terminate(ctx, stopGrace); err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	c.apiServer = nil
	return nil
}

// KillAPIServer kills the API server and nothing else, as SIGKILL does. It returns when the process
// has ended, at once if there is none.
func (c *ControlPlane) KillAPIServer() error { return c.killOnly(&c.apiServer) }

// killOnly kills one component.
func (c *ControlPlane) killOnly(p **process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return ErrStopped
	}
	if err := (*p).kill(); err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	*p = nil
	return nil
}

// StartAPIServer starts the API server after StopAPIServer, or after it died by
// itself, with the port and the data that it had, and waits until it is ready.
// It fails with [ErrRunning] if one runs. After another failure none runs, and
// StartAPIServer may be called again.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return ErrStopped
	}
	if c.apiServer != nil && c.apiServer.dead() == nil {
		return ErrRunning
	}
	for {
		err := c.runAPIServer(ctx)
		if err == nil {
			return nil
		}
		if killErr := c.apiServer.kill(); killErr != nil {
			return fmt.Errorf("control plane: %w", errors.Join(err, killErr))
		}
		c.apiServer = nil
		if !errors.Is(err, errAddressInUse) || pause(ctx, 200*time.Millisecond) != nil {
			return fmt.Errorf("control plane: %w", err)
		}
	}
}

// startAPIServer starts the API server on a port of its own choice.
func (c *ControlPlane) startAPIServer(ctx context.Context) error {
	if err := os.WriteFile(c.folder.file("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	port, err := FreePort(ctx)
	if err != nil {
		return err
	}
	c.port = port
	c.config = &rest.Config{
		Host: "https://" + address(port),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.keys.ca.pem,
			CertData: c.keys.admin.cert,
			KeyData:  c.keys.admin.key,
		},
		QPS:   1000,
		Burst: 2000,
	}
	return c.runAPIServer(ctx)
}

// runAPIServer starts the API server on its port and waits until it is ready.
func (c *ControlPlane) runAPIServer(ctx context.Context) error {
	server, err := startProcess("kube-apiserver", c.binaries.APIServer, c.logFile("kube-apiserver.log"), c.folder.path, append([]string{
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--secure-port=" + strconv.Itoa(c.port),
		"--endpoint-reconciler-type=none", // no pod will look for the API server
		"--etcd-servers=" + c.etcdURL,
		"--etcd-cafile=" + c.pki("etcd-ca.crt"),
		"--etcd-certfile=" + c.pki("etcd-client.crt"),
		"--etcd-keyfile=" + c.pki("etcd-client.key"),
		"--client-ca-file=" + c.pki("ca.crt"),
		"--tls-cert-file=" + c.pki("apiserver.crt"),
		"--tls-private-key-file=" + c.pki("apiserver.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth",
		"--service-cluster-ip-range=" + serviceRange,
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + c.pki("service-account.key"),
		"--service-account-signing-key-file=" + c.pki("service-account.key"),
		"--audit-policy-file=" + c.folder.file("audit-policy.yaml"),
		"--audit-log-path=" + c.logFile(auditFile),
		"--audit-log-maxsize=1000000", // megabytes: one file, never rotated
		"--profiling=false",
	}, c.release.apiServer...))
	if err != nil {
		return err
	}
	c.apiServer = server
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return server.until(ctx, "the API server", func(ctx context.Context) error {
		return get(ctx, client, c.config.Host+"/readyz")
	})
}
