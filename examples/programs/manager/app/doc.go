// SPDX-License-Identifier: Apache-2.0

// Package app runs the machine controllers as a process. [Run] builds the clients, elects a leader,
// serves health checks and metrics, runs the controllers and ends in order. The main function of a
// provider is:
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
// # Stages
//
//	serve     /healthz, /readyz and /metrics answer from the start
//	wait      until the API server serves the machine objects
//	stand by  until this process holds the lease; no controller runs
//	lead      the caches are filled, then the controllers run
//	stop      on SIGTERM or SIGINT: nothing new begins, driver calls in flight have 15 seconds
//	          to end, their results are written, the lease is released: exit status 0
//
// The stop fits into the 30 seconds that Kubernetes gives a pod by default. A second signal ends
// the process at once.
//
// # Errors that end it
//
// A leader that loses its lease ends with [ErrLeaseLost]: when the last successful renewal is as
// old as --leader-elect-renew-deadline, when another process holds the lease, or when the lease was
// deleted. The leader watches the lease, and reads it each --leader-elect-retry-period.
//
// From that moment no write and no driver call begins. The check is below the rate limiters and
// retries of client-go, and uses the monotonic clock. That clock advances while the process is
// stopped (SIGSTOP, a debugger), but may stop while the computer is suspended. Requests in flight
// are canceled and logged as inFlight. They may overlap with the next leader for a moment. Writes
// then depend on their resource version, and a driver has to be idempotent.
//
// So a leader ends if its API server is away for longer than the renew deadline. A supervisor (a
// Deployment, systemd) has to restart it. It then waits for the API server without a limit. A
// standby, and a process without election, also waits. An API server that answers but does not
// serve the machine objects is waited for one minute, then the error is [ErrNotServed].
//
// # HTTP
//
// One port serves three paths:
//
//	/healthz  200, or 500 if this process holds a lease that it cannot renew, has a driver call that
//	          does not end, or is stopping
//	/readyz   200 if this process stands by, or leads with full caches and is not frozen, and the
//	          control cluster answers; else 500, the reason and its duration. The parameter
//	          "verbose" adds details
//	/metrics  the metrics of package metrics
//
// With --tls-cert-file and --tls-private-key-file the port serves HTTPS. Changed files are
// reloaded. /metrics then needs a bearer token. The control cluster authenticates it (TokenReview)
// and authorizes its user for /metrics (SubjectAccessReview). A yes is kept for a minute, and a no
// for 10 seconds. The answer is 503 if the control cluster cannot be asked. The other paths need
// no token, because a kubelet has none. Without the files the port serves plain HTTP.
//
// With --profiling, net/http/pprof is served on 127.0.0.1 at --profiling-port, and nowhere else.
package app
