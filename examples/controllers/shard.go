// SPDX-License-Identifier: Apache-2.0

package controllers

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ShardLabel is the label of machines, sets, deployments and classes that names their shard;
// see [Config.Shard].
const ShardLabel = "machinist.dev/shard"

// InShard reports whether an object is of a shard: its label [ShardLabel] names the shard, or it
// has no such label and the shard is empty.
func InShard(o metav1.Object, shard string) bool { return o.GetLabels()[ShardLabel] == shard }

// mine reports whether the controllers act on an object.
func (c *Config) mine(o metav1.Object) bool { return InShard(o, c.Shard) }

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
