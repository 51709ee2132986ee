// SPDX-License-Identifier: Apache-2.0

//go:build race

package controllers

// raced reports whether the race detector is on. The simulation has one goroutine and
// no races, so that it then runs as in a short test.
const raced = true
