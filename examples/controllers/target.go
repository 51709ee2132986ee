// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/nodeops"
)

// readTimeout is the deadline of a read from an API server that may not answer.
const readTimeout = 5 * time.Second

// targetRetry is the delay of the next read after the target cluster did not answer.
const targetRetry = 10 * time.Second

// targetOutage records that the target cluster did not answer, so that not every machine waits for
// a timeout. It is safe for several goroutines.
type targetOutage struct {
	mu    sync.Mutex
	until time.Time
}

// over reports whether the target cluster may be read now.
func (s *targetOutage) over(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !now.Before(s.until)
}

func (s *targetOutage) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = now.Add(targetRetry)
}

// node reads a Node from the API server, by its name, or by the provider ID if the name is empty.
// If there is no answer, the view is Unanswered and the error says why.
func (s *targetOutage) node(ctx context.Context, cfg *Config, providerID, name string) (machine.NodeView, error) {
	asked := cfg.Clock.Now()
	if !s.over(asked) {
		return machine.NodeView{Name: name, Unanswered: true}, nil
	}
	look, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	node, err := readNode(look, cfg, providerID, name)
	if err != nil {
		if ctx.Err() == nil {
			s.begin(asked)
		}
		return machine.NodeView{Name: name, Unanswered: true}, err
	}
	return machine.NodeView{Looked: true, Name: name, Node: node, AsOf: asked}, nil
}

// lookForNode reads a Node from the API server and puts it into the observation.
func (r *machineReconciler) lookForNode(ctx context.Context, in *machine.Observation, a machinist.Refresh) error {
	view, err := r.outage.node(ctx, r.cfg, in.Machine.Spec.ProviderID, a.Name)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		r.cfg.note(Note{Kind: r.kind, Key: in.Machine.Namespace + "/" + in.Machine.Name, Text: a.String(), Acts: true, Err: err})
	}
	if view.Unanswered {
		in.Node.Unanswered = true
		return nil
	}
	in.Node = view
	if view.Node != nil {
		r.writtenNode.put(view.Node)
	}
	return nil
}

// readNode reads a Node by its name, or by its provider ID if the name is empty. It returns nil if
// there is none.
func readNode(ctx context.Context, cfg *Config, providerID, name string) (*corev1.Node, error) {
	if name != "" {
		node, err := cfg.Target.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, ignoreNotFound(err)
		}
		return node, nil
	}
	list, err := cfg.Target.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	id := nodeops.NormalizeProviderID(providerID)
	for i := range list.Items {
		if id != "" && nodeops.NormalizeProviderID(list.Items[i].Spec.ProviderID) == id {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}
