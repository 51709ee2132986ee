// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	// TokenOwnerLabel on the Secret of a bootstrap token is the UID of its machine,
	// so that no two machines share one. MCM derives the token ID
	// from three letters of the machine's name instead.
	TokenOwnerLabel = "machine.sapcloud.io/machine-uid"
	// TokenMachineAnnotation on the same Secret is the namespace and the name of the
	// machine, for people.
	TokenMachineAnnotation = "machine.sapcloud.io/machine"
)

// The form of a bootstrap token's Secret, which the API server demands.
const (
	tokenPrefix     = "bootstrap-token-"
	tokenIDLength   = 6
	tokenTextLength = 16
	tokenIDKey      = "token-id"
	tokenTextKey    = "token-secret"
	tokenExpiresKey = "expiration"
	tokenGroupsKey  = "auth-extra-groups" //nolint:gosec // the key of something public
	tokenMayAuthKey = "usage-bootstrap-authentication"
)

var (
	tokenForm      = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
	tokenGroupForm = regexp.MustCompile(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`)
	// tokenLetters are the letters of new tokens. Each stands for five random bits.
	tokenLetters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

// TokenOwner returns the UID of the machine that a bootstrap token was made for,
// or "" if that is none of ours. A nil Secret is none.
func TokenOwner(s *corev1.Secret) types.UID {
	if s == nil {
		return ""
	}
	return types.UID(s.Labels[TokenOwnerLabel])
}

// badGroup says whether the API server would not take a group for one of a bootstrap
// token: it has to begin with system:bootstrappers: and to go on in small letters,
// digits, colons and dashes.
func badGroup(group string) bool { return !tokenGroupForm.MatchString(group) }

// NewBootstrapToken returns the Secret of a new bootstrap token for a machine, to
// be created in the cluster that it joins; see [CreateToken]. The token ends when
// expires says, in whole seconds, and gives the groups besides
// system:bootstrappers. Nothing of it follows from the machine: ID and token come
// from random, evenly, and a collision shows as AlreadyExists.
//
// A nil machine, or one whose UID is no label value, a zero time, groups that are
// not valid, and a source that is nil or fails are errors.
func NewBootstrapToken(m *v1alpha1.Machine, expires time.Time, groups []string, random io.Reader) (*corev1.Secret, error) {
	if m == nil || m.UID == "" || !labelValue(string(m.UID)) || expires.IsZero() || random == nil {
		return nil, errors.New("no bootstrap token can be made: a machine with a UID, an end and a source of randomness are needed")
	}
	name := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}.String()
	if i := slices.IndexFunc(groups, badGroup); i >= 0 {
		return nil, fmt.Errorf("no bootstrap token can be made for machine %s: %q is not a group for bootstrap tokens", name, shorten(groups[i]))
	}
	bits := make([]byte, tokenLetters.DecodedLen(tokenIDLength+tokenTextLength)+1)
	if _, err := io.ReadFull(random, bits); err != nil {
		return nil, fmt.Errorf("no bootstrap token can be made for machine %s: source of randomness: %w", name, err)
	}
	text := tokenLetters.EncodeToString(bits)[:tokenIDLength+tokenTextLength]
	id := text[:tokenIDLength]
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: tokenPrefix + id,
			Labels:      map[string]string{TokenOwnerLabel: string(m.UID)},
			Annotations: map[string]string{TokenMachineAnnotation: name},
		},
		Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			tokenIDKey:                []byte(id),
			tokenTextKey:              []byte(text[tokenIDLength:]),
			tokenExpiresKey:           []byte(expires.UTC().Format(time.RFC3339)),
			tokenMayAuthKey:           []byte("true"),
			"usage-bootstrap-signing": []byte("true"),
			"description":             []byte("Machine " + name + " joins with this token, which goes as soon as it has."),
		},
	}
	if len(groups) > 0 {
		s.Data[tokenGroupsKey] = []byte(strings.Join(groups, ","))
	}
	return s, nil
}

// BootstrapToken is a token with which one machine joins. Printed, marshaled or
// logged, it shows its ID and no more; only [BootstrapToken.Reveal] tells the token.
//
// The zero BootstrapToken is none.
type BootstrapToken struct {
	id      string
	text    *string // behind a pointer, where printers of unexported fields do not look
	expires time.Time
}

// tokenOf returns the bootstrap token that a Secret of [logic.ownTokens] holds. It is
// false if the API server would not let a VM join with it, whatever the time, or if the
// token has no end.
func tokenOf(s *corev1.Secret) (BootstrapToken, bool) {
	id, text, groups := string(s.Data[tokenIDKey]), string(s.Data[tokenTextKey]), string(s.Data[tokenGroupsKey])
	expires, err := time.Parse(time.RFC3339, string(s.Data[tokenExpiresKey]))
	if err != nil || !tokenForm.MatchString(id+"."+text) || s.Name != tokenPrefix+id || string(s.Data[tokenMayAuthKey]) != "true" ||
		groups != "" && slices.ContainsFunc(strings.Split(groups, ","), badGroup) {
		return BootstrapToken{}, false
	}
	return BootstrapToken{id: id, text: &text, expires: expires}, true
}

// IsZero says whether t is no token.
func (t BootstrapToken) IsZero() bool { return t.text == nil }

// ID returns the public part, which is also in the name of the Secret.
func (t BootstrapToken) ID() string { return t.id }

// Expires returns when the token ends. Zero only if t is none.
func (t BootstrapToken) Expires() time.Time { return t.expires }

// Reveal returns the token as a kubelet sends it. A VM can join with it. It is empty for the
// zero token.
func (t BootstrapToken) Reveal() string {
	if t.text == nil {
		return ""
	}
	return t.id + "." + *t.text
}

// Equal says whether both are the same token with the same end.
func (t BootstrapToken) Equal(o BootstrapToken) bool {
	return t.Reveal() == o.Reveal() && t.expires.Equal(o.expires)
}

// String names the token by its ID.
func (t BootstrapToken) String() string {
	if t.IsZero() {
		return "no bootstrap token"
	}
	return "bootstrap token " + t.id
}

// MarshalText returns [BootstrapToken.String]. It never fails.
func (t BootstrapToken) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
