// SPDX-License-Identifier: Apache-2.0

package facts

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// SameShard reports whether two objects have the same shard. An object without the label of a shard is
// in the empty shard.
func SameShard(a, b metav1.Object) bool {
	return a.GetLabels()[v1alpha1.ShardLabelKey] == b.GetLabels()[v1alpha1.ShardLabelKey]
}

// InheritShard sets the shard of an owner on a new object, unless its template has one.
func InheritShard(o, owner metav1.Object) {
	labels, shard := o.GetLabels(), owner.GetLabels()[v1alpha1.ShardLabelKey]
	if _, has := labels[v1alpha1.ShardLabelKey]; has || shard == "" {
		return
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.ShardLabelKey] = shard
	o.SetLabels(labels)
}
