// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/rigs/cloud/kubelets"
	"github.com/machinist-dev/machinist/machine"
)

// openFleet opens a cloud whose VMs are kubelets. What they fail at is in the file fleet.log.
func (s *Env) openFleet(ctx context.Context, o drivertest.CloudOptions) error {
	kubemark, err := controlplane.Kubemark(ctx, os.Stderr)
	if err != nil {
		return err
	}
	s.Fleet, err = kubelets.Open(kubelets.Options{
		Folder: filepath.Join(s.Cluster.folder, s.Namespace+"-vms"), Kubemark: kubemark, Cloud: o, Observe: s.note,
	})
	return err
}

// note appends a problem of a kubelet to a log.
func (s *Env) note(problem error) {
	f, err := os.OpenFile(filepath.Join(s.folder, "fleet.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return // the folder of the logs was deleted
	}
	_, _ = f.WriteString(problem.Error() + "\n")
	_ = f.Close()
}

// BootstrapKubeconfig returns the user data of a VM whose kubelet joins a cluster: a kubeconfig
// with the placeholder of a bootstrap token, which the manager replaces.
func BootstrapKubeconfig(cluster *rest.Config) ([]byte, error) {
	anonymous := rest.AnonymousClientConfig(cluster)
	anonymous.BearerToken = machine.BootstrapTokenPlaceholder
	return controlplane.Kubeconfig(anonymous)
}
