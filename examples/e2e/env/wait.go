// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
)

// Condition says what is missing until it holds, and nothing when it does. An
// error is something that is missing, too.
type Condition func(ctx context.Context) (missing string, err error)

// Until waits until a condition holds. It gives up when ctx ends, or when a manager
// has ended by itself without a supervisor. The error says what is missing, in
// which phases the machines are, and how the logs of the managers end.
func (s *Env) Until(ctx context.Context, what string, holds Condition) error {
	for {
		missing, err := holds(ctx)
		if err == nil && missing == "" {
			return nil
		}
		dead := s.dead()
		if dead == nil && pause(ctx, 100*time.Millisecond) == nil {
			continue
		}
		return fmt.Errorf("%s: %s", what, s.lament(context.WithoutCancel(ctx), missing, err, dead))
	}
}

// dead is how managers have ended that should run.
func (s *Env) dead() error {
	var errs []error
	for _, m := range s.all() {
		if !m.supervised.Load() {
			errs = append(errs, m.Err())
		}
	}
	return errors.Join(errs...)
}

func (s *Env) all() []*Manager {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.managers)
}

func (s *Env) lament(ctx context.Context, missing string, err, dead error) string {
	var b strings.Builder
	b.WriteString(missing)
	if err != nil {
		fmt.Fprintf(&b, " (%v)", err)
	}
	if dead != nil {
		fmt.Fprintf(&b, "\n%v", dead)
	}
	fmt.Fprintf(&b, "\nmachines:\n%s\ncloud:\n%s", s.Phases(ctx), s.Cloud.Snapshot())
	for _, m := range s.all() {
		fmt.Fprintf(&b, "\nend of %s:\n%s", m.log, m.Tail(logLines))
	}
	return b.String()
}

// Phases shows the machines and how they are, one in each line.
func (s *Env) Phases(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	machines, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, m := range machines.Items {
		deleted := ""
		if m.DeletionTimestamp != nil {
			deleted = ", is being deleted"
		}
		op := m.Status.LastOperation
		fmt.Fprintf(&b, "%s: %q%s; %s %s: %s\n", m.Name, m.Status.CurrentStatus.Phase, deleted, op.Type, op.State, op.Description)
	}
	return b.String()
}

// Complete holds when a deployment has all its machines, of the newest template and
// available.
func (s *Env) Complete(name string) Condition {
	return func(ctx context.Context) (string, error) {
		d, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "deployment " + name, err
		}
		if deployment.Complete(d, d.Status) {
			return "", nil
		}
		return fmt.Sprintf("deployment %s has %d of %d machines available, %d of the newest template, %d in all",
			d.Name, d.Status.AvailableReplicas, d.Spec.Replicas, d.Status.UpdatedReplicas, d.Status.Replicas), nil
	}
}

// Gone holds when an object is gone; get is the Get of its client.
func Gone[T any](what string, get func(context.Context, string, metav1.GetOptions) (T, error), name string) Condition {
	return func(ctx context.Context) (string, error) {
		_, err := get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			return fmt.Sprintf("%s %s is still there", what, name), nil
		case apierrors.IsNotFound(err):
			return "", nil
		default:
			return what + " " + name, err
		}
	}
}

// NothingLeft holds when the environment has neither machine objects nor Secrets, Nodes
// with what is attached to them, bootstrap tokens, or anything in the cloud.
func (s *Env) NothingLeft(ctx context.Context) (string, error) {
	api, left := s.Machines.MachineV1alpha1(), map[string]int{}
	machines, err1 := api.Machines(s.Namespace).List(ctx, metav1.ListOptions{})
	sets, err2 := api.MachineSets(s.Namespace).List(ctx, metav1.ListOptions{})
	deployments, err3 := api.MachineDeployments(s.Namespace).List(ctx, metav1.ListOptions{})
	classes, err4 := api.MachineClasses(s.Namespace).List(ctx, metav1.ListOptions{})
	secrets, err5 := s.Client.CoreV1().Secrets(s.Namespace).List(ctx, metav1.ListOptions{})
	nodes, err6 := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	attachments, err7 := s.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	tokens, err8 := s.Tokens(ctx)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		return "nothing is known", err
	}
	left["machines"], left["machine sets"], left["machine deployments"] = len(machines.Items), len(sets.Items), len(deployments.Items)
	left["machine classes"], left["secrets"], left["bootstrap tokens"] = len(classes.Items), len(secrets.Items), len(tokens)
	for _, n := range nodes.Items {
		if strings.HasPrefix(n.Name, s.Namespace+"-") {
			left["nodes"]++
		}
	}
	for _, a := range attachments.Items {
		if strings.HasPrefix(a.Spec.NodeName, s.Namespace+"-") {
			left["volume attachments"]++
		}
	}
	snapshot := s.Cloud.Snapshot()
	left["VMs"], left["side resources"] = len(snapshot.VMs), len(snapshot.SideResources)
	var missing []string
	for _, what := range slices.Sorted(maps.Keys(left)) {
		if left[what] > 0 {
			missing = append(missing, fmt.Sprintf("%d %s", left[what], what))
		}
	}
	if len(missing) > 0 {
		return "still there: " + strings.Join(missing, ", "), nil
	}
	return "", nil
}
