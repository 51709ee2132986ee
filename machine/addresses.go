// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// addresses returns every address that is known of the machine: what is
// recorded, what the provider named, and the name of the Node as a host name.
func (l *logic) addresses() []corev1.NodeAddress {
	all := mergeAddresses(l.m.Status.Addresses, l.in.VM.Addresses)
	if l.in.VM.NodeName != "" {
		all = mergeAddresses(all, []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: l.in.VM.NodeName}})
	}
	return all
}

// compareAddresses orders addresses by type, then by address.
func compareAddresses(a, b corev1.NodeAddress) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Address, b.Address))
}
