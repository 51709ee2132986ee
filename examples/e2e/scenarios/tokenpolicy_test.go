// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
)

// systemSecrets returns the secrets of kube-system as a service account sees them.
func systemSecrets(t *testing.T, namespace, account string) typedcorev1.SecretInterface {
	t.Helper()
	config, err := cluster.ControlPlane.ServiceAccount(t.Context(), namespace, account)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client.CoreV1().Secrets(metav1.NamespaceSystem)
}

// mint is a secret from which the token of a service account can be read.
func mint(name, account string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: account}}, Type: corev1.SecretTypeServiceAccountToken,
	}
}

// unrestrictedAccount makes a service account with the rights of the manager in kube-system,
// which no policy restricts.
func unrestrictedAccount(t *testing.T, s *env.Env) typedcorev1.SecretInterface {
	t.Helper()
	ctx, name := t.Context(), "unrestricted"
	_, err := s.Client.CoreV1().ServiceAccounts(s.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.Client.RbacV1().RoleBindings(metav1.NamespaceSystem).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "machinist:" + s.Namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return systemSecrets(t, s.Namespace, name)
}

func TestManager_SecretsOfKubeSystem_OnlyBootstrapTokens(t *testing.T) {
	t.Parallel()
	o := fastOptions()
	o.AllowDenied = func(r controlplane.Request) bool { // the attack
		return r.Code == http.StatusForbidden && r.Resource == "secrets" && r.Namespace == metav1.NamespaceSystem
	}
	s := cluster.Set(t, "tokens-only", o)
	ctx := t.Context()
	secrets, unrestricted := systemSecrets(t, s.ManagerNamespace(), manifests.ServiceAccount), unrestrictedAccount(t, s)
	all := s.Client.CoreV1().Secrets(metav1.NamespaceSystem)
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	s.Wait(t, patience, "the policy is in force", func(ctx context.Context) (string, error) {
		_, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "probe-" + s.Namespace}}, dry)
		if apierrors.IsForbidden(err) {
			return "", nil
		}
		return "any secret may be made", err
	})

	const privileged = "default" // any name in kube-system serves: the secret is made before its account is looked at
	minted := "minted-" + s.Namespace
	_, err := unrestricted.Create(ctx, mint(minted, privileged), metav1.CreateOptions{})
	require.NoError(t, err, "the role alone allows the attack")
	s.Wait(t, patience, "a token is minted", func(ctx context.Context) (string, error) {
		secret, err := all.Get(ctx, minted, metav1.GetOptions{})
		if err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
			return "no token yet", nil
		}
		return "", err
	})

	token := "bootstrap-token-" + "abc" + s.Namespace[len(s.Namespace)-3:]
	for name, secret := range map[string]*corev1.Secret{
		"a token of a service account":      mint("other-"+s.Namespace, privileged),
		"one with the name of a token":      mint(token, privileged),
		"another type":                      {ObjectMeta: metav1.ObjectMeta{Name: token}},
		"another name":                      {ObjectMeta: metav1.ObjectMeta{Name: "other-" + s.Namespace}, Type: corev1.SecretTypeBootstrapToken},
		"another name, made by the server":  {ObjectMeta: metav1.ObjectMeta{GenerateName: "other-"}, Type: corev1.SecretTypeBootstrapToken},
		"a service account token, likewise": {ObjectMeta: metav1.ObjectMeta{GenerateName: "bootstrap-token-", Annotations: mint("", privileged).Annotations}, Type: corev1.SecretTypeServiceAccountToken},
	} {
		_, err := secrets.Create(ctx, secret, metav1.CreateOptions{})
		require.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "only write bootstrap tokens", name)
	}
	err = secrets.Delete(ctx, minted, metav1.DeleteOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "only change and delete bootstrap tokens")
	require.NoError(t, all.Delete(ctx, minted, metav1.DeleteOptions{}))

	_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: token}, Type: corev1.SecretTypeBootstrapToken}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, secrets.Delete(ctx, token, metav1.DeleteOptions{}))
}
