// SPDX-License-Identifier: Apache-2.0

// Package runners has what the runners beside the packages that decide share: the requests of actions,
// own writes that a cache does not show yet, requests in parallel, and indexes and events of informers.
package runners
