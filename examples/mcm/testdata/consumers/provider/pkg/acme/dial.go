// SPDX-License-Identifier: Apache-2.0

package acme

import (
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/machinist-dev/machinist/examples/rigs/cloud"
)

// Dial returns the driver of a cloud that is served at a URL, or without a URL of one in memory.
func Dial(url string) (driver.Driver, error) {
	if url == "" {
		return NewDriver(NewCloud()), nil
	}
	return cloud.Dial(url)
}
