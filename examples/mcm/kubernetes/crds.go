// SPDX-License-Identifier: Apache-2.0

// Package kubernetes has the CustomResourceDefinitions of the machine objects.
package kubernetes

import "embed"

// CRDs has the definitions as crds/*.yaml. They are those of package v1alpha1 of the SDK.
//
//go:embed crds/*.yaml
var CRDs embed.FS
