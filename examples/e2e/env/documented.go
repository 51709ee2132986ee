// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// kubectlProxy is where the documented programs find an API server.
const kubectlProxy = "http://127.0.0.1:8001"

// Documented builds the program in the comment of a package of the SDK, such as "machine/runner", for an API
// server at another URL. It returns the file name of the program.
func Documented(ctx context.Context, t testing.TB, pkg, server string) string {
	t.Helper()
	folder := t.TempDir()
	sdk, err := moduleFolder(ctx, strings.TrimSuffix(module, "/examples"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := documented(filepath.Join(sdk, pkg, "doc.go"))
	if err == nil && strings.Count(source, kubectlProxy) != 1 {
		err = fmt.Errorf("%s: the program does not use %s once", pkg, kubectlProxy)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "main.go"), []byte(strings.Replace(source, kubectlProxy, server, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "program")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, filepath.Join(folder, "main.go"))
	cmd.Dir = sdk
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+sdk)
	if _, err := run(cmd); err != nil {
		t.Fatal(err)
	}
	return program
}

// documented returns the first code of the comment of a package.
func documented(file string) (string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		return "", err
	}
	for _, block := range new(comment.Parser).Parse(parsed.Doc.Text()).Content {
		if code, ok := block.(*comment.Code); ok {
			return code.Text, nil
		}
	}
	return "", fmt.Errorf("%s has no program", file)
}

// Proxy serves the API server of a config without credentials, as kubectl proxy does. It returns its URL, and ends
// with the test.
func Proxy(t testing.TB, config *rest.Config) string {
	t.Helper()
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, // watches have no end
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) },
	})
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	return proxy.URL
}
