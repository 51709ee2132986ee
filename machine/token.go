// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TokenOwnerLabel on the Secret of a bootstrap token names the UID of its machine.
const TokenOwnerLabel = "machinist.dev/token-of-machine"

// TokenOwner returns the UID of the machine that a bootstrap token was made for,
// or "" if that is none of ours.
func TokenOwner(s *corev1.Secret) types.UID {
	if s == nil {
		return ""
	}
	return types.UID(s.Labels[TokenOwnerLabel])
}

// NewBootstrapToken returns the Secret of a new bootstrap token for a machine.
func NewBootstrapToken(m *v1alpha1.Machine, expires time.Time, groups []string, random io.Reader) (*corev1.Secret, error) {
	return nil, io.EOF
}

// dropTokens deletes the bootstrap tokens of a machine that does not need them any
// more.
func (l life) dropTokens() Decision { return Decision{} }
