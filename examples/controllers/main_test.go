// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"os"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// TestMain removes the handler of client-go that waits between errors. It compares times of one test
// with those of another, whose clock is virtual.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // client-go has no option for it
	os.Exit(m.Run())
}
