// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/nodeops"
)

const (
	// ReadTimeout is the deadline of a read from an API server that may not answer.
	ReadTimeout = 5 * time.Second
	// TargetRetry is the delay of the next read after the target cluster did not answer.
	TargetRetry = 10 * time.Second
)

// Target reads Nodes from the API server of the target cluster. After a read without an answer it
// reads nothing for [TargetRetry], so that not every machine waits for a timeout. It is safe for
// concurrent use.
type Target struct {
	mu    sync.Mutex
	until time.Time
}

// answers reports whether the target cluster may be read now.
func (t *Target) answers(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !now.Before(t.until)
}

// Node reads a Node by its name, or by the provider ID if the name is empty. If there is no answer, the
// view is Unanswered and the error says why.
func (t *Target) Node(ctx context.Context, r machinist.Requests, providerID, name string, now time.Time) (machine.NodeView, error) {
	if !t.answers(now) {
		return machine.NodeView{Name: name, Unanswered: true}, nil
	}
	bounded, cancel := context.WithTimeout(ctx, ReadTimeout)
	defer cancel()
	node, err := readNode(bounded, r, providerID, name)
	if err != nil {
		if ctx.Err() == nil {
			t.mu.Lock()
			t.until = now.Add(TargetRetry)
			t.mu.Unlock()
		}
		return machine.NodeView{Name: name, Unanswered: true}, err
	}
	return machine.NodeView{Looked: true, Name: name, Node: node, AsOf: now}, nil
}

// readNode reads a Node by its name, or the only Node with a provider ID if the name is empty. It returns nil
// if there is none, or if there are several with the provider ID.
func readNode(ctx context.Context, r machinist.Requests, providerID, name string) (*corev1.Node, error) {
	if name != "" {
		return objects.Get[*corev1.Node](ctx, r, "", name)
	}
	nodes, err := List[*corev1.Node](ctx, r, "", nil)
	if err != nil {
		return nil, err
	}
	id := nodeops.NormalizeProviderID(providerID)
	nodes = slices.DeleteFunc(nodes, func(node *corev1.Node) bool {
		return id == "" || nodeops.NormalizeProviderID(node.Spec.ProviderID) != id
	})
	if len(nodes) != 1 {
		return nil, nil
	}
	return nodes[0], nil
}
