// SPDX-License-Identifier: Apache-2.0

//go:build !race

package drain_test

const manyNodes = 10_000
