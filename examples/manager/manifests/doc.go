// SPDX-License-Identifier: Apache-2.0

// Package manifests holds what has to be in a cluster for a manager to work there: the
// definitions of the machine objects, what the manager may do, and how its pods run. It is for
// kubectl apply -k, as folders beside this file, and for programs as [Definitions], [Access] and
// [Deployment]:
//
//	one-program    the folders common and manager: one program runs all controllers
//	two-programs   the folders common, machine-controller and machine-controller-manager
//	tls            a component that makes the programs serve HTTPS
//
//	common/namespace.yaml    the namespace of the managers
//	common/shards.yaml       a policy: the shard of an object never changes
//	common/metrics.yaml      the role of those that read metrics
//	common/priority.yaml     the priority of the pods, and that of their requests
//	*/serviceaccount.yaml    who the program is, and its lease
//	*/control.yaml           what it may do beside the machine objects, in their namespace
//	*/target.yaml            what it may do where the machines join
//	*/deployment.yaml        its pods, their budget and their network
//	*/flowcontrol.yaml       which priority the API server gives to its requests
//
// The definitions are apart: their deletion deletes all machine objects. The folder
// machine/v1alpha1 of the SDK has a kustomization of them.
//
// # Deleting the namespace of the machines
//
// The finalizers of machines win over the deletion of their namespace if the manager
// can still act there. So its account and its lease are elsewhere, and the binding of
// its role has a finalizer, which the manager takes away at last. The order is:
// delete the namespace of the machines, wait until it is gone, then delete the
// namespace of the manager. The other way round, machines and VMs stay, and the
// finalizers have to be taken away by hand.
//
// # Secrets
//
// The manager and the machine-controller read all secrets in the namespace of the machines: a
// role cannot select those of classes by their labels, and their names are not known before. So
// that namespace should hold nothing else. The machine-controller-manager reads no secret.
//
// Bootstrap tokens are secrets in kube-system. The admission policy for them needs Kubernetes
// 1.30 or later, and takes force moments after it was applied. It restricts writes. Reads cannot
// be restricted: the program can list the secrets of kube-system, so a cluster should keep no
// tokens of service accounts there (secrets of the type kubernetes.io/service-account-token).
//
// # Names
//
// With two clusters, control.yaml, shards.yaml and deployment.yaml belong into the one with the
// machine objects, and target.yaml into the one that the machines join. serviceaccount.yaml,
// namespace.yaml, and flowcontrol.yaml belong into both.
// The files say "default" and "default-machinist" for the namespaces; the functions
// say what they are told. A manager that is started with
// --leader-elect-resource-name or --shard needs the name of its lease in serviceaccount.yaml.
//
// Nothing is allowed that the code does not do, except what a rule explains.
package manifests
