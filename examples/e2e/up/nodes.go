// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/programs/manager/app"
	"github.com/machinist-dev/machinist/examples/programs/manager/install"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/machinist-dev/machinist/examples/rigs/cloud/kubelets"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
)

// namespace and class are what machines.yaml needs.
const (
	namespace = "default"
	class     = "small"
)

// runMachines runs a cloud whose VMs are kubelets, and a manager, until ctx ends. ready is called when
// machines can be created.
func runMachines(ctx context.Context, c *controlplane.ControlPlane, kubeconfig string, ready func()) (err error) {
	kubemark, err := controlplane.Kubemark(ctx, os.Stderr)
	if err != nil {
		return err
	}
	folder, err := c.TempDir("kubelets-")
	if err != nil {
		return err
	}
	fleet, err := kubelets.Open(kubelets.Options{
		Folder: filepath.Join(folder, "vms"), Kubemark: kubemark, Observe: func(err error) { fmt.Fprintln(os.Stderr, "up:", err) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fleet.Close()) }()
	if err := createClass(ctx, c, fleet.Cloud); err != nil {
		return err
	}
	ready()

	manager := options.NewManagerServer()
	manager.TargetKubeconfig = kubeconfig
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var failed error
	running.Go(func() {
		defer cancel()
		failed = app.RunContext(ctx, manager, fleet.Cloud)
	})
	err = fleet.Run(ctx)
	running.Wait()
	return errors.Join(err, failed)
}

// createClass installs the definitions of the machine objects, and creates a class with its Secret.
// The user data in the Secret is a kubeconfig, with which a kubelet joins.
func createClass(ctx context.Context, c *controlplane.ControlPlane, cloud *drivertest.Cloud) error {
	definitions, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	machines, err := versioned.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	if err := install.Definitions(ctx, definitions); err != nil {
		return err
	}
	secret := cloud.Secret(namespace, class)
	if secret.Data[machine.UserDataKey], err = env.BootstrapKubeconfig(c.Config()); err != nil {
		return err
	}
	if _, err := client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = machines.MachineV1alpha1().MachineClasses(namespace).Create(ctx, cloud.MachineClass(namespace, class), metav1.CreateOptions{})
	return err
}
