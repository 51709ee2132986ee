// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"net"
	"net/http/httptrace"
	"testing"

	"github.com/stretchr/testify/require"
)

// line is a connection that counts how often it was closed.
type line struct {
	net.Conn

	closed, halfClosed int
}

func (l *line) Close() error      { l.closed++; return nil }
func (l *line) CloseWrite() error { l.halfClosed++; return nil }

func TestClient_SharedConnection_StaysOpen(t *testing.T) {
	for _, over := range []func(x *exchange){func(x *exchange) { x.settle() }, (*exchange).end} {
		x, lasting := begin(t.Context())
		l := &line{}
		x.got(httptrace.GotConnInfo{Conn: l})
		over(x)
		x.giveUp()
		require.Zero(t, l.closed+l.halfClosed)
		x.end()
		require.ErrorIs(t, lasting.Err(), context.Canceled)
	}
}

func TestClient_CanceledWhileConnecting_SendsNothing(t *testing.T) {
	x, lasting := begin(t.Context())
	x.giveUp()
	require.ErrorIs(t, lasting.Err(), context.Canceled)
	l := &line{}
	x.got(httptrace.GotConnInfo{Conn: l})
	require.Equal(t, 1, l.closed)
	x.end()
}

func TestClient_Canceled_WaitsForTheResponse(t *testing.T) {
	x, lasting := begin(t.Context())
	l := &line{}
	x.got(httptrace.GotConnInfo{Conn: l})
	x.giveUp()
	require.NoError(t, lasting.Err())
	require.Equal(t, 1, l.halfClosed)
	require.False(t, x.settle(), "the connection is no good for others")
	x.end()
}
