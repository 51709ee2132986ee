// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// unused are the permissions that a manager has and does not use in this test,
// and why it has them.
var unused = map[string]string{
	"update machine.sapcloud.io/machinesets/finalizers":        "asked for by an admission plugin, not by a request",
	"update machine.sapcloud.io/machinedeployments/finalizers": "asked for by an admission plugin, not by a request",
	"update rbac.authorization.k8s.io/rolebindings":            "when the namespace is deleted: examples/e2e/scenarios",
	"machine-controller patch /events":                         "when an Event of a machine comes again with the same text",
	managerNamespace + ": create /events":                      "the leader election of controller-runtime: examples/e2e/scenarios",
}

// permissions are the verbs and resources of a role in the manifests, in a
// namespace if it has one, each with the names that it is bound to.
func permissions(t *testing.T, program, name, in string) map[string][]string {
	t.Helper()
	objects, err := manifests.Access(manifests.Installation{Program: program, Machines: namespace, Manager: managerNamespace})
	require.NoError(t, err)
	all := map[string][]string{}
	for _, o := range objects {
		if !slices.Contains([]string{"Role", "ClusterRole"}, o.GetKind()) || o.GetName() != name || o.GetNamespace() != in {
			continue
		}
		var role rbacv1.ClusterRole // which has the rules of a Role too
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role))
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					key := fmt.Sprintf("%s %s/%s", verb, rule.APIGroups[0], resource)
					require.Len(t, rule.APIGroups, 1)
					require.NotContains(t, all, key, "stated twice")
					require.NotContains(t, key, "*")
					all[key] = rule.ResourceNames
				}
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

// asks is what a request asks for.
func asks(a clienttesting.Action) string {
	resource := a.GetResource().Group + "/" + a.GetResource().Resource
	if sub := a.GetSubresource(); sub != "" {
		resource += "/" + sub
	}
	return a.GetVerb() + " " + resource
}

// managerNamespace is that of the manager and its lease.
const managerNamespace = "manager"

// judge compares the requests of clients with what a role allows that is bound in a
// namespace, or in the cluster.
func judge(t *testing.T, program, role, in, bound string, requests ...[]clienttesting.Action) {
	t.Helper()
	allowed, used := permissions(t, program, role, in), map[string]bool{}
	for _, a := range slices.Concat(requests...) {
		if a.GetResource().Resource == "resource" || strings.HasPrefix(asks(a), "get /resource") {
			continue // discovery, which everybody may ask for
		}
		names, ok := allowed[asks(a)]
		require.True(t, ok, "%s does not allow: %s", role, asks(a))
		if named, has := a.(interface{ GetName() string }); has && len(names) > 0 {
			require.Contains(t, names, named.GetName(), asks(a))
		}
		if watched, ok := a.(clienttesting.WatchAction); ok && len(names) > 0 {
			require.Contains(t, names, strings.TrimPrefix(watched.GetWatchRestrictions().Fields.String(), "metadata.name="), asks(a))
		}
		if bound != "" {
			require.Equal(t, bound, a.GetNamespace(), asks(a))
		}
		used[asks(a)] = true
	}
	for _, permission := range slices.Sorted(maps.Keys(allowed)) {
		if unused[permission]+unused[program+" "+permission]+unused[in+": "+permission] == "" {
			require.True(t, used[permission], "%s allows an unused permission: %s", role, permission)
		} else {
			require.False(t, used[permission], "is used: %s", permission)
		}
	}
}

// ofSecrets parts requests to the cluster which the machines join: those about
// secrets, and the others.
func ofSecrets(all []clienttesting.Action) (secrets, others []clienttesting.Action) {
	for _, a := range all {
		if a.GetResource().Resource == "secrets" {
			secrets = append(secrets, a)
		} else {
			others = append(others, a)
		}
	}
	return secrets, others
}

// onlyTokens checks that no secrets are looked at but bootstrap tokens of machines.
func onlyTokens(t *testing.T, requests []clienttesting.Action) {
	t.Helper()
	for _, a := range requests {
		var labels fmt.Stringer
		switch a := a.(type) {
		case clienttesting.ListAction:
			labels = a.GetListRestrictions().Labels
		case clienttesting.WatchAction:
			labels = a.GetWatchRestrictions().Labels
		default:
			continue
		}
		require.Equal(t, v1alpha1.TokenOwnerLabel, labels.String(), asks(a))
	}
}

// groups checks the groups of the bootstrap tokens that were made, of which there
// is at least one.
func groups(t *testing.T, requests []clienttesting.Action, want string) {
	t.Helper()
	made := 0
	for _, a := range requests {
		create, ok := a.(clienttesting.CreateAction)
		if !ok {
			continue
		}
		secret, ok := create.GetObject().(*corev1.Secret)
		require.True(t, ok)
		require.Equal(t, want, string(secret.Data["auth-extra-groups"]))
		made++
	}
	require.NotZero(t, made)
}

// attached says that a volume is attached to a Node that will not detach it.
func (r *harness) attached(node string) {
	r.Helper()
	volume := "pv"
	require.NoError(r, r.target.Add(&storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "attached-to-" + node},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "csi", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	}))
	nodes := r.target.Client().CoreV1().Nodes()
	n, err := nodes.Get(r.Context(), node, metav1.GetOptions{})
	require.NoError(r, err)
	n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/csi/csi^v"}}
	_, err = nodes.UpdateStatus(r.Context(), n, metav1.UpdateOptions{})
	require.NoError(r, err)
}

// told checks that there is an event.
func (r *harness) told(kind, reason, message string) {
	r.Helper()
	list, err := r.control.Client().CoreV1().Events(namespace).List(r.Context(), metav1.ListOptions{})
	require.NoError(r, err)
	require.True(r, slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.Kind == kind && e.Reason == reason && strings.HasPrefix(e.Message, message)
	}), "no event %s %s %s", kind, reason, message)
}

// runners are the processes of a scenario: one that runs all controllers, or the two programs.
// All of them lead when it returns.
func (r *harness) runners(servers map[string]*options.MCServer) map[string]*process {
	r.Helper()
	all := map[string]*process{}
	for account, s := range servers {
		p := r.prepareAs(s)
		if s.Part() == controllers.Sets {
			p.driver = nil
		}
		if s.Part() != controllers.Sets {
			p.s.OrphanVMsGrace, p.s.OrphanVMsPeriod = 50*time.Millisecond, 50*time.Millisecond
			p.s.TokenGroups = "system:bootstrappers:a, system:bootstrappers:b"
		}
		p.s.LeaderElection.ResourceNamespace = managerNamespace
		all[account] = p.start()
	}
	return all
}

func TestManifests_OneProgram_AllowWhatIsDoneAndNothingElse(t *testing.T) {
	manifestsAllow(t, map[string]*options.MCServer{manifests.ServiceAccount: options.NewManagerServer()})
}

func TestManifests_TwoPrograms_AllowWhatIsDoneAndNothingElse(t *testing.T) {
	manifestsAllow(t, map[string]*options.MCServer{
		manifests.MachineController: options.NewMCServer(), manifests.MachineControllerManager: options.NewMCMServer(),
	})
}

// manifestsAllow lets programs do everything that they ever do, and compares their requests with
// the roles of their service accounts.
func manifestsAllow(t *testing.T, servers map[string]*options.MCServer) {
	t.Helper()
	r := newHarness(t)
	runners := r.runners(servers)
	r.class("c")
	r.class("spare")
	ctx, api := t.Context(), r.machines.MachineV1alpha1()
	labels := map[string]string{"app": "d"}

	// Orphans of all kinds: a machine and a set that are adopted, a VM that is deleted.
	r.machine("stray", "c", func(m *v1alpha1.Machine) { m.Labels = labels })
	template := v1alpha1.MachineTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: v1alpha1.MachineSpec{
			Class:                v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "c"},
			MachineConfiguration: &v1alpha1.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: 3 * time.Second}},
		},
	}
	_, err := api.MachineSets(namespace).Create(ctx, &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Name: "stray", Labels: labels},
		Spec:       v1alpha1.MachineSetSpec{Replicas: 1, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	r.eventually("adopted by a set", func() bool {
		m, err := api.Machines(namespace).Get(ctx, "stray", metav1.GetOptions{})
		return err == nil && len(m.OwnerReferences) == 1 && m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning
	})
	surge, none := intstr.FromInt32(1), intstr.FromInt32(0)
	_, err = api.MachineDeployments(namespace).Create(ctx, &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: 1, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type:          v1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &none}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	complete := func() bool {
		d, err := api.MachineDeployments(namespace).Get(ctx, "d", metav1.GetOptions{})
		return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == d.Spec.Replicas && d.Status.Replicas == d.Spec.Replicas &&
			d.Status.AvailableReplicas == d.Spec.Replicas
	}
	r.eventually("complete", complete)
	owned, err := api.MachineSets(namespace).Get(ctx, "stray", metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, owned.OwnerReferences, 1, "adopted by the deployment")
	r.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: "orphan", Class: "c"})
	r.eventually("the orphan gone", func() bool { return len(r.cloud.Snapshot().VMs) == 1 })

	// A roll-out, up and down, what a set pushes into its machines, what the machine pushes into its Node.
	deploy := func(patch string) {
		t.Helper()
		_, err := api.MachineDeployments(namespace).Patch(ctx, "d", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
		r.eventually(patch, complete)
	}
	deploy(`{"spec":{"replicas":3}}`)
	deploy(`{"spec":{"template":{"spec":{"class":{"name":"spare"}}}}}`)
	deploy(`{"spec":{"replicas":1}}`)
	deploy(`{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"a":"b"}}}}}}}`)

	// Pods that are evicted, and one that is not and is deleted when the time is over.
	machines, err := api.Machines(namespace).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, machines.Items, 1)
	m := &machines.Items[0]
	keep := intstr.FromInt32(1)
	require.NoError(t, r.target.Add(
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pdb"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &keep, Selector: &metav1.LabelSelector{MatchLabels: labels}},
		},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "guarded", Labels: labels},
			Spec:       corev1.PodSpec{NodeName: m.Labels[v1alpha1.NodeLabelKey]},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "free"}, Spec: corev1.PodSpec{NodeName: m.Labels[v1alpha1.NodeLabelKey]}},
	))
	r.eventually("the pod is seen", func() bool { return r.target.Watching("pods") > 0 })
	r.attached(m.Labels[v1alpha1.NodeLabelKey])
	require.NoError(t, api.Machines(namespace).Delete(ctx, m.Name, metav1.DeleteOptions{}))
	r.eventually("replaced", func() bool { return r.phase(m.Name) == "gone" && complete() })

	// Creations that fail tell so again and again.
	remove := r.control.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "create", Resource: "machines", Times: 5})
	deploy(`{"spec":{"replicas":2}}`)
	remove()

	defer r.control.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "delete", Resource: "machines", Match: func(c draintest.Call) bool {
		return c.Namespace == namespace && c.Name != m.Name
	}, Times: 1})()

	// A Node is deleted, and then its machine.
	machines, err = api.Machines(namespace).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	m = &machines.Items[0]
	r.target.Inject(draintest.Fault{ // another writer: a conflict, and it is read again
		Kind: draintest.Conflict, Verb: "patch", Resource: "nodes/status", Name: m.Labels[v1alpha1.NodeLabelKey], Times: 3,
	})
	require.NoError(t, r.target.Client().CoreV1().Nodes().Delete(ctx, m.Labels[v1alpha1.NodeLabelKey], metav1.DeleteOptions{}))
	r.eventually("replaced", func() bool { return r.phase(m.Name) == "gone" && complete() })

	// The end of everything.
	require.NoError(t, api.MachineDeployments(namespace).Delete(ctx, "d", metav1.DeleteOptions{}))
	r.eventually("no machines", func() bool {
		list, err := api.Machines(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
	for _, name := range []string{"c", "spare"} {
		require.NoError(t, api.MachineClasses(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
		require.NoError(t, r.control.Client().CoreV1().Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
	}
	r.eventually("no secrets", func() bool {
		list, err := r.control.Client().CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
	var said strings.Builder
	for account, p := range runners {
		p.end()
		require.NoError(t, p.result())
		said.WriteString(p.logs.String())
		p.judge(t, account)
	}
	r.told("MachineSet", "SuccessfulCreate", "Created Machine: d-")
	r.told("MachineSet", "FailedCreate", "Error creating: ")
	r.told("MachineSet", "SuccessfulDelete", "Deleted machine: ")
	r.told("MachineSet", "FailedDelete", "Error deleting: ")
	r.told("MachineDeployment", "ScalingMachineSet", "Scaled up machine set d-")
	r.told("MachineDeployment", "ScalingMachineSet", "Scaled down machine set d-")
	require.NotContains(t, said.String(), hunter2)
}

// judge compares the requests of a program with the roles of its service account.
func (p *process) judge(t *testing.T, account string) {
	t.Helper()
	judge(t, account, account+"-control:default", "", namespace, p.machines.Actions(), p.secrets.Actions(), p.events.Actions())
	judge(t, account, account+":default", managerNamespace, managerNamespace, p.leases.Actions())
	tokens, others := ofSecrets(p.nodes.Actions())
	judge(t, account, account+":default", "", "", others)
	if p.s.Part() == controllers.Sets {
		require.Empty(t, tokens)
		return
	}
	judge(t, account, account+":default", metav1.NamespaceSystem, metav1.NamespaceSystem, tokens)
	onlyTokens(t, tokens)
	groups(t, tokens, "system:bootstrappers:a,system:bootstrappers:b")
}
