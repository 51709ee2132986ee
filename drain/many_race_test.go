// SPDX-License-Identifier: Apache-2.0

//go:build race

package drain_test

// manyNodes is fewer than it says on the box: the race detector takes ten times as long.
const manyNodes = 1000
