// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
)

// Cluster has the clients of a cluster.
type Cluster struct {
	// Clientset is the client of the kinds of Kubernetes.
	Clientset *kubernetes.Clientset
	// McmClient is the client of the machine objects.
	McmClient *versioned.Clientset
	// KubeConfigFilePath is the absolute path of the kubeconfig.
	KubeConfigFilePath string
}

// NewCluster returns the clients of a kubeconfig file. It sends no request.
func NewCluster(kubeConfigPath string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeConfigPath)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q: %w", kubeConfigPath, err)
	}
	c := &Cluster{}
	if c.KubeConfigFilePath, err = filepath.Abs(kubeConfigPath); err != nil {
		return nil, err
	}
	if c.Clientset, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	c.McmClient, err = versioned.NewForConfig(config)
	return c, err
}
