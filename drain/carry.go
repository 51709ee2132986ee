// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Result is what one request of a round came to.
type Result struct {
	// Row that was carried out.
	Row Row
	// Err of the API server, or nil.
	Err error
}

// CordonError says that a Node could not be cordoned.
type CordonError struct {
	// Node is its name.
	Node string
	// Err of the API server.
	Err error
}

// Error returns the name of the Node and what the API server said.
func (e *CordonError) Error() string { return fmt.Sprintf("cordon node %s: %v", e.Node, e.Err) }

// Unwrap returns what the API server said.
func (e *CordonError) Unwrap() error { return e.Err }

// Carry carries out one round of a plan: it cordons the Node, then evicts and
// deletes pods one after the other, each by its UID. It makes one request for
// each, waits for nothing but the answers, and starts nothing that outlives it.
//
// The error is a *[CordonError] if the Node could not be cordoned: then no pod was
// evicted, since it might come back, but those to be deleted were, since the time
// for caution is over. A Node that is gone needs no cordon. If the context ends,
// no more is done, and its error is returned. What was done is returned beside
// any error; what the API server said about a pod is in its [Result] alone.
func Carry(ctx context.Context, client kubernetes.Interface, plan Plan) ([]Result, error) {
	if client == nil {
		return nil, errors.New("drain: no client")
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("drain: %w", err)
	}
	cordoned := cordon(ctx, client, plan)
	var results []Result
	for _, row := range plan.Rows {
		if row.Verdict.strength() == 0 || row.Verdict == Evict && cordoned != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return results, errors.Join(cordoned, fmt.Errorf("drain: %w", err))
		}
		ask := deletePod
		if row.Verdict == Evict {
			ask = evict
		}
		results = append(results, Result{Row: row, Err: ask(ctx, client, row)})
	}
	return results, cordoned
}

func cordon(ctx context.Context, client kubernetes.Interface, plan Plan) error {
	if plan.Cordon == "" {
		return nil
	}
	type fields map[string]any
	body := fields{"spec": fields{"unschedulable": true}}
	if plan.CordonUID != "" {
		body["metadata"] = fields{"uid": plan.CordonUID}
	}
	patch, err := json.Marshal(body)
	if err == nil {
		_, err = client.CoreV1().Nodes().Patch(ctx, plan.Cordon, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	}
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return &CordonError{Node: plan.Cordon, Err: err}
}

func evict(ctx context.Context, client kubernetes.Interface, row Row) error {
	return client.CoreV1().Pods(row.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: row.Namespace, Name: row.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(row.UID))},
	})
}

func deletePod(ctx context.Context, client kubernetes.Interface, row Row) error {
	return client.CoreV1().Pods(row.Namespace).Delete(ctx, row.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(graceOf(row.Verdict)),
		Preconditions:      metav1.NewUIDPreconditions(string(row.UID)),
	})
}
