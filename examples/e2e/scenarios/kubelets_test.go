// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// kubeletOptions is a cloud whose VMs are kubelets.
func kubeletOptions() env.Options {
	return env.Options{Kubelets: true, Flags: fastOptions().Flags}
}

// signal sends a signal to the kubelet of a machine.
func signal(t *testing.T, s *env.Env, machine string, signal syscall.Signal) {
	t.Helper()
	pid := s.Fleet.PID(s.NodeName(machine))
	require.NotZero(t, pid, "%s has no kubelet", machine)
	require.NoError(t, syscall.Kill(pid, signal))
}

// kubelets returns the process IDs of the kubelets of all machines, by machine.
func kubelets(t *testing.T, s *env.Env) map[string]int {
	t.Helper()
	pids := map[string]int{}
	for _, m := range machines(t, s) {
		pids[m.Name] = s.Fleet.PID(s.NodeName(m.Name))
		require.NotZero(t, pids[m.Name], "%s has no kubelet", m.Name)
	}
	return pids
}

// ended holds when processes have ended.
func ended(pids map[string]int) env.Condition {
	return func(context.Context) (string, error) {
		for machine, pid := range pids {
			if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
				return fmt.Sprintf("the kubelet of %s is process %d", machine, pid), nil
			}
		}
		return "", nil
	}
}

// stateful returns a StatefulSet with the pods of [env.Env.ReplicaSet].
func stateful(s *env.Env, name string, replicas int32) *appsv1.StatefulSet {
	pods := s.ReplicaSet(name, replicas).Spec
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: pods.Replicas, Selector: pods.Selector, Template: pods.Template, PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}
}

// workload makes 6 pods of a Deployment, of which at least 4 stay available, and 3 of a StatefulSet,
// of which at least 2 do. It waits until they are ready. remove deletes them.
func workload(t *testing.T, s *env.Env) (remove func()) {
	t.Helper()
	ctx, apps, budgets := t.Context(), s.Client.AppsV1(), s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace)
	web := s.ReplicaSet("web", 6)
	_, err := apps.Deployments(s.Namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: web.ObjectMeta, Spec: appsv1.DeploymentSpec{Replicas: web.Spec.Replicas, Selector: web.Spec.Selector, Template: web.Spec.Template},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = apps.StatefulSets(s.Namespace).Create(ctx, stateful(s, "db", 3), metav1.CreateOptions{})
	require.NoError(t, err)
	for app, least := range map[string]int32{"web": 4, "db": 2} {
		_, err := budgets.Create(ctx, s.Budget(app, least), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for app, all := range map[string]int32{"web": 6, "db": 3} {
		s.Wait(t, patience, "the pods are ready", counted(s, app, all))
	}
	return func() {
		t.Helper()
		require.NoError(t, apps.Deployments(s.Namespace).Delete(ctx, "web", metav1.DeleteOptions{}))
		require.NoError(t, apps.StatefulSets(s.Namespace).Delete(ctx, "db", metav1.DeleteOptions{}))
		for _, app := range []string{"web", "db"} {
			require.NoError(t, budgets.Delete(ctx, app, metav1.DeleteOptions{}))
		}
	}
}

// fewest watches the pods of an app. The returned function ends the watch and returns the lowest
// number of pods that a budget counts, as of each change.
func fewest(t *testing.T, s *env.Env, app string) (end func() int) {
	t.Helper()
	pods := s.Client.CoreV1().Pods(s.Namespace)
	selector := metav1.ListOptions{LabelSelector: "app=" + app}
	list, err := pods.List(t.Context(), selector)
	require.NoError(t, err)
	healthy := map[types.UID]bool{}
	note := func(p *corev1.Pod) { healthy[p.UID] = p.DeletionTimestamp == nil && podReady(p) }
	count := func() (n int) {
		for _, ready := range healthy {
			if ready {
				n++
			}
		}
		return n
	}
	for i := range list.Items {
		note(&list.Items[i])
	}
	least := count()
	selector.ResourceVersion = list.ResourceVersion
	changes, err := pods.Watch(t.Context(), selector)
	require.NoError(t, err)
	var watching sync.WaitGroup
	var ending atomic.Bool
	watching.Go(func() {
		for e := range changes.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				if ending.Load() {
					return
				}
				t.Errorf("the watch of the pods of %s: %v", app, e.Object)
				return
			}
			if note(p); e.Type == "DELETED" {
				delete(healthy, p.UID)
			}
			least = min(least, count())
		}
	})
	return func() int {
		ending.Store(true)
		changes.Stop()
		watching.Wait()
		return least
	}
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// certified requires that the kubelets of all machines have joined with a bootstrap token of their own
// and renew their Leases with the client certificate that they got for it.
func certified(t *testing.T, s *env.Env) {
	t.Helper()
	signed, err := s.Client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	tokens := map[string]bool{}
	for _, m := range machines(t, s) {
		id, _, _ := strings.Cut(s.TokenOf(m.Name), ".")
		require.NotEmpty(t, id)
		require.False(t, tokens[id], "a token of two machines")
		tokens[id] = true
		require.True(t, slices.ContainsFunc(signed.Items, func(r certificatesv1.CertificateSigningRequest) bool {
			return r.Spec.Username == "system:bootstrap:"+id && r.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName && len(r.Status.Certificate) > 0
		}), "%s has no certificate for its token", m.Name)
		s.Wait(t, patience, "it has a Lease", leased(s, m.Name))
	}
}

// leased holds when the kubelet of a machine has written its Lease with its own certificate.
func leased(s *env.Env, machine string) env.Condition {
	return func(context.Context) (string, error) {
		name := s.NodeName(machine)
		requests, err := s.Cluster.ControlPlane.Requests()
		if !slices.ContainsFunc(requests, func(r controlplane.Request) bool {
			return r.User == "system:node:"+name && r.Resource == "leases" && r.Namespace == corev1.NamespaceNodeLease && r.Name == name && r.Code < 300
		}) {
			return name + " has written no Lease", err
		}
		return "", nil
	}
}

func TestKubelets_RollOfTen_BudgetsHold(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "roll", kubeletOptions())
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 10, 2, 0))
	certified(t, s)
	before := kubelets(t, s)
	remove := workload(t, s)
	web, db := fewest(t, s, "web"), fewest(t, s, "db")
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "the rollout is complete", s.Complete("workers"))
	s.Wait(t, patience, "the old kubelets have ended", ended(before))
	require.GreaterOrEqual(t, web(), 4)
	require.GreaterOrEqual(t, db(), 2)
	after := kubelets(t, s)
	require.Len(t, after, 10)
	for name := range after {
		require.NotContains(t, before, name)
	}
	require.Zero(t, podDeletions(t, s), "pods are evicted")
	remove()
	removeAll(t, s)
	s.Wait(t, patience, "no kubelet is left", ended(after))
}

func TestKubelets_Killed_ReplacedOneAtATime(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "killed", kubeletOptions())
	s.StartManager(t, "manager")
	d := s.Deployment("workers", "small", 3, 1, 0)
	d.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineHealthTimeout: seconds(5)}
	deploy(t, s, d)
	group, names := map[types.UID]bool{}, map[types.UID]string{}
	for _, m := range machines(t, s) {
		group[m.UID], names[m.UID] = true, m.Name
		signal(t, s, m.Name, syscall.SIGKILL)
	}
	s.Wait(t, nodeGrace+patience, "all three are replaced", func(ctx context.Context) (string, error) {
		list, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "nothing is known", err
		}
		for _, m := range list.Items {
			if group[m.UID] {
				return fmt.Sprintf("machine %s is still there", m.Name), nil
			}
		}
		return s.Complete("workers")(ctx)
	})
	for uid, name := range names {
		s.Wait(t, patience, "its phases", went(s, uid, "Pending", "Running", "Unknown", "Failed", "Terminating"))
		s.Wait(t, patience, "its Events", func(ctx context.Context) (string, error) {
			have, err := told(ctx, s, "Machine", name)
			have = slices.DeleteFunc(have, func(e string) bool { return e == "ReplacementLimit" }) // of one that waited for another
			if !slices.Equal(have, []string{"Unknown", "Failed"}) {
				return fmt.Sprintf("of machine %s is told %v", name, have), err
			}
			return "", err
		})
	}
	most, failed := replacing(s.AuditLog(), group)
	require.Equal(t, 1, most, "machines that were replaced at a time")
	require.Equal(t, 3, failed)
	seen := map[types.UID]bool{}
	for _, c := range s.AuditLog().Changes {
		m, ok := c.Object.(*v1alpha1.Machine)
		if !ok {
			continue
		}
		seen[m.UID] = true
		if group[m.UID] && m.Status.CurrentStatus.Phase == v1alpha1.MachineUnknown && m.DeletionTimestamp == nil {
			require.Contains(t, m.Status.LastOperation.Description, "unhealthy")
			require.Contains(t, m.Status.LastOperation.Description, "Ready=Unknown", "from the node lifecycle controller")
		}
	}
	require.Len(t, seen, 6, "one for each")
	removeAll(t, s)
}

func TestKubelets_FrozenForAWhile_UnknownThenRunning(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "frozen", kubeletOptions())
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 2, 1, 0))
	m := machines(t, s)[0]
	before, pids := node(t, s, m.Name).UID, kubelets(t, s)
	signal(t, s, m.Name, syscall.SIGSTOP)
	s.Wait(t, nodeGrace+patience, "the machine is unknown", in(s, m.Name, v1alpha1.MachineUnknown))
	signal(t, s, m.Name, syscall.SIGCONT)
	s.Wait(t, patience, "the machine runs again", running(s, m.Name))
	s.Wait(t, patience, "the deployment is complete", s.Complete("workers"))

	require.Equal(t, before, node(t, s, m.Name).UID, "the same Node")
	require.Equal(t, pids, kubelets(t, s), "the same machines")
	s.Wait(t, patience, "its phases", went(s, m.UID, "Pending", "Running", "Unknown", "Running"))
	require.Contains(t, machine(t, s, m.Name).Status.LastOperation.Description, "re-joined the cluster")
	s.Wait(t, patience, "its Events", tells(s, "Machine", m.Name, "Unknown", "Running"))
	removeAll(t, s)
}

// TestKubelets_Rebooted_NodeComesBack asserts that a kubelet that restarts needs no second token.
func TestKubelets_Rebooted_NodeComesBack(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "rebooted", kubeletOptions())
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 1, 1, 0))
	m := machines(t, s)[0]
	before := node(t, s, m.Name)
	require.NoError(t, s.Fleet.Reboot(before.Name))
	rebooted := time.Now()
	s.Wait(t, patience, "the new kubelet renews the Lease", func(ctx context.Context) (string, error) {
		lease, err := s.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, before.Name, metav1.GetOptions{})
		if err != nil || lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(rebooted) {
			return "no new renewal", err
		}
		return "", nil
	})
	s.Wait(t, patience, "the deployment is complete", s.Complete("workers"))
	require.Equal(t, before.UID, node(t, s, m.Name).UID)
	require.Len(t, machines(t, s), 1)
	require.Equal(t, m.UID, machines(t, s)[0].UID)
	removeAll(t, s)
}

// TestKubelets_PodEndsWithItsGrace_VMStaysUntilThen plays a pod that ignores SIGTERM: its container
// ends when its grace period does.
func TestKubelets_PodEndsWithItsGrace_VMStaysUntilThen(t *testing.T) {
	t.Parallel()
	const grace = 8
	s := cluster.Set(t, "grace", kubeletOptions())
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 1, 1, 0))
	set := s.ReplicaSet("stubborn", 1)
	spec := &set.Spec.Template.Spec
	spec.TerminationGracePeriodSeconds = new(int64(grace))
	spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: grace}}}
	_, err := s.Client.AppsV1().ReplicaSets(s.Namespace).Create(t.Context(), set, metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the pod is ready", ready(s, "stubborn", 1))
	m := machines(t, s)[0]
	pod := podsOn(t, s, s.NodeName(m.Name))[0]

	began := time.Now()
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "the pod is gone", env.Gone("pod", s.Client.CoreV1().Pods(s.Namespace).Get, pod.Name))
	s.Wait(t, patience, "the machine is gone", gone(s, m.Name))
	require.GreaterOrEqual(t, deletionBegan(s, m.Name).Sub(began), grace*time.Second, "the pod had its grace period")
	s.Wait(t, patience, "the rollout is complete", s.Complete("workers"))
	require.NoError(t, s.Client.AppsV1().ReplicaSets(s.Namespace).Delete(t.Context(), "stubborn", metav1.DeleteOptions{}))
	removeAll(t, s)
}

func TestKubelets_MachineDeletedWhileFrozen_DrainTimesOut(t *testing.T) {
	t.Parallel()
	const timeout = 15 * time.Second
	s := cluster.Set(t, "down", kubeletOptions())
	s.StartManager(t, "manager", "--machine-drain-timeout="+timeout.String())
	require.NoError(t, s.Class(t.Context(), "small"))
	create(t, s, s.Machine("a", "small"))
	s.Wait(t, patience, "it runs", running(s, "a"))
	_, err := s.Client.AppsV1().StatefulSets(s.Namespace).Create(t.Context(), stateful(s, "db", 1), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the pod is ready", func(ctx context.Context) (string, error) {
		p, err := s.Client.CoreV1().Pods(s.Namespace).Get(ctx, "db-0", metav1.GetOptions{})
		if err != nil || !podReady(p) {
			return "db-0 is not ready", err
		}
		return "", nil
	})
	pids := kubelets(t, s)
	signal(t, s, "a", syscall.SIGSTOP)
	require.NoError(t, s.Machines.MachineV1alpha1().Machines(s.Namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}))
	deleted := machine(t, s, "a").DeletionTimestamp.Time
	s.Wait(t, patience, "the machine is gone", gone(s, "a"))
	require.GreaterOrEqual(t, deletionBegan(s, "a").Sub(deleted), timeout, "the kubelet had the time of the drain")
	s.Wait(t, patience, "its kubelet has ended", ended(pids))
	require.NoError(t, s.Client.AppsV1().StatefulSets(s.Namespace).Delete(t.Context(), "db", metav1.DeleteOptions{}))
	removeAll(t, s)
}

// TestKubelets_OrphanVM_IsDeletedWithItsProcess removes a machine without its finalizer, so that its
// kubelet is an orphan.
func TestKubelets_OrphanVM_IsDeletedWithItsProcess(t *testing.T) {
	t.Parallel()
	o := withShortLease(kubeletOptions())
	o.Bounds.Foreign = func(vm drivertest.VM) bool { return vm.Machine == "lost" }
	s := cluster.Set(t, "orphan", o)
	manager := s.StartManager(t, "manager")
	require.NoError(t, s.Class(t.Context(), "small"))
	for _, name := range []string{"lost", "stays"} {
		create(t, s, s.Machine(name, "small"))
	}
	for _, name := range []string{"lost", "stays"} {
		s.Wait(t, patience, "it runs", running(s, name))
	}
	pids, api := kubelets(t, s), s.Machines.MachineV1alpha1().Machines(s.Namespace)
	manager.Kill() // it would put the finalizer back
	_, err := api.Patch(t.Context(), "lost", mergePatch, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, api.Delete(t.Context(), "lost", metav1.DeleteOptions{}))
	s.Start(t, manager)
	s.Wait(t, patience, "its VM is gone", vmless(s, "lost"))
	s.Wait(t, patience, "its kubelet has ended", ended(map[string]int{"lost": pids["lost"]}))
	require.Equal(t, pids["stays"], s.Fleet.PID(s.NodeName("stays")))
	s.Wait(t, patience, "its Node is deleted with it", func(ctx context.Context) (string, error) {
		_, err := s.Client.CoreV1().Nodes().Get(ctx, s.NodeName("lost"), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "the Node exists", err
	})
	removeAll(t, s)
}
