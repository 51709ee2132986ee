// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// newTarget adds the cluster that the machines join to a manager. It has a cache of its own: its Secrets are
// bootstrap tokens, and it may be another cluster than that of the manager.
func newTarget(mgr ctrl.Manager, config *rest.Config) (cluster.Cluster, error) {
	tokens, err := labels.Parse(v1alpha1.TokenOwnerLabel)
	if err != nil {
		return nil, err
	}
	joined, err := cluster.New(config, func(o *cluster.Options) {
		in := map[string]cache.Config{metav1.NamespaceSystem: {LabelSelector: tokens}}
		o.Cache = cache.Options{DefaultTransform: machinerunner.Trim, ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Namespaces: in}}}
	})
	if err != nil {
		return nil, err
	}
	return joined, mgr.Add(joined)
}
