// SPDX-License-Identifier: Apache-2.0

// Package providers holds tests that run the integration test of a provider as its project does: against a real
// control plane, with a simulated cloud whose VMs are kubelets.
package providers
