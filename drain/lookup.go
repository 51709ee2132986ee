// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// lookup is what a round looks up more than once. What a policy has no use for is
// never built.
type lookup struct {
	// pods are those of the rows, in the same order.
	pods []*corev1.Pod
	// namespaces by name; nil until one is looked up.
	namespaces map[string]*corev1.Namespace
	// daemonSets by namespace and UID; nil until one is looked up.
	daemonSets map[daemonSet]struct{}
}

// daemonSet identifies one.
type daemonSet struct {
	namespace string
	uid       types.UID
}

// namespace returns a namespace, or nil if it is not known. Of several copies the
// newest counts.
func (r *round) namespace(name string) *corev1.Namespace {
	if r.lookup.namespaces == nil {
		r.lookup.namespaces = make(map[string]*corev1.Namespace, len(r.in.Namespaces.Items))
		for _, ns := range r.in.Namespaces.Items {
			if ns == nil {
				continue
			}
			if other, twice := r.lookup.namespaces[ns.Name]; !twice || newerNamespace(ns, other) {
				r.lookup.namespaces[ns.Name] = ns
			}
		}
	}
	return r.lookup.namespaces[name]
}

// newerNamespace compares two copies. Resource versions are decimal numbers.
func newerNamespace(a, b *corev1.Namespace) bool {
	return cmp.Or(
		compareVersions(a.ResourceVersion, b.ResourceVersion),
		cmp.Compare(a.UID, b.UID),
	) > 0
}

// knowsDaemonSet says whether there is such a DaemonSet.
func (r *round) knowsDaemonSet(namespace string, uid types.UID) bool {
	if r.lookup.daemonSets == nil {
		r.lookup.daemonSets = make(map[daemonSet]struct{}, len(r.in.DaemonSets.Items))
		for _, ds := range r.in.DaemonSets.Items {
			if ds != nil {
				r.lookup.daemonSets[daemonSet{ds.Namespace, ds.UID}] = struct{}{}
			}
		}
	}
	_, known := r.lookup.daemonSets[daemonSet{namespace, uid}]
	return known
}
