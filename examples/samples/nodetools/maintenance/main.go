// SPDX-License-Identifier: Apache-2.0

// Command maintenance is an operator over controller-runtime. It drains a Node while an object NodeMaintenance
// of the same name exists, and uncordons the Node when that object is deleted.
//
//	kubectl apply -f maintenance/definition.yaml
//	maintenance
//	kubectl create -f - <<< '{"apiVersion": "example.com/v1", "kind": "NodeMaintenance", "metadata": {"name": "node-1"}}'
//
// The status has the outcome of the drain, and every pod that it waits for.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
)

const finalizer = "example.com/maintenance"

type reconciler struct {
	client.Client // from caches
	drains        runner.Executor
}

// Reconcile makes one pass over the drain of a Node.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	m := object()
	if err := r.Get(ctx, request.NamespacedName, m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if m.GetDeletionTimestamp() != nil {
		if err := r.drains.Uncordon(ctx, m.GetName(), "maintenance"); err != nil {
			return ctrl.Result{}, err
		}
		controllerutil.RemoveFinalizer(m, finalizer)
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, m))
	}
	if controllerutil.AddFinalizer(m, finalizer) {
		return ctrl.Result{}, r.Update(ctx, m) // which is an event
	}
	policy := drain.Policy{EvictUnmanaged: true, EvictLocalStorage: true, Reassert: true, Cordon: nodeops.Cordon{Owner: "maintenance"}}
	if seconds, set, _ := unstructured.NestedInt64(m.Object, "spec", "gracePeriodSeconds"); set {
		policy.Grace = new(time.Duration(seconds) * time.Second)
	}
	var state drain.State
	stored, _, _ := unstructured.NestedString(m.Object, "status", "state")
	_ = json.Unmarshal([]byte(stored), &state) // a lost state costs time
	in, err := runner.Observe(ctx, r.drains.Client, m.GetName(), policy, state)
	if err != nil {
		return ctrl.Result{}, err
	}
	state, decision, err := r.drains.Pass(ctx, state, in, policy, m.GetName())
	if err == nil {
		err = r.write(ctx, m, state, decision)
	}
	if err != nil || decision.Over() {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: max(time.Until(decision.NextCheck), time.Second)}, nil
}

// write writes the status: how the drain ended, or what it waits for.
func (r *reconciler) write(ctx context.Context, m *unstructured.Unstructured, state drain.State, d drain.Decision) error {
	text, _ := json.Marshal(state) //nolint:errchkjson // it is made for it
	waits := []any{}               // every pod, and what holds it
	for _, hold := range d.Holds() {
		waits = append(waits, hold.String())
	}
	status, before := map[string]any{"outcome": string(d.Outcome), "waitsFor": waits, "state": string(text)}, m.DeepCopy()
	if m.Object["status"] = status; reflect.DeepEqual(before.Object["status"], status) {
		return nil
	}
	return r.Status().Patch(ctx, m, client.MergeFrom(before))
}

func object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "NodeMaintenance"}}
}

func main() {
	ctrl.SetLogger(zap.New())
	config := ctrl.GetConfigOrDie()
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	check(err)
	live, err := client.New(config, client.Options{})
	check(err)
	ofNode := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: cmp.Or(o.(*corev1.Pod).Spec.NodeName, "none")}}} //nolint:forcetypeassert // see Watches
	})
	r := &reconciler{Client: manager.GetClient(), drains: runner.Executor{Client: requests{live}}}
	check(ctrl.NewControllerManagedBy(manager).Named("maintenance").For(object()).Watches(&corev1.Pod{}, ofNode).Complete(r))
	check(manager.Start(ctrl.SetupSignalHandler()))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
