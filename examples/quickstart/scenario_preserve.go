// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// isPreserved preserves a machine when it fails, makes it fail, and releases it. Meanwhile it
// preserves another machine until the preservation expires. The chapter takes the grace period of
// Nodes, the health timeout, a drain by force, a creation, and at least the preserve timeout.
func (s *scenario) isPreserved() chapter {
	var kept, timed *v1alpha1.Machine
	return chapter{
		title: "preserve a machine that fails, and release it",
		do: func(ctx context.Context) error {
			found, err := s.running(ctx, 2)
			if err != nil {
				return err
			}
			kept, timed = found[0], found[1]
			return s.keepAndRelease(ctx, kept, timed)
		},
		until: func(ctx context.Context) (string, error) {
			if there, err := s.isThere(ctx, kept.Name); err != nil || there {
				return fmt.Sprintf("machine %s is not replaced", kept.Name), err
			}
			m, err := s.w.machines.MachineV1alpha1().Machines(timed.Namespace).Get(ctx, timed.Name, metav1.GetOptions{})
			if err != nil || m.Status.CurrentStatus.PreserveExpiryTime != nil {
				return fmt.Sprintf("machine %s is preserved", timed.Name), err
			}
			return s.allRunning(ctx)
		},
		facts: func(lifecycles []*lifecycle) ([]string, error) {
			if kept == nil || timed == nil {
				return nil, errors.New("no machine was preserved")
			}
			lasted, err := timeRanOut(lifecycleOf(lifecycles, timed.Name))
			if err != nil {
				return nil, err
			}
			if err := spared(s.w.target.History(), timed.Labels[v1alpha1.NodeLabelKey]); err != nil {
				return nil, err
			}
			stayed, err := keptUntilReleased(lifecycles, lifecycleOf(lifecycles, kept.Name))
			return []string{lasted, stayed}, err
		},
	}
}

// keepAndRelease preserves two machines, and releases one of them after it has failed.
func (s *scenario) keepAndRelease(ctx context.Context, kept, timed *v1alpha1.Machine) error {
	if err := s.preserveNode(ctx, timed.Labels[v1alpha1.NodeLabelKey], v1alpha1.PreserveMachineAnnotationValueNow); err != nil {
		return err
	}
	if err := s.preserve(ctx, kept, v1alpha1.PreserveMachineAnnotationValueWhenFailed); err != nil {
		return err
	}
	s.silence(kept)
	if err := s.wait(ctx, func(ctx context.Context) (string, error) { return s.failedAndKept(ctx, kept) }); err != nil {
		return err
	}
	s.progress.line(fmt.Sprintf("machine %s has failed and is preserved", kept.Name))
	if err := s.look(ctx); err != nil {
		return err
	}
	return s.preserve(ctx, kept, v1alpha1.PreserveMachineAnnotationValueFalse)
}

// keptUntilReleased checks that a failed machine stayed, and was replaced only after
// its release was requested.
func keptUntilReleased(lifecycles []*lifecycle, l *lifecycle) (string, error) {
	next := replacement(lifecycles, l.failed)
	switch {
	case l.failed.never() || l.preserved.never():
		return "", fmt.Errorf("machine %s did not fail and was not preserved", l.name)
	case l.letGo.never() || !l.failed.before(l.letGo):
		return "", fmt.Errorf("machine %s was not released after it failed", l.name)
	case !l.letGo.before(l.deleted) || l.gone.never():
		return "", fmt.Errorf("machine %s was not deleted after it was released", l.name)
	case next == nil || !l.letGo.before(next.made):
		return "", fmt.Errorf("machine %s was not replaced after it was released", l.name)
	}
	return fmt.Sprintf("machine %s: Failed, preserved for %s, deleted %s after its release, and replaced by %s",
		l.name, after(l.failed.at, l.letGo.at), after(l.letGo.at, l.deleted.at), next.name), nil
}

// timeRanOut checks that a machine was preserved until the preservation expired, and stayed.
func timeRanOut(l *lifecycle) (string, error) {
	switch {
	case l.preserved.never() || l.released.never():
		return "", fmt.Errorf("machine %s was not preserved for a time", l.name)
	case l.released.at.Before(l.until):
		return "", fmt.Errorf("machine %s was released %s before its time", l.name, after(l.released.at, l.until))
	case !l.unknown.never() || !l.deleted.never():
		return "", fmt.Errorf("machine %s did not stay Running", l.name)
	}
	return fmt.Sprintf("machine %s: preserved for %s with scale-down disabled on its Node; then the preservation expired, and the machine is still Running", l.name, after(l.preserved.at, l.released.at)), nil
}

// spared checks that a Node had the annotation that disables scale-down, and lost it.
func spared(history []draintest.Write, name string) error {
	is, was := false, false
	for _, w := range history {
		if node, ok := w.After.(*corev1.Node); ok && node.Name == name {
			is = node.Annotations[v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey] == "true"
			was = was || is
		}
	}
	switch {
	case !was:
		return fmt.Errorf("node %s did not get the annotation that disables scale-down", name)
	case is:
		return fmt.Errorf("node %s still has the annotation that disables scale-down", name)
	}
	return nil
}

// failedAndKept returns what is missing until a machine has failed and is preserved.
func (s *scenario) failedAndKept(ctx context.Context, m *v1alpha1.Machine) (string, error) {
	m, err := s.w.machines.MachineV1alpha1().Machines(m.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return "machine that is to be preserved", err
	}
	now := m.Status.CurrentStatus
	if now.Phase != v1alpha1.MachineFailed || now.PreserveExpiryTime == nil {
		return fmt.Sprintf("machine %s is %s and not preserved", m.Name, now.Phase), nil
	}
	return "", nil
}

// preserve sets the preserve annotation of a machine.
func (s *scenario) preserve(ctx context.Context, m *v1alpha1.Machine, value string) error {
	s.progress.line(fmt.Sprintf("machine %s: preserve=%s", m.Name, value))
	api := s.w.machines.MachineV1alpha1().Machines(m.Namespace)
	_, err := again(func() (*v1alpha1.Machine, error) {
		current, err := api.Get(ctx, m.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		metav1.SetMetaDataAnnotation(&current.ObjectMeta, v1alpha1.PreserveMachineAnnotationKey, value)
		return api.Update(ctx, current, metav1.UpdateOptions{})
	})
	return err
}

// preserveNode sets the preserve annotation of a Node.
func (s *scenario) preserveNode(ctx context.Context, name, value string) error {
	s.progress.line(fmt.Sprintf("Node %s: preserve=%s", name, value))
	api := s.w.nodes.CoreV1().Nodes()
	_, err := again(func() (*corev1.Node, error) {
		current, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		metav1.SetMetaDataAnnotation(&current.ObjectMeta, v1alpha1.PreserveMachineAnnotationKey, value)
		return api.Update(ctx, current, metav1.UpdateOptions{})
	})
	return err
}
