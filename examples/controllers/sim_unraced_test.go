// SPDX-License-Identifier: Apache-2.0

//go:build !race

package controllers

// raced says that the race detector looks on.
const raced = false
