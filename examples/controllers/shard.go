// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// InShard reports whether the label machinist.dev/shard of an object names the shard. An object without
// the label is in the empty shard.
func InShard(o metav1.Object, shard string) bool {
	return o.GetLabels()[v1alpha1.ShardLabelKey] == shard
}

// mine reports whether the controllers act on an object.
func (c *Config) mine(o metav1.Object) bool { return InShard(o, c.Shard) }
