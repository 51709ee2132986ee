// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
)

// clients are the clients of a manager. Each has its own rate limit and user agent, so that no
// other request delays the renewal of the lease.
type clients struct {
	machines versioned.Interface
	sets     versioned.Interface  // of the controllers of sets and deployments
	control  kubernetes.Interface // secrets
	target   kubernetes.Interface // nil without a target cluster
	// The clients of probes have no rate limit, so that a probe waits for no other request.
	probeMachines versioned.Interface
	probeTarget   kubernetes.Interface // nil without a target cluster
	events        kubernetes.Interface
	lease         kubernetes.Interface // of the election, which no gate guards
	leaseWatch    kubernetes.Interface // without a limit on the time of a request
	reviews       kubernetes.Interface // of tokens, which no gate guards: a standby is scraped, too

	controlAnswers, targetAnswers *answers // of all clients; the latter nil without a target cluster

	close func()
}

// newClients builds the clients from the kubeconfigs in the options. Except for the clients of the
// election, they write only while the gate is open.
func newClients(s *options.MCServer, g *gate, m *metrics.Metrics) (clients, error) {
	control, target, err := configs(s)
	if err != nil {
		return clients{}, err
	}
	b := builder{s: s, metrics: m}
	c := clients{close: b.close, controlAnswers: newAnswers()}
	control = c.controlAnswers.watch(control)
	if target != nil {
		c.targetAnswers = newAnswers()
		target = c.targetAnswers.watch(target)
	}
	if config, transport := b.next(g.guard(control), "machines", false); b.err == nil {
		c.machines, b.err = versioned.NewForConfigAndClient(config, transport)
	}
	if config, transport := b.next(g.guard(control), "sets", false); b.err == nil {
		c.sets, b.err = versioned.NewForConfigAndClient(config, transport)
	}
	c.control = b.core(g.guard(control), "secrets")
	c.events = b.core(g.guard(control), "events")
	renewing := rest.CopyConfig(control)
	renewing.Timeout = (s.LeaderElection.RenewDeadline - s.LeaderElection.RetryPeriod) / 2 // so that one request that hangs is not the end
	c.lease = b.core(renewing, "leader-election")
	c.leaseWatch = b.core(control, "leader-election")
	c.reviews = b.core(control, "reviews")
	if target != nil {
		c.target = b.core(g.guard(target), "nodes")
		c.probeTarget = b.core(unlimited(target), "probe")
	}
	if config, transport := b.next(unlimited(control), "probe", false); b.err == nil {
		c.probeMachines, b.err = versioned.NewForConfigAndClient(config, transport)
	}
	if b.err != nil {
		b.close()
	}
	return c, b.err
}

// builder builds clients until the first error.
type builder struct {
	s          *options.MCServer
	metrics    *metrics.Metrics
	transports []*http.Client
	err        error
}

// next returns the config of the next client, and its transport. The machine objects have no
// encoding except JSON.
func (b *builder) next(config *rest.Config, agent string, protobuf bool) (*rest.Config, *http.Client) {
	if b.err != nil {
		return nil, nil
	}
	c := rest.CopyConfig(config)
	if c.UserAgent = "machinist/" + agent; c.QPS >= 0 {
		c.QPS, c.Burst = b.s.KubeAPIQPS, b.s.KubeAPIBurst
	}
	if protobuf {
		c.ContentType, c.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	}
	c.Wrap(b.metrics.Transport(agent))
	transport, err := rest.HTTPClientFor(c)
	b.err = err
	b.transports = append(b.transports, transport)
	return c, transport
}

// unlimited returns a config for a client without a rate limit.
func unlimited(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.QPS = -1
	return c
}

func (b *builder) core(config *rest.Config, agent string) kubernetes.Interface {
	c, transport := b.next(config, agent, true)
	if b.err != nil {
		return nil
	}
	client, err := kubernetes.NewForConfigAndClient(c, transport)
	b.err = err
	return client
}

func (b *builder) close() {
	for _, t := range b.transports {
		if t != nil {
			t.CloseIdleConnections()
		}
	}
}

// configs returns the configs of the control cluster and of the target cluster, which is nil
// without one.
func configs(s *options.MCServer) (control, target *rest.Config, err error) {
	switch s.TargetKubeconfig {
	case options.None:
	case "":
		target, err = rest.InClusterConfig()
	default:
		target, err = clientcmd.BuildConfigFromFlags("", s.TargetKubeconfig)
	}
	if err != nil {
		return nil, nil, wrapConfig("target-kubeconfig", err)
	}
	switch s.ControlKubeconfig {
	case "":
		control = target
	case options.InCluster:
		control, err = rest.InClusterConfig()
	default:
		control, err = clientcmd.BuildConfigFromFlags("", s.ControlKubeconfig)
	}
	return control, target, wrapConfig("control-kubeconfig", err)
}

func wrapConfig(flag string, err error) error {
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}
