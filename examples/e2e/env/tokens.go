// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// tokenText is a bootstrap token as it stands in user data.
var tokenText = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)

// TokenOf returns the bootstrap token in the user data of the VM of a machine, and
// nothing if there is none.
func (s *Env) TokenOf(machine string) string {
	for _, vm := range s.Cloud.Snapshot().Of(machine).VMs {
		if token := tokenText.Find(s.Cloud.UserData(vm.ProviderID)); token != nil {
			return string(token)
		}
	}
	return ""
}

// Tokens returns the bootstrap tokens in the cluster that were made for machines
// which the environment has, or has had.
func (s *Env) Tokens(ctx context.Context) ([]corev1.Secret, error) {
	list, err := s.Client.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.TokenOwnerLabel})
	if err != nil {
		return nil, err
	}
	ours := map[types.UID]bool{}
	for _, c := range s.AuditLog().Changes {
		if m, ok := c.Object.(*v1alpha1.Machine); ok {
			ours[m.UID] = true
		}
	}
	return slices.DeleteFunc(list.Items, func(t corev1.Secret) bool { return !ours[types.UID(t.Labels[v1alpha1.TokenOwnerLabel])] }), nil
}

// overhear remembers the secret part of every token that a VM is made with.
func (s *Env) overhear(e drivertest.Event) {
	if e.Kind != drivertest.VMCreated {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, token := range tokenText.FindAll(s.Cloud.UserData(e.VM.ProviderID), -1) {
		_, secret, _ := strings.Cut(string(token), ".")
		s.secrets = append(s.secrets, secret)
	}
}

// leaked reports whether a text holds a secret of the environment.
func (s *Env) leaked(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.secrets, func(secret string) bool { return secret != "" && strings.Contains(text, secret) })
}
