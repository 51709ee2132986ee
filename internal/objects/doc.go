// SPDX-License-Identifier: Apache-2.0

// Package objects reads objects by name and by index, from shared informers and from any other Reader, and
// makes requests for several objects at a time.
package objects
