// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"net"
	"net/http/httptrace"
	"sync"
	"time"
)

// grace is how long a canceled call waits for the response of the driver.
const grace = 2 * time.Second

// exchange is one request and its response. A canceled call closes only its own direction of
// the connection. The context of the driver then ends, and its response still arrives. Thus
// the call has ended on both sides when it returns, at the latest after the grace.
type exchange struct {
	abandon context.CancelFunc // ends the request for good
	stop    func() bool        // stops waiting for the caller to give up

	mu       sync.Mutex
	conn     net.Conn
	gaveUp   bool
	answered bool // the connection may serve others from now on
	late     *time.Timer
}

// begin returns an exchange and the context of its request. The caller calls end.
func begin(ctx context.Context) (*exchange, context.Context) {
	x := &exchange{}
	lasting, abandon := context.WithCancel(context.WithoutCancel(ctx))
	x.abandon = abandon
	x.stop = context.AfterFunc(ctx, x.giveUp)
	return x, httptrace.WithClientTrace(lasting, &httptrace.ClientTrace{GotConn: x.got})
}

// got sets the connection before the first write.
func (x *exchange) got(info httptrace.GotConnInfo) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.conn = info.Conn
	if x.gaveUp {
		_ = x.conn.Close() // nothing is sent any more
	}
}

// giveUp closes the direction of the request, so that the context of the driver ends.
func (x *exchange) giveUp() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.answered {
		return
	}
	x.gaveUp = true
	half, ok := x.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		x.abandon()
		return
	}
	x.late = time.AfterFunc(grace, x.abandon)
}

// settle records that the response has arrived, and reports whether the connection can be used
// again.
func (x *exchange) settle() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answered = true
	return !x.gaveUp
}

// end releases the connection and the context.
func (x *exchange) end() {
	x.stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answered = true
	if x.late != nil {
		x.late.Stop()
	}
	x.abandon()
}
