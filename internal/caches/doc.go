// SPDX-License-Identifier: Apache-2.0

// Package caches reads objects from shared informers, by name and by index, and says which keys their events
// affect.
package caches
