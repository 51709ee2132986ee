// SPDX-License-Identifier: Apache-2.0

package line_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/internal/line"
)

func TestBeginning_AnyLength_WholeCharactersAndLongest(t *testing.T) {
	for _, text := range []string{"", "abc", "äöü", "a€b", "\U0001F600x"} {
		for n := range len(text) + 2 {
			got := line.Beginning(text, n)
			require.True(t, strings.HasPrefix(text, got) && len(got) <= n && utf8.ValidString(got), "%q %d: %q", text, n, got)
			if rest := text[len(got):]; rest != "" {
				_, size := utf8.DecodeRuneInString(rest)
				require.Greater(t, len(got)+size, n, "%q %d: %q", text, n, got)
			}
		}
	}
}
