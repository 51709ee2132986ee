// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ViewClass returns the view of a class that was read. c is nil if the class does not exist. secret
// has the data of its secrets that were read, of which the credentials override the user data, and their resource
// versions, each after a slash. missing is the error for a secret that was not read. The view does
// not keep the data.
func ViewClass(c *v1alpha1.MachineClass, secret *corev1.Secret, missing error) ClassView {
	view := ClassView{Looked: true, Class: c}
	if c == nil {
		return view
	}
	secret = cmp.Or(secret, &corev1.Secret{})
	view.NeedsToken, view.Version = NeedsToken(secret.Data), c.ResourceVersion+secret.ResourceVersion
	_, complete := secret.Data[UserDataKey]
	switch {
	case missing != nil:
		view.Problem = missing.Error()
	case !complete:
		view.Problem = fmt.Sprintf("machine class %q: %v", c.Name, errNoUserData)
	}
	return view
}

// SecretRefs returns the secrets of a class, user data first. A reference without a namespace has
// that of the class. It returns nil for a nil class.
func SecretRefs(c *v1alpha1.MachineClass) []corev1.SecretReference {
	if c == nil {
		return nil
	}
	var refs []corev1.SecretReference
	for _, ref := range []*corev1.SecretReference{c.SecretRef, c.CredentialsSecretRef} {
		if ref != nil && ref.Name != "" {
			refs = append(refs, corev1.SecretReference{Name: ref.Name, Namespace: cmp.Or(ref.Namespace, c.Namespace)})
		}
	}
	return refs
}

// The placeholders in user data, and the key of the user data.
const (
	// BootstrapTokenPlaceholder is replaced by the bootstrap token.
	BootstrapTokenPlaceholder = "<<BOOTSTRAP_TOKEN>>" //nolint:gosec // no credential, but its placeholder
	// MachineNamePlaceholder is replaced by the name of the machine.
	MachineNamePlaceholder = "<<MACHINE_NAME>>"
	// UserDataKey is the key of the user data in the secret of a class.
	UserDataKey = "userData"
)

// errNoUserData means that a secret has no user data.
var errNoUserData = errors.New("secret has no key " + UserDataKey)

// renderUserData returns user data with the bootstrap token and the name of the machine in place of
// their placeholders. If a placeholder does not occur, its URL-encoded form is replaced. The zero
// token, as without a target cluster, leaves its placeholder. The input is not changed.
func renderUserData(userData []byte, machineName string, token BootstrapToken) []byte {
	if !token.IsZero() { // first, so that a name with the placeholder is not replaced
		userData = substitute(userData, BootstrapTokenPlaceholder, token.Reveal())
	}
	return substitute(userData, MachineNamePlaceholder, machineName)
}

// NeedsToken reports whether the user data in a secret has the placeholder of a bootstrap token,
// plain or URL-encoded.
func NeedsToken(data map[string][]byte) bool {
	userData := data[UserDataKey]
	return bytes.Contains(userData, []byte(BootstrapTokenPlaceholder)) ||
		bytes.Contains(userData, []byte(url.QueryEscape(BootstrapTokenPlaceholder)))
}

// substitute replaces a placeholder by a value, or else the URL-encoded placeholder by the
// URL-encoded value.
func substitute(text []byte, placeholder, value string) []byte {
	if bytes.Contains(text, []byte(placeholder)) {
		return bytes.ReplaceAll(text, []byte(placeholder), []byte(value))
	}
	return bytes.ReplaceAll(text, []byte(url.QueryEscape(placeholder)), []byte(url.QueryEscape(value)))
}
