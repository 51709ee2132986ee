// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"net"
	"net/http/httptrace"
	"sync"
	"time"
)

// grace is how long a call that was given up waits for the last word of the
// driver.
const grace = 2 * time.Second

// exchange is one request and its answer. If the caller gives up, it closes only
// its own direction of the connection: the context of the driver ends by that,
// and its answer still arrives. So when the call returns, it is over on the
// other side as well, and does not take effect behind later calls. It is given
// up for good after the grace.
type exchange struct {
	abandon context.CancelFunc // ends the request for good
	stop    func() bool        // stops waiting for the caller to give up

	mu       sync.Mutex
	conn     net.Conn
	gaveUp   bool
	answered bool // the connection may serve others from now on
	late     *time.Timer
}

// begin returns an exchange and the context of its request. Its end must be
// called.
func begin(ctx context.Context) (*exchange, context.Context) {
	x := &exchange{}
	lasting, abandon := context.WithCancel(context.WithoutCancel(ctx))
	x.abandon = abandon
	x.stop = context.AfterFunc(ctx, x.giveUp)
	return x, httptrace.WithClientTrace(lasting, &httptrace.ClientTrace{GotConn: x.got})
}

// got takes a connection, before anything is written to it.
func (x *exchange) got(info httptrace.GotConnInfo) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.conn = info.Conn
	if x.gaveUp {
		_ = x.conn.Close() // nothing is sent any more
	}
}

// giveUp tells the other side that nobody wants the answer.
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

// settle says that the answer is there, and reports whether the connection is
// still fit for others.
func (x *exchange) settle() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answered = true
	return !x.gaveUp
}

// end lets go of everything.
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
