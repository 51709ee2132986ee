// SPDX-License-Identifier: Apache-2.0

// Package worker deploys the machines of a worker pool.
package worker

import (
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machinescheme "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/scheme"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"
)

var builder = runtime.NewSchemeBuilder(
	kubernetesscheme.AddToScheme,
	machinev1alpha1.AddToScheme,
	machinescheme.AddToScheme,
)

// AddToScheme adds all kinds that this extension needs.
var AddToScheme = builder.AddToScheme

var decoder = machinescheme.Codecs.UniversalDeserializer()

// classes are the resources that clean-ups list.
var classes = machinev1alpha1.SchemeGroupVersion.WithResource("machineclasses")
