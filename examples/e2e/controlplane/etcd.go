// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
)

// startEtcd starts etcd and waits until it is healthy.
func (c *ControlPlane) startEtcd(ctx context.Context) error {
	clients, err := freePort(ctx)
	if err != nil {
		return err
	}
	peers, err := freePort(ctx)
	if err != nil {
		return err
	}
	c.etcdURL = "https://" + address(clients)
	peerURL := "https://" + address(peers)
	c.etcd, err = startProcess("etcd", c.binaries.Etcd, c.logFile("etcd.log"), c.folder.path, []string{
		"--name=test",
		"--data-dir=" + c.folder.file("etcd"),
		"--listen-client-urls=" + c.etcdURL,
		"--advertise-client-urls=" + c.etcdURL,
		"--listen-peer-urls=" + peerURL,
		"--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=test=" + peerURL,
		"--client-cert-auth",
		"--trusted-ca-file=" + c.pki("etcd-ca.crt"),
		"--cert-file=" + c.pki("etcd.crt"),
		"--key-file=" + c.pki("etcd.key"),
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + c.pki("etcd-ca.crt"),
		"--peer-cert-file=" + c.pki("etcd.crt"),
		"--peer-key-file=" + c.pki("etcd.key"),
		"--unsafe-no-fsync", // the data need not survive the machine
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
