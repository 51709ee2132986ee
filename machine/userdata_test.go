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
	token, none := tokenOf(newToken(1, now)), machine.BootstrapToken{}
	secret := token.Reveal()
	for name, tc := range map[string]struct {
		machine, text string
		token         machine.BootstrapToken
		want          string
	}{
		"the name stands for its placeholder":            {"m-1", "a <<MACHINE_NAME>> b <<MACHINE_NAME>>", none, "a m-1 b m-1"},
		"URL-encoded text gets the URL-encoded name":     {"m/1", "x=%3C%3CMACHINE_NAME%3E%3E", none, "x=m%2F1"},
		"where it stands as it is, only that":            {"m-1", "<<MACHINE_NAME>> %3C%3CMACHINE_NAME%3E%3E", none, "m-1 %3C%3CMACHINE_NAME%3E%3E"},
		"text without placeholder stays":                 {"m-1", "boot", token, "boot"},
		"a name like a placeholder is not replaced":      {"<<MACHINE_NAME>>", "a <<MACHINE_NAME>>", none, "a <<MACHINE_NAME>>"},
		"a name that is missing leaves nothing in place": {"", "a<<MACHINE_NAME>>b", none, "ab"},
		"the token stands for its placeholder":           {"m", "a <<BOOTSTRAP_TOKEN>> <<BOOTSTRAP_TOKEN>> <<MACHINE_NAME>>", token, "a " + secret + " " + secret + " m"},
		"URL-encoded too":                                {"m", "a%3C%3CBOOTSTRAP_TOKEN%3E%3E", token, "a" + secret},
		"never both":                                     {"m", "<<BOOTSTRAP_TOKEN>> %3C%3CBOOTSTRAP_TOKEN%3E%3E", token, secret + " %3C%3CBOOTSTRAP_TOKEN%3E%3E"},
		"each placeholder for itself":                    {"m", "%3C%3CBOOTSTRAP_TOKEN%3E%3E <<MACHINE_NAME>>", token, secret + " m"},
		"no token leaves the placeholder":                {"m", "<<BOOTSTRAP_TOKEN>> <<MACHINE_NAME>>", none, "<<BOOTSTRAP_TOKEN>> m"},
		"a name cannot ask for it":                       {"<<BOOTSTRAP_TOKEN>>", "<<MACHINE_NAME>>", token, "<<BOOTSTRAP_TOKEN>>"},
	} {
		data := map[string][]byte{machine.UserDataKey: []byte(tc.text), "credential": []byte("<<MACHINE_NAME>>")}
		got, err := machine.RenderUserData(data, tc.machine, tc.token)
		require.NoError(t, err)
		require.Equal(t, tc.want, string(got[machine.UserDataKey]), name)
		require.Equal(t, "<<MACHINE_NAME>>", string(got["credential"]), "only the user data are rendered")
		for key := range got {
			for i := range got[key] {
				got[key][i] = 'x'
			}
		}
		require.Equal(t, tc.text, string(data[machine.UserDataKey]), "the data given are not changed")
		require.Equal(t, "<<MACHINE_NAME>>", string(data["credential"]))
	}
}

func TestASecretWithoutUserDataIsAnError(t *testing.T) {
	t.Parallel()
	for _, data := range []map[string][]byte{nil, {}, {"userdata": nil}} {
		got, err := machine.RenderUserData(data, "m", machine.BootstrapToken{})
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

func TestNeedsToken(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"a<<BOOTSTRAP_TOKEN>>": true, "%3C%3CBOOTSTRAP_TOKEN%3E%3E": true, "<<BOOTSTRAP TOKEN>>": false, "": false, "<<MACHINE_NAME>>": false,
	} {
		require.Equal(t, want, machine.NeedsToken(map[string][]byte{machine.UserDataKey: []byte(text), "x": []byte("<<BOOTSTRAP_TOKEN>>")}), text)
	}
	require.False(t, machine.NeedsToken(nil))
}

func FuzzRenderUserData(f *testing.F) {
	f.Add("join <<MACHINE_NAME>> <<BOOTSTRAP_TOKEN>>", "m-1")
	f.Add("%3C%3CMACHINE_NAME%3E%3E%3C%3CBOOTSTRAP_TOKEN%3E%3E", "a b")
	f.Add("<<MACHINE_<<MACHINE_NAME>>NAME>>", "")
	f.Add("<<<MACHINE_NAME>>>", "<<MACHINE_NAME>>")
	f.Add("<<BOOTSTRAP_<<MACHINE_NAME>>>>", "TOKEN")
	f.Add("<<BOOTSTRAP_<<BOOTSTRAP_TOKEN>>TOKEN>>", "<<BOOTSTRAP_TOKEN>>")
	f.Add("\xff\x00", "\xff")
	token := tokenOf(newToken(1, now))
	f.Fuzz(func(t *testing.T, text, name string) {
		data := map[string][]byte{machine.UserDataKey: []byte(text), "other": []byte(text)}
		got, err := machine.RenderUserData(data, name, machine.BootstrapToken{})
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

		joined, err := machine.RenderUserData(data, name, token)
		require.NoError(t, err)
		require.Equal(t, text, string(data[machine.UserDataKey]))
		require.Equal(t, text, string(joined["other"]), "only the user data get the token")
		if strings.Contains(text, token.ID()) || strings.Contains(name, token.ID()) {
			return
		}
		plain, encoded := strings.Count(text, machine.BootstrapTokenPlaceholder), strings.Count(text, "%3C%3CBOOTSTRAP_TOKEN%3E%3E")
		if plain > 0 {
			encoded = 0
		}
		require.Equal(t, plain+encoded, bytes.Count(joined[machine.UserDataKey], []byte(token.Reveal())), "the token stands where it should, and nowhere else")
		require.Equal(t, plain+encoded > 0, machine.NeedsToken(data))
		if plain+encoded == 0 {
			require.Equal(t, out, joined[machine.UserDataKey])
		}
	})
}
