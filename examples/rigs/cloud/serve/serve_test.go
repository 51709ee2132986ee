// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/cloud"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// firstLine runs f, and returns the first line that it writes and what ends it.
func firstLine(t *testing.T, f func(ctx context.Context, out io.Writer)) (line string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx, w)
		_ = w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, r) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return strings.TrimSpace(line), stop
}

// userData has no placeholder for a bootstrap token, because the test makes none.
const userData = "join as a"

// create makes a VM.
func create(ctx context.Context, d driver.Driver) (*driver.CreateMachineResponse, error) {
	some := drivertest.NewCloud(drivertest.CloudOptions{})
	secret := some.Secret("shoot", "small")
	secret.Data["userData"] = []byte(userData)
	return d.CreateMachine(ctx, &driver.CreateMachineRequest{
		Machine:      &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "a"}},
		MachineClass: some.MachineClass("shoot", "small"), Secret: secret,
	})
}

func TestServe_VM_BecomesANode(t *testing.T) {
	s, err := parseFlags([]string{"--listen", "127.0.0.1:0", "--create", "1ms", "--boot", "1ms", "--join", "1ms", "--delete", "0", "-v"}, io.Discard)
	require.NoError(t, err)
	client := draintest.New(draintest.Options{}).Client()
	var log bytes.Buffer
	url, stop := firstLine(t, func(ctx context.Context, out io.Writer) {
		if err := serve(ctx, s, client, out, &log); err != nil {
			t.Error(err)
		}
	})
	d, err := cloud.Dial(url)
	require.NoError(t, err)
	defer d.Close()
	resp, err := create(t.Context(), d)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		node, err := client.CoreV1().Nodes().Get(t.Context(), resp.NodeName, metav1.GetOptions{})
		return err == nil && node.Spec.ProviderID == resp.ProviderID
	}, 20*time.Second, 20*time.Millisecond)

	_, err = client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		pod, err := client.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName == resp.NodeName && pod.Status.Phase == corev1.PodRunning
	}, 20*time.Second, 20*time.Millisecond)

	stop()
	_, err = d.ListMachines(t.Context(), nil)
	require.Equal(t, codes.Unavailable, codes.Of(err))
	require.Contains(t, log.String(), "VMCreated")
	require.NotContains(t, log.String(), userData, "no Secret")
}

func TestServe_Interrupted_Ends(t *testing.T) {
	var errOut bytes.Buffer
	code := -1
	url, stop := firstLine(t, func(ctx context.Context, out io.Writer) {
		code = program(ctx, []string{"--listen", "localhost:0", "--quota", "1"}, out, &errOut)
	})
	d, err := cloud.Dial(url)
	require.NoError(t, err)
	defer d.Close()
	_, err = d.GetVolumeIDs(t.Context(), &driver.GetVolumeIDsRequest{})
	require.NoError(t, err)
	stop()
	require.Zero(t, code)
	require.Empty(t, errOut.String())
}

// bell closes a channel when something is written.
type bell struct {
	once sync.Once
	c    chan struct{}
}

func (b *bell) Write(p []byte) (int, error) {
	b.once.Do(func() { close(b.c) })
	return len(p), nil
}

func TestServe_Interrupted_AnswersOpenCalls(t *testing.T) {
	s, err := parseFlags([]string{"--listen", "127.0.0.1:0", "--create", "300ms", "-v"}, io.Discard)
	require.NoError(t, err)
	begun := &bell{c: make(chan struct{})}
	url, stop := firstLine(t, func(ctx context.Context, out io.Writer) { _ = serve(ctx, s, nil, out, begun) })
	d, err := cloud.Dial(url)
	require.NoError(t, err)
	defer d.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := create(t.Context(), d)
		answered <- err
	}()
	<-begun.c
	stop()
	require.NoError(t, <-answered)
}

func TestServe_InvalidFlags_AreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--listen", "0.0.0.0:1"}, {"--listen", ":1"}, {"--listen", "x"}, {"--listen", "10.0.0.1:1"}, {"--listen", "cloud.example:1"},
		{"--boot", "-1s"}, {"--join", "-1s"}, {"--quota", "-1"}, {"--nope"}, {"extra"}, {"--kubeconfig", "/does/not/exist"},
	} {
		var out, errOut bytes.Buffer
		require.Equal(t, 2, program(t.Context(), args, &out, &errOut), "%q", args)
		require.Equal(t, 1, strings.Count(errOut.String(), "\n"))
	}
	var out bytes.Buffer
	require.Zero(t, program(t.Context(), []string{"-h"}, &out, io.Discard))
	require.Contains(t, out.String(), "-kubeconfig file")
}
