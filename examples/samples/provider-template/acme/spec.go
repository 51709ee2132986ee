// SPDX-License-Identifier: Apache-2.0

package acme

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Provider is the value of MachineClass.provider.
const Provider = "Acme"

// ProviderSpec is MachineClass.providerSpec.
type ProviderSpec struct {
	// Endpoint is the URL of the cloud.
	Endpoint string `json:"endpoint"`
	// Project of the servers.
	Project string `json:"project"`
	// Cluster is the mark of the servers of one cluster. Servers with another mark are ignored.
	// It is unique in a project.
	Cluster string `json:"cluster"`
	// ServerType and Image of the servers.
	ServerType string `json:"serverType"`
	Image      string `json:"image"`
}

// The keys of the Secret.
const (
	// TokenKey is the key of the credential.
	TokenKey = "token"
	// UserDataKey is the key of the user data of the machine.
	UserDataKey = "userData"
)

// specOf returns the provider specification of a class, or an error for an invalid class or Secret.
func specOf(class *v1alpha1.MachineClass, secret *corev1.Secret) (ProviderSpec, error) {
	var spec ProviderSpec
	switch {
	case class == nil:
		return spec, status.Error(codes.InvalidArgument, "the request has no machine class")
	case class.Provider != Provider:
		return spec, status.Error(codes.InvalidArgument, fmt.Sprintf("machine class %s has provider %q, want %q", class.Name, class.Provider, Provider))
	case secret == nil || len(secret.Data[TokenKey]) == 0:
		return spec, status.Error(codes.InvalidArgument, fmt.Sprintf("the secret of machine class %s has no key %q", class.Name, TokenKey))
	}
	if err := yaml.UnmarshalStrict(class.ProviderSpec.Raw, &spec); err != nil {
		return spec, status.WrapError(codes.InvalidArgument, fmt.Sprintf("providerSpec of machine class %s: %v", class.Name, err), err)
	}
	var wrong []string
	if u, err := url.Parse(spec.Endpoint); err != nil || u.Scheme == "" || u.Host == "" {
		wrong = append(wrong, "endpoint: must be a URL")
	}
	for field, value := range map[string]string{"project": spec.Project, "cluster": spec.Cluster, "serverType": spec.ServerType, "image": spec.Image} {
		if value == "" {
			wrong = append(wrong, field+": is required")
		}
	}
	if len(wrong) > 0 {
		return spec, status.Error(codes.InvalidArgument, fmt.Sprintf("providerSpec of machine class %s: %s", class.Name, strings.Join(wrong, ", ")))
	}
	return spec, nil
}
