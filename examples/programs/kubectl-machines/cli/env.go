// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
)

// NoTarget is the value of --target-kubeconfig for machines that join no cluster.
const NoTarget = "none"

// Env is what a command gets: its streams, the clusters and the time.
type Env struct {
	genericiooptions.IOStreams
	// Clock gives the time, and Zone is the time zone of printed times.
	Clock clock.WithTicker
	Zone  *time.Location
	// Connect returns the clients.
	Connect func() (Clients, error)

	config *genericclioptions.ConfigFlags
	target string
}

// Clients are the clients of a command.
type Clients struct {
	// Namespace is that of the machine objects.
	Namespace string
	explain.Clients
}

// New returns the environment of a process. It connects as kubectl does.
func New(in io.Reader, out, errOut io.Writer) *Env {
	e := &Env{
		IOStreams: genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut},
		Clock:     clock.RealClock{},
		Zone:      time.Local, //nolint:gosmopolitan // times are printed for people on this host
		config:    genericclioptions.NewConfigFlags(true),
	}
	e.Connect = e.connect
	return e
}

// AddFlags adds the flags of kubectl for the cluster. The help of a command shows the common ones.
func (e *Env) AddFlags(fs *pflag.FlagSet) {
	e.config.AddFlags(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		f.Hidden = f.Name != "kubeconfig" && f.Name != "context" && f.Name != "namespace"
	})
	fs.StringVar(&e.target, "target-kubeconfig", "", "kubeconfig of the cluster that the machines join, if it is another one; "+NoTarget+" if there is none")
}

// NamespaceFlag returns the value of --namespace, or "" without the flag.
func (e *Env) NamespaceFlag() string { return *e.config.Namespace }

func (e *Env) connect() (Clients, error) {
	config, err := e.config.ToRESTConfig()
	if err != nil {
		return Clients{}, fmt.Errorf("kubeconfig: %w", err)
	}
	c := Clients{}
	if c.Namespace, _, err = e.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return c, fmt.Errorf("kubeconfig: %w", err)
	}
	target := rest.CopyConfig(config)
	if e.target != "" && e.target != NoTarget {
		rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: e.target}
		if target, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig(); err != nil {
			return c, fmt.Errorf("--target-kubeconfig: %w", err)
		}
	}
	for _, each := range []*rest.Config{config, target} {
		each.UserAgent, each.QPS, each.Burst = "kubectl-machines", 50, 100
	}
	if c.Machines, err = versioned.NewForConfig(config); err != nil {
		return c, err
	}
	if c.Control, err = kubernetes.NewForConfig(config); err != nil || e.target == NoTarget {
		return c, err
	}
	c.Target, err = kubernetes.NewForConfig(target)
	return c, err
}

// ToUndo returns a context for what a command takes back at its end, also after an interrupt.
func ToUndo(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
}

// Within returns a context that ends after a time. Zero means that it does not.
func Within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", timeout))
}
