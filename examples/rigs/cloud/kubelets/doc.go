// SPDX-License-Identifier: Apache-2.0

// Package kubelets is a simulated cloud whose VMs are processes: each running VM is a real kubelet
// that starts no containers, kubemark of Kubernetes.
//
//	fleet, err := kubelets.Open(kubelets.Options{Folder: "/tmp/vms", Kubemark: "/usr/local/bin/kubemark"})
//	if err != nil {
//		return err
//	}
//	defer fleet.Close()
//	go http.Serve(listener, cloud.Handler(fleet.Cloud)) // a driver.Driver for the manager
//	return fleet.Run(ctx)
//
// The user data of a VM is a kubeconfig with a bootstrap token. With it the kubelet requests its
// client certificate, and then registers its Node. Latencies, quotas and faults are those of
// [drivertest.CloudOptions].
//
// # Processes
//
// A VM boots when its cloud says that it is running. A kubelet that exits with a status starts again
// after a second, as an init system would do it. A kubelet that was killed takes its VM with it: the
// VM stops and exists until it is deleted. SIGSTOP freezes a VM, SIGCONT resumes it.
//
// After a restart [Open] finds VMs and processes again. It knows a process by a variable in its
// environment, which has the folder of the VM. The processes end with [Fleet.Close], or when
// [Options].Alive ends: without it, with the process that called Open, also if that was killed.
//
// A kubelet needs about 80 MB of memory. The package works on Linux; on other systems Open fails
// with [errors.ErrUnsupported].
package kubelets
