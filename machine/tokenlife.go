// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
)

const (
	// foreverToken is how long the token of a machine lasts that may take for ever
	// to join, and foreverRest how much of that has to be left for another VM.
	foreverToken = 24 * time.Hour
	foreverRest  = time.Hour
)

// createVM makes the VM, with a bootstrap token if its user data have a place for
// one and there is a cluster to join.
func (l *logic) createVM() Decision {
	if l.in.Node.NoTarget || !l.in.Class.NeedsToken {
		return l.do(CreateVM{}, ReasonNoVM, "")
	}
	if !l.in.Tokens.Looked {
		d := hold(machinist.Hold{Subject: tokenSubject, Reason: ReasonToken, Message: "nobody has looked for bootstrap tokens", Until: l.now.Add(actAgain)})
		d.NextCheck = machinist.Earliest(d.NextCheck, l.creationDeadline())
		return d
	}
	var best BootstrapToken
	for _, s := range l.ownTokens() {
		t, err := tokenOf(s)
		if err == nil && !t.expires.Before(l.tokenNeeded()) && (best.IsZero() || t.expires.After(best.expires)) {
			best = t
		}
	}
	if !best.IsZero() {
		return l.do(CreateVM{Token: best}, ReasonNoVM, "")
	}
	for _, s := range l.ownTokens() { // one that ends too early stays: a VM may be on its way with it
		if t, err := tokenOf(s); err != nil || !t.expires.After(l.now) {
			return l.deleteToken(s, "it is of no use")
		}
	}
	return l.do(CreateToken{Expires: l.tokenEnd()}, ReasonToken, "")
}

const tokenSubject = "secrets/" + metav1.NamespaceSystem

// tokenNeeded returns until when a token has to last with which a VM is made now.
func (l *logic) tokenNeeded() time.Time {
	if end := l.creationDeadline(); !end.IsZero() {
		return end
	}
	return l.now.Add(foreverRest)
}

// tokenEnd returns when a token ends that is made now: late enough for
// [logic.tokenNeeded], in whole seconds as a Secret tells them.
func (l *logic) tokenEnd() time.Time {
	end := l.now.Add(foreverToken)
	if l.p.CreationTimeout > 0 {
		end = l.now.Add(l.p.CreationTimeout)
	}
	if deadline := l.creationDeadline(); end.Before(deadline) { // the clock of the API server is ahead of ours
		end = deadline
	}
	return end.Truncate(time.Second).Add(time.Second)
}

// ownTokens returns the bootstrap tokens that were made for the machine, by name,
// without those that are being deleted. A Secret that only has the label is none.
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
	return l.do(DeleteToken{Namespace: s.Namespace, Name: s.Name, UID: s.UID}, ReasonToken, message)
}

// dropTokens deletes the bootstrap tokens of a machine that does not need them any
// more: it has joined or failed, or is being deleted.
//
// That nobody has looked stops no machine that lives. One that is being deleted
// waits for it if its class has a place for a token, as nobody will look after it.
func (l *logic) dropTokens() Decision {
	deleting := !l.m.DeletionTimestamp.IsZero()
	if l.in.Node.NoTarget || !deleting && leads(l.phase(), ReasonStaleNode) {
		return Decision{}
	}
	if own := l.ownTokens(); len(own) > 0 {
		return l.deleteToken(own[0], "the machine does not need it any more")
	}
	if deleting && l.in.Class.NeedsToken && !l.in.Tokens.Looked {
		return hold(machinist.Hold{Subject: tokenSubject, Reason: ReasonToken, Message: "nobody has looked for bootstrap tokens", Until: l.now.Add(actAgain)})
	}
	return Decision{}
}

// String says how many tokens there are, and nothing of them.
func (v TokensView) String() string {
	if !v.Looked {
		return "nobody has looked for bootstrap tokens"
	}
	return fmt.Sprintf("%d bootstrap tokens", len(v.Secrets))
}

// Format prints [TokensView.String] for every verb.
func (v TokensView) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, v.String()) }

// MarshalText returns [TokensView.String]. It never fails.
func (v TokensView) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
