// SPDX-License-Identifier: Apache-2.0

// Package cachemutation makes a test fail if the test, or a program that it runs, modifies an
// object of an informer cache. Each package whose tests contain informers imports it:
//
//	import _ "github.com/machinist-dev/machinist/examples/internal/cachemutation"
//
// It also keeps what client-go logs out of what tests print: a warning of this detector for every informer, and the
// errors that tests provoke would hide the test that failed.
//
// It sets the variable of the detector of client-go. The detector reads it once, when package
// k8s.io/client-go/tools/cache is initialized. Of the packages whose imports are initialized, Go
// takes the first by import path, and so this one before that.
package cachemutation

import (
	"os"

	"k8s.io/klog/v2"
)

// variable is the environment variable that turns on the detector of client-go.
const variable = "KUBE_CACHE_MUTATION_DETECTOR"

//nolint:gochecknoinits // a test cannot set it in time
func init() {
	if err := os.Setenv(variable, "true"); err != nil {
		panic(err)
	}
	klog.SetLogger(klog.Logger{})
}
