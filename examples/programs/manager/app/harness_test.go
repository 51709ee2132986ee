// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const namespace = "default"

// TestMain lets client-go handle errors without a pause between them. The one that it
// makes is counted from the last error of the process, which for a bubble, whose time is
// another, may be years away.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // there is no other way
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

// harness is two clusters in memory and a cloud, for several managers.
type harness struct {
	*testing.T
	control, target *draintest.Cluster
	machines        *fake.Clientset
	cloud           *drivertest.Cloud
	tick            time.Duration // between two steps of the kubelets
}

func newHarness(t *testing.T) *harness { return newHarnessWith(t, 5*time.Millisecond) }

func newHarnessWith(t *testing.T, tick time.Duration) *harness {
	t.Helper()
	control, machines := machinetest.New(draintest.Options{})
	target := draintest.New(draintest.Options{StopTime: func(*corev1.Pod) time.Duration { return 0 }})
	r := &harness{T: t, control: control, target: target, machines: machines, cloud: drivertest.NewCloud(drivertest.CloudOptions{}), tick: tick}
	r.play()
	return r
}

// play makes a ready Node for each VM, and none for those that are gone.
func (r *harness) play() {
	ctx, cancel := context.WithCancel(r.Context())
	var playing sync.WaitGroup
	nodes := r.target.Client().CoreV1().Nodes()
	playing.Go(func() {
		for ctx.Err() == nil {
			for _, v := range r.cloud.Snapshot().VMs {
				_, err := nodes.Create(ctx, &corev1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: v.NodeName}, Spec: corev1.NodeSpec{ProviderID: v.ProviderID},
					Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
				}, metav1.CreateOptions{})
				if v.State == drivertest.VMRunning && !apierrors.IsAlreadyExists(err) {
					assert.NoError(r, err)
				}
			}
			r.target.Tick()
			select {
			case <-ctx.Done():
			case <-time.After(r.tick):
			}
		}
	})
	r.Cleanup(func() { cancel(); playing.Wait() })
}

// process is one manager that runs.
type process struct {
	*manager
	*harness
	logs                           *logs
	pipes                          *pipes
	end                            context.CancelFunc
	done                           chan error
	machines                       *fake.Clientset
	secrets, nodes, leases, events *kubefake.Clientset
}

// logs may be written by several goroutines.
type logs struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// prepare returns a manager that is not started yet.
func (r *harness) prepare() *process { return r.prepareAs(options.NewManagerServer()) }

// prepareAs returns one of the programs that is not started yet.
func (r *harness) prepareAs(s *options.MCServer) *process {
	r.Helper()
	p := &process{harness: r, logs: &logs{}, machines: fake.NewSimpleClientset(), done: make(chan error, 1)}
	r.control.Attach(&p.machines.Fake)
	p.secrets, p.leases, p.events, p.nodes = r.control.Clientset(), r.control.Clientset(), r.control.Clientset(), r.target.Clientset()
	s.SettleTime = 0
	s.LeaderElection.LeaseDuration, s.LeaderElection.RenewDeadline, s.LeaderElection.RetryPeriod = time.Second, 500*time.Millisecond, 50*time.Millisecond
	c := clients{machines: p.machines, control: p.secrets, target: p.nodes, lease: p.leases, leaseWatch: p.leases, events: p.events}
	p.manager = newManager(s, r.cloud, c, newGate(s.LeaderElection), metrics.New(metrics.Options{}), slog.New(slog.NewJSONHandler(p.logs, &slog.HandlerOptions{Level: slog.Level(-10)})))
	p.pipes = newPipes()
	p.listen = func() (net.Listener, error) { return p.pipes, nil }
	return p
}

// pipes is a network in memory. Who waits for a real one would stop the time of a bubble.
type pipes struct {
	dialed chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipes() *pipes {
	l := &pipes{dialed: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

func (l *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.dialed <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept returns the next connection.
func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.dialed:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close makes dials fail.
func (l *pipes) Close() error { l.close(); return nil }

// Addr says nothing of use.
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// start runs a manager until the test ends, or it does.
func (p *process) start() *process {
	p.Helper()
	p.Cleanup(func() {
		if p.Failed() {
			p.Log(p.logs.String())
		}
	})
	ctx, cancel := context.WithCancel(p.Context())
	p.end = cancel
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		p.done <- p.run(ctx)
	}()
	p.Cleanup(func() { cancel(); <-finished })
	return p
}

// result waits for the end of a manager.
func (p *process) result() error {
	p.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(20 * time.Second):
		p.Fatal("the manager does not end:\n" + p.logs.String())
		return nil
	}
}

// check returns the status of a health check, or 0 without an answer.
func (p *process) check(path string) int {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: p.pipes.dial}}
	request, err := http.NewRequestWithContext(p.Context(), http.MethodGet, "http://health"+path, nil)
	require.NoError(p, err)
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode
}

func (p *process) health() [2]int { return [2]int{p.check("/healthz"), p.check("/readyz")} }

func (p *process) works() bool { return strings.Contains(p.logs.String(), `"msg":"works"`) }

// eventually waits until f says that it is so.
func (r *harness) eventually(what string, f func() bool) {
	r.Helper()
	require.Eventually(r, f, 20*time.Second, 5*time.Millisecond, what)
}

func (r *harness) holder() string {
	lease, err := r.control.Client().CoordinationV1().Leases(namespace).Get(r.Context(), "machine-controller", metav1.GetOptions{})
	if err != nil {
		lease = &coordinationv1.Lease{}
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// hunter2 stands in every secret.
const hunter2 = "hunter2-is-secret"

// class makes a class and its secret.
func (r *harness) class(name string) {
	r.Helper()
	_, err := r.control.Client().CoreV1().Secrets(namespace).Create(r.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{machine.UserDataKey: []byte("#! <<BOOTSTRAP_TOKEN>>"), "token": []byte(hunter2)},
	}, metav1.CreateOptions{})
	require.NoError(r, err)
	_, err = r.machines.MachineV1alpha1().MachineClasses(namespace).Create(r.Context(), &v1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provider: "simulated", ProviderSpec: runtime.RawExtension{Raw: []byte("{}")},
		SecretRef: &corev1.SecretReference{Namespace: namespace, Name: name},
	}, metav1.CreateOptions{})
	require.NoError(r, err)
}

func (r *harness) machine(name, class string, change ...func(*v1alpha1.Machine)) {
	r.Helper()
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: class}},
	}
	for _, f := range change {
		f(m)
	}
	_, err := r.machines.MachineV1alpha1().Machines(namespace).Create(r.Context(), m, metav1.CreateOptions{})
	require.NoError(r, err)
}

func (r *harness) phase(name string) v1alpha1.MachinePhase {
	m, err := r.machines.MachineV1alpha1().Machines(namespace).Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		return "gone"
	}
	return m.Status.CurrentStatus.Phase
}

// slow is a driver whose CreateMachine takes as long as the test likes.
type slow struct {
	driver.Driver
	begun, proceed chan struct{}
	deaf           bool // ignores its context
	err            chan error
}

func newSlow(d driver.Driver) *slow {
	return &slow{Driver: d, begun: make(chan struct{}), proceed: make(chan struct{}), err: make(chan error, 1)}
}

func (s *slow) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	close(s.begun)
	ended := ctx.Done()
	if s.deaf {
		ended = nil
	}
	select {
	case <-s.proceed:
	case <-ended:
	}
	s.err <- ctx.Err()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.Driver.CreateMachine(ctx, r)
}
