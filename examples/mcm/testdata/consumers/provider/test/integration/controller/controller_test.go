// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"github.com/gardener/machine-controller-manager/pkg/test/integration/common"
	"github.com/onsi/ginkgo/v2"

	"example.com/machine-controller-manager-provider-acme/test/integration/provider"
)

var commons = common.NewIntegrationTestFramework(&provider.ResourcesTrackerImpl{}, 120, 1)

var (
	_ = ginkgo.BeforeSuite(commons.SetupBeforeSuite)
	_ = ginkgo.AfterSuite(commons.Cleanup)
)

var _ = ginkgo.Describe("Machine controllers test", func() {
	commons.BeforeEachCheck()
	commons.ControllerTests()
})
