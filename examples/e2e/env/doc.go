// SPDX-License-Identifier: Apache-2.0

// Package env sets up the environment of a test: the manager as a process, in a namespace of a real
// control plane, with a simulated cloud whose VMs join as hollow Nodes.
//
// [Run] starts the cluster that the tests of a package share. Each test sets up an environment:
//
//	var cluster *env.Cluster
//
//	func TestMain(m *testing.M) { os.Exit(env.Run(m, controlplane.Options{}, func(h *env.Cluster) { cluster = h })) }
//
//	func TestMachines_Deployment_Join(t *testing.T) {
//		s := cluster.Set(t, "joins", env.Options{})
//		manager := s.StartManager(t, "manager")
//		err := s.Class(t.Context(), "small")
//		…                                      // create s.Deployment("workers", "small", 3, 1, 0)
//		s.Cloud.Inject(fault)
//		s.Nodes.Silence(s.NodeName(machine), true)
//		manager.Kill()
//		s.Start(t, manager)
//		s.Wait(t, time.Minute, "all machines run", s.Complete("workers"))
//	}
//
// A program uses [Cluster.New] instead.
//
// # Real and simulated
//
//   - The API server, its storage and admission, and the controller manager are real: see package
//     controlplane.
//   - The manager is the real program, with its command line and the service account of the
//     manifests. [Env.Refused] returns the refused requests.
//   - The manager calls the cloud over HTTP: when the manager is killed, its call is cut off, and
//     the cloud continues.
//   - The cloud, the kubelets and the scheduler are simulated: see packages cloud and hollow.
//
// # Several environments in one cluster
//
// Nodes have no namespace. So the name of a Node contains the namespace and the machine
// ([Env.NodeName]), and its label [Label] has the namespace if the machine comes from
// [Env.Deployment] or [Env.Machine]. Pods of one environment select that label, as those of
// [Env.ReplicaSet] do.
package env
