// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// secretReader reads a Secret.
type secretReader func(namespace, name string) (*corev1.Secret, error)

// mergedSecret returns the merged data of the Secrets of a class, and their resource versions. With an error, it returns the
// data of those Secrets that it could read.
func mergedSecret(class *v1alpha1.MachineClass, read secretReader) (*corev1.Secret, error) {
	merged := &corev1.Secret{}
	var missing []error
	for _, ref := range machine.SecretRefs(class) { // user data comes first
		secret, err := read(ref.Namespace, ref.Name)
		if err != nil {
			missing = append(missing, fmt.Errorf("secret %s/%s of class %s: %w", ref.Namespace, ref.Name, class.Name, err))
			continue
		}
		merged.Data = machine.MergeSecrets(merged.Data, secret.Data)
		merged.ResourceVersion += "/" + secret.ResourceVersion
	}
	return merged, errors.Join(missing...)
}
