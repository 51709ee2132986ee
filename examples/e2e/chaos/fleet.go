// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	// size is the number of machines.
	size = 20
	// nodeGrace is how long a kubelet may be silent until its Node is unknown. Kubelets renew their
	// Leases every 10 seconds.
	nodeGrace = 30 * time.Second
	// healthTimeout is how long a Node may be unknown until its machine is replaced.
	healthTimeout = 10 * time.Second
	// creationTimeout is how long a machine may take to join. It is shorter than patience: a Node that
	// is killed before it joins is replaced only then.
	creationTimeout = 3 * time.Minute
	// quiet is how long a step waits for a change. After that the fault is injected anyway: the
	// controllers may wait for the replacement of a dead Node.
	quiet = 3 * time.Second
	// patience is how long the end may take.
	patience = 10 * time.Minute
	// deployment and class are names.
	deployment = "workers"
	class      = "small"
	// checks is the number of checks of a complete run.
	checks = 7
)

// workloads are the numbers of pods, and of those that stay available.
var workloads = map[string]struct{ pods, available int32 }{"web": {30, 20}, "db": {6, 4}}

// fleet is the deployment and what happens to it.
type fleet struct {
	env     *env.Env
	manager *env.Manager
	report  *report
	out     io.Writer

	mu      sync.Mutex
	touched map[string]bool   // names of the machines whose Node was killed or frozen
	outages []span            // of the API server and etcd
	nodes   map[string]string // by pod
	changes int               // in the cloud
}

// span is a time in which the API server did not work.
type span struct{ from, to time.Time }

// newFleet creates the machines and the pods, and waits until they run.
func newFleet(ctx context.Context, cluster *env.Cluster, r *report, out io.Writer) (*fleet, error) {
	f := &fleet{report: r, out: out, touched: map[string]bool{}, nodes: map[string]string{}}
	o := env.Options{
		Kubelets: true, Outage: true, AllowDenied: f.starting,
		Cloud: drivertest.CloudOptions{
			CreateLatency: 300 * time.Millisecond, BootTime: 500 * time.Millisecond, Lag: 300 * time.Millisecond,
			DeleteLatency: 200 * time.Millisecond, ShutdownTime: 300 * time.Millisecond,
		},
		Flags: []string{
			"--leader-elect=false",                                            // one process at a time; a lease would only make each wait for the last
			"--machine-safety-hold-percent=0", "--machine-max-replacements=4", // many Nodes are dead at a time
			"--machine-settle-time=2s",
			"--machine-safety-orphan-vms-period=2s", "--machine-safety-orphan-vms-grace=5s",
		},
	}
	o.Bounds.Excused = func(m *v1alpha1.Machine) bool { f.mu.Lock(); defer f.mu.Unlock(); return f.touched[m.Name] }
	s, err := cluster.New(ctx, "chaos", o)
	if err != nil {
		return nil, err
	}
	f.env = s
	s.Cloud.Subscribe(func(drivertest.Event) { f.mu.Lock(); defer f.mu.Unlock(); f.changes++ })
	if err := errors.Join(f.watchPods(ctx), f.create(ctx)); err != nil {
		return nil, errors.Join(err, s.Close()) //nolint:contextcheck // it cleans up, however ctx has ended
	}
	return f, nil
}

// starting reports whether the API server refused a request while it started, before it knew the
// roles.
func (f *fleet) starting(q controlplane.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return (q.Code == http.StatusForbidden || q.Code == http.StatusUnauthorized) &&
		slices.ContainsFunc(f.outages, func(o span) bool { return q.Time.After(o.from) && q.Time.Before(o.to) })
}

// create makes everything that the faults meet.
func (f *fleet) create(ctx context.Context) error {
	s := f.env
	f.manager = s.Manager("manager")
	if err := f.manager.Start(ctx); err != nil {
		return err
	}
	if err := s.Class(ctx, class); err != nil {
		return err
	}
	d := s.Deployment(deployment, class, size, 4, 2)
	d.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{
		MachineHealthTimeout: &metav1.Duration{Duration: healthTimeout}, MachineCreationTimeout: &metav1.Duration{Duration: creationTimeout},
	}
	if _, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := f.until(ctx, "all machines run", s.Complete(deployment)); err != nil {
		return err
	}
	for app, w := range workloads {
		if _, err := s.Client.AppsV1().ReplicaSets(s.Namespace).Create(ctx, s.ReplicaSet(app, w.pods), metav1.CreateOptions{}); err != nil {
			return err
		}
		if _, err := s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace).Create(ctx, s.Budget(app, w.available), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return f.until(ctx, "all pods are ready", f.podsReady)
}

// until waits for a condition.
func (f *fleet) until(ctx context.Context, what string, holds env.Condition) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return f.env.Until(ctx, what, holds)
}

func (f *fleet) podsReady(ctx context.Context) (string, error) {
	for app, w := range workloads {
		set, err := f.env.Client.AppsV1().ReplicaSets(f.env.Namespace).Get(ctx, app, metav1.GetOptions{})
		if err != nil || set.Status.ReadyReplicas != w.pods {
			return fmt.Sprintf("not all %d pods of %s are ready", w.pods, app), err
		}
	}
	return "", nil
}

// play injects the faults, and then judges what happened.
func (f *fleet) play(ctx context.Context, steps []step) error {
	supervised, end := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { f.report.restarts = f.manager.Supervise(supervised) })
	background.Go(func() { f.roll(supervised) })
	resume := map[int][]int{} // process IDs by step
	var err error
	for i, step := range steps {
		for at, pids := range resume {
			if at <= i {
				err = errors.Join(err, signalAll(pids, syscall.SIGCONT))
				delete(resume, at)
			}
		}
		if err = errors.Join(err, f.progress(ctx, step.changes), ctx.Err()); err != nil {
			break
		}
		var pid int
		if pid, err = f.inject(ctx, step); err != nil {
			break
		}
		if pid != 0 {
			resume[i+step.resumeAfter] = append(resume[i+step.resumeAfter], pid)
		}
		if f.report.injected[step.fault]++; (i+1)%10 == 0 {
			fmt.Fprintf(f.out, "chaos: %d of %d faults after %s, %d rollouts\n", i+1, len(steps), time.Since(f.report.began).Round(time.Second), f.rollouts())
		}
	}
	for pids := range maps.Values(resume) {
		err = errors.Join(err, signalAll(pids, syscall.SIGCONT))
	}
	if err == nil {
		f.report.judge("the last rollout completes", f.until(ctx, "complete", f.env.Complete(deployment)))
		f.report.judge("all pods are ready", f.until(ctx, "ready", f.podsReady))
	}
	end()
	background.Wait()
	if err != nil {
		return err
	}
	return f.judge(ctx)
}

// signalAll sends a signal to processes. One that has ended is no error.
func signalAll(pids []int, signal syscall.Signal) (err error) {
	for _, pid := range pids {
		if e := syscall.Kill(pid, signal); !errors.Is(e, syscall.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// roll changes the template whenever a rollout is complete, until ctx ends.
func (f *fleet) roll(ctx context.Context) {
	api := f.env.Machines.MachineV1alpha1().MachineDeployments(f.env.Namespace)
	for n := 1; ctx.Err() == nil; {
		patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"rollout":"%d"}}}}}`, n)
		if _, err := api.Patch(ctx, deployment, types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
			n++
		}
		if f.env.Until(ctx, "complete", f.env.Complete(deployment)) == nil {
			f.mu.Lock()
			f.report.rollouts++
			f.mu.Unlock()
		}
	}
}

// rollouts returns the number of rollouts that were completed.
func (f *fleet) rollouts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report.rollouts
}

// progress waits until so many changes have happened, or none for a while.
func (f *fleet) progress(ctx context.Context, changes int) error {
	begin, last, at := f.count(), 0, time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		n := f.count() - begin
		if n >= changes || n == last && time.Since(at) > quiet {
			return nil
		}
		if n != last {
			last, at = n, time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// count returns the number of changes so far.
func (f *fleet) count() int {
	n := len(f.env.AuditLog().Changes)
	f.mu.Lock()
	defer f.mu.Unlock()
	return n + f.changes
}

// inject injects a fault. pid is the process of a Node that was frozen.
func (f *fleet) inject(ctx context.Context, s step) (pid int, err error) {
	c := f.env.Cluster.ControlPlane
	switch s.fault {
	case managerKilled:
		f.manager.Kill()
		err = f.manager.Launch(ctx)
	case apiServerKilled:
		err = f.outage(func() error { return errors.Join(c.KillAPIServer(), c.StartAPIServer(ctx)) })
	case etcdKilled:
		err = f.outage(func() error { return errors.Join(c.KillEtcd(), c.StartEtcd(ctx)) })
	case nodeKilled:
		_, err = f.strike(s.pick, syscall.SIGKILL)
	case nodeFrozen:
		pid, err = f.strike(s.pick, syscall.SIGSTOP)
	}
	return pid, err
}

// outage records when the API server did not work.
func (f *fleet) outage(during func() error) error {
	o := span{from: time.Now()}
	err := during()
	o.to = time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outages = append(f.outages, o)
	return err
}

// strike sends a signal to a running VM that no signal was sent to before.
func (f *fleet) strike(pick uint64, signal syscall.Signal) (pid int, err error) {
	vms := f.env.Cloud.Snapshot().VMs
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range vms {
		vm := vms[(pick+uint64(i))%uint64(len(vms))] //nolint:gosec // an index
		if pid = f.env.Fleet.PID(vm.NodeName); pid != 0 && !f.touched[vm.Machine] {
			f.touched[vm.Machine] = true
			return pid, syscall.Kill(pid, signal)
		}
	}
	return 0, errors.New("no VM runs")
}

// judge deletes everything and checks what happened.
func (f *fleet) judge(ctx context.Context) error {
	s := f.env
	pids := map[string]int{}
	for _, vm := range s.Cloud.Snapshot().VMs {
		pids[vm.NodeName] = s.Fleet.PID(vm.NodeName)
	}
	for app := range workloads {
		if err := errors.Join(
			s.Client.AppsV1().ReplicaSets(s.Namespace).Delete(ctx, app, metav1.DeleteOptions{}),
			s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace).Delete(ctx, app, metav1.DeleteOptions{})); err != nil {
			return err
		}
	}
	api, all := s.Machines.MachineV1alpha1(), metav1.ListOptions{}
	if err := errors.Join(
		api.MachineDeployments(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		api.MachineClasses(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		s.Client.CoreV1().Secrets(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all)); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	f.report.judge("nothing is left of objects and VMs", f.until(ctx, "nothing is left", s.NothingLeft))
	f.report.judge("no process of a VM is left", f.until(ctx, "no process", func(context.Context) (string, error) {
		for node, pid := range pids {
			if pid != 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
				return fmt.Sprintf("the kubelet of %s is process %d", node, pid), nil
			}
		}
		return "", nil
	}))
	refused, err := s.Refused(ctx)
	if err == nil && len(refused) > 0 {
		err = fmt.Errorf("%d requests, the first: %+v", len(refused), refused[0])
	}
	f.report.judge("no request was refused for good", err)
	f.report.judge("pods of Nodes that answer were evicted", f.podDeletions(ctx))
	figures, err := s.Figures()
	f.report.figures = figures
	f.report.judge("no bound of the machines was violated", err)
	return nil
}

// podDeletions returns an error if the manager has deleted a pod without an eviction, except on the
// Nodes that were killed or frozen.
func (f *fleet) podDeletions(ctx context.Context) error {
	requests, err := f.env.Requests(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	touched := map[string]bool{}
	for machine := range f.touched {
		touched[f.env.NodeName(machine)] = true
	}
	for _, r := range requests {
		if r.Resource == "pods" && r.Subresource == "" && r.Verb == "delete" && r.Code < 300 && !touched[f.nodes[r.Name]] {
			err = errors.Join(err, fmt.Errorf("pod %s of Node %q was deleted", r.Name, f.nodes[r.Name]))
		}
	}
	return err
}

// watchPods records the Nodes of all pods until ctx ends.
func (f *fleet) watchPods(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(f.env.Client, 0, informers.WithNamespace(f.env.Namespace))
	record := func(o any) {
		if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.nodes[pod.Name] = pod.Spec.NodeName
		}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: record, UpdateFunc: func(_, now any) { record(now) },
	})
	factory.Start(ctx.Done())
	return err
}
