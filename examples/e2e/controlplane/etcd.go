// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// KillEtcd kills etcd and nothing else, as SIGKILL does. The API server keeps running and
// cannot answer requests that need the data. KillEtcd returns when the process has ended,
// at once if there is none.
func (c *ControlPlane) KillEtcd() error { return c.killOnly(&c.etcd) }

// StartEtcd starts etcd after [ControlPlane.KillEtcd] with the ports and the data that it
// had, and waits until it is healthy. It fails with [ErrRunning] if etcd runs. After another
// failure etcd does not run, and StartEtcd may be called again.
func (c *ControlPlane) StartEtcd(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.running:
		return ErrStopped
	case c.etcd != nil && c.etcd.dead() == nil:
		return ErrRunning
	}
	if err := c.runEtcd(ctx); err != nil {
		err = fmt.Errorf("control plane: %w", errors.Join(err, c.etcd.kill()))
		c.etcd = nil
		return err
	}
	return nil
}

// startEtcd starts etcd on ports of its own choice.
func (c *ControlPlane) startEtcd(ctx context.Context) error {
	clients, err := FreePort(ctx)
	if err != nil {
		return err
	}
	peers, err := FreePort(ctx)
	if err != nil {
		return err
	}
	c.etcdURL, c.etcdPeerURL = "https://"+address(clients), "https://"+address(peers)
	return c.runEtcd(ctx)
}

// runEtcd starts etcd on its ports and waits until it is healthy.
func (c *ControlPlane) runEtcd(ctx context.Context) error {
	var err error
	c.etcd, err = startProcess("etcd", c.binaries.Etcd, c.logFile("etcd.log"), c.folder.path, []string{
		"--name=test",
		"--data-dir=" + c.folder.file("etcd"),
		"--listen-client-urls=" + c.etcdURL,
		"--advertise-client-urls=" + c.etcdURL,
		"--listen-peer-urls=" + c.etcdPeerURL,
		"--initial-advertise-peer-urls=" + c.etcdPeerURL,
		"--initial-cluster=test=" + c.etcdPeerURL,
		"--client-cert-auth",
		"--trusted-ca-file=" + c.pki("etcd-ca.crt"),
		"--cert-file=" + c.pki("etcd.crt"),
		"--key-file=" + c.pki("etcd.key"),
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + c.pki("etcd-ca.crt"),
		"--peer-cert-file=" + c.pki("etcd.crt"),
		"--peer-key-file=" + c.pki("etcd.key"),
		"--unsafe-no-fsync",                // the data need not survive the machine
		"--quota-backend-bytes=8589934592", // 8 GiB: thousands of machines in minutes, and compaction comes later
		"--log-level=warn",
	})
	if err != nil {
		return err
	}
	client, err := c.etcdHTTP()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return c.etcd.until(ctx, "etcd", func(ctx context.Context) error {
		return get(ctx, client, c.etcdURL+"/health")
	})
}

// etcdHTTP is a client which etcd accepts.
func (c *ControlPlane) etcdHTTP() (*http.Client, error) {
	cert, err := tls.X509KeyPair(c.keys.etcdClient.cert, c.keys.etcdClient.key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.keys.etcdCA.cert)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion:   tls.VersionTLS12,
		RootCAs:      roots,
		Certificates: []tls.Certificate{cert},
	}}}, nil
}

// get fails unless the answer is 200.
func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, resp.Status, body)
	}
	return nil
}
