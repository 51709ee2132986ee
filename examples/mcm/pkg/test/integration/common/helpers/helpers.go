// SPDX-License-Identifier: Apache-2.0

// Package helpers has the clusters and the resources tracker of the integration test framework.
package helpers

import "github.com/gardener/machine-controller-manager/internal/integration"

// Cluster has the clients of a cluster.
type Cluster = integration.Cluster

// ResourcesTrackerInterface finds the resources that machines have left in the cloud.
type ResourcesTrackerInterface = integration.Tracker

// NewCluster returns the clients of a kubeconfig file. It sends no request.
func NewCluster(kubeConfigPath string) (*Cluster, error) {
	return integration.NewCluster(kubeConfigPath)
}
