// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"errors"
	"net/url"
)

// The placeholders that user data may hold, and the key under which user data
// stands in the secret of a class.
const (
	// BootstrapTokenPlaceholder stands for the bootstrap token.
	BootstrapTokenPlaceholder = "<<BOOTSTRAP_TOKEN>>" //nolint:gosec // stands for a token, and is none
	// MachineNamePlaceholder stands for the name of the machine.
	MachineNamePlaceholder = "<<MACHINE_NAME>>"
	// UserDataKey is the key of the user data.
	UserDataKey = "userData"
)

// errNoUserData says that a secret has no user data.
var errNoUserData = errors.New("secret has no key " + UserDataKey)

// renderUserData returns user data with the bootstrap token and the name of the
// machine in place of their placeholders: each where its placeholder stands as it is,
// or else where it stands URL-encoded, never both. The zero token leaves its
// placeholder in place, as without a cluster to join. The data given is not changed.
func renderUserData(userData []byte, machineName string, token BootstrapToken) []byte {
	if !token.IsZero() { // first, so that no name can ask for it
		userData = substitute(userData, BootstrapTokenPlaceholder, token.Reveal())
	}
	return substitute(userData, MachineNamePlaceholder, machineName)
}

// NeedsToken says whether the user data in a secret has a place for a bootstrap
// token: the placeholder as it is, or URL-encoded.
func NeedsToken(data map[string][]byte) bool {
	userData := data[UserDataKey]
	return bytes.Contains(userData, []byte(BootstrapTokenPlaceholder)) ||
		bytes.Contains(userData, []byte(url.QueryEscape(BootstrapTokenPlaceholder)))
}

// substitute replaces a placeholder by a value, or the URL-encoded placeholder
// by the URL-encoded value.
func substitute(text []byte, placeholder, value string) []byte {
	if bytes.Contains(text, []byte(placeholder)) {
		return bytes.ReplaceAll(text, []byte(placeholder), []byte(value))
	}
	return bytes.ReplaceAll(text, []byte(url.QueryEscape(placeholder)), []byte(url.QueryEscape(value)))
}

// MergeSecrets returns the data of a class's two secrets as one: that of the
// credentials wins over that of the user data. Nil maps hold nothing.
func MergeSecrets(userData, credentials map[string][]byte) map[string][]byte {
	merged := make(map[string][]byte, len(userData)+len(credentials))
	for _, data := range []map[string][]byte{userData, credentials} {
		for key, value := range data {
			merged[key] = bytes.Clone(value)
		}
	}
	return merged
}
