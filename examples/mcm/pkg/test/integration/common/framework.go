// SPDX-License-Identifier: Apache-2.0

// Package common is the integration test framework for providers: a ginkgo suite with real machines.
//
// The environment has CONTROL_KUBECONFIG, TARGET_CLUSTER_NAME and MACHINECLASS_V1. It may have TARGET_KUBECONFIG,
// CONTROL_CLUSTER_NAMESPACE, MACHINECLASS_V2, TAGS_ARE_STRINGS, GNA_SECRET_NAME and PRESERVE_CRD_AT_END. With
// IS_CONTROL_CLUSTER_SEED it has MACHINE_CONTROLLER_MANAGER_DEPLOYMENT_NAME, and MACHINECLASS_V1 is optional.
package common

import (
	"github.com/gardener/machine-controller-manager/internal/integration"
	"github.com/gardener/machine-controller-manager/pkg/test/integration/common/helpers"
)

// IntegrationTestFramework has the nodes of a ginkgo suite.
type IntegrationTestFramework = integration.Framework

// NewIntegrationTestFramework returns a framework. Intervals are the timeout of a wait and the time between two
// looks, in seconds. The defaults are 300 and 2.
func NewIntegrationTestFramework(resourcesTracker helpers.ResourcesTrackerInterface, intervals ...int64) *IntegrationTestFramework {
	return integration.New(resourcesTracker, intervals...)
}
