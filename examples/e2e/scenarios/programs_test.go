// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// allowLeases lets the account of the environment hold more leases than that of a manager.
func allowLeases(t *testing.T, s *env.Env, names ...string) {
	t.Helper()
	const name = "more-leases"
	client, meta := s.Client.RbacV1(), metav1.ObjectMeta{Namespace: s.ManagerNamespace(), Name: name}
	_, err := client.Roles(meta.Namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: names, Verbs: []string{"get", "watch", "update"},
	}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.RoleBindings(meta.Namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: manifests.ServiceAccount}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestPrograms_EachKilledDuringARoll_BreakNoBound(t *testing.T) {
	t.Parallel()
	o := withShortLease(fastOptions())
	s := cluster.Set(t, "programs", o)
	common := []string{"--kube-api-qps=100", "--kube-api-burst=200"}
	for _, flag := range o.Flags {
		if strings.HasPrefix(flag, "--leader-elect") {
			common = append(common, flag)
		}
	}
	machines := s.Program(manifests.MachineController, "machines", append(common,
		"--machine-settle-time=2s", "--machine-safety-orphan-vms-period=2s", "--machine-safety-orphan-vms-grace=5s")...)
	sets := s.Program(manifests.MachineControllerManager, "sets", common...)
	s.Start(t, machines)
	s.Start(t, sets)
	deploy(t, s, s.Deployment("workers", "small", 10, 2, 1))

	seen := watchCloud(t, s)
	roll(t, s, "workers", "large")
	for _, kill := range []struct {
		moment   drivertest.EventKind
		programs []*env.Manager
	}{
		{drivertest.VMCreated, []*env.Manager{machines}},
		{drivertest.VMDeletionBegan, []*env.Manager{sets}},
		{drivertest.VMCreated, []*env.Manager{sets, machines}},
		{drivertest.VMReady, []*env.Manager{machines, sets}},
	} {
		await(t, seen, kill.moment)
		before := map[*env.Manager]int{}
		for _, p := range kill.programs {
			p.Kill()
			before[p] = strings.Count(p.Log(), "msg=works")
		}
		missing, err := s.Complete("workers")(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, missing, "the roll is over before the processes were killed")
		for _, p := range kill.programs {
			s.Start(t, p)
		}
		for _, p := range kill.programs {
			s.Wait(t, patience, "the next process leads", leads(p.Log, before[p]+1))
		}
		for len(seen) > 0 {
			<-seen
		}
	}
	s.Wait(t, patience, "rolled", s.Complete("workers"))
	for kind, log := range map[string]string{"machine": sets.Log(), "machineset": machines.Log(), "machinedeployment": machines.Log()} {
		require.NotContains(t, log, "msg=decided kind="+kind+" ", "each program does its part alone")
	}
	removeAll(t, s)
}

// TestNamespace_DeletedUnderTwoPrograms_MachinesGoAndThenTheNamespace asserts that each program keeps its access to the namespace while an object there needs it.
func TestNamespace_DeletedUnderTwoPrograms_MachinesGoAndThenTheNamespace(t *testing.T) {
	t.Parallel()
	o := fastOptions()
	var deleted atomic.Pointer[time.Time]
	o.AllowDenied = func(r controlplane.Request) bool { // the namespace takes nothing new, and a binding that is released allows nothing
		at := deleted.Load()
		return r.Code == http.StatusForbidden && r.Namespace != metav1.NamespaceSystem && at != nil && r.Time.After(*at)
	}
	s := cluster.Set(t, "parted", o)
	machines := s.Program(manifests.MachineController, "machines", "--machine-settle-time=2s", "--machine-safety-orphan-vms-period=2s", "--machine-safety-orphan-vms-grace=5s")
	sets := s.Program(manifests.MachineControllerManager, "sets")
	s.Start(t, machines)
	s.Start(t, sets)
	deploy(t, s, s.Deployment("workers", "small", 4, 1, 4))
	ctx, namespaces := t.Context(), s.Client.CoreV1().Namespaces()
	_, err := s.Client.RbacV1().RoleBindings(s.Namespace).Patch(ctx, manifests.AccessBinding(manifests.ServiceAccount), mergePatch,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}) // of the manager, which does not run
	require.NoError(t, err)

	deleted.Store(new(time.Now()))
	require.NoError(t, namespaces.Delete(ctx, s.Namespace, metav1.DeleteOptions{}))
	s.Wait(t, namespacePatience, "the namespace is gone", env.Gone("namespace", namespaces.Get, s.Namespace))
	s.Wait(t, patience, "nothing is left", s.NothingLeft)
	for _, p := range []*env.Manager{machines, sets} {
		require.True(t, p.Running())
		require.Contains(t, p.Log(), "is released: nothing is left there")
	}
}

// decided finds the objects that a manager decided about.
var decided = regexp.MustCompile(`kind=(machine|machineset|machinedeployment|machineclass) key=[^/ ]+/([a-z]+)`)

// inShard creates a class and a deployment of a shard.
func inShard(t *testing.T, s *env.Env, shard, name string) {
	t.Helper()
	ctx, api := t.Context(), s.Machines.MachineV1alpha1()
	_, err := s.Client.CoreV1().Secrets(s.Namespace).Create(ctx, s.Cloud.Secret(s.Namespace, name), metav1.CreateOptions{})
	require.NoError(t, err)
	class, d := s.Cloud.MachineClass(s.Namespace, name), s.Deployment(name, name, 2, 1, 0)
	if shard != "" {
		class.Labels, d.Labels = map[string]string{v1alpha1.ShardLabelKey: shard}, map[string]string{v1alpha1.ShardLabelKey: shard}
	}
	_, err = api.MachineClasses(s.Namespace).Create(ctx, class, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = api.MachineDeployments(s.Namespace).Create(ctx, d, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestShards_FourManagers_EachObjectHasOne(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "shards", withShortLease(fastOptions()))
	allowLeases(t, s, "machine-controller-blue", "machine-controller-manager-blue", "machine-controller-green", "machine-controller-manager-green")
	blue := s.StartManager(t, "blue", "--shard=blue")
	s.Wait(t, patience, "blue leads", leads(blue.Log, 1))
	standby, green, plain := s.StartManager(t, "standby", "--shard=blue"), s.StartManager(t, "green", "--shard=green"), s.StartManager(t, "plain")
	for name, shard := range map[string]string{"blue": "blue", "green": "green", "plain": ""} {
		inShard(t, s, shard, name)
	}
	for _, name := range []string{"blue", "green", "plain"} {
		s.Wait(t, patience, "all machines run", s.Complete(name))
	}
	require.False(t, composition(env.Controllers).acted(standby), "two managers of one shard have one lease")
	for _, m := range machines(t, s) {
		want := m.Labels["name"]
		if want == "plain" {
			want = ""
		}
		require.Equal(t, want, m.Labels[v1alpha1.ShardLabelKey], m.Name)
	}

	blue.Kill()
	inShard(t, s, "blue", "bluer")
	change(t, s, "blue", `{"spec":{"template":{"spec":{"class":{"name":"bluer"}}}}}`)
	s.Wait(t, patience, "the standby of the shard leads", leads(standby.Log, 1))
	s.Wait(t, patience, "rolled", func(ctx context.Context) (string, error) {
		d, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Get(ctx, "blue", metav1.GetOptions{})
		if err != nil || d.Status.ObservedGeneration < d.Generation {
			return "the change is not seen", err
		}
		return s.Complete("blue")(ctx)
	})
	for _, m := range machines(t, s) {
		if m.Labels["name"] == "blue" {
			require.Equal(t, "bluer", m.Spec.Class.Name)
			require.Equal(t, "blue", m.Labels[v1alpha1.ShardLabelKey], m.Name)
		}
	}
	removeAll(t, s)
	for m, want := range map[*env.Manager]string{blue: "blue", standby: "blue", green: "green", plain: "plain"} {
		objects := decided.FindAllStringSubmatch(m.Log(), -1)
		require.NotEmpty(t, objects)
		for _, o := range objects {
			require.True(t, strings.HasPrefix(o[2], want), o[0])
		}
	}
}

// reshard returns what the API server says to another shard of an object, or to an annotation.
func reshard[T any](ctx context.Context, patch func(context.Context, string, []byte) (T, error), name string) (shard, annotation error) {
	_, shard = patch(ctx, name, []byte(`{"metadata":{"labels":{"`+v1alpha1.ShardLabelKey+`":"green"}}}`))
	_, annotation = patch(ctx, name, []byte(`{"metadata":{"annotations":{"a":"b"},"labels":{"c":"d"}}}`))
	return shard, annotation
}

func TestShards_LabelChanged_IsRefused(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "relabelled", fastOptions())
	ctx, api := t.Context(), s.Machines.MachineV1alpha1()
	inShard(t, s, "", "plain")
	inShard(t, s, "blue", "blue")
	template := s.Deployment("x", "x", 1, 1, 0).Spec.Template
	for _, name := range []string{"blue", "plain"} {
		meta := metav1.ObjectMeta{Name: name}
		if name == "blue" {
			meta.Labels = map[string]string{v1alpha1.ShardLabelKey: name}
		}
		m := s.Machine(name, name)
		m.ObjectMeta = meta
		create(t, s, m)
		_, err := api.MachineSets(s.Namespace).Create(ctx, &v1alpha1.MachineSet{ObjectMeta: meta, Spec: v1alpha1.MachineSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		for kind, change := range map[string]func() (error, error){
			"machine": func() (error, error) {
				return reshard(ctx, func(ctx context.Context, name string, data []byte) (*v1alpha1.Machine, error) {
					return api.Machines(s.Namespace).Patch(ctx, name, mergePatch, data, metav1.PatchOptions{})
				}, name)
			},
			"set": func() (error, error) {
				return reshard(ctx, func(ctx context.Context, name string, data []byte) (*v1alpha1.MachineSet, error) {
					return api.MachineSets(s.Namespace).Patch(ctx, name, mergePatch, data, metav1.PatchOptions{})
				}, name)
			},
			"deployment": func() (error, error) {
				return reshard(ctx, func(ctx context.Context, name string, data []byte) (*v1alpha1.MachineDeployment, error) {
					return api.MachineDeployments(s.Namespace).Patch(ctx, name, mergePatch, data, metav1.PatchOptions{})
				}, name)
			},
			"class": func() (error, error) {
				return reshard(ctx, func(ctx context.Context, name string, data []byte) (*v1alpha1.MachineClass, error) {
					return api.MachineClasses(s.Namespace).Patch(ctx, name, mergePatch, data, metav1.PatchOptions{})
				}, name)
			},
		} {
			shard, annotation := change()
			require.ErrorContains(t, shard, "the label machinist.dev/shard cannot change", "%s %s", kind, name)
			require.True(t, apierrors.IsInvalid(shard), shard)
			require.NoError(t, annotation, "%s %s", kind, name)
		}
	}
	_, err := api.Machines(s.Namespace).Patch(ctx, "blue", mergePatch, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsInvalid(err), "the label is not taken away either: %v", err)
	for _, name := range []string{"blue", "plain"} { // no manager runs that would take finalizers away
		require.NoError(t, api.Machines(s.Namespace).Delete(ctx, name, metav1.DeleteOptions{}))
	}
}
