// SPDX-License-Identifier: Apache-2.0

package controllers

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ShardLabel is the label of machines, sets, deployments and classes that names their shard;
// see [Config.Shard].
const ShardLabel = "machinist.dev/shard"

// mine reports whether the controllers act on an object: it has the label of their shard, or
// no label if they have no shard.
func (c *Config) mine(o metav1.Object) bool { return o.GetLabels()[ShardLabel] == c.Shard }

// own gives an object that is created the label of the shard, unless its template has one.
func (c *Config) own(o metav1.Object) {
	labels := o.GetLabels()
	if _, has := labels[ShardLabel]; has || c.Shard == "" {
		return
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[ShardLabel] = c.Shard
	o.SetLabels(labels)
}
