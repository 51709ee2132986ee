// SPDX-License-Identifier: Apache-2.0

// Package objects reads objects by name and by index from any Reader, and makes requests for several objects
// at a time.
package objects
