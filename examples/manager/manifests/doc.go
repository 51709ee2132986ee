// SPDX-License-Identifier: Apache-2.0

// Package manifests holds what has to be in a cluster before a manager can work
// there: the definitions of the machine objects, and what the manager may do. It
// is for `kubectl apply -f`, as files beside this one and as what [YAML] returns,
// and for programs as [Definitions] and [Access]:
//
//	serviceaccount.yaml  who the manager is: "machinist", in a namespace of its own
//	control.yaml         what it may do beside the machine objects, in their namespace
//	shards.yaml          an admission policy that keeps the shard of a machine object as it
//	                     is; see the flag --shard
//	target.yaml          what it may do where the machines join: in the whole cluster,
//	                     and with the secrets in kube-system, for bootstrap tokens;
//	                     an admission policy allows it to write no other secrets there
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
// The admission policy needs Kubernetes 1.30 or later, and takes force moments after
// it was applied. It restricts writes. Reads cannot be restricted: the manager can
// list the secrets of kube-system, so a cluster should keep no tokens of service
// accounts there (secrets of the type kubernetes.io/service-account-token).
//
// # Names
//
// With two clusters, control.yaml and shards.yaml belong into the one with the machine objects
// and target.yaml into the one that they join. serviceaccount.yaml belongs into both.
// The files say "default" and "default-machinist" for the namespaces; the functions
// say what they are told. A manager that is started with
// --leader-elect-resource-name needs that name in serviceaccount.yaml.
//
// Nothing is allowed that the code does not do, except what a rule explains.
package manifests
