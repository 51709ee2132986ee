// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
	"github.com/machinist-dev/machinist/examples/rigs/cloud"
	"github.com/machinist-dev/machinist/examples/rigs/cloud/kubelets"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
)

// Options say what an environment is like. The zero value is a cloud without latency
// whose VMs join at once.
type Options struct {
	// Cloud is the simulated cloud. If it has no NodeName, Nodes are called after
	// the namespace and the machine; if it has no Credential, it gets one.
	Cloud drivertest.CloudOptions
	// Driver, if not nil, returns what is served in the place of the cloud.
	Driver func(cloud driver.Driver) driver.Driver
	// Nodes are the hollow Nodes. Client and VMs are set by the environment.
	Nodes Nodes
	// Kubelets makes every VM a kubelet, in the place of Nodes.
	Kubelets bool
	// Program is what [Env.Manager] starts: "manager" or [ControllerRuntime]. Empty means "manager".
	Program string
	// Flags are for every manager, after those that the environment needs itself.
	Flags []string
	// Bounds say what is held against the managers in the end, see [Env.Figures].
	Bounds audit.Options
	// AllowDenied says of a request that was refused for good that it may have been,
	// see [Env.Refused]. Nil forgives none.
	AllowDenied func(controlplane.Request) bool
	// NoTarget says that there is no cluster to join: the managers are started
	// without one, and no VM becomes a Node.
	NoTarget bool
	// Outage says that the API server is taken away, so that the journal may miss
	// something and leave open what happened meanwhile. Otherwise, see [Cluster.Set],
	// that is a failure: a bound that was not checked was not kept.
	Outage bool
}

// Nodes say how the hollow Nodes of an environment behave. For the zero values see
// [hollow.Nodes].
type Nodes struct {
	// JoinAfter, LeaseInterval, PodStartTime, PodStopTime and UpdateTime are those
	// of [hollow.Nodes].
	JoinAfter, LeaseInterval, PodStartTime, PodStopTime, UpdateTime time.Duration
}

// Env is a namespace with a cloud. It is safe for concurrent use.
type Env struct {
	// Cluster that the environment is in.
	Cluster *Cluster
	// Namespace of everything that has one.
	Namespace string
	// Cloud has the VMs.
	Cloud *drivertest.Cloud
	// Nodes plays the kubelets of the VMs. Nil with Options.Kubelets.
	Nodes *hollow.Nodes
	// Fleet has the kubelets of the VMs. Nil without Options.Kubelets.
	Fleet *kubelets.Fleet
	// Machines and Client are clients of a cluster admin, without limits.
	Machines versioned.Interface
	Client   kubernetes.Interface

	options    Options
	credential string
	folder     string // of logs
	url        string // of the cloud

	end      context.CancelFunc
	playing  sync.WaitGroup
	server   *http.Server
	recorder *audit.Recorder

	granting sync.Mutex // one at a time gets its access

	mu       sync.Mutex
	managers []*Manager
	marks    int
	secrets  []string // which no log and no Event may hold
}

// New sets an environment in a new namespace whose name begins with the prefix. The end
// of ctx after New means nothing; the caller calls [Env.Close].
func (h *Cluster) New(ctx context.Context, prefix string, o Options) (*Env, error) {
	s := &Env{Cluster: h, options: o, end: func() {}}
	if err := s.set(ctx, prefix); err != nil {
		return nil, fmt.Errorf("env %s: %w", prefix, errors.Join(err, s.Close())) //nolint:contextcheck // it cleans up, however ctx has ended
	}
	return s, nil
}

func (s *Env) set(ctx context.Context, prefix string) error {
	config := s.Cluster.ControlPlane.Config()
	var err error
	if s.Client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if s.Machines, err = versioned.NewForConfig(config); err != nil {
		return err
	}
	made, err := s.Client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	s.Namespace = made.Name
	s.folder = filepath.Join(s.Cluster.ControlPlane.LogDir(), s.Namespace)
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	if err := s.access(ctx, manifests.ServiceAccount); err != nil {
		return err
	}
	if err := s.openCloud(ctx); err != nil {
		return err
	}
	if err := s.record(ctx, config); err != nil {
		return err
	}
	return s.play(ctx, config)
}

// kubeconfigOf returns the file with which a service account reaches the API server.
func (s *Env) kubeconfigOf(account string) string {
	return filepath.Join(s.Cluster.folder, s.Namespace+"-"+account+".kubeconfig")
}

// access lets the manager install what a service account may do, and writes down how to be it,
// once for each.
func (s *Env) access(ctx context.Context, account string) error {
	s.granting.Lock()
	defer s.granting.Unlock()
	if _, err := os.Stat(s.kubeconfigOf(account)); err == nil {
		return nil
	}
	_, err := s.Cluster.Program(ctx, "install", "--kubeconfig="+s.Cluster.kubeconfig, "--rbac", "--program="+account, "--namespace="+s.Namespace)
	if err != nil {
		return err
	}
	user, err := s.Cluster.ControlPlane.ServiceAccount(ctx, s.ManagerNamespace(), account)
	if err != nil {
		return err
	}
	text, err := controlplane.Kubeconfig(user)
	if err != nil {
		return err
	}
	return os.WriteFile(s.kubeconfigOf(account), text, 0o600)
}

// openCloud serves the cloud.
func (s *Env) openCloud(ctx context.Context) error {
	o := s.options.Cloud
	if o.NodeName == nil {
		o.NodeName = s.NodeName
	}
	if o.Credential == "" {
		o.Credential = "hunter2-" + s.Namespace
	}
	s.credential, s.secrets = o.Credential, []string{o.Credential}
	if s.options.Kubelets {
		if err := s.openFleet(ctx, o); err != nil {
			return err
		}
		s.Cloud = s.Fleet.Cloud
	} else {
		s.Cloud = drivertest.NewCloud(o)
	}
	s.Cloud.Subscribe(s.overhear) // as long as there is a cloud
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.url = "http://" + listener.Addr().String()
	served := driver.Driver(s.Cloud)
	if s.options.Driver != nil {
		served = s.options.Driver(served)
	}
	s.server = &http.Server{Handler: cloud.Handler(served), ReadHeaderTimeout: 10 * time.Second}
	s.playing.Go(func() { _ = s.server.Serve(listener) }) // until it is closed
	return nil
}

// play plays kubelets, or runs them, until the environment is closed. What they cannot do now, they
// try again.
func (s *Env) play(ctx context.Context, config *rest.Config) error {
	if s.options.Kubelets {
		ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
		s.playing.Go(func() { _ = s.Fleet.Run(ctx) }) // returns nil
		return nil
	}
	config.UserAgent = "hollow"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	n, vms := s.options.Nodes, hollow.VMsOf(s.Cloud)
	if s.options.NoTarget {
		vms = nil
	}
	s.Nodes = &hollow.Nodes{
		Client: client, VMs: vms, VMInterval: 200 * time.Millisecond,
		JoinAfter: n.JoinAfter, LeaseInterval: n.LeaseInterval, PodStartTime: n.PodStartTime, PodStopTime: n.PodStopTime, UpdateTime: n.UpdateTime,
	}
	ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.playing.Go(func() { _ = s.Nodes.Run(ctx) }) // fails only without a client
	return nil
}

// record keeps a journal with a client of its own, until the environment is closed.
func (s *Env) record(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.UserAgent = "journal"
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	s.recorder, err = audit.Record(context.WithoutCancel(ctx), client, s.Namespace)
	return err
}

// Figures returns the figures of the journal, which a client of its own has kept from the start,
// and the violated bounds, joined. It ends the audit.
func (s *Env) Figures() (audit.Figures, error) {
	log := s.recorder.Stop()
	return audit.Check(log, s.Cloud.History(), drivertest.Snapshot{Time: time.Now()}, s.options.Bounds)
}

// AuditLog returns the changes of machine objects that were recorded so far.
func (s *Env) AuditLog() audit.Log { return s.recorder.Log() }

// NodeName is how the Node of a machine is called.
func (s *Env) NodeName(machine string) string { return s.Namespace + "-" + machine }

// ManagerNamespace is the namespace of the managers' service account and lease.
func (s *Env) ManagerNamespace() string { return s.Namespace + manifests.ManagerSuffix }

// Folder is where the logs of the managers are: beside those of the control plane,
// with which they stay or go.
func (s *Env) Folder() string { return s.folder }

// Close kills the managers, ends all that is played, and has the namespace
// deleted, for which it does not wait. Nodes of the environment that are still there
// are deleted without asking for anybody's finalizers.
func (s *Env) Close() error {
	s.mu.Lock()
	managers := s.managers
	s.mu.Unlock()
	for _, m := range managers {
		m.Kill()
	}
	s.end()
	if s.server != nil {
		_ = s.server.Close()
	}
	if s.recorder != nil {
		_ = s.recorder.Stop()
	}
	s.playing.Wait()
	var err error
	if s.Fleet != nil {
		err = s.Fleet.Close()
	}
	return errors.Join(err, s.sweep())
}

// sweep deletes what has no namespace, and the namespace.
func (s *Env) sweep() error {
	if s.Namespace == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	nodes, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range nodes.Items {
		if !strings.HasPrefix(n.Name, s.Namespace+"-") {
			continue
		}
		_, err := s.Client.CoreV1().Nodes().Patch(ctx, n.Name, mergePatch, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		errs = append(errs, ignoreNotFound(err), ignoreNotFound(s.Client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{})))
	}
	for _, account := range accounts {
		_, err = s.Client.RbacV1().RoleBindings(s.Namespace).Patch(ctx, manifests.AccessBinding(account), mergePatch, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		errs = append(errs, ignoreNotFound(err))
	}
	for _, namespace := range []string{s.Namespace, s.ManagerNamespace()} {
		errs = append(errs, ignoreNotFound(s.Client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})))
	}
	return errors.Join(errs...)
}
