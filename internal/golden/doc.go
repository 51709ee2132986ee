// SPDX-License-Identifier: Apache-2.0

// Package golden holds the packages of this module against vectors that were
// recorded by executing the reference system's functions. It has tests only.
//
// testdata says what the vectors are. Another folder with vectors of the same
// files can take its place:
//
//	MACHINIST_GOLDEN=/path/to/vectors go test -count=1 -v ./internal/golden
//
// A relative path is taken from the root of this module. A file there that no test
// reads is a failure; a file that is not there is not.
//
// Each vector is either equal, or a deviation that belongs to a numbered defect
// of the reference system, or failed. Whether a defect shows in a vector is
// decided by a rule. Most rules are twins: a naive model of the reference system
// in which each defect can be mended by itself. With no defect mended the twin
// has to reproduce the vector, and with all of them mended it has to agree with
// this module. So the rule excuses what the defect causes, and nothing else. Three
// faults of the reference system have no number and are listed by a name.
//
// The twins are also asked about random worlds that nobody has recorded, and the
// readers have to know what to make of their answers.
package golden
