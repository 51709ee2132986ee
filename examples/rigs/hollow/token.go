// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"crypto/subtle"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/machine"
)

// token and group are the formats of bootstrap tokens and of their groups.
var (
	token = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	group = regexp.MustCompile(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`)
)

// tokenIn returns the bootstrap token in user data, or "". If the placeholder was not
// replaced, it returns the placeholder, which is not a valid token.
func tokenIn(userData []byte) string {
	if machine.NeedsToken(map[string][]byte{machine.UserDataKey: userData}) {
		return machine.BootstrapTokenPlaceholder
	}
	return string(token.Find(userData))
}

// authenticate checks a bootstrap token by the Secrets of the cluster. The error says why the token
// is rejected.
func authenticate(ctx context.Context, client kubernetes.Interface, given string, now time.Time) error {
	id, secret, _ := strings.Cut(given, ".")
	if token.FindString(given) != given {
		return fmt.Errorf("%q is not a bootstrap token", given)
	}
	found, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, "bootstrap-token-"+id, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("bootstrap token %s: %w", id, err)
	}
	if why := refused(found, id, secret, now); why != "" {
		return fmt.Errorf("bootstrap token %s is rejected: %s", id, why)
	}
	return nil
}

// refused returns why an API server rejects a bootstrap token, or "" if it accepts
// the token.
func refused(s *corev1.Secret, id, secret string, now time.Time) string {
	is := func(key string) string { return string(s.Data[key]) }
	switch {
	case s.Type != "bootstrap.kubernetes.io/token":
		return fmt.Sprintf("its secret is of type %q", s.Type)
	case s.DeletionTimestamp != nil:
		return "its secret is being deleted"
	case is("token-id") != id:
		return "its secret has the id of another"
	case subtle.ConstantTimeCompare(s.Data["token-secret"], []byte(secret)) == 0:
		return "it is another"
	case is("usage-bootstrap-authentication") != "true":
		return "it is not for authentication"
	}
	if at := is("expiration"); at != "" {
		if ends, err := time.Parse(time.RFC3339, at); err != nil || !now.Before(ends) {
			return "it has expired at " + at
		}
	}
	if groups := is("auth-extra-groups"); groups != "" {
		for g := range strings.SplitSeq(groups, ",") {
			if !group.MatchString(g) {
				return fmt.Sprintf("group %q is not allowed for bootstrap tokens", g)
			}
		}
	}
	return ""
}
