// SPDX-License-Identifier: Apache-2.0

// Package draining has the commands drain and uncordon:
//
//	kubectl machines drain node-1 --timeout 1h
//	kubectl machines uncordon node-1
//
// Flags become a [drain.Policy]. Each Node gets a plan, its first [drain.Decision]. If all plans can
// end, [runner.Executor] carries them out. Its events become lines, or its decisions JSON or YAML.
package draining
