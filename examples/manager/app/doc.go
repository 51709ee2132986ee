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
//	serve     /healthz and /readyz answer from the first moment on
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
// Only the loss of the lease does: whoever leads and cannot renew it for
// --leader-elect-renew-deadline stops its controllers, cuts its driver calls
// short, and ends with [ErrLeaseLost]. That is before another one leads, unless a
// driver is slow to notice that its call is cut; then the two may overlap for
// moments, in which every write is still checked against its resource version, and
// the driver has to be idempotent. So a leader whose
// API server is away for longer than that ends, and whoever supervises it (a
// Deployment, systemd) has to start it again; it then waits for the API server
// however long that takes. A standby, and a manager without election, waits
// without ending. An API server that answers, but not with the machine objects,
// is waited for a minute: [ErrNotServed].
//
// # Health
//
// /healthz is 200, or 500 if this manager holds a lease that it cannot renew, or
// is stopping. /readyz is 200 if this manager does what it can: it stands by, or
// it leads with its caches filled.
//
// There are no metrics yet, and no TLS.
package app
