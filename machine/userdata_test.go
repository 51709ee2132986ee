// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine"
)

func TestRenderUserData(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ machine, text, want string }{
		"the name stands for its placeholder":            {"m-1", "a <<MACHINE_NAME>> b <<MACHINE_NAME>>", "a m-1 b m-1"},
		"URL-encoded text gets the URL-encoded name":     {"m/1", "x=%3C%3CMACHINE_NAME%3E%3E", "x=m%2F1"},
		"where it stands as it is, only that":            {"m-1", "<<MACHINE_NAME>> %3C%3CMACHINE_NAME%3E%3E", "m-1 %3C%3CMACHINE_NAME%3E%3E"},
		"text without placeholder stays":                 {"m-1", "boot", "boot"},
		"no text stays no text":                          {"m-1", "", ""},
		"a name like a placeholder is not replaced":      {"<<MACHINE_NAME>>", "a <<MACHINE_NAME>>", "a <<MACHINE_NAME>>"},
		"the token is somebody else's business":          {"m", "<<BOOTSTRAP_TOKEN>>", "<<BOOTSTRAP_TOKEN>>"},
		"names of fewer than five letters do no harm":    {"m", "<<MACHINE_NAME>>", "m"},
		"a name that is missing leaves nothing in place": {"", "a<<MACHINE_NAME>>b", "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := map[string][]byte{machine.UserDataKey: []byte(tc.text), "credential": []byte("<<MACHINE_NAME>>")}
			got, err := machine.RenderUserData(data, tc.machine)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(got[machine.UserDataKey]))
			require.Equal(t, "<<MACHINE_NAME>>", string(got["credential"]), "only the user data are rendered")
			for key := range got {
				for i := range got[key] {
					got[key][i] = 'x'
				}
			}
			require.Equal(t, tc.text, string(data[machine.UserDataKey]), "the data given are not changed")
			require.Equal(t, "<<MACHINE_NAME>>", string(data["credential"]))
		})
	}
}

func TestASecretWithoutUserDataIsAnError(t *testing.T) {
	t.Parallel()
	for _, data := range []map[string][]byte{nil, {}, {"userdata": nil}} {
		got, err := machine.RenderUserData(data, "m")
		require.ErrorIs(t, err, machine.ErrNoUserData)
		require.ErrorContains(t, err, `machine "m"`)
		require.Nil(t, got)
	}
}

func TestCredentialsWinOverUserData(t *testing.T) {
	t.Parallel()
	a, b := map[string][]byte{"k": []byte("a"), "x": []byte("1")}, map[string][]byte{"k": []byte("b")}
	got := machine.MergeSecrets(a, b)
	require.Equal(t, map[string][]byte{"k": []byte("b"), "x": []byte("1")}, got)
	got["x"][0] = '2'
	require.Equal(t, "1", string(a["x"]))
	require.Empty(t, machine.MergeSecrets(nil, nil))
}

func FuzzRenderUserData(f *testing.F) {
	f.Add("join <<MACHINE_NAME>>", "m-1")
	f.Add("%3C%3CMACHINE_NAME%3E%3E", "a b")
	f.Add("<<MACHINE_<<MACHINE_NAME>>NAME>>", "")
	f.Add("<<<MACHINE_NAME>>>", "<<MACHINE_NAME>>")
	f.Add("\xff\x00", "\xff")
	f.Fuzz(func(t *testing.T, text, name string) {
		data := map[string][]byte{machine.UserDataKey: []byte(text), "other": []byte(text)}
		got, err := machine.RenderUserData(data, name)
		require.NoError(t, err)
		require.Equal(t, text, string(data[machine.UserDataKey]))
		require.Equal(t, slices.Sorted(maps.Keys(data)), slices.Sorted(maps.Keys(got)))
		require.Equal(t, text, string(got["other"]))
		out := got[machine.UserDataKey]
		if n := strings.Count(text, machine.MachineNamePlaceholder); n > 0 {
			require.Len(t, out, len(text)+n*(len(name)-len(machine.MachineNamePlaceholder)))
		} else if !strings.Contains(text, "%3C%3CMACHINE_NAME%3E%3E") {
			require.True(t, bytes.Equal(out, []byte(text)))
		}
	})
}
