// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
)

// workers is how many machines the manager, and the loop of the floor, handle concurrently.
const workers = 50

// managerFlags returns the flags of the manager.
func (s settings) managerFlags() []string {
	return []string{
		fmt.Sprintf("--kube-api-qps=%d", s.qps), fmt.Sprintf("--kube-api-burst=%d", s.burst), fmt.Sprintf("--concurrent-syncs=%d", workers),
		"--machine-settle-time=0",
	}
}

const (
	// settling is how long a phase is measured after its last wait, because Events come late.
	settling = 10 * time.Second
	// unmarking is how long the manager may take after a rollout for each Node, whose marks of the
	// rollout it removes. Before that it is not idle.
	unmarking = 10 * time.Millisecond
	// idling is how long the idle manager is measured.
	idling = time.Minute
)

// measure measures the phases of a plan in an environment of its own, and then the same writes by a
// loop.
func measure(ctx context.Context, c *env.Cluster, with settings, p plan, progress io.Writer) (result, error) {
	r := result{title: p.title, planned: p.lives(), budgeted: p.budgeted}
	fmt.Fprintf(progress, "bench: %s\n", p.title)
	samples, err := r.play(ctx, c, with, p)
	if err == nil {
		fmt.Fprintf(progress, "bench: %s: the floor\n", p.title)
		err = r.playFloor(ctx, c.ControlPlane, samples, p.parallel)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", p.title, err)
	}
	return r, nil
}

// play plays the phases. It returns an object of each kind that the manager writes.
func (r *result) play(ctx context.Context, c *env.Cluster, with settings, p plan) (_ samples, err error) {
	profiles, flags, err := newProfiler(ctx, with.profiles)
	if err != nil {
		return nil, err
	}
	s, err := c.New(ctx, "bench", env.Options{Flags: append(with.managerFlags(), flags...), Nodes: env.Nodes{LeaseInterval: with.nodeGrace() / 5}})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, s.Close()); err == nil { //nolint:contextcheck // whatever becomes of ctx
			err = ended(ctx, s, with.timeout)
		}
	}()
	if err := s.Class(ctx, class); err != nil {
		return nil, err
	}
	manager := s.Manager("manager")
	if err := manager.Start(ctx); err != nil {
		return nil, err
	}
	id := managerOf(s.Namespace)
	wait(ctx, with.settling)
	var of samples
	for _, next := range p.phases {
		stop := profiles.during(ctx, r.title+" "+next.name)
		done, err := next.measure(ctx, s, id, with)
		if r.phases = append(r.phases, done); err != nil {
			return nil, errors.Join(err, stop())
		}
		if err := stop(); err != nil {
			return nil, err
		}
		if next.idles {
			if id, err = r.rest(ctx, s, manager, next.machines, with, profiles); err != nil {
				return nil, err
			}
		}
		if of == nil {
			if of, err = samplesOf(ctx, s); err != nil {
				return nil, err
			}
		}
	}
	r.peak = max(r.peak, id.peak())
	if err := r.look(ctx, s); err != nil {
		return nil, err
	}
	return of, errors.Join(empty(ctx, s, with.timeout), manager.Stop(ctx))
}

// rest leaves a fleet idle, and then starts another manager beside it. It returns the process of that.
func (r *result) rest(ctx context.Context, s *env.Env, manager *env.Manager, machines int, with settings, profiles profiler) (process, error) {
	wait(ctx, time.Duration(machines)*unmarking)
	stop, id := profiles.during(ctx, r.title+" idle"), managerOf(s.Namespace)
	r.idle = idleness{began: time.Now(), cpu: -id.cpu()}
	wait(ctx, idling)
	r.idle.ended, r.idle.cpu, r.peak = time.Now(), r.idle.cpu+id.cpu(), id.peak()
	if err := errors.Join(stop(), manager.Stop(ctx)); err != nil {
		return id, err
	}
	r.restart.began = time.Now()
	if err := manager.Start(ctx); err != nil {
		return id, err
	}
	wait(ctx, with.settling)
	r.restart.ended = time.Now()
	return managerOf(s.Namespace), nil
}

// empty deletes what the phases have left, as the manager has finalizers on it.
func empty(ctx context.Context, s *env.Env, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	api, all := s.Machines.MachineV1alpha1(), metav1.ListOptions{}
	err := errors.Join(
		api.MachineDeployments(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		api.MachineClasses(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		s.Client.CoreV1().Secrets(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
	)
	if err != nil {
		return err
	}
	return s.Until(ctx, "nothing is left", s.NothingLeft)
}

// measure plays a phase.
func (next step) measure(ctx context.Context, s *env.Env, id process, with settings) (phase, error) {
	p := phase{name: next.name, machines: next.machines, began: time.Now(), cpu: -id.cpu()}
	limited, cancel := context.WithTimeout(ctx, with.timeout)
	err := next.play(limited, s, func() { p.asked = append(p.asked, time.Now()) })
	cancel()
	if err != nil {
		return p, fmt.Errorf("%s: %w", next.name, err)
	}
	wait(ctx, with.settling)
	p.ended, p.cpu = time.Now(), p.cpu+id.cpu()
	return p, nil
}

// electing reports whether a request is about who leads.
func electing(q controlplane.Request) bool { return q.UserAgent == "machinist/leader-election" }

// look reads the records of all phases.
func (r *result) look(ctx context.Context, s *env.Env) error {
	ours, err := s.Requests(ctx)
	if err != nil {
		return err
	}
	all, err := s.Cluster.ControlPlane.Requests()
	if err != nil {
		return err
	}
	ours = slices.DeleteFunc(ours, electing)
	log, history := s.AuditLog(), s.Cloud.History()
	r.machines, r.names = momentsOf(log, history, all, s.NodeName), namesOf(log)
	for i := range r.phases {
		p := &r.phases[i]
		p.requests = between(ours, p.began, p.ended)
		p.writes = writesOf(append(slices.Clone(p.requests), between(slices.DeleteFunc(slices.Clone(all), notKubelet), p.began, p.ended)...))
		p.wall = wall(p.asked, p.ended, r.machines)
		r.requests = append(r.requests, p.requests...)
	}
	r.idle.requests, r.restart.requests = between(ours, r.idle.began, r.idle.ended), between(ours, r.restart.began, r.restart.ended)
	r.timeline = timelineOf(log, r.requests, s.NodeName)
	figures, err := s.Figures()
	if r.figures = figures; !figures.Complete() {
		err = errors.Join(err, fmt.Errorf("the audit has missed something: %s", figures))
	}
	return err
}

// notKubelet reports whether a request is not of a simulated kubelet, or renews a Lease.
func notKubelet(q controlplane.Request) bool {
	return q.UserAgent != "hollow" || q.Resource == "leases"
}

// between returns the requests of a time.
func between(requests []controlplane.Request, from, to time.Time) []controlplane.Request {
	var out []controlplane.Request
	for _, q := range requests {
		if !q.Time.Before(from) && q.Time.Before(to) {
			out = append(out, q)
		}
	}
	return out
}

// ended waits until the namespaces of an environment are gone, whose deletion is load.
func ended(ctx context.Context, s *env.Env, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, name := range []string{s.Namespace, s.ManagerNamespace()} {
		for {
			_, err := s.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				break
			}
			if err != nil {
				return err
			}
			wait(ctx, time.Second)
		}
	}
	return nil
}

// wait waits a while, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
