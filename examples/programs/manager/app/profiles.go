// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"net/http/pprof"
	"runtime"
)

// newProfiles returns a server of the profiles of this process, for the loopback address only. It
// has no time limit, since a profile may take minutes.
func newProfiles() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	server := boundedServer(mux)
	server.WriteTimeout = 0
	return server
}

// profileContention samples all blocking events and one in ten of the contended mutexes, until the
// returned function is called. If it is not asked for, it does nothing.
func profileContention(wished bool) (end func()) {
	if !wished {
		return func() {}
	}
	runtime.SetBlockProfileRate(1)
	before := runtime.SetMutexProfileFraction(10)
	return func() {
		runtime.SetBlockProfileRate(0)
		runtime.SetMutexProfileFraction(before)
	}
}
