// SPDX-License-Identifier: Apache-2.0

// Package docs has the tests of the documents: the programs in package comments and in
// Markdown files build, run and print what they say, and the commands marked as tests succeed.
package docs
