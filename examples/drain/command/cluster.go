// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// The limits of requests of this process. kubectl has none.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 100
)

// cluster returns a client of the cluster that the flags name, and a function to call at the end.
func (c Command) cluster(ctx context.Context, o options) (kubernetes.Interface, func(), error) {
	if o.embedded {
		demo, err := newDemoCluster(c.Clock)
		if err != nil {
			return nil, nil, err
		}
		if o.dry() {
			return demo.client, func() {}, nil
		}
		return demo.client, demo.run(ctx), nil
	}
	client, err := c.Connect(o.kubeconfig, o.context)
	if err != nil {
		return nil, nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return client, func() {}, nil
}

// connect reads the kubeconfig as kubectl does.
func connect(kubeconfig, name string) (kubernetes.Interface, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: name}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent = "machinist/drain"
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	return kubernetes.NewForConfig(config)
}
