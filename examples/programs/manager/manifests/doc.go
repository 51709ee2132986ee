// SPDX-License-Identifier: Apache-2.0

// Package manifests has the definitions of the machine objects, the access of a manager, and its
// Deployment. kubectl apply -k uses the folders beside this file, and programs use [Definitions],
// [Access] and [Deployment]:
//
//	one-program    the folders common and manager: one program runs all controllers
//	two-programs   the folders common, machine-controller and machine-controller-manager
//	tls            a component that makes the programs serve HTTPS
//
//	common/namespace.yaml    the namespace of the managers
//	common/shards.yaml       a policy: the shard of an object never changes
//	common/metrics.yaml      the role of those that read metrics
//	common/priority.yaml     the priority of the pods, and that of their requests
//	*/serviceaccount.yaml    the service account of the program, and its lease
//	*/control.yaml           its access to the machine objects and their secrets
//	*/target.yaml            its access to the cluster that machines join
//	*/deployment.yaml        its pods, their budget and their network
//	*/flowcontrol.yaml       the priority of its requests at the API server
//
// The definitions are separate, since their deletion deletes all machine objects. The folder
// machine/v1alpha1 of the SDK has a kustomization of them.
//
// # Deleting the namespace of the machines
//
// The deletion of the namespace waits for the finalizers of machines, and only a manager with its
// access removes them. So the service account and the lease are in another namespace, and the
// RoleBinding in the namespace of the machines has a finalizer that the manager removes last.
// Delete the namespace of the machines first, wait until it is gone, then delete the namespace of
// the manager. In the reverse order machines and VMs stay, and the finalizers have to be removed
// by hand.
//
// # Secrets
//
// The manager and the machine-controller read all secrets in the namespace of the machines: a
// Role cannot select the secrets of classes by labels, and their names are not known in advance.
// So that namespace should have no other secrets. The machine-controller-manager reads no secret.
//
// Bootstrap tokens are secrets in kube-system. The admission policy for them needs Kubernetes
// 1.30 or later, and takes effect moments after it is applied. It restricts writes. Reads cannot
// be restricted: the program can list the secrets of kube-system. So a cluster should have no
// tokens of service accounts there (secrets of type kubernetes.io/service-account-token).
//
// # Names
//
// With two clusters, control.yaml, shards.yaml and deployment.yaml belong to the control cluster,
// and target.yaml to the target cluster. serviceaccount.yaml, namespace.yaml and flowcontrol.yaml
// belong to both. The files have the namespaces "default" and "default-machinist". The functions
// replace them. A manager with --leader-elect-resource-name or --shard needs the name of its
// lease in serviceaccount.yaml.
//
// Each rule is used by the code, or has a comment.
package manifests
