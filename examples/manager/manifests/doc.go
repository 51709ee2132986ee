// SPDX-License-Identifier: Apache-2.0

// Package manifests holds what has to be in a cluster before a manager can work
// there: the definitions of the machine objects, and what the manager may do. It
// is for `kubectl apply -f`, as files beside this one and as what [YAML] returns,
// and for programs as [Definitions] and [Access]:
//
//	serviceaccount.yaml  who the manager is: "machinist"
//	control.yaml         what it may do beside the machine objects, in one namespace
//	target.yaml          what it may do where the machines join: in the whole cluster,
//	                     and with the secrets in kube-system, for bootstrap tokens;
//	                     an admission policy allows it to write no other secrets there
//
// The admission policy needs Kubernetes 1.30 or later, and takes force moments after
// it was applied. It restricts writes. Reads cannot be restricted: the manager can
// list the secrets of kube-system, so a cluster should keep no tokens of service
// accounts there (secrets of the type kubernetes.io/service-account-token).
//
// With two clusters, control.yaml belongs into the one with the machine objects
// and target.yaml into the one that they join. The files say "default" for the
// namespace; the functions say what they are told. A manager that is started with
// --leader-elect-resource-name needs that name in control.yaml.
//
// Nothing is allowed that the code does not do, except what a rule explains.
package manifests
