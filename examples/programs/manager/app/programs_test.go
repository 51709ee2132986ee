// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// set makes a set of machines of a class.
func (r *harness) set(name, class string, replicas int32, labels map[string]string) {
	r.Helper()
	own := map[string]string{"set": name}
	_, err := r.machines.MachineV1alpha1().MachineSets(namespace).Create(r.Context(), &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: v1alpha1.MachineSetSpec{Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: own}, Template: v1alpha1.MachineTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: own},
			Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: class}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(r, err)
}

// running counts the machines that run.
func (r *harness) running() (n int) {
	r.Helper()
	list, err := r.machines.MachineV1alpha1().Machines(namespace).List(r.Context(), metav1.ListOptions{})
	require.NoError(r, err)
	for _, m := range list.Items {
		if m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
			n++
		}
	}
	return n
}

// asked returns the resources that a client was asked for with any of the verbs, or with any
// verb if none is given.
func asked(actions []clienttesting.Action, verbs ...string) (resources []string) {
	for _, a := range actions {
		if (len(verbs) == 0 || slices.Contains(verbs, a.GetVerb())) && !slices.Contains(resources, a.GetResource().Resource) {
			resources = append(resources, a.GetResource().Resource)
		}
	}
	return resources
}

func TestPrograms_BesideEachOther_ShareTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.class("c")
		sets := r.prepareAs(options.NewMCMServer())
		sets.driver = nil
		sets.start()
		machines := r.prepareAs(options.NewMCServer()).start()
		r.eventually("both lead", func() bool { return sets.works() && machines.works() })
		r.set("s", "c", 2, nil)
		r.eventually("all run", func() bool { return r.running() == 2 })

		require.Equal(t, []string{"rolebindings"}, asked(sets.secrets.Actions()), "the machine-controller-manager reads no secret")
		require.NotContains(t, asked(sets.machines.Actions()), "machineclasses")
		require.NotContains(t, asked(sets.nodes.Actions()), "secrets")
		require.NotContains(t, asked(sets.nodes.Actions()), "pods")
		write := []string{"create", "update", "patch", "delete"}
		require.Equal(t, []string{"machineclasses", "machines"}, slices.Sorted(slices.Values(asked(machines.machines.Actions(), write...))))
		require.NotContains(t, asked(machines.machines.Actions(), "get"), "machinesets")
		for p, component := range map[*process]string{sets: "machine-controller-manager", machines: "machine-controller"} {
			p.end()
			require.NoError(t, p.result())
			told := 0
			for _, a := range p.events.Actions() {
				if create, ok := a.(clienttesting.CreateAction); ok {
					told++
					require.Equal(t, component, create.GetObject().(*corev1.Event).Source.Component) //nolint:forcetypeassert // nothing else is created
				}
			}
			require.Equal(t, p == sets, told > 0, "of a life without failures only the set has Events")
		}
	})
}

// served is a client whose API server serves machines and classes, and the other kinds when all
// is true.
type served struct {
	versioned.Interface
	all *atomic.Bool
}

func (s served) Discovery() discovery.DiscoveryInterface {
	return servedKinds{s.Interface.Discovery(), s.all}
}

// IsWatchListSemanticsUnSupported says so of the client inside, which is looked for by name.
func (served) IsWatchListSemanticsUnSupported() bool { return true }

type servedKinds struct {
	discovery.DiscoveryInterface
	all *atomic.Bool
}

func (s servedKinds) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "machines"}, {Name: "machineclasses"}}}
	if s.all.Load() {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: "machinesets"}, metav1.APIResource{Name: "machinedeployments"})
	}
	return list, nil
}

func TestMachineController_WithoutSets_RunsMachinesAloneAndEndsWhenTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		var all atomic.Bool
		p := r.prepareAs(options.NewMCServer())
		p.clients.machines = served{p.clients.machines, &all}
		p.start()
		r.class("c")
		r.machine("m", "c")
		r.eventually("it runs", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
		require.NotContains(t, asked(p.machines.Actions()), "machinesets")
		require.NotContains(t, asked(p.machines.Actions()), "machinedeployments")
		require.Contains(t, p.logs.String(), "only machines are reconciled")

		all.Store(true)
		began := time.Now()
		require.ErrorIs(t, p.result(), ErrSetsServed)
		require.Less(t, time.Since(began), servedPeriod+time.Second)
		again := r.prepareAs(options.NewMCServer())
		again.clients.machines = served{again.clients.machines, &all}
		again.start()
		r.eventually("the next process leads", again.works)
		require.Contains(t, asked(again.machines.Actions(), "list"), "machinesets")
	})
}

func TestServed_KindsAreMissing_OnlyTheMachineControllerRuns(t *testing.T) {
	kinds := func(names ...string) *metav1.APIResourceList {
		list := &metav1.APIResourceList{}
		for _, name := range names {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		return list
	}
	const machines, classes, sets, deployments = "machines", "machineclasses", "machinesets", "machinedeployments"
	for name, tc := range map[string]struct {
		server *options.MCServer
		list   *metav1.APIResourceList
		want   controllers.Part
		bad    bool
	}{
		"machine-controller, all":          {options.NewMCServer(), kinds(machines, classes, sets, deployments), controllers.Machines, false},
		"machine-controller, machines":     {options.NewMCServer(), kinds(machines, classes), controllers.MachinesAlone, false},
		"machine-controller, no classes":   {options.NewMCServer(), kinds(machines), 0, true},
		"machine-controller, one of two":   {options.NewMCServer(), kinds(machines, classes, sets), 0, true},
		"machine-controller, nothing":      {options.NewMCServer(), nil, 0, true},
		"machine-controller-manager, half": {options.NewMCMServer(), kinds(machines, classes), 0, true},
		"machine-controller-manager, all":  {options.NewMCMServer(), kinds(machines, classes, sets, deployments), controllers.Sets, false},
		"manager, machines":                {options.NewManagerServer(), kinds(machines, classes), 0, true},
		"manager, all":                     {options.NewManagerServer(), kinds(machines, classes, sets, deployments), controllers.All, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newHarness(t).prepareAs(tc.server)
			part, err := m.runs(tc.list)
			if tc.bad {
				require.ErrorIs(t, err, ErrNotServed)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, part)
		})
	}
}

// TestShards_TwoProcesses_EachActsOnItsOwnObjects has two sets of ten machines, one in each shard, so that each shard
// has half of the work.
func TestShards_TwoProcesses_EachActsOnItsOwnObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.class("c")
		blue := options.NewManagerServer()
		blue.Shard = "blue"
		colored, plain := r.prepareAs(blue).start(), r.prepare().start()
		r.eventually("both lead", func() bool { return colored.works() && plain.works() })
		r.set("blue", "c", 10, map[string]string{v1alpha1.ShardLabelKey: "blue"})
		r.set("plain", "c", 10, nil)
		r.eventually("all run", func() bool { return r.running() == 20 })
		all := map[string]int{}
		for p, prefix := range map[*process]string{colored: "blue", plain: "plain"} {
			written := 0
			for _, a := range p.machines.Actions() {
				if slices.Contains([]string{"get", "list", "watch"}, a.GetVerb()) || a.GetResource().Resource == "machineclasses" {
					continue
				}
				written++
				require.True(t, strings.HasPrefix(nameIn(t, a), prefix), "%s %s", asks(a), nameIn(t, a))
			}
			require.NotZero(t, written)
			all[prefix] = len(p.machines.Actions()) + len(p.secrets.Actions()) + len(p.nodes.Actions())
		}
		require.InEpsilon(t, all["plain"], all["blue"], 0.1)
		require.NotContains(t, asked(colored.machines.Actions(), "update"), "machineclasses", "the class is not of the shard")
	})
}

func TestAccess_EachProgram_WaitsForWhatNeedsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		server        *options.MCServer
		binding       string
		machine, sets bool
	}{
		"machine-controller":         {options.NewMCServer(), "machine-controller-control", true, false},
		"machine-controller-manager": {options.NewMCMServer(), "machine-controller-manager-control", false, true},
		"manager":                    {options.NewManagerServer(), "machinist-control", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t)
			p := r.prepareAs(tc.server)
			now := metav1.Now()
			objects := kubefake.NewClientset(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: tc.binding, DeletionTimestamp: &now, Finalizers: []string{manifests.AccessFinalizer},
			}})
			p.clients.control = objects
			waits := func(text string, needed bool) {
				t.Helper()
				got, err := p.releaseOnce(t.Context())
				require.NoError(t, err)
				require.Equal(t, needed, strings.Contains(got, text), got)
			}
			api := r.machines.MachineV1alpha1()
			r.machine("m", "c")
			if tc.machine {
				waits("1 machines", true)
			}
			r.set("s", "c", 1, nil)
			if tc.sets {
				waits("1 machine sets", true)
			}
			require.NoError(t, api.Machines(namespace).Delete(t.Context(), "m", metav1.DeleteOptions{}))
			if tc.sets {
				waits("1 machine sets", true)
				require.NoError(t, api.MachineSets(namespace).Delete(t.Context(), "s", metav1.DeleteOptions{}))
			}
			_, err := objects.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Name: "c", Finalizers: []string{v1alpha1.MCFinalizerName},
			}}, metav1.CreateOptions{})
			require.NoError(t, err)
			if tc.machine {
				waits("1 of their secrets", true)
				require.NoError(t, objects.CoreV1().Secrets(namespace).Delete(t.Context(), "c", metav1.DeleteOptions{}))
			}
			waits("", true)
			binding, err := objects.RbacV1().RoleBindings(namespace).Get(t.Context(), tc.binding, metav1.GetOptions{})
			if err == nil {
				require.Empty(t, binding.Finalizers, "released")
			}
		})
	}
}

func TestRunContext_NoDriver_OnlyTheMachineControllerManagerRuns(t *testing.T) {
	for _, s := range []*options.MCServer{options.NewMCServer(), options.NewManagerServer()} {
		s.TargetKubeconfig = "/no/such/file"
		require.ErrorIs(t, RunContext(t.Context(), s, nil), errNoDriver)
	}
	s := options.NewMCMServer()
	s.TargetKubeconfig = "/no/such/file"
	require.ErrorContains(t, RunContext(t.Context(), s, nil), "--target-kubeconfig")
}

// nameIn returns the name of the object that a request writes or deletes.
func nameIn(t *testing.T, a clienttesting.Action) string {
	t.Helper()
	if written, ok := a.(interface{ GetObject() runtime.Object }); ok {
		object, err := meta.Accessor(written.GetObject())
		require.NoError(t, err)
		return object.GetName()
	}
	named, ok := a.(interface{ GetName() string })
	require.True(t, ok, "%T", a)
	return named.GetName()
}
