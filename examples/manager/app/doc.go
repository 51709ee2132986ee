// SPDX-License-Identifier: Apache-2.0

// Package app runs the machine controllers as a process: flags become clients,
// one of several managers leads, health is told over HTTP, and the end is
// orderly. The main program of a provider is five lines:
//
//	func main() {
//		s := options.NewMCServer()
//		s.AddFlags(pflag.CommandLine)
//		pflag.Parse()
//		if err := app.Run(s, mycloud.NewDriver()); err != nil {
//			fmt.Fprintln(os.Stderr, err)
//			os.Exit(1)
//		}
//	}
//
// # The life of a process
//
//	serve     /healthz, /readyz and /metrics answer from the first moment on
//	wait      until the API server serves the machine objects
//	stand by  until the lease is ours; no controller runs before
//	lead      the caches are filled, then the controllers work
//	stop      on SIGTERM or SIGINT: nothing new is begun, driver calls in flight
//	          have 15 seconds to end, what they answer is written down, and then
//	          the lease is given back: exit status 0
//
// All of that fits into the 30 seconds that Kubernetes gives a pod by default. A
// second signal ends the process at once.
//
// # What ends it otherwise
//
// Only the loss of the lease does: the leader ends with [ErrLeaseLost] when the last
// successful renewal is as old as --leader-elect-renew-deadline, and at once when it
// sees another holder or that the lease was deleted. It watches the lease, and sees
// the same one --leader-elect-retry-period later at the latest.
//
// From that moment on no write and no driver call begins. Both are checked when they
// leave, below the rate limiters and repetitions of client-go, and by the monotonic
// clock, which also advances while the process is stopped (SIGSTOP, a debugger). The
// clock of a machine that is suspended as a whole may stand still. What has begun
// before is cut short and named in the log as inFlight: it may overlap with the next
// leader for moments. Writes are still checked against their resource version then,
// and the driver has to be idempotent.
//
// So a leader whose API server is away for longer than that ends, and its supervisor
// (a Deployment, systemd) has to start it again; it then waits for the API server
// however long that takes. A standby, and a manager without election, waits
// without ending. An API server that answers, but not with the machine objects,
// is waited for a minute: [ErrNotServed].
//
// # HTTP
//
// One port serves three paths:
//
//	/healthz  200, or 500 if this manager holds a lease that it cannot renew, or is stopping
//	/readyz   200 if this manager does its part: it stands by, or it leads with its caches
//	          filled and is not frozen, and the control cluster answers; else 500 with what is
//	          wrong and for how long. With the parameter "verbose" it tells more
//	/metrics  what package metrics shows
//
// With --tls-cert-file and --tls-private-key-file the port is HTTPS. Both files are read again
// when they change. A scrape then needs a bearer token. The control cluster says whose it is
// (TokenReview), and whether that user may get /metrics (SubjectAccessReview). A yes counts for a
// minute, and a no for 10 seconds. If the control cluster cannot be asked, the answer is 503. The
// other paths need no token: a kubelet has none. Without the files the port is plain HTTP.
//
// With --profiling, net/http/pprof is served on 127.0.0.1 at --profiling-port, and nowhere else.
package app
