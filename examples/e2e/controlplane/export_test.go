// SPDX-License-Identifier: Apache-2.0

package controlplane

// PIDs are the processes of the components.
func (c *ControlPlane) PIDs() []int {
	return []int{c.etcd.cmd.Process.Pid, c.apiServer.cmd.Process.Pid, c.controllerManager.cmd.Process.Pid}
}

// DataFolder is where the data is.
func (c *ControlPlane) DataFolder() string { return c.folder.path }

// EtcdURL is where etcd serves.
func (c *ControlPlane) EtcdURL() string { return c.etcdURL }

// Sweep is what Start does first.
var Sweep = sweep
