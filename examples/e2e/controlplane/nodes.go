// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// joining are the groups of kubelets with the roles that let them request, get and renew their
// client certificate, as kubeadm binds them.
var joining = []struct{ name, group, role string }{
	{"kubelet-bootstrap", "system:bootstrappers", "system:node-bootstrapper"},
	{"kubelet-approve-first", "system:bootstrappers", "system:certificates.k8s.io:certificatesigningrequests:nodeclient"},
	{"kubelet-approve-renewal", "system:nodes", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"},
}

// allowJoining lets kubelets join with bootstrap tokens.
func (c *ControlPlane) allowJoining(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	for _, b := range joining {
		_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: b.name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: b.group}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func (c *ControlPlane) startScheduler() error {
	user := rest.CopyConfig(c.config)
	user.CertData, user.KeyData = c.keys.scheduler.cert, c.keys.scheduler.key
	text, err := Kubeconfig(user)
	if err != nil {
		return err
	}
	kubeconfig := c.folder.file("scheduler.kubeconfig")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		return err
	}
	c.scheduler, err = startProcess("kube-scheduler", c.binaries.Scheduler, c.logFile("kube-scheduler.log"), c.folder.path, []string{
		"--kubeconfig=" + kubeconfig,
		"--secure-port=0", // no server
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--profiling=false",
	})
	return err
}
