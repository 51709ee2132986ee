// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
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

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	// unlimitedTokenLife is how long the token of a machine without a creation timeout is
	// valid. It is used for a VM only with at least unlimitedTokenRest left.
	unlimitedTokenLife = 24 * time.Hour
	unlimitedTokenRest = time.Hour
)

// createVM creates the VM. It needs a bootstrap token if the user data has the placeholder and
// there is a target cluster.
//
// The intent to have a VM is recorded before.
func (l *logic) createVM() Decision {
	if !l.intended() {
		op := l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateProcessing, v1alpha1.CreatingMachine)
		return l.move(reasonNoVM, op, stating(l.acceptedRequest(reasonNoVM)))
	}
	if l.in.Node.NoTarget || !l.in.Class.NeedsToken {
		return l.do(CallDriver{Operation: driver.OpCreateMachine}, reasonNoVM, "")
	}
	if !l.in.Tokens.Looked {
		return l.holdToJoin(l.tokensUnseen())
	}
	var best BootstrapToken
	var useless *corev1.Secret // a token that expires too early stays: a VM may be joining with it
	for _, s := range l.ownTokens() {
		switch t, ok := tokenOf(s); {
		case !ok, !t.expires.After(l.now):
			useless = cmp.Or(useless, s)
		case !t.expires.Before(l.tokenNeeded()) && t.expires.After(best.expires):
			best = t
		}
	}
	switch {
	case !best.IsZero():
		return l.do(CallDriver{Operation: driver.OpCreateMachine, Token: best}, reasonNoVM, "")
	case useless != nil:
		return l.deleteToken(useless, "it is expired or invalid")
	default:
		return l.do(CreateToken{Expires: l.tokenEnd()}, reasonToken, "")
	}
}

// tokensUnseen returns the hold for bootstrap tokens that were not read.
func (l *logic) tokensUnseen() machinist.Hold {
	return l.until("secrets/"+metav1.NamespaceSystem, reasonToken, "the bootstrap tokens were not read", recheckAfter)
}

// tokenNeeded returns until when the token of a VM that is created now has to be valid.
func (l *logic) tokenNeeded() time.Time {
	if l.blocked() && l.p.CreationTimeout > 0 { // the timeout begins when the VM exists
		return l.now.Add(l.p.CreationTimeout / 2)
	}
	if end := l.creationDeadline(); !end.IsZero() {
		return end
	}
	return l.now.Add(unlimitedTokenRest)
}

// tokenEnd returns when a new token expires: not before [logic.tokenNeeded], in whole seconds.
func (l *logic) tokenEnd() time.Time {
	end := l.now.Add(cmp.Or(max(l.p.CreationTimeout, 0), unlimitedTokenLife))
	if deadline := l.creationDeadline(); end.Before(deadline) { // the clock of the API server is ahead
		end = deadline
	}
	return end.Truncate(time.Second).Add(time.Second)
}

// ownTokens returns the bootstrap tokens of the machine, sorted by name, without those that are
// being deleted. Secrets of another type or namespace are skipped, although they have the label.
func (l *logic) ownTokens() []*corev1.Secret {
	var own []*corev1.Secret
	for _, s := range l.in.Tokens.Secrets {
		if l.m.UID != "" && facts.TokenOwner(s) == l.m.UID && s.Type == corev1.SecretTypeBootstrapToken &&
			s.Namespace == metav1.NamespaceSystem && s.DeletionTimestamp.IsZero() {
			own = append(own, s)
		}
	}
	slices.SortFunc(own, func(a, b *corev1.Secret) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return own
}

func (l *logic) deleteToken(s *corev1.Secret, message string) Decision {
	return l.do(machinist.Delete{Object: s}, reasonToken, message)
}

// dropTokens deletes the bootstrap tokens of a machine that has joined, has failed or is being
// deleted.
//
// Only a machine that is being deleted waits for tokens that were not read, and only if its class
// has a placeholder for a token.
func (l *logic) dropTokens() Decision {
	deleting := !l.m.DeletionTimestamp.IsZero()
	if l.in.Node.NoTarget || !deleting && leads(l.phase(), reasonStaleNode) {
		return Decision{}
	}
	if own := l.ownTokens(); len(own) > 0 {
		return l.deleteToken(own[0], "the machine does not need it")
	}
	if deleting && l.in.Class.NeedsToken && !l.in.Tokens.Looked {
		return hold(l.tokensUnseen())
	}
	return Decision{}
}

// String returns the number of tokens.
func (v TokensView) String() string {
	if !v.Looked {
		return "the bootstrap tokens were not read"
	}
	return fmt.Sprintf("%d bootstrap tokens", len(v.Secrets))
}

// MarshalText returns [TokensView.String]. It never fails.
func (v TokensView) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// The keys and lengths of the Secret of a bootstrap token, as the API server requires them.
const (
	tokenPrefix     = "bootstrap-token-"
	tokenIDLength   = 6
	tokenTextLength = 16
	tokenIDKey      = "token-id"
	tokenTextKey    = "token-secret"
	tokenExpiresKey = "expiration"
	tokenGroupsKey  = "auth-extra-groups" //nolint:gosec // the key of a public value
	tokenMayAuthKey = "usage-bootstrap-authentication"
)

var (
	tokenForm      = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
	tokenGroupForm = regexp.MustCompile(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`)
	// tokenLetters are the letters of new tokens. Each has five random bits.
	tokenLetters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

// badGroup reports whether the API server refuses a group of a bootstrap token. A group has the
// prefix system:bootstrappers: and then lower case letters, digits, colons and dashes.
func badGroup(group string) bool { return !tokenGroupForm.MatchString(group) }

// NewBootstrapToken returns the Secret of a new bootstrap token for a machine. Create it in the
// target cluster: see [CreateToken]. The token expires at expires, in whole seconds, and has the
// groups besides system:bootstrappers. ID and token are random, and a collision causes
// AlreadyExists.
//
// It returns an error for a nil machine, a missing or invalid UID, a zero time, an invalid group,
// and a random source that is nil or fails. The API server sets the UID. A fake clientset leaves it
// empty.
func NewBootstrapToken(m *v1alpha1.Machine, expires time.Time, groups []string, random io.Reader) (*corev1.Secret, error) {
	if problem := tokenProblem(m, expires, random); problem != "" {
		return nil, errors.New("bootstrap token: " + problem)
	}
	name := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}.String()
	if i := slices.IndexFunc(groups, badGroup); i >= 0 {
		return nil, fmt.Errorf("bootstrap token of machine %s: %q is not a valid group", name, facts.Shorten(groups[i]))
	}
	bits := make([]byte, tokenLetters.DecodedLen(tokenIDLength+tokenTextLength)+1)
	if _, err := io.ReadFull(random, bits); err != nil {
		return nil, fmt.Errorf("bootstrap token of machine %s: random source: %w", name, err)
	}
	text := tokenLetters.EncodeToString(bits)[:tokenIDLength+tokenTextLength]
	id := text[:tokenIDLength]
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: tokenPrefix + id,
			Labels:      map[string]string{v1alpha1.TokenOwnerLabel: string(m.UID)},
			Annotations: map[string]string{v1alpha1.TokenMachineAnnotation: name},
		},
		Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			tokenIDKey:                []byte(id),
			tokenTextKey:              []byte(text[tokenIDLength:]),
			tokenExpiresKey:           []byte(expires.UTC().Format(time.RFC3339)),
			tokenMayAuthKey:           []byte("true"),
			"usage-bootstrap-signing": []byte("true"),
			"description":             []byte("Machine " + name + " joins with this token. It is deleted when the machine has joined."),
		},
	}
	if len(groups) > 0 {
		s.Data[tokenGroupsKey] = []byte(strings.Join(groups, ","))
	}
	return s, nil
}

// tokenProblem returns why a token cannot be created with these arguments, or "".
func tokenProblem(m *v1alpha1.Machine, expires time.Time, random io.Reader) string {
	switch {
	case m == nil:
		return "the machine is nil"
	case m.UID == "":
		return fmt.Sprintf("metadata.uid of machine %s/%s is empty: an API server sets it, a fake clientset does not", m.Namespace, m.Name)
	case !facts.LabelValue(string(m.UID)):
		return fmt.Sprintf("metadata.uid %q of machine %s/%s is not a valid label value", facts.Excerpt(string(m.UID)), m.Namespace, m.Name)
	case expires.IsZero():
		return "the time of expiry is zero"
	case random == nil:
		return "the random source is nil"
	default:
		return ""
	}
}

// BootstrapToken is the token with which one machine joins. Its text and JSON forms have only its
// ID. [BootstrapToken.Reveal] returns the token. The zero value is no token.
type BootstrapToken struct {
	id      string
	text    *string // a pointer, because fmt does not follow pointers in fields
	expires time.Time
}

// tokenOf returns the bootstrap token in a Secret of [logic.ownTokens]. It returns false if the API
// server would refuse the token, or if it does not expire.
func tokenOf(s *corev1.Secret) (BootstrapToken, bool) {
	id, text, groups := string(s.Data[tokenIDKey]), string(s.Data[tokenTextKey]), string(s.Data[tokenGroupsKey])
	expires, err := time.Parse(time.RFC3339, string(s.Data[tokenExpiresKey]))
	if err != nil || !tokenForm.MatchString(id+"."+text) || s.Name != tokenPrefix+id || string(s.Data[tokenMayAuthKey]) != "true" ||
		groups != "" && slices.ContainsFunc(strings.Split(groups, ","), badGroup) {
		return BootstrapToken{}, false
	}
	return BootstrapToken{id: id, text: &text, expires: expires}, true
}

// IsZero reports whether t is no token.
func (t BootstrapToken) IsZero() bool { return t.text == nil }

// ID returns the public part. It is also in the name of the Secret.
func (t BootstrapToken) ID() string { return t.id }

// Expires returns when the token expires. It is zero for the zero token.
func (t BootstrapToken) Expires() time.Time { return t.expires }

// Reveal returns the token with which a VM can join. It is empty for the zero token.
func (t BootstrapToken) Reveal() string {
	if t.text == nil {
		return ""
	}
	return t.id + "." + *t.text
}

// Equal reports whether both tokens are equal and expire at the same time.
func (t BootstrapToken) Equal(o BootstrapToken) bool {
	return t.Reveal() == o.Reveal() && t.expires.Equal(o.expires)
}

// String returns a text with the ID.
func (t BootstrapToken) String() string {
	if t.IsZero() {
		return "no bootstrap token"
	}
	return "bootstrap token " + t.id
}

// MarshalText returns [BootstrapToken.String]. It never fails.
func (t BootstrapToken) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
