// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"io"
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
