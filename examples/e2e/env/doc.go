// SPDX-License-Identifier: Apache-2.0

// Package env is what a scenario plays on: the real manager as a process of its
// own, in a namespace of a real control plane, over a simulated cloud whose VMs
// become hollow Nodes.
//
// What stages share is opened once, see [Open]; a test then sets a stage, and
// changes the world:
//
//	var cluster *env.Cluster
//
//	func TestMain(m *testing.M) { os.Exit(env.Run(m, controlplane.Options{}, func(h *env.Cluster) { cluster = h })) }
//
//	func TestAMachineJoins(t *testing.T) {
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
// A program does the same with [Cluster.New], which knows no tests.
//
// # What is real
//
//   - The API server, its storage, its admission, and the controllers of the
//     controller manager: see package controlplane.
//   - The manager: the program that people run, with the command line that people
//     write. It has the service account of the manifests, and only its
//     permissions. [Env.Refused] returns the refused requests.
//   - The boundary between the manager and the cloud: when the manager is killed,
//     a call that it made is cut off half-way, and the cloud lives on.
//
// What is played are the cloud, the kubelets and the scheduler: see packages cloud
// and hollow.
//
// # Several stages in one cluster
//
// Nodes have no namespace. So the Node of a machine is called after its namespace
// and the machine, [Env.NodeName], and carries the label [Label] with the
// namespace, if the machine comes from [Env.Deployment] or [Env.Machine]. Pods
// that must not land on the Nodes of other stages select that label, as those of
// [Env.ReplicaSet] do.
package env
