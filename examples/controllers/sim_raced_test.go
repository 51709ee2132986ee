// SPDX-License-Identifier: Apache-2.0

//go:build race

package controllers

// raced says that the race detector looks on. One goroutine has no races: there
// it plays as much as in a short test.
const raced = true
