// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Config returns the config of a cluster admin, without limits by RBAC or by priority and fairness.
// The caller owns the copy. It stays valid when the API server restarts. Its rate limits are too
// high to matter in tests.
func (c *ControlPlane) Config() *rest.Config {
	if c.config == nil {
		return &rest.Config{}
	}
	return rest.CopyConfig(c.config)
}

// ServiceAccount is how to reach the API server as a service account, which must
// exist. It carries a token like those that pods get, good for a day, and the
// limits on requests that client-go has by default.
func (c *ControlPlane) ServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	if c.config == nil {
		return nil, ErrStopped
	}
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	day := int64(24 * 60 * 60)
	request, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("control plane: token of service account %s/%s: %w", namespace, name, err)
	}
	cfg := rest.AnonymousClientConfig(c.config)
	cfg.QPS, cfg.Burst = 0, 0
	cfg.BearerToken = request.Status.Token
	return cfg, nil
}

// Kubeconfig writes a config down as a kubeconfig file, for programs of their own
// and for kubectl. It knows certificates and tokens, as data or as files; limits
// on requests have no place in such a file.
func Kubeconfig(cfg *rest.Config) ([]byte, error) {
	if cfg == nil || cfg.Host == "" {
		return nil, errors.New("control plane: no kubeconfig without a server")
	}
	const name = "machinist"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server:                   cfg.Host,
			TLSServerName:            cfg.ServerName,
			InsecureSkipTLSVerify:    cfg.Insecure,
			CertificateAuthority:     cfg.CAFile,
			CertificateAuthorityData: cfg.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificate:     cfg.CertFile,
			ClientCertificateData: cfg.CertData,
			ClientKey:             cfg.KeyFile,
			ClientKeyData:         cfg.KeyData,
			Token:                 cfg.BearerToken,
			TokenFile:             cfg.BearerTokenFile,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
}
