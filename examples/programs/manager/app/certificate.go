// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// reloadPeriod is the minimum time between two reads of the files of a certificate.
const reloadPeriod = 10 * time.Second

// certificate is a certificate and its key. Changed files are reloaded, once they match each other:
// a program may be replacing them. It is safe for concurrent use.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu        sync.Mutex
	looked    time.Time // when the files were read
	cert, key []byte    // as they were read, good or bad
	current   *tls.Certificate
}

// loadCertificate reads a certificate and its key. An error names the flag.
func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, now: time.Now}
	if err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// config returns the TLS configuration of a server.
func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: c.get}
}

// get returns the certificate for a handshake.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Sub(c.looked) >= reloadPeriod {
		if err := c.reload(); err != nil {
			c.log.Error("the certificate was not reloaded: the one before is served", "err", err)
		}
	}
	return c.current, nil
}

// reload reads the files. It reports an invalid change once, and keeps the old certificate. The
// caller holds mu, or is the only user.
func (c *certificate) reload() error {
	c.looked = c.now()
	cert, err := os.ReadFile(c.certFile)
	if err != nil {
		return fmt.Errorf("--tls-cert-file: %w", err)
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil {
		return fmt.Errorf("--tls-private-key-file: %w", err)
	}
	if bytes.Equal(cert, c.cert) && bytes.Equal(key, c.key) {
		return nil
	}
	c.cert, c.key = cert, key
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("--tls-cert-file and --tls-private-key-file: %w", err)
	}
	if c.current != nil {
		c.log.Info("the certificate was reloaded", "file", c.certFile, "expires", pair.Leaf.NotAfter)
	}
	c.current = &pair
	return nil
}
