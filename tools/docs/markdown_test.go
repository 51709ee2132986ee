// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// block is a fenced block of a Markdown file.
type block struct {
	from string // file:line
	info string // behind the fence: go, text, sh test
	text string
}

func blocksOf(name, text string) []block {
	var blocks []block
	var open *block
	line := 0
	for l := range strings.Lines(text) {
		line++
		fence, isFence := strings.CutPrefix(strings.TrimSpace(l), "```")
		switch {
		case open == nil && isFence:
			open = &block{from: fmt.Sprintf("%s:%d", name, line), info: fence}
		case isFence:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.text += l
		}
	}
	return blocks
}

// pages returns the blocks of README.md and of each page of docs.
func pages(t *testing.T) map[string][]block {
	t.Helper()
	root := filepath.Join("..", "..")
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	all := map[string][]block{}
	for _, name := range append(names, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		short, err := filepath.Rel(root, name)
		require.NoError(t, err)
		all[short] = blocksOf(filepath.ToSlash(short), string(text))
	}
	return all
}

// TestMarkdown_GoFiles_BuildAndPrintWhatThePageSays builds the blocks that begin with a
// package clause. A block of kind text after a main package is its output.
func TestMarkdown_GoFiles_BuildAndPrintWhatThePageSays(t *testing.T) {
	var all []program
	for _, blocks := range pages(t) {
		for i, b := range blocks {
			if b.info != "go" || !strings.HasPrefix(b.text, "package ") {
				continue
			}
			p := program{from: b.from, source: b.text}
			if i+1 < len(blocks) && blocks[i+1].info == "text" && strings.HasPrefix(b.text, "package main\n") {
				p.output = blocks[i+1].text
			}
			all = append(all, p)
		}
	}
	checkAll(t, all)
}

// TestMarkdown_GoFragments_AreFormatted asserts that the other blocks of Go are statements or
// declarations, as gofmt writes them.
func TestMarkdown_GoFragments_AreFormatted(t *testing.T) {
	for _, blocks := range pages(t) {
		for _, b := range blocks {
			if b.info != "go" {
				continue
			}
			formatted, err := format.Source([]byte(b.text))
			require.NoError(t, err, b.from)
			require.Equal(t, string(formatted), b.text, b.from)
		}
	}
}

// TestMarkdown_MarkedCommands_Succeed runs the blocks of kind "sh test" from the root of the
// repository.
func TestMarkdown_MarkedCommands_Succeed(t *testing.T) {
	for _, blocks := range pages(t) {
		for _, b := range blocks {
			if b.info != "sh test" {
				continue
			}
			t.Run(b.from, func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", b.text)
				cmd.Dir = filepath.Join("..", "..")
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", out)
			})
		}
	}
}

func TestBlocksOf_TwoBlocks(t *testing.T) {
	const page = "a\n```go\nx := 1\n```\nb\n```sh test\ntrue\n```\n```\nplain\n```\n"
	require.Equal(t, []block{
		{from: "p.md:2", info: "go", text: "x := 1\n"}, {from: "p.md:6", info: "sh test", text: "true\n"}, {from: "p.md:9", text: "plain\n"},
	}, blocksOf("p.md", page))
}
