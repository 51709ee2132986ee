// SPDX-License-Identifier: Apache-2.0

package cachemutation_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	_ "github.com/machinist-dev/machinist/examples/internal/cachemutation"
)

const informers, detector = "k8s.io/client-go/tools/cache", "github.com/machinist-dev/machinist/examples/internal/cachemutation"

// TestDetector_ImportedByATest_IsOn looks at the detector of an informer. One that is off has
// another type.
func TestDetector_ImportedByATest_IsOn(t *testing.T) {
	t.Parallel()
	require.NotContains(t, fmt.Sprintf("%T", cache.NewCacheMutationDetector("test")), "dummy")
}

// TestDetector_EveryTestWithInformers_ImportsIt looks at the test programs of both modules.
func TestDetector_EveryTestWithInformers_ImportsIt(t *testing.T) {
	t.Parallel()
	for folder, least := range map[string]int{"../..": 8, "../../e2e": 6} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-test", "-f", `{{if eq .Name "main"}}{{.ImportPath}} {{join .Deps " "}}{{end}}`, "./...")
		cmd.Dir = folder
		out, err := cmd.Output()
		require.NoError(t, err, folder)
		found := 0
		for line := range strings.Lines(string(out)) {
			program, deps, _ := strings.Cut(strings.TrimSpace(line), " ")
			packages := strings.Fields(deps)
			if strings.HasSuffix(program, ".test") && slices.Contains(packages, informers) {
				found++
				assert.Contains(t, packages, detector, "the tests of %s contain informers: let one import %s", program, detector)
			}
		}
		require.GreaterOrEqual(t, found, least, folder)
	}
}
