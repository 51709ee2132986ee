// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/version"
)

func TestVersions_Table_SortedWithDefault(t *testing.T) {
	all := Versions()
	require.Contains(t, all, DefaultVersion)
	for i := 1; i < len(all); i++ {
		older, err := version.ParseSemantic(all[i-1])
		require.NoError(t, err)
		newer, err := version.ParseSemantic(all[i])
		require.NoError(t, err)
		require.True(t, older.LessThan(newer), "%s stands before %s", all[i-1], all[i])
	}
}

func TestVersions_Environment_Chooses(t *testing.T) {
	t.Setenv(VersionEnv, "")
	r, err := chosen()
	require.NoError(t, err)
	require.Equal(t, DefaultVersion, r.version)
	for _, v := range Versions() {
		t.Setenv(VersionEnv, v)
		r, err := chosen()
		require.NoError(t, err)
		require.Equal(t, v, r.version)
		for _, c := range []component{kubernetesComponent(r), kubectlComponent(r), kubemarkComponent(r)} {
			require.Equal(t, v, c.version)
			require.Contains(t, c.ldflags, "gitVersion="+v+" ")
		}
	}
}

func TestVersions_Unknown_ErrorNamesTheKnown(t *testing.T) {
	t.Setenv(VersionEnv, "v1.2.3")
	_, err := Build(t.Context(), io.Discard)
	require.ErrorIs(t, err, ErrVersion)
	for _, part := range append(Versions(), VersionEnv, "v1.2.3") {
		require.ErrorContains(t, err, part)
	}
	_, err = Start(t.Context(), Options{Progress: io.Discard})
	require.ErrorIs(t, err, ErrVersion)
	_, err = Kubectl(t.Context(), io.Discard)
	require.ErrorIs(t, err, ErrVersion)
	_, err = Kubemark(t.Context(), io.Discard)
	require.ErrorIs(t, err, ErrVersion)
}

// TestVersions_Documents_NameThem compares README.md with the table of the releases.
func TestVersions_Documents_NameThem(t *testing.T) {
	all := Versions()
	for file, sentences := range map[string][]string{
		"README.md": {
			"Kubernetes " + all[0] + " to " + all[len(all)-1] + ":",
			"`make test` runs all tests with " + DefaultVersion + ",",
		},
		"CONTRIBUTING.md": {"`make test` runs Kubernetes " + DefaultVersion + "."},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", file)) //nolint:gosec // one of two documents
		require.NoError(t, err)
		for _, sentence := range sentences {
			require.Contains(t, strings.Join(strings.Fields(string(text)), " "), sentence, file)
		}
	}
}

// TestLacks_EachFeature_HasATestThatAsks asserts that what a release lacks is asked for by a test, and that a
// release lacks each feature.
func TestLacks_EachFeature_HasATestThatAsks(t *testing.T) {
	asked := map[Feature]bool{}
	require.NoError(t, filepath.WalkDir("..", func(name string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" {
			return err
		}
		text, err := os.ReadFile(name) //nolint:gosec // below examples/e2e
		for _, m := range regexp.MustCompile(`Lacks\(controlplane\.(\w+)\)`).FindAllStringSubmatch(string(text), -1) {
			asked[Feature(m[1])] = true
		}
		return err
	}))
	lacked := map[Feature]bool{}
	for _, r := range releases {
		for feature, seen := range r.lacks {
			lacked[feature] = true
			require.NotEmpty(t, seen, "%s: %s", r.version, feature)
			require.NotEqual(t, DefaultVersion, r.version, "all tests run with it")
		}
	}
	require.Equal(t, lacked, asked, "a feature that each release has is no feature of the table")
}
