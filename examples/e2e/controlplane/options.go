// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"io"
	"os"
	"time"
)

// Options say what a control plane is like. The zero value is fine.
type Options struct {
	// Progress takes what is said while binaries are built, which is nothing when
	// they are in the cache. Nil means [os.Stderr].
	Progress io.Writer

	// LogDir is where the components write their logs, and the API server its
	// audit log; it is created if need be, what is in it is appended to, and it
	// stays. Two control planes must not share it. Empty means a folder that goes
	// with the control plane; under [Run], one that goes when all tests have passed.
	LogDir string

	// NodeMonitorGracePeriod is how long a node may be silent until the node
	// lifecycle controller calls it unknown. Hollow kubelets on a busy machine
	// are late at times. Zero or less means 20 seconds.
	NodeMonitorGracePeriod time.Duration

	// WithoutScheduler starts no scheduler: pods are not bound, and their status does not
	// say why.
	WithoutScheduler bool
}

func (o Options) orDefaults() Options {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.NodeMonitorGracePeriod <= 0 {
		o.NodeMonitorGracePeriod = 20 * time.Second
	}
	return o
}
