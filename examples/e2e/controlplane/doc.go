// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a real Kubernetes control plane under tests: etcd,
// API server and controller manager, built from Go modules, with RBAC, TLS and
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
// There is no scheduler and no kubelet: nodes and what runs on them are up to
// the tests. Bootstrap tokens open the door, as kubelets need them to join.
//
// # Building
//
// The programs are compiled from the sources of [KubernetesVersion] and
// [EtcdVersion], which come through the Go module proxy and are checked against
// go.sum files in this package. That takes minutes, once for each machine; the
// result is cached, see [CacheEnv], and is used until a version changes. As go
// test kills a test binary after ten minutes, and a slow machine may need them,
// build before the first test:
//
//	go run github.com/machinist-dev/machinist/examples/e2e/up -build
//
// # What is left behind
//
// Nothing, on Linux: the kernel kills the components with the process that
// started them, whether that returned, panicked, called [os.Exit] or was killed.
// A data folder that could not be deleted, because its process was killed, is
// deleted by the next Start of the same user, with all that [ControlPlane.TempDir]
// made in it. The logs of a [Run] that did not come to a good end are meant to stay;
// one that was killed after all tests had passed leaves them too. On macOS and the BSDs, components
// end with Stop, and under [Run] on SIGINT and SIGTERM; after a panic or SIGKILL
// they stay and have to be killed by hand. On other systems Start fails.
//
// # What it is not
//
// It is not for production: etcd does not flush its writes to disk, and any user who can read the
// data folder is cluster admin. There is no front proxy
// for aggregated API servers, no signer for certificates, and no cloud.
package controlplane
