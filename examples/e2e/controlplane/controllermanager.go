// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// controllers returns the flag for all controllers that are on by default, but for those that need a
// cloud or a range of addresses for pods. A release knows only the names that it has.
func (r release) controllers() string {
	all := "--controllers=*,-node-ipam-controller"
	if r.cloud {
		all += ",-cloud-node-lifecycle-controller,-node-route-controller,-service-lb-controller"
	}
	return all
}

// startControllerManager starts the controller manager and waits until it has
// made the first service account, for which several of its parts must work.
func (c *ControlPlane) startControllerManager(ctx context.Context) error {
	user := rest.CopyConfig(c.config)
	user.CertData, user.KeyData = c.keys.controllerManager.cert, c.keys.controllerManager.key
	text, err := Kubeconfig(user)
	if err != nil {
		return err
	}
	kubeconfig := c.folder.file("controller-manager.kubeconfig")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		return err
	}
	c.controllerManager, err = startProcess("kube-controller-manager", c.binaries.ControllerManager,
		c.logFile("kube-controller-manager.log"), c.folder.path, []string{
			"--kubeconfig=" + kubeconfig,
			"--secure-port=0", // no server
			"--leader-elect=false",
			"--use-service-account-credentials",
			"--service-account-private-key-file=" + c.pki("service-account.key"),
			"--root-ca-file=" + c.pki("ca.crt"),
			"--cluster-signing-cert-file=" + c.pki("ca.crt"),
			"--cluster-signing-key-file=" + c.pki("ca.key"),
			c.release.controllers(),
			"--node-monitor-period=1s",
			"--node-monitor-grace-period=" + c.options.NodeMonitorGracePeriod.String(),
			"--flex-volume-plugin-dir=" + c.folder.file("flexvolume"),
			"--kube-api-qps=500",
			"--kube-api-burst=1000",
			"--profiling=false",
		})
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	return c.controllerManager.until(ctx, "the controller manager", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}
