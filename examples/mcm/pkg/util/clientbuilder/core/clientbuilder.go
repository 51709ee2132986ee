// SPDX-License-Identifier: Apache-2.0

// Package core has names of MCM: the builder of Kubernetes clients.
package core

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// SimpleClientBuilder builds clients from one configuration.
type SimpleClientBuilder struct {
	// ClientConfig is the configuration. It is copied.
	ClientConfig *rest.Config
}

// Config returns the configuration with a user agent that ends with name.
func (b SimpleClientBuilder) Config(name string) (*rest.Config, error) {
	return rest.AddUserAgent(rest.CopyConfig(b.ClientConfig), name), nil
}

// ConfigOrDie is Config without an error.
func (b SimpleClientBuilder) ConfigOrDie(name string) *rest.Config {
	return rest.AddUserAgent(rest.CopyConfig(b.ClientConfig), name)
}

// Client returns a client whose user agent ends with name.
func (b SimpleClientBuilder) Client(name string) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(b.ConfigOrDie(name))
}

// ClientOrDie is Client that panics instead of returning an error.
func (b SimpleClientBuilder) ClientOrDie(name string) kubernetes.Interface {
	return kubernetes.NewForConfigOrDie(b.ConfigOrDie(name))
}
