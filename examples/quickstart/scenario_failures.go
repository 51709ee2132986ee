// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// neverJoins starts the VM of one of the added machines without a kubelet. The chapter takes the
// creation timeout and two creations.
func (s *scenario) neverJoins() chapter {
	return chapter{
		title: fmt.Sprintf("scale up by %d, one of which never joins", more),
		do: func(ctx context.Context) error {
			s.w.kubelets.SilenceNext(1)
			return s.scale(ctx)
		},
		until: s.allRunning,
		facts: func(lifecycles []*lifecycle) ([]string, error) {
			silent := s.w.kubelets.Silent()
			if len(silent) != 1 {
				return nil, fmt.Errorf("VMs without a kubelet: %q, want one", silent)
			}
			i := slices.IndexFunc(lifecycles, func(l *lifecycle) bool { return l.node == silent[0] })
			if i < 0 {
				return nil, fmt.Errorf("no machine has the Node %s", silent[0])
			}
			return neverJoined(lifecycles, lifecycles[i])
		},
	}
}

// neverJoined checks that a machine failed because it did not join, and was replaced.
func neverJoined(lifecycles []*lifecycle, l *lifecycle) ([]string, error) {
	next := replacement(lifecycles, l.failed)
	switch {
	case !l.running.never():
		return nil, fmt.Errorf("machine %s has joined", l.name)
	case l.failed.never() || !strings.Contains(l.why, "failed to join"):
		return nil, fmt.Errorf("machine %s did not fail by the creation timeout (%q)", l.name, l.why)
	case !l.failed.before(l.deleted) || l.gone.never():
		return nil, fmt.Errorf("machine %s was not deleted after it failed", l.name)
	case next == nil:
		return nil, fmt.Errorf("machine %s was not replaced", l.name)
	}
	return []string{fmt.Sprintf("machine %s never joined: Failed %s after its creation, replaced by %s",
		l.name, after(l.created, l.failed.at), next.name)}, nil
}

// after returns the rounded time between two times.
func after(from, to time.Time) time.Duration { return to.Sub(from).Round(100 * time.Millisecond) }

// fallsSilent makes two Nodes silent at once. The chapter takes the grace period of Nodes, the
// health timeout, and two times a drain by force and a creation.
func (s *scenario) fallsSilent() chapter {
	var names []string
	var since time.Time
	return chapter{
		title: "two Nodes become silent at once",
		do: func(ctx context.Context) error {
			victims, err := s.running(ctx, 2)
			since = s.w.clock.Now()
			for _, m := range victims {
				names = append(names, m.Name)
				s.silence(m)
			}
			return err
		},
		until: func(ctx context.Context) (string, error) {
			for _, name := range names {
				if there, err := s.isThere(ctx, name); err != nil || there {
					return fmt.Sprintf("machine %s is not replaced", name), err
				}
			}
			return s.allRunning(ctx)
		},
		facts: func(lifecycles []*lifecycle) ([]string, error) {
			if len(names) != 2 {
				return nil, fmt.Errorf("machines with silent Nodes: %q, want two", names)
			}
			first, second := lifecycleOf(lifecycles, names[0]), lifecycleOf(lifecycles, names[1])
			if second.failed.before(first.failed) {
				first, second = second, first
			}
			return oneAtATime(lifecycles, first, second, since)
		},
	}
}

// oneAtATime checks that the second machine failed only after the first was removed and its
// replacement was Running.
func oneAtATime(lifecycles []*lifecycle, first, second *lifecycle, since time.Time) ([]string, error) {
	next := replacement(lifecycles, first.failed)
	switch {
	case first.unknown.never() || second.unknown.never():
		return nil, fmt.Errorf("machines %s and %s were not both Unknown", first.name, second.name)
	case first.failed.never() || second.failed.never():
		return nil, fmt.Errorf("machines %s and %s have not both failed", first.name, second.name)
	case next == nil:
		return nil, fmt.Errorf("machine %s was not replaced", first.name)
	case !first.gone.before(second.failed) || !next.running.before(second.failed):
		return nil, fmt.Errorf("machine %s failed although the replacement of %s, %s, was not Running yet", second.name, first.name, next.name)
	case second.gone.never() || replacement(lifecycles, second.failed) == nil:
		return nil, fmt.Errorf("machine %s was not replaced", second.name)
	}
	return []string{
		fmt.Sprintf("machines %s and %s: both Unknown after %s", first.name, second.name, after(since, latest(first.unknown.at, second.unknown.at))),
		fmt.Sprintf("machine %s: Failed after %s; its replacement %s was Running after %s",
			first.name, after(since, first.failed.at), next.name, after(since, next.running.at)),
		fmt.Sprintf("machine %s: Failed only after that, after %s; replaced by %s",
			second.name, after(since, second.failed.at), replacement(lifecycles, second.failed).name),
	}, nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// silence stops the heartbeats of the Node of a machine. The audit excuses that the
// machine is unavailable from then on.
func (s *scenario) silence(m *v1alpha1.Machine) {
	s.harm(m)
	node := m.Labels[v1alpha1.NodeLabelKey]
	s.w.target.SetNodeSilent(node, true) // the kubelets of the cluster in memory do not stop its pods either
	s.w.kubelets.Silence(node, true)
	s.progress.line(fmt.Sprintf("Node %s becomes silent", node))
}

// harm records that a machine may be unavailable from now on.
func (s *scenario) harm(m *v1alpha1.Machine) {
	if s.w.harmed[m.UID] == "" {
		s.w.harmed[m.UID] = s.w.version()
	}
}

// speak resumes the heartbeats of a Node.
func (s *scenario) speak(m *v1alpha1.Machine) {
	node := m.Labels[v1alpha1.NodeLabelKey]
	s.w.kubelets.Silence(node, false)
	s.w.target.SetNodeSilent(node, false)
	s.progress.line(fmt.Sprintf("Node %s reports again", node))
}

// allUnknown returns the machines that are not Unknown yet.
func (s *scenario) allUnknown(ctx context.Context) (string, error) {
	list, err := s.w.machines.MachineV1alpha1().Machines(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "machines", err
	}
	for _, m := range list.Items {
		if m.Status.CurrentStatus.Phase != v1alpha1.MachineUnknown {
			return fmt.Sprintf("machine %s is %s", m.Name, m.Status.CurrentStatus.Phase), nil
		}
	}
	return "", nil
}

// running returns the first n Running machines by name.
func (s *scenario) running(ctx context.Context, n int) ([]*v1alpha1.Machine, error) {
	list, err := again(func() (*v1alpha1.MachineList, error) {
		return s.w.machines.MachineV1alpha1().Machines(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return nil, err
	}
	var found []*v1alpha1.Machine
	for i := range list.Items {
		if list.Items[i].Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
			found = append(found, &list.Items[i])
		}
	}
	if len(found) < n {
		return nil, fmt.Errorf("%d machines are Running, want %d", len(found), n)
	}
	slices.SortFunc(found, func(a, b *v1alpha1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return found[:n], nil
}

// allRunning returns what is not available yet. It also checks the machines, because the status of
// their owners may be older than a failure.
func (s *scenario) allRunning(ctx context.Context) (string, error) {
	if missing, err := s.allUp(ctx); err != nil || missing != "" {
		return missing, err
	}
	list, err := s.w.machines.MachineV1alpha1().Machines(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "machines", err
	}
	want, running := s.grown(), 0
	for i := range list.Items {
		if list.Items[i].Status.CurrentStatus.Phase == v1alpha1.MachineRunning && list.Items[i].DeletionTimestamp == nil {
			running++
		}
	}
	if running != want || len(list.Items) != want {
		return fmt.Sprintf("%d of %d machines are Running, %d are desired", running, len(list.Items), want), nil
	}
	return "", nil
}

// grown returns the number of machines of the deployments after the scale-up.
func (s *scenario) grown() int {
	n := more * len(s.m.deployments)
	for _, d := range s.m.deployments {
		n += int(d.Spec.Replicas)
	}
	return n
}

// isThere reports whether a machine exists.
func (s *scenario) isThere(ctx context.Context, name string) (bool, error) {
	list, err := s.w.machines.MachineV1alpha1().Machines(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.Items, func(m v1alpha1.Machine) bool { return m.Name == name }), nil
}
