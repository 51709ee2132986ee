// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	clienttesting "k8s.io/client-go/testing"
)

// travel waits for the latency of a request. It unlocks the fake of client-go, so that other requests do not wait.
func (c *Cluster) travel(f *clienttesting.Fake, call Call) Call {
	if c.options.Latency == nil {
		return call
	}
	latency := c.options.Latency(call)
	if latency <= 0 {
		return call
	}
	f.Unlock()
	defer f.Lock()
	timer := c.clock.NewTimer(latency)
	defer timer.Stop()
	<-timer.C()
	call.Time = c.clock.Now()
	return call
}
