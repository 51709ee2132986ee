// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
)

// writePair writes a certificate and its key into a folder.
func writePair(t *testing.T, folder, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

func TestCertificate_FilesChange_ServedWithoutRestart(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	_, err := loadCertificate(certFile, keyFile, slog.Default())
	require.ErrorContains(t, err, "--tls-cert-file: ")
	writePair(t, folder, "first")
	logs := &logs{}
	c, err := loadCertificate(certFile, keyFile, slog.New(slog.NewTextHandler(logs, nil)))
	require.NoError(t, err)
	now := time.Now()
	c.now = func() time.Time { return now }
	serves := func(name string) {
		t.Helper()
		served, err := c.get(nil)
		require.NoError(t, err)
		require.Equal(t, name, served.Leaf.Subject.CommonName)
	}
	serves("first")
	writePair(t, folder, "second")
	serves("first") // the files are not read at each handshake
	now = now.Add(reloadPeriod + time.Second)
	serves("second")

	firstKey, err := os.ReadFile(keyFile)
	require.NoError(t, err)
	writePair(t, folder, "third")
	thirdKey, err := os.ReadFile(keyFile)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(keyFile, firstKey, 0o600)) // half of a replacement
	now = now.Add(reloadPeriod)
	serves("second")
	now = now.Add(reloadPeriod)
	serves("second")
	require.Equal(t, 1, strings.Count(logs.String(), "was not reloaded"), "each state of the files is told of once")
	require.NoError(t, os.WriteFile(keyFile, thirdKey, 0o600))
	now = now.Add(reloadPeriod)
	serves("third")
	require.NoError(t, os.Remove(keyFile))
	now = now.Add(reloadPeriod)
	serves("third")
	require.Contains(t, logs.String(), "--tls-private-key-file")
}

// webServer returns a manager that does nothing but serve, and its address.
func webServer(t *testing.T, change func(*options.MCServer)) (m *manager, address, profiles string) {
	t.Helper()
	s := options.NewManagerServer()
	change(s)
	m = newManager(s, nil, clients{reviews: newReviewer(t).client}, newGate(s.LeaderElection), metrics.New(metrics.Options{}), slog.New(slog.DiscardHandler))
	listen := func(at *string) func() (net.Listener, error) {
		return func() (net.Listener, error) {
			l, err := bind(loopback, 0)
			if err == nil {
				*at = l.Addr().String()
			}
			return l, err
		}
	}
	m.listen, m.profiles = listen(&address), listen(&profiles)
	end, err := m.serveAll(func(err error) { t.Error(err) })
	require.NoError(t, err)
	t.Cleanup(end)
	return m, address, profiles
}

// ask makes a request, and returns the status and the text of the answer.
func ask(t *testing.T, config *tls.Config, url, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func TestServer_TLS_MetricsNeedATokenAndProbesDoNot(t *testing.T) {
	folder := t.TempDir()
	writePair(t, folder, "manager")
	roots := x509.NewCertPool()
	pemText, err := os.ReadFile(filepath.Join(folder, "tls.crt"))
	require.NoError(t, err)
	require.True(t, roots.AppendCertsFromPEM(pemText))
	_, address, profiles := webServer(t, func(s *options.MCServer) {
		s.TLSCertFile, s.TLSPrivateKeyFile = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	})
	require.Empty(t, profiles)
	config := &tls.Config{RootCAs: roots, ServerName: "manager", MinVersion: tls.VersionTLS12}
	for _, tc := range []struct {
		path, token string
		code        int
		text        string
	}{
		{"/healthz", "", http.StatusOK, "OK"},
		{"/readyz", "", http.StatusInternalServerError, "Not ready: waits for the API server"},
		{"/metrics", "", http.StatusUnauthorized, "no bearer token"},
		{"/metrics", "good", http.StatusOK, "mcm_machine_controller_frozen 0"},
		{"/metrics", "other", http.StatusForbidden, "may not get"},
		{"/debug/pprof/", "good", http.StatusNotFound, "not found"},
	} {
		code, text := ask(t, config, "https://"+address+tc.path, tc.token)
		require.Equal(t, tc.code, code, "%s: %s", tc.path, text)
		require.Contains(t, text, tc.text)
	}
	old := config.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	_, text := ask(t, old, "https://"+address+"/healthz", "")
	require.Contains(t, text, "protocol version")
	code, text := ask(t, nil, "http://"+address+"/healthz", "")
	require.Equal(t, http.StatusBadRequest, code, text)
}

func TestServer_BadCertificate_ManagerDoesNotStart(t *testing.T) {
	s := options.NewManagerServer()
	s.TLSCertFile, s.TLSPrivateKeyFile = "/no/such/file", "/no/such/file"
	m := newManager(s, nil, clients{}, newGate(s.LeaderElection), metrics.New(metrics.Options{}), slog.New(slog.DiscardHandler))
	m.listen = func() (net.Listener, error) { return bind(loopback, 0) }
	_, err := m.serveAll(nil)
	require.ErrorContains(t, err, "--tls-cert-file: ")
}

func TestServer_Profiles_OnlyOnTheirOwnLoopbackPort(t *testing.T) {
	s := options.NewManagerServer()
	s.Address, s.ProfilingPort = "0.0.0.0", 0
	l, err := newManager(s, nil, clients{}, newGate(s.LeaderElection), metrics.New(metrics.Options{}), slog.Default()).profiles()
	require.NoError(t, err)
	require.True(t, l.Addr().(*net.TCPAddr).IP.IsLoopback(), l.Addr()) //nolint:forcetypeassert // it is one
	require.NoError(t, l.Close())

	_, address, profiles := webServer(t, func(s *options.MCServer) { s.Profiling = true })
	for _, path := range []string{"", "cmdline", "heap", "goroutine?debug=1", "profile?seconds=1", "trace?seconds=0.1", "symbol"} {
		code, text := ask(t, nil, "http://"+profiles+"/debug/pprof/"+path, "")
		require.Equal(t, http.StatusOK, code, text)
		code, _ = ask(t, nil, "http://"+address+"/debug/pprof/"+path, "")
		require.Equal(t, http.StatusNotFound, code)
	}
	code, _ := ask(t, nil, "http://"+profiles+"/metrics", "")
	require.Equal(t, http.StatusNotFound, code)
}

// exchange sends bytes to a server and returns the first line of the answer, and how long it took
// until the server closed the connection.
func exchange(t *testing.T, pipes *pipes, send string) (line string, took time.Duration) {
	t.Helper()
	began := time.Now()
	c, err := pipes.dial(t.Context(), "", "")
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	go func() { _, _ = io.WriteString(c, send) }()
	r := bufio.NewReader(c)
	line, _ = r.ReadString('\n') // nothing, if the connection is closed
	_, _ = io.Copy(io.Discard, r)
	return strings.TrimSpace(line), time.Since(began)
}

func TestServer_SlowAndLargeRequests_AreCutOff(t *testing.T) {
	const head = "GET /healthz HTTP/1.1\r\nHost: a\r\n"
	for name, tc := range map[string]struct {
		send, line string
		took       time.Duration
	}{
		"no header":       {"", "", headerTime},
		"half a header":   {head, "", headerTime},
		"idle":            {head + "\r\n", "HTTP/1.1 200 OK", idleTime},
		"a body":          {head + "Content-Length: 5\r\n\r\n", "HTTP/1.1 413 Request Entity Too Large", requestTime},
		"an endless body": {head + "Transfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 413 Request Entity Too Large", requestTime},
		"a large header":  {head + "A: " + strings.Repeat("a", headerBytes+8<<10) + "\r\n\r\n", "HTTP/1.1 431 Request Header Fields Too Large", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipes()
				m := newManager(options.NewManagerServer(), nil, clients{}, newGate(options.LeaderElection{}), metrics.New(metrics.Options{}), slog.New(slog.DiscardHandler))
				m.listen = func() (net.Listener, error) { return p, nil }
				end, err := m.serveAll(func(err error) { t.Error(err) })
				require.NoError(t, err)
				defer end()
				line, took := exchange(t, p, tc.send)
				require.Equal(t, tc.line, line)
				require.InDelta(t, tc.took.Seconds(), took.Seconds(), 1)
			})
		})
	}
}

func TestServer_ClientDoesNotRead_AnswerIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		ended := make(chan time.Duration, 1)
		began := time.Now()
		s := boundedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 1<<20))
			ended <- time.Since(began)
		}))
		end := serve([]*http.Server{s}, []net.Listener{p}, func(err error) { t.Error(err) })
		defer end()
		c, err := p.dial(t.Context(), "", "")
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		require.InDelta(t, answerTime.Seconds(), (<-ended).Seconds(), 1)
	})
}
