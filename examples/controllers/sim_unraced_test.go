// SPDX-License-Identifier: Apache-2.0

//go:build !race

package controllers

// raced reports whether the race detector is on.
const raced = false
