// SPDX-License-Identifier: Apache-2.0

package main

import apierrors "k8s.io/apimachinery/pkg/api/errors"

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
