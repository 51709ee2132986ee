// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/machinist-dev/machinist/drain"
	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// target is the cluster that the machines join.
type target struct {
	cluster.Cluster
	client kubernetes.Interface
	// The informers of drain/runner also know which changes continue a drain. Of what they list, the other
	// controllers read only Nodes.
	factory   informers.SharedInformerFactory
	informers *drainrunner.Informers
}

// newTarget adds the cluster that the machines join to a manager. It has a cache of its own: its Secrets are
// bootstrap tokens, and it may be another cluster than that of the manager.
func newTarget(ctx context.Context, mgr ctrl.Manager, config *rest.Config) (*target, error) {
	tokens, err := labels.Parse(v1alpha1.TokenOwnerLabel)
	if err != nil {
		return nil, err
	}
	joined, err := cluster.New(config, func(o *cluster.Options) {
		in := map[string]cache.Config{metav1.NamespaceSystem: {LabelSelector: tokens}}
		o.Cache = cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Namespaces: in}}}
	})
	if err != nil {
		return nil, err
	}
	t := &target{Cluster: joined}
	t.client, err = kubernetes.NewForConfigAndClient(config, joined.GetHTTPClient())
	if err = errors.Join(err, mgr.Add(joined), indexTarget(ctx, joined.GetFieldIndexer())); err != nil {
		return nil, err
	}
	t.factory = informers.NewSharedInformerFactoryWithOptions(t.client, 0, informers.WithTransform(cache.TransformStripManagedFields()))
	t.informers, err = drainrunner.NewInformers(t.factory, drain.SourceBudgets, drain.SourceClaims, drain.SourceAttachments)
	return t, err
}

// drained returns the source of the changes that continue a drain.
func (t *target) drained(r machinerunner.Reader) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		t.factory.Start(ctx.Done())
		t.factory.WaitForCacheSync(ctx.Done())
		return t.informers.OnChange(func(node string) {
			for _, key := range machinerunner.AffectedByDrain(ctx, r, node) {
				q.Add(reconcile.Request{NamespacedName: key})
			}
		})
	})
}
