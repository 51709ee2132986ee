// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	drivers "github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	tokenID     = "abc123"
	tokenSecret = "0123456789abcdef"
)

// tokenSecretOf returns the Secret of the token of the tests, which is valid for one minute.
func tokenSecretOf(edit func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + tokenID},
		Type:       "bootstrap.kubernetes.io/token",
		Data: map[string][]byte{
			"token-id": []byte(tokenID), "token-secret": []byte(tokenSecret), "usage-bootstrap-authentication": []byte("true"),
			"expiration": []byte(start.Add(time.Minute).Format(time.RFC3339)), "auth-extra-groups": []byte("system:bootstrappers:machines"),
		},
	}
	edit(s)
	return s
}

func TestToken_Join_NeedsAValidToken(t *testing.T) {
	tests := map[string]struct {
		token string
		edit  func(*corev1.Secret)
		says  string // the reason of the rejection; empty for a valid token
	}{
		"a good one":                           {edit: func(*corev1.Secret) {}},
		"one that never expires":               {edit: func(s *corev1.Secret) { delete(s.Data, "expiration") }},
		"one of no further group":              {edit: func(s *corev1.Secret) { delete(s.Data, "auth-extra-groups") }},
		"one that is not there":                {edit: func(s *corev1.Secret) { s.Name = "bootstrap-token-other1" }, says: "not found"},
		"one that stands in another namespace": {edit: func(s *corev1.Secret) { s.Namespace = "default" }, says: "not found"},
		"a secret of another type":             {edit: func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }, says: `of type "Opaque"`},
		"a secret that is being deleted":       {edit: func(s *corev1.Secret) { s.Finalizers = []string{"example.com/keep"} }, says: "being deleted"},
		"another id":                           {edit: func(s *corev1.Secret) { s.Data["token-id"] = []byte("other1") }, says: "the id of another"},
		"another secret":                       {edit: func(s *corev1.Secret) { s.Data["token-secret"] = []byte("fedcba9876543210") }, says: "it is another"},
		"one that is for signing":              {edit: func(s *corev1.Secret) { delete(s.Data, "usage-bootstrap-authentication") }, says: "not for authentication"},
		"one that expires just then": {edit: func(s *corev1.Secret) {
			s.Data["expiration"] = []byte(start.Add(10 * time.Second).Format(time.RFC3339))
		}, says: "expired"},
		"one that expires at no time":         {edit: func(s *corev1.Secret) { s.Data["expiration"] = []byte("soon") }, says: "expired at soon"},
		"one of a group that is not for it":   {edit: func(s *corev1.Secret) { s.Data["auth-extra-groups"] = []byte("system:masters") }, says: `group "system:masters"`},
		"a placeholder that was not replaced": {token: "<<BOOTSTRAP_TOKEN>>", edit: func(*corev1.Secret) {}, says: "is not a bootstrap token"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t)
			token := tokenID + "." + tokenSecret
			if test.token != "" {
				token = test.token
			}
			s.vms = []hollow.VM{{ProviderID: "vm-a", NodeName: "a", UpSince: start, Token: token}}
			secret := tokenSecretOf(test.edit)
			require.NoError(t, s.cluster.Add(secret))
			if len(secret.Finalizers) > 0 {
				require.NoError(t, s.client.CoreV1().Secrets(secret.Namespace).Delete(t.Context(), secret.Name, metav1.DeleteOptions{}))
			}
			s.clock.Step(10 * time.Second)
			err := s.nodes.Step(t.Context())
			if test.says == "" {
				require.NoError(t, err)
				require.Equal(t, []string{"a"}, s.nodeNames())
				return
			}
			require.ErrorContains(t, err, test.says)
			require.ErrorContains(t, err, "register node a")
			require.NotContains(t, err.Error(), tokenSecret, "errors hold no secrets")
			require.Empty(t, s.nodeNames())
		})
	}
}

func TestToken_Rejected_JoinIsRepeated(t *testing.T) {
	s := newHarness(t)
	s.vms = []hollow.VM{{ProviderID: "vm-a", NodeName: "a", UpSince: start, Token: tokenID + "." + tokenSecret}}
	s.clock.Step(20 * time.Second)
	require.Error(t, s.nodes.Step(t.Context()))
	require.NoError(t, s.cluster.Add(tokenSecretOf(func(*corev1.Secret) {})))
	s.steps(1)
	require.Equal(t, []string{"a"}, s.nodeNames())
}

func TestToken_AfterJoin_IsNotNeeded(t *testing.T) {
	s := newHarness(t)
	s.vms = []hollow.VM{{ProviderID: "vm-a", NodeName: "a", UpSince: start, Token: tokenID + "." + tokenSecret}}
	secret := tokenSecretOf(func(*corev1.Secret) {})
	require.NoError(t, s.cluster.Add(secret))
	s.steps(11)
	require.NoError(t, s.client.CoreV1().Secrets(secret.Namespace).Delete(t.Context(), secret.Name, metav1.DeleteOptions{}))
	require.NoError(t, s.client.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}))
	restart := func(id string) {
		s.vms[0].ProviderID, s.vms[0].UpSince = id, time.Time{}
		s.steps(1)
		s.vms[0].UpSince = s.clock.Now()
	}
	restart("vm-a")
	s.steps(11)
	require.Equal(t, []string{"a"}, s.nodeNames(), "the restarted kubelet has its certificate")

	require.NoError(t, s.client.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}))
	restart("vm-b")
	s.clock.Step(time.Minute)
	require.ErrorContains(t, s.nodes.Step(t.Context()), "not found", "another VM has another token")
	require.Empty(t, s.nodeNames())
}

func TestToken_UserData_TokenIsFound(t *testing.T) {
	cloud := drivertest.NewCloud(drivertest.CloudOptions{})
	h := cloud.Harness()
	vms := hollow.VMsOf(cloud)
	for userData, token := range map[string]string{
		"#!/bin/sh\necho hello":                           "",
		"join --token abc123.0123456789abcdef now":        tokenID + "." + tokenSecret,
		"join?token=abc123.0123456789abcdef&ca=x":         tokenID + "." + tokenSecret,
		"join --token abc123.0123456789abcdef0 in vain":   "",
		"the host abc123.example":                         "",
		"join --token <<BOOTSTRAP_TOKEN>>":                "<<BOOTSTRAP_TOKEN>>",
		"join?token=%3C%3CBOOTSTRAP_TOKEN%3E%3E&ca=x":     "<<BOOTSTRAP_TOKEN>>",
		"<<BOOTSTRAP_TOKEN>> or abc123.0123456789abcdef?": "<<BOOTSTRAP_TOKEN>>",
	} {
		secret := h.Secret.DeepCopy()
		secret.Data["userData"] = []byte(userData)
		made, err := cloud.CreateMachine(t.Context(), &drivers.CreateMachineRequest{
			Machine: &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", UID: "1"}}, MachineClass: h.MachineClass, Secret: secret,
		})
		require.NoError(t, err)
		for range 2 { // user data is read once
			all := vms()
			require.Len(t, all, 1)
			require.Equal(t, token, all[0].Token, userData)
		}
		cloud.Terminate(made.ProviderID)
		require.Empty(t, vms())
	}
}
