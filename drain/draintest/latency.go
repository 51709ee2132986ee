// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	clienttesting "k8s.io/client-go/testing"
)

// travel lets a request take as long as the options say, before it is served. Others pass it meanwhile: the fakes of
// client-go hold a lock while they are served, which is let go for that time.
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
