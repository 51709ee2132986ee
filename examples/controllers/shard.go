// SPDX-License-Identifier: Apache-2.0

package controllers

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ShardLabel is the label of machines, sets, deployments and classes that names their shard;
// see [Config.Shard].
const ShardLabel = "machinist.dev/shard"

// InShard reports whether the label [ShardLabel] of an object names the shard. An object without
// the label is in the empty shard.
func InShard(o metav1.Object, shard string) bool { return o.GetLabels()[ShardLabel] == shard }

// mine reports whether the controllers act on an object.
func (c *Config) mine(o metav1.Object) bool { return InShard(o, c.Shard) }

// own sets the label of the shard on a new object, unless the template sets one.
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
