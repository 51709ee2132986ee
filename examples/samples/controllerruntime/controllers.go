// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/machinist-dev/machinist"
	deploymentrunner "github.com/machinist-dev/machinist/deployment/runner"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	machineclient "github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	setrunner "github.com/machinist-dev/machinist/machineset/runner"
	"github.com/machinist-dev/machinist/safety"
	safetyrunner "github.com/machinist-dev/machinist/safety/runner"
)

// Config has what the controllers need in addition to a manager. All fields except Namespace are required.
type Config struct {
	// Namespace is the namespace of the machine objects and of the Secrets of their classes. Empty means all
	// namespaces.
	Namespace string
	// Target is the cluster that the machines join, which may be that of the manager.
	Target *rest.Config
	// Driver is the driver of the provider.
	Driver driver.Driver
	// Policy is that of the machines. The zero Policy has no timeouts.
	Policy machine.Policy
	// Orphans is the policy for VMs without a machine. The zero Policy deletes none.
	Orphans safety.Policy
}

// Add adds the controllers to a manager that has not been started. It fails if an API server does not answer,
// or does not serve the machine objects.
func Add(ctx context.Context, mgr ctrl.Manager, cfg Config) error {
	t, err := newTarget(mgr, cfg.Target)
	if err != nil {
		return err
	}
	machineClient, err := versioned.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	control, controlErr := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	target, targetErr := kubernetes.NewForConfigAndClient(cfg.Target, t.GetHTTPClient())
	err = errors.Join(err, controlErr, targetErr, v1alpha1.AddToScheme(mgr.GetScheme()), addIndexes(ctx, mgr.GetFieldIndexer(), t.GetFieldIndexer()))
	if err != nil {
		return err
	}
	r, sent := &reader{mgr.GetCache(), t.GetCache(), mgr.GetScheme()}, machineclient.New(machineClient, target)
	events := mgr.GetEventRecorderFor("machine-controller") //nolint:staticcheck // the roles of a manager have Events of the core group
	report := func(o runtime.Object, e machinist.Event) { events.Event(o, e.Type, string(e.Reason), e.Message) }
	prober := &safetyrunner.Prober{Requests: sent, Namespace: cfg.Namespace}
	var first sync.Once
	freeze := func() machine.Freeze {
		first.Do(func() { _, _ = prober.Reconcile(ctx) }) // before the first decision
		return prober.Freeze()
	}

	machines := &machinerunner.Executor{Reader: r, Requests: sent, Target: target, Driver: cfg.Driver, Policy: cfg.Policy, Freeze: freeze, Report: report}
	machines.Guard = &safetyrunner.Guard{Machines: machines, Policy: safety.DefaultGuardPolicy(), Began: time.Now(), Report: report}
	finalizers := &machinerunner.Finalizers{Reader: r, Requests: machineclient.New(machineClient, control), Namespace: cfg.Namespace}
	sets := &setrunner.Executor{Reader: r, Requests: sent, Freeze: freeze, Report: report}
	deployments := &deploymentrunner.Executor{Reader: r, Requests: sent, Freeze: freeze, Report: report}
	concerns := &safetyrunner.Executor{
		Reader: r, Requests: sent, Driver: cfg.Driver, Namespace: cfg.Namespace, Policy: cfg.Orphans, Overshoot: safety.DefaultOvershootPolicy(),
		Unmanaged: safety.UnmanagedPolicy{Timeout: cfg.Policy.CreationTimeout}, Freeze: freeze, Report: report,
	}

	m, set, d := &v1alpha1.Machine{}, &v1alpha1.MachineSet{}, &v1alpha1.MachineDeployment{}
	class, secret, node := &v1alpha1.MachineClass{}, &corev1.Secret{}, &corev1.Node{}
	drained := []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &policyv1.PodDisruptionBudget{}, &storagev1.VolumeAttachment{}}
	onConcern := func(_ context.Context, _ machinist.Reader, before, after metav1.Object) keys {
		all := keys{}
		for concern, wait := range concerns.Changed(before, after) {
			all[types.NamespacedName{Name: string(concern)}] = wait
		}
		return all
	}
	return errors.Join(
		cfg.add(mgr, r, "machine", machines.Reconcile, machinerunner.Affected, kinds{mgr: {m, class, secret}, t: append(drained, node, secret)}),
		cfg.add(mgr, r, "machineclass", finalizers.ReconcileClass, machinerunner.AffectedClasses, kinds{mgr: {class, m, set, d}}),
		cfg.add(mgr, r, "secret", finalizers.ReconcileSecret, machinerunner.AffectedSecrets, kinds{mgr: {secret, class}}),
		cfg.add(mgr, r, "machineset", sets.Reconcile, setrunner.Affected, kinds{mgr: {set, m}}),
		cfg.add(mgr, r, "machinedeployment", deployments.Reconcile, deploymentrunner.Affected, kinds{mgr: {d, set, m}, t: {node}}),
		cfg.add(mgr, r, "safety", func(ctx context.Context, key types.NamespacedName) (time.Time, error) {
			return concerns.Reconcile(ctx, safetyrunner.Concern(key.Name))
		}, onConcern, kinds{mgr: {class, m, set, d}, t: {node}}),
		cfg.add(mgr, r, "freeze", func(ctx context.Context, _ types.NamespacedName) (time.Time, error) { return prober.Reconcile(ctx) }, nil, nil,
			source.Func(func(_ context.Context, q queue) error {
				q.Add(reconcile.Request{})
				return nil
			})),
	)
}

type (
	// keys are the objects that a change affects, each with the time for which changes are collected.
	keys     = map[types.NamespacedName]time.Duration
	affected = func(ctx context.Context, r machinist.Reader, before, after metav1.Object) keys
	kinds    = map[cluster.Cluster][]client.Object
	queue    = workqueue.TypedRateLimitingInterface[reconcile.Request]
)

// add adds the controller of a kind. It makes a pass over the objects that a change affects.
func (cfg Config) add(
	mgr ctrl.Manager, r machinist.Reader, name string, pass func(context.Context, types.NamespacedName) (time.Time, error), f affected, watched kinds, more ...source.Source,
) error {
	retry := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, time.Minute)
	b := ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(controller.Options{RateLimiter: retry})
	for in, all := range watched {
		for _, kind := range all {
			more = append(more, source.Kind(in.GetCache(), kind, cfg.handler(r, f)))
		}
	}
	for _, s := range more {
		b = b.WatchesRawSource(s)
	}
	return b.Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		next, err := pass(ctx, r.NamespacedName)
		if err != nil || next.IsZero() {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: max(time.Second, time.Until(next))}, nil // passes never follow each other without a pause
	}))
}

// handler returns the handler of events that enqueues the objects which a change affects.
func (cfg Config) handler(r machinist.Reader, f affected) handler.EventHandler {
	changed := func(ctx context.Context, q queue, before, after metav1.Object) {
		for key, wait := range f(ctx, r, before, after) {
			if cfg.Namespace == "" || key.Namespace == "" || key.Namespace == cfg.Namespace { // a token or a class may name any
				q.AddAfter(reconcile.Request{NamespacedName: key}, wait)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if _, budget := e.Object.(*policyv1.PodDisruptionBudget); budget && e.IsInInitialList { // each reads the pods of its namespace
				return
			}
			changed(ctx, q, nil, e.Object)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { changed(ctx, q, e.Object, nil) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetUID() == e.ObjectNew.GetUID() {
				changed(ctx, q, e.ObjectOld, e.ObjectNew)
				return
			}
			changed(ctx, q, e.ObjectOld, nil) // another object with its name
			changed(ctx, q, nil, e.ObjectNew)
		},
	}
}
