// SPDX-License-Identifier: Apache-2.0

// Package golden compares the packages of this module with vectors: inputs and outputs of
// functions of MCM, recorded by executing them. It has tests only.
//
// The README in testdata describes the vectors. Another folder with vectors in the same files
// can replace them:
//
//	MACHINIST_GOLDEN=/path/to/vectors go test -count=1 -v ./internal/golden
//
// A relative path begins at the root of this module. A file in that folder that no test reads
// fails the test. A missing file does not.
//
// Each vector is equal, or deviates because of a numbered defect of MCM, or fails. A rule
// decides whether a defect shows in a vector. Most rules are models: a naive implementation of
// MCM in which each defect can be mended separately. Without any mended defect the model has
// to reproduce the vector. With all defects mended it has to agree with this module. So a rule
// excuses what the defect causes, and nothing else. Three faults of MCM have no number; they
// are listed by a name.
//
// The models also answer for random inputs that are not recorded, and the rules have to
// explain these answers too.
package golden
