// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// lookedFor is how long the scenario watches a rollout that does not progress.
const lookedFor = 10 * time.Second

// look waits for lookedFor.
func (s *scenario) look(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.w.clock.After(lookedFor):
		return nil
	}
}

// pauses begins a rollout, pauses it, and resumes it. The chapter takes a creation and a deletion
// for every machine.
func (s *scenario) pauses() chapter {
	var from, to string // the versions at the begin and the end of the pause
	return chapter{
		title: "roll to another class, pause, and resume",
		do: func(ctx context.Context) error {
			if err := s.rollTo(ctx, "v3"); err != nil {
				return err
			}
			begun := func(d *v1alpha1.MachineDeployment) bool {
				st := d.Status
				return st.ObservedGeneration >= d.Generation && st.UpdatedReplicas > 0 && st.UpdatedReplicas < st.Replicas
			}
			if err := s.wait(ctx, s.each(begun)); err != nil {
				return err
			}
			if err := s.changeAll(ctx, func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = true }); err != nil {
				return err
			}
			seen := func(d *v1alpha1.MachineDeployment) bool { return d.Status.ObservedGeneration >= d.Generation }
			if err := s.wait(ctx, s.each(seen)); err != nil {
				return err
			}
			s.progress.line("paused")
			from = s.w.version()
			if err := s.look(ctx); err != nil {
				return err
			}
			to = s.w.version()
			s.progress.line("resumed")
			return s.changeAll(ctx, func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = false })
		},
		until: s.allUp,
		facts: func([]*lifecycle) ([]string, error) {
			meanwhile := s.w.control.HistorySince(from)
			after := s.w.control.HistorySince(to)
			if n := sizesChanged(meanwhile[:len(meanwhile)-len(after)]); n > 0 {
				return nil, fmt.Errorf("%d machine sets changed their size during the pause", n)
			}
			if sizesChanged(after) == 0 {
				return nil, errors.New("the rollout ended before the pause")
			}
			return []string{fmt.Sprintf("no machine set changed its size for %s; then the rollout continued", lookedFor)}, nil
		},
	}
}

// sizesChanged returns the number of machine sets that were created or scaled in a history.
func sizesChanged(history []draintest.Write) (n int) {
	for _, w := range history {
		before, _ := w.Before.(*v1alpha1.MachineSet)
		after, _ := w.After.(*v1alpha1.MachineSet)
		if after != nil && (before == nil || before.Spec.Replicas != after.Spec.Replicas) {
			n++
		}
	}
	return n
}

// rollsBack rolls back to the previous class. The chapter takes a creation and a deletion for every
// machine.
func (s *scenario) rollsBack() chapter {
	var since string
	return chapter{
		title: "roll back",
		do: func(ctx context.Context) error {
			since = s.w.version()
			return s.rollBack(ctx)
		},
		until: s.allUp,
		facts: func([]*lifecycle) ([]string, error) {
			for _, w := range s.w.control.HistorySince(since) {
				if set, ok := w.After.(*v1alpha1.MachineSet); ok && w.Before == nil {
					return nil, fmt.Errorf("machine set %s was created for the rollback", set.Name)
				}
			}
			return s.allOf("v2")
		},
	}
}

// rollBack requests a rollback to the previous revision, by its number: a request that
// is repeated after a lost response must not roll back twice.
func (s *scenario) rollBack(ctx context.Context) error {
	for _, d := range s.m.deployments {
		list, err := again(func() (*v1alpha1.MachineSetList, error) {
			return s.w.machines.MachineV1alpha1().MachineSets(d.Namespace).List(ctx, metav1.ListOptions{})
		})
		if err != nil {
			return err
		}
		var sets []*v1alpha1.MachineSet
		for i := range list.Items {
			if owned(&list.Items[i], []*v1alpha1.MachineDeployment{d}) {
				sets = append(sets, &list.Items[i])
			}
		}
		to := &v1alpha1.RollbackConfig{Revision: deployment.LastRevision(sets)}
		if err := s.change(ctx, d, func(d *v1alpha1.MachineDeployment) { d.Spec.RollbackTo = to }); err != nil {
			return err
		}
	}
	return nil
}

// doesNotWork rolls to a class whose VMs cannot be created, and rolls back. The chapter takes a
// call of the provider.
func (s *scenario) doesNotWork() chapter {
	return chapter{
		title: "roll to a class that does not work, and back",
		do: func(ctx context.Context) error {
			if err := s.rollTo(ctx, broken); err != nil {
				return err
			}
			if err := s.wait(ctx, s.each(func(d *v1alpha1.MachineDeployment) bool {
				return strings.Contains(s.progress.waits(d), string(deployment.ReasonNewUnavailable)) && strings.Contains(s.progress.waits(d), noImage)
			})); err != nil {
				return err
			}
			if err := s.look(ctx); err != nil {
				return err
			}
			for _, d := range s.m.deployments {
				for hold := range strings.SplitSeq(s.progress.waits(d), "; ") {
					s.progress.line(fmt.Sprintf("machine deployment %s %s", d.Name, hold))
				}
			}
			s.progress.line("rolled back")
			return s.rollBack(ctx)
		},
		until: s.allUp,
		facts: func(lifecycles []*lifecycle) ([]string, error) {
			failed := 0
			for _, l := range lifecycles {
				switch {
				case l.running.never() && !l.made.never():
					failed++
				case !l.deleted.never():
					return nil, fmt.Errorf("machine %s was deleted for a class that does not work", l.name)
				}
			}
			if failed == 0 {
				return nil, errors.New("no machine of the class that does not work was created")
			}
			says, err := s.allOf("v2")
			return append([]string{fmt.Sprintf("%d of the new machines could not be created, and no old machine was deleted", failed)}, says...), err
		},
	}
}

// broken is the suffix of classes that the cloud rejects, and noImage the message of
// the cloud.
const (
	broken  = "broken"
	noImage = "there is no such image"
)

// picky is a provider that rejects classes with the suffix broken.
type picky struct{ driver.Driver }

// CreateMachine creates a VM unless the class is broken.
func (p picky) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	if req != nil && req.MachineClass != nil && strings.HasSuffix(req.MachineClass.Name, "-"+broken) {
		return nil, status.Error(codes.InvalidArgument, noImage)
	}
	return p.Driver.CreateMachine(ctx, req)
}

// updatesInPlace updates the machines in place to another class. The chapter takes four
// updates, one after the other.
func (s *scenario) updatesInPlace() chapter {
	var before []string
	return chapter{
		title: "update the machines in place",
		do: func(ctx context.Context) error {
			before = s.vms()
			if err := s.changeAll(ctx, func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy = inPlace() }); err != nil {
				return err
			}
			return s.rollTo(ctx, "v4")
		},
		until: s.allUp,
		facts: func([]*lifecycle) ([]string, error) {
			after := s.vms()
			kept := slices.DeleteFunc(slices.Clone(before), func(vm string) bool { return !slices.Contains(after, vm) })
			fewest := len(before)
			for _, d := range s.m.deployments { // each deployment may replace machines by its surge machines
				bounds, err := deployment.BoundsOf(&v1alpha1.MachineDeployment{Spec: v1alpha1.MachineDeploymentSpec{Replicas: d.Spec.Replicas, Strategy: inPlace()}})
				if err != nil {
					return nil, err
				}
				fewest -= int(bounds.Surge)
			}
			if len(kept) < fewest {
				return nil, fmt.Errorf("%d VMs were kept, want at least %d", len(kept), fewest)
			}
			says, err := s.allOf("v4")
			return append([]string{fmt.Sprintf("%d of %d VMs were kept", len(kept), len(before))}, says...), err
		},
	}
}

// inPlace is a strategy of updates in place, a quarter of the machines at a time.
func inPlace() v1alpha1.MachineDeploymentStrategy {
	quarter, none := intstr.FromString("25%"), intstr.FromInt32(0)
	return v1alpha1.MachineDeploymentStrategy{
		Type: v1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
		InPlaceUpdate: &v1alpha1.InPlaceUpdateMachineDeployment{
			UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &quarter, MaxUnavailable: &none},
			OrchestrationType:   v1alpha1.OrchestrationTypeAuto,
		},
	}
}

// vms returns the sorted provider IDs of the VMs.
func (s *scenario) vms() (ids []string) {
	for _, v := range s.w.cloud.Snapshot().VMs {
		if v.DeletedAt.IsZero() {
			ids = append(ids, v.ProviderID)
		}
	}
	slices.Sort(ids)
	return ids
}

// allOf checks that all machines belong to sets with the given version of the class. The spec of a
// machine that was updated in place still has its first class.
func (s *scenario) allOf(version string) ([]string, error) {
	current, owners := map[types.UID]bool{}, map[string]types.UID{}
	for _, w := range s.w.control.History() {
		if set, ok := w.After.(*v1alpha1.MachineSet); ok {
			current[set.UID] = strings.HasSuffix(set.Spec.Template.Spec.Class.Name, "-"+version)
		}
		if _, ok := w.Before.(*v1alpha1.Machine); ok {
			delete(owners, w.Name)
		}
		if m, ok := w.After.(*v1alpha1.Machine); ok && m.DeletionTimestamp == nil && metav1.GetControllerOf(m) != nil {
			owners[w.Name] = metav1.GetControllerOf(m).UID
		}
	}
	for name, owner := range owners {
		if !current[owner] {
			return nil, fmt.Errorf("machine %s is not of version %s", name, version)
		}
	}
	return []string{fmt.Sprintf("all %d machines are of version %s", len(owners), version)}, nil
}

// changeAll updates all deployments.
func (s *scenario) changeAll(ctx context.Context, f func(*v1alpha1.MachineDeployment)) error {
	for _, d := range s.m.deployments {
		if err := s.change(ctx, d, f); err != nil {
			return err
		}
	}
	return nil
}

// each returns a function that returns a deployment for which fits is false.
func (s *scenario) each(fits func(*v1alpha1.MachineDeployment) bool) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		for _, want := range s.m.deployments {
			d, err := s.w.machines.MachineV1alpha1().MachineDeployments(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
			if err != nil || !fits(d) {
				return "machine deployment " + want.Name, err
			}
		}
		return "", nil
	}
}
