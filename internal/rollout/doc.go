// SPDX-License-Identifier: Apache-2.0

// Package rollout has the arithmetic of rollouts without a memory: the limits of a deployment, the sizes
// of its sets after a change of the replicas, the annotations and revisions of its sets, and its status.
// Package deployment decides by it which machines are created, deleted and updated.
package rollout
