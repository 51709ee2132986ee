// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// loopback is the address of all components. Other computers cannot reach it.
const loopback = "127.0.0.1"

// FreePort returns a free port. It looks below the ports that systems
// give to outgoing connections: there, no connection can take the port of an API
// server that is stopped for a while, least of all one that tries to reach it.
// Another process may take the port before the caller does; then the caller asks again.
func FreePort(ctx context.Context) (int, error) {
	const lowest, highest = 20000, 32000
	var (
		listen net.ListenConfig
		last   error
	)
	for range 100 {
		port := lowest + rand.IntN(highest-lowest)
		l, err := listen.Listen(ctx, "tcp", address(port))
		if err != nil {
			last = err
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no free port on %s: %w", loopback, last)
}

func address(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
