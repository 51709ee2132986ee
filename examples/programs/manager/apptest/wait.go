// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// condition returns what is missing until it holds, and "" when it does. An error means that nothing is known, and is
// asked again.
type condition func(ctx context.Context) (missing string, err error)

// wait waits until a condition holds. It gives up at the Timeout, at the end of ctx, and when a controller has ended. The error says what it
// waited for, what is missing, and how machines and Nodes are.
func (s *Suite) wait(ctx context.Context, what string, holds condition) error {
	began, missing := time.Now(), ""
	err := wait.PollUntilContextTimeout(ctx, s.o.Interval, s.o.Timeout, true, func(ctx context.Context) (bool, error) {
		state, err := holds(ctx)
		if err != nil && ctx.Err() == nil {
			state = err.Error()
		}
		if state != "" {
			missing = state
		}
		if err == nil && state == "" {
			return true, nil
		}
		return false, s.ended()
	})
	if err == nil {
		return nil
	}
	if wait.Interrupted(err) {
		err = ctx.Err()
	}
	failed := fmt.Errorf("waited %s for %s: %s\n%s", time.Since(began).Round(time.Second), what, missing, s.describe(context.WithoutCancel(ctx)))
	return errors.Join(failed, err)
}

// ended returns an error if a controller has ended.
func (s *Suite) ended() error {
	for _, c := range s.controllers {
		if err := c.ended(); err != nil {
			return err
		}
	}
	return nil
}

// Healthy waits until all Nodes of the target cluster are ready. It fails at once if a controller has ended. It is called before each check.
func (s *Suite) Healthy(ctx context.Context) error {
	if s == nil {
		return errNotOpen
	}
	if err := s.ended(); err != nil {
		return err
	}
	return s.wait(ctx, "all Nodes to be ready", func(ctx context.Context) (string, error) {
		nodes, err := s.nodes(ctx)
		return unready(nodes), err
	})
}

func (s *Suite) nodes(ctx context.Context) ([]corev1.Node, error) {
	list, err := s.target.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// unready names the Nodes that are not ready, or returns "".
func unready(nodes []corev1.Node) string {
	var names []string
	for _, n := range nodes {
		if !ready(&n) {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "Nodes that are not ready: " + strings.Join(names, ", ")
}

func ready(n *corev1.Node) bool {
	c := nodeops.GetCondition(n, corev1.NodeReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// describe shows the machines of the namespace, and the Nodes that are new.
func (s *Suite) describe(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var b strings.Builder
	machines, err := s.machines.MachineV1alpha1().Machines(s.o.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(&b, "machines: %v\n", err)
	} else {
		fmt.Fprintf(&b, "%d machines\n", len(machines.Items))
		for i := range machines.Items {
			b.WriteString(describeMachine(&machines.Items[i]))
		}
	}
	nodes, err := s.nodes(ctx)
	if err != nil {
		fmt.Fprintf(&b, "Nodes: %v\n", err)
		return b.String()
	}
	fmt.Fprintf(&b, "%d Nodes, before the check %d", len(nodes), len(s.first))
	for _, n := range nodes {
		if !s.first[n.Name] {
			fmt.Fprintf(&b, "\n  Node %s: ready %t, providerID %q", n.Name, ready(&n), n.Spec.ProviderID)
		}
	}
	return b.String()
}

func describeMachine(m *v1alpha1.Machine) string {
	deleted, last := "", m.Status.LastOperation
	if m.DeletionTimestamp != nil {
		deleted = ", is being deleted"
	}
	return fmt.Sprintf("  machine %s: phase %q, class %s, Node %q%s; %s %s %s: %s\n", m.Name, m.Status.CurrentStatus.Phase, m.Spec.Class.Name,
		m.Labels[v1alpha1.NodeLabelKey], deleted, last.Type, last.State, last.ErrorCode, last.Description)
}
