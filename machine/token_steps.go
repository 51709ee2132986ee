// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/driver"
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
		request := l.acceptedRequest(reasonNoVM)
		return l.record(reasonNoVM, op.Description, func(s *v1alpha1.MachineStatus) {
			s.LastOperation = op
			stating(request)(s)
		})
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
	return machinist.Hold{
		Subject: "secrets/" + metav1.NamespaceSystem, Reason: reasonToken, Message: "the bootstrap tokens were not read", Until: l.now.Add(recheckAfter),
	}
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
		if l.m.UID != "" && TokenOwner(s) == l.m.UID && s.Type == corev1.SecretTypeBootstrapToken &&
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
