// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a real Kubernetes control plane under tests: etcd,
// API server, controller manager and scheduler, built from Go modules, with RBAC, TLS and
// an audit log, on loopback, in seconds.
//
// A package whose tests need one says so in TestMain:
//
//	var cp *controlplane.ControlPlane
//
//	func TestMain(m *testing.M) {
//		os.Exit(controlplane.Run(m, controlplane.Options{}, func(c *controlplane.ControlPlane) { cp = c }))
//	}
//
//	func TestMachines(t *testing.T) {
//		namespace := cp.Namespace(t, "machines")
//		client, err := kubernetes.NewForConfig(cp.Config())
//		…
//	}
//
// There is no kubelet. Tests create Nodes, or start kubelets, which join with bootstrap tokens:
// [Kubemark].
//
// # Building
//
// The programs are compiled from the sources of [DefaultVersion] of Kubernetes, or of another of the
// [Versions] that [VersionEnv] chooses, and of [EtcdVersion]. They come through the Go module proxy and
// are checked against go.sum files in this package. That takes minutes once for each version on each
// computer; the result is cached, see [CacheEnv], until the version is changed. A slow computer may need more than the ten minutes of go
// test, so build before the first test:
//
//	go run github.com/machinist-dev/machinist/examples/e2e/up -build
//
// # Processes and files that may stay
//
// On Linux the kernel kills the components with the process that started them, however that ends.
// If it was killed, the next Start of the same user deletes its data folder and the folders of
// [ControlPlane.TempDir]. The logs of a [Run] stay unless all tests passed. On macOS and the BSDs,
// components end with Stop, and under [Run] on SIGINT and SIGTERM; after a panic or SIGKILL they
// stay and have to be killed by hand. On other systems Start fails.
//
// # Limits
//
// It is not for production: etcd does not flush its writes to disk, and any user who can read the
// data folder is cluster admin. There is no front proxy
// for aggregated API servers, and no cloud.
package controlplane
