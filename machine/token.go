// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	// TokenOwnerLabel on the Secret of a bootstrap token is the UID of its machine,
	// so that no two machines share one. The reference system derives the token ID
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
	tokenAboutKey   = "description"
	tokenMayAuthKey = "usage-bootstrap-authentication"
	tokenMaySignKey = "usage-bootstrap-signing"
	tokenPermission = "true"
)

var (
	tokenIDForm    = regexp.MustCompile(`^[a-z0-9]{6}$`)
	tokenTextForm  = regexp.MustCompile(`^[a-z0-9]{16}$`)
	tokenGroupForm = regexp.MustCompile(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`)
)

var (
	// errTokenRequest says that no bootstrap token can be made as asked for. It is
	// wrapped in what [NewBootstrapToken] returns, next to the cause if there is one.
	errTokenRequest = errors.New("no bootstrap token can be made")
	// errTokenGroup says that a group is none that a bootstrap token may have. It is
	// wrapped in what [validateTokenGroups] and [NewBootstrapToken] return.
	errTokenGroup = errors.New("not a group for bootstrap tokens")
	// errTokenUnusable says that a Secret is no bootstrap token with which a machine
	// could join. It is wrapped in what [tokenOf] returns.
	errTokenUnusable = errors.New("not a usable bootstrap token")
)

// TokenOwner returns the UID of the machine that a bootstrap token was made for,
// or "" if that is none of ours. A nil Secret is none.
func TokenOwner(s *corev1.Secret) types.UID {
	if s == nil {
		return ""
	}
	return types.UID(s.Labels[TokenOwnerLabel])
}

// validateTokenGroups returns an [errTokenGroup] if the API server would not take
// one of the groups for those of a bootstrap token: each has to begin with
// system:bootstrappers: and to go on in small letters, digits, colons and dashes.
// No groups are fine; those who join are in system:bootstrappers always.
func validateTokenGroups(groups []string) error {
	for _, g := range groups {
		if !tokenGroupForm.MatchString(g) {
			return fmt.Errorf("%w: %q", errTokenGroup, shorten(g))
		}
	}
	return nil
}

// NewBootstrapToken returns the Secret of a new bootstrap token for a machine, to
// be created in the cluster that it joins; see [CreateToken]. The token ends when
// expires says, in whole seconds, and gives the groups besides
// system:bootstrappers. Nothing of it follows from the machine: ID and token come
// from random, evenly, and a collision shows as AlreadyExists.
//
// A nil machine, or one whose UID is no label value, a zero time, groups that are
// not valid, and a source that is nil or fails are an
// [errTokenRequest].
func NewBootstrapToken(m *v1alpha1.Machine, expires time.Time, groups []string, random io.Reader) (*corev1.Secret, error) {
	switch {
	case m == nil:
		return nil, fmt.Errorf("%w: no machine", errTokenRequest)
	case m.UID == "" || len(validation.IsValidLabelValue(string(m.UID))) > 0:
		return nil, fmt.Errorf("%w: machine %q has the UID %q", errTokenRequest, m.Name, m.UID)
	case expires.IsZero():
		return nil, fmt.Errorf("%w: machine %q: it would never end", errTokenRequest, m.Name)
	case random == nil:
		return nil, fmt.Errorf("%w: machine %q: no source of randomness", errTokenRequest, m.Name)
	}
	if err := validateTokenGroups(groups); err != nil {
		return nil, fmt.Errorf("%w: machine %q: %w", errTokenRequest, m.Name, err)
	}
	text, err := randomText(random, tokenIDLength+tokenTextLength)
	if err != nil {
		return nil, fmt.Errorf("%w: machine %q: %w", errTokenRequest, m.Name, err)
	}
	id, name := text[:tokenIDLength], types.NamespacedName{Namespace: m.Namespace, Name: m.Name}.String()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: tokenPrefix + id,
			Labels:      map[string]string{TokenOwnerLabel: string(m.UID)},
			Annotations: map[string]string{TokenMachineAnnotation: name},
		},
		Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			tokenAboutKey:   []byte("Machine " + name + " joins with this token, which goes as soon as it has."),
			tokenIDKey:      []byte(id),
			tokenTextKey:    []byte(text[tokenIDLength:]),
			tokenExpiresKey: []byte(expires.UTC().Format(time.RFC3339)),
			tokenMayAuthKey: []byte(tokenPermission),
			tokenMaySignKey: []byte(tokenPermission),
		},
	}
	if len(groups) > 0 {
		s.Data[tokenGroupsKey] = []byte(strings.Join(groups, ","))
	}
	return s, nil
}

// randomText returns so many letters and digits, with five bits of randomness in each.
func randomText(random io.Reader, length int) (string, error) {
	raw := make([]byte, length)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", fmt.Errorf("source of randomness: %w", err)
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(raw))[:length], nil
}

// BootstrapToken is a token with which one machine joins. What prints, marshals or
// logs it sees its ID and no more; only [BootstrapToken.Reveal] tells the token.
//
// The zero BootstrapToken is none.
type BootstrapToken struct {
	id      string
	text    *string // behind a pointer, where printers of unexported fields do not look
	expires time.Time
}

// tokenOf returns the bootstrap token that a Secret holds. It is an
// [errTokenUnusable] if the API server would not let anybody join with it, whatever
// the time, or if it has no end; the error never tells the token. A Secret that is
// being deleted is none any more, and neither is a nil one.
func tokenOf(s *corev1.Secret) (BootstrapToken, error) {
	var none BootstrapToken
	if s == nil {
		return none, fmt.Errorf("%w: no Secret", errTokenUnusable)
	}
	bad := func(problem string) (BootstrapToken, error) {
		return none, fmt.Errorf("%w: secret %s/%s %s", errTokenUnusable, s.Namespace, s.Name, problem)
	}
	id, text := string(s.Data[tokenIDKey]), string(s.Data[tokenTextKey])
	expires, err := time.Parse(time.RFC3339, string(s.Data[tokenExpiresKey]))
	switch {
	case s.Type != corev1.SecretTypeBootstrapToken || s.Namespace != metav1.NamespaceSystem:
		return bad("has another type or namespace")
	case !s.DeletionTimestamp.IsZero():
		return bad("is being deleted")
	case !tokenIDForm.MatchString(id) || s.Name != tokenPrefix+id:
		return bad("has not the name of its token ID")
	case !tokenTextForm.MatchString(text):
		return bad("has no token secret of 16 letters and digits")
	case err != nil:
		return bad("does not say when it ends")
	case string(s.Data[tokenMayAuthKey]) != tokenPermission:
		return bad("does not allow to join")
	}
	if groups := string(s.Data[tokenGroupsKey]); groups != "" && validateTokenGroups(strings.Split(groups, ",")) != nil {
		return bad("has groups that are not for bootstrap tokens")
	}
	return BootstrapToken{id: id, text: &text, expires: expires}, nil
}

// IsZero says whether t is no token.
func (t BootstrapToken) IsZero() bool { return t.text == nil }

// ID returns the public part, which is also in the name of the Secret.
func (t BootstrapToken) ID() string { return t.id }

// Expires returns when the token ends. Zero only if t is none.
func (t BootstrapToken) Expires() time.Time { return t.expires }

// Reveal returns the token as a kubelet sends it: whoever has it can join. It is
// empty if t is none.
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

// GoString is [BootstrapToken.String].
func (t BootstrapToken) GoString() string { return t.String() }

// Format prints [BootstrapToken.String] for every verb.
func (t BootstrapToken) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// MarshalText returns [BootstrapToken.String]. It never fails.
func (t BootstrapToken) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalLog returns [BootstrapToken.String] for logr.
func (t BootstrapToken) MarshalLog() any { return t.String() }
