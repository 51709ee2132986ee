// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	typed "github.com/machinist-dev/machinist/machine/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// tenantOf returns the client of a service account that may write the machines of the environment
// and nothing else.
func tenantOf(t *testing.T, s *env.Env) typed.MachineInterface {
	t.Helper()
	ctx, meta := t.Context(), metav1.ObjectMeta{Namespace: s.Namespace, Name: "tenant"}
	_, err := s.Client.CoreV1().ServiceAccounts(s.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.Client.RbacV1().Roles(s.Namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"machines"}, Verbs: []string{"create", "get", "list", "watch", "update", "patch", "delete"},
	}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.Client.RbacV1().RoleBindings(s.Namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: meta.Name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	config, err := s.Cluster.ControlPlane.ServiceAccount(ctx, meta.Namespace, meta.Name)
	require.NoError(t, err)
	client, err := versioned.NewForConfig(config)
	require.NoError(t, err)
	machines := client.MachineV1alpha1().Machines(s.Namespace)
	s.Wait(t, patience, "the tenant may read machines", func(ctx context.Context) (string, error) {
		_, err := machines.List(ctx, metav1.ListOptions{})
		return "", err
	})
	nodes, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = nodes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "the tenant has no right on Nodes: %v", err)
	_, err = machines.UpdateStatus(ctx, s.Machine("none", "small"), metav1.UpdateOptions{})
	require.True(t, apierrors.IsForbidden(err), "nor on the status of machines: %v", err)
	return machines
}

// otherNode is a Node that is not that of any machine of the tenant.
type otherNode struct {
	name  string
	since time.Time // before it joined, its name may have been that of another Node
	pods  []string  // namespace/name
}

// otherNodes are Nodes with kubelets, pods and attached volumes.
type otherNodes struct {
	s     *env.Env
	nodes []otherNode
}

// join creates Nodes by their provider IDs, and waits until each is Ready and has two pods, one of
// them in kube-system, and an attached volume.
func (o *otherNodes) join(t *testing.T, ids map[string]string) {
	t.Helper()
	since := time.Now()
	up := since.Add(-time.Minute)
	var vms []hollow.VM
	for name, id := range ids {
		vms = append(vms, hollow.VM{ProviderID: id, NodeName: name, UpSince: up})
	}
	kubelets := &hollow.Nodes{Client: o.s.Client, LeaseInterval: 5 * time.Second, PodStopTime: 300 * time.Millisecond, VMs: func() []hollow.VM { return vms }}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = kubelets.Run(ctx) // fails only without a client
	}()
	t.Cleanup(func() { end(); <-done })
	for name := range ids {
		o.add(t, name, since)
	}
}

// add waits until a Node is settled, with two pods and an attached volume.
func (o *otherNodes) add(t *testing.T, name string, since time.Time) {
	t.Helper()
	ctx, n := t.Context(), otherNode{name: name, since: since}
	o.s.Wait(t, patience, "node "+name+" is ready", func(ctx context.Context) (string, error) {
		node, err := o.s.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil || len(node.Spec.Taints) > 0 || node.Annotations[ttlAnnotation] == "" {
			return "controllers of Kubernetes have not finished with it", err
		}
		return "", nil
	})
	for _, namespace := range []string{o.s.Namespace, metav1.NamespaceSystem} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "on-" + name},
			Spec: corev1.PodSpec{
				NodeName: name, TerminationGracePeriodSeconds: new(int64(1)), AutomountServiceAccountToken: new(false),
				Containers: []corev1.Container{{Name: "app", Image: "hollow"}},
			},
		}
		_, err := o.s.Client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		require.NoError(t, err)
		n.pods = append(n.pods, namespace+"/"+pod.Name)
		o.s.Wait(t, patience, "pod "+namespace+"/"+pod.Name+" runs", func(ctx context.Context) (string, error) {
			now, err := o.s.Client.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
			if err != nil || now.Status.Phase != corev1.PodRunning {
				return "it does not run", err
			}
			return "", nil
		})
	}
	volume := "of-" + name
	_, err := o.s.Client.StorageV1().VolumeAttachments().Create(ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: csiDriver, NodeName: name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	o.nodes = append(o.nodes, n)
}

// ttlAnnotation is set by a controller of Kubernetes.
const ttlAnnotation = "node.alpha.kubernetes.io/ttl"

// belongings is what a machine could do to a Node, its pods and its volumes.
type belongings struct {
	UID                 types.UID
	Deleted, Cordoned   bool
	Labels, Annotations map[string]string
	Finalizers          []string
	Taints              []corev1.Taint
	Others              map[string]string // UIDs of pods and of the volume attachment, and whether they are being deleted
}

// belongings returns the present state of all Nodes.
func (o *otherNodes) belongings(t *testing.T) map[string]belongings {
	t.Helper()
	ctx, all := t.Context(), map[string]belongings{}
	state := func(o metav1.Object) string {
		return fmt.Sprint(o.GetUID(), " deleted: ", o.GetDeletionTimestamp() != nil)
	}
	for _, n := range o.nodes {
		node, err := o.s.Client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		require.NoError(t, err, "the Node exists")
		b := belongings{
			UID: node.UID, Deleted: node.DeletionTimestamp != nil, Cordoned: node.Spec.Unschedulable, Labels: node.Labels,
			Annotations: node.Annotations, Finalizers: node.Finalizers, Taints: node.Spec.Taints, Others: map[string]string{},
		}
		for _, key := range n.pods {
			namespace, name, _ := strings.Cut(key, "/")
			pod, err := o.s.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			require.NoError(t, err, "the pod exists")
			b.Others[key] = state(pod)
		}
		attachment, err := o.s.Client.StorageV1().VolumeAttachments().Get(ctx, n.name, metav1.GetOptions{})
		require.NoError(t, err, "the volume stays attached")
		b.Others["volume attachment"] = state(attachment)
		all[n.name] = b
	}
	return all
}

// writes returns the requests of the managers that write the Nodes, their pods or their volume
// attachments.
func (o *otherNodes) writes(t *testing.T) (writes []string) {
	t.Helper()
	requests, err := o.s.Requests(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, requests)
	for _, r := range requests {
		about := func(n otherNode) bool {
			named := r.Name == n.name && (r.Resource == "nodes" || r.Resource == "volumeattachments")
			return r.Time.After(n.since) && (named || r.Resource == "pods" && slices.Contains(n.pods, r.Namespace+"/"+r.Name))
		}
		if !slices.Contains([]string{"get", "list", "watch"}, r.Verb) && slices.ContainsFunc(o.nodes, about) {
			writes = append(writes, fmt.Sprintf("%s %s %s %s/%s: %d", r.Verb, r.Resource, r.Subresource, r.Namespace, r.Name, r.Code))
		}
	}
	return writes
}

// remove deletes the Nodes and what they have.
func (o *otherNodes) remove(t *testing.T) {
	t.Helper()
	ctx, now := t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	for _, n := range o.nodes {
		for _, key := range n.pods {
			namespace, name, _ := strings.Cut(key, "/")
			require.NoError(t, o.s.Client.CoreV1().Pods(namespace).Delete(ctx, name, now))
		}
		require.NoError(t, o.s.Client.StorageV1().VolumeAttachments().Delete(ctx, n.name, now))
		require.NoError(t, o.s.Client.CoreV1().Nodes().Delete(ctx, n.name, now))
	}
}

// saidWhy holds when the status of a machine has named a Node, and why it is not that of the machine.
func saidWhy(s *env.Env, uid types.UID, node, why string) env.Condition {
	return func(context.Context) (string, error) {
		said := map[string]bool{}
		for _, c := range s.AuditLog().Changes {
			m, ok := c.Object.(*v1alpha1.Machine)
			if !ok || m.UID != uid {
				continue
			}
			for _, c := range m.Status.Conditions {
				if c.Type != v1alpha1.MachineValid {
					continue
				}
				said[c.Message] = true
				if c.Status == corev1.ConditionFalse && strings.Contains(c.Message, fmt.Sprintf("%q: the Node is not that of the machine, and is neither changed nor drained nor deleted: ", node)) &&
					strings.Contains(c.Message, why) {
					return "", nil
				}
			}
		}
		return fmt.Sprintf("the condition Valid was %v", said), nil
	}
}

// claim is a machine of the tenant that names a Node which is not its own.
type claim struct {
	machine string
	label   string // the Node that it names
	id      string // its provider ID
	node    string // the Node that it may reach by them
	why     string // part of the condition Valid
	refused bool   // CreateMachine never succeeds
}

// TestTenant_NodesOfOthers_StayAsTheyAre has a tenant that may write machines of one namespace, and
// has no right on Nodes. Its machines name Nodes of others by labels, provider IDs, and the name of
// a machine of another namespace, and Nodes come back with the VM of another owner.
func TestTenant_NodesOfOthers_StayAsTheyAre(t *testing.T) {
	t.Parallel()
	victim := cluster.Set(t, "victim", fastOptions())
	victim.StartManager(t, "manager")
	require.NoError(t, victim.Class(t.Context(), "small"))
	create(t, victim, victim.Machine("same-name", "small"))
	s := cluster.Set(t, "tenant", fastOptions())
	manager := s.StartManager(t, "manager")
	require.NoError(t, s.Class(t.Context(), "small"))
	tenant := tenantOf(t, s)

	others := &otherNodes{s: s}
	bare, cp := victim.Namespace+"-cp-a", victim.Namespace+"-cp-b"
	others.join(t, map[string]string{bare: "", cp: "kind:///" + cp})
	victim.Wait(t, patience, "the machine of the other namespace runs", running(victim, "same-name"))
	others.add(t, victim.NodeName("same-name"), time.Now())
	honest := map[string]*v1alpha1.Machine{}
	for _, name := range []string{"reused", "reused-by-sibling", "sibling", "later"} {
		made, err := tenant.Create(t.Context(), s.Machine(name, "small"), metav1.CreateOptions{})
		require.NoError(t, err)
		honest[name] = made
	}
	for name := range honest {
		s.Wait(t, patience, "an honest machine runs", running(s, name))
	}
	siblingID := s.Cloud.Snapshot().Of("sibling").VMs[0].ProviderID
	require.NoError(t, manager.Stop(t.Context()))                  // it would take the deletion of a Node for that of its machine
	for _, name := range []string{"reused", "reused-by-sibling"} { // the cloud gives the name of the Node to another VM
		s.Nodes.Silence(s.NodeName(name), true)
		nodes := s.Client.CoreV1().Nodes()
		_, err := nodes.Patch(t.Context(), s.NodeName(name), mergePatch, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		require.NoError(t, nodes.Delete(t.Context(), s.NodeName(name), metav1.DeleteOptions{}))
	}
	others.join(t, map[string]string{s.NodeName("reused"): "other:///1", s.NodeName("reused-by-sibling"): siblingID})
	before := others.belongings(t)
	s.Start(t, manager)

	claims := []claim{
		{machine: "a", label: bare, node: bare},
		{machine: "c", id: "kind:///" + cp, node: cp},
		{machine: "d", label: cp, id: "kind:///" + cp, node: cp},
		{machine: "same-name", label: victim.NodeName("same-name"), id: machine(t, victim, "same-name").Spec.ProviderID, node: victim.NodeName("same-name")},
		{machine: "later", label: cp, id: "kind:///" + cp, node: cp, why: "and the provider has the VM"},
		{machine: "h", label: cp, node: cp, refused: true, why: `the provider has no VM for the machine name "h"`},
		{machine: "h-bare", label: bare, node: bare, refused: true, why: `the provider has no VM for the machine name "h-bare"`},
		{machine: "reused", node: s.NodeName("reused"), why: `its provider ID is "other:///1"`},
		{machine: "reused-by-sibling", node: s.NodeName("reused-by-sibling"), why: fmt.Sprintf("its provider ID is %q", siblingID)},
	}
	for _, c := range claims {
		m := honest[c.machine]
		if m == nil {
			m = claimNode(t, s, tenant, c)
		} else if c.label != "" {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}},"spec":{"providerID":%q}}`, v1alpha1.NodeLabelKey, c.label, c.id)
			_, err := tenant.Patch(t.Context(), c.machine, mergePatch, patch, metav1.PatchOptions{})
			require.NoError(t, err)
		}
		s.Wait(t, patience, "the status of "+c.machine+" says why", saidWhy(s, m.UID, c.node, c.why))
	}
	require.Empty(t, cmp.Diff(before, others.belongings(t)), "while the machines exist")
	for _, c := range claims {
		require.NoError(t, tenant.Delete(t.Context(), c.machine, metav1.DeleteOptions{}))
	}
	for _, c := range claims {
		s.Wait(t, patience, "the deletion of "+c.machine+" ends", gone(s, c.machine))
	}
	require.Empty(t, cmp.Diff(before, others.belongings(t)), "after the machines were deleted")
	require.Empty(t, others.writes(t), "requests of the manager")
	require.Equal(t, v1alpha1.MachineRunning, machine(t, victim, "same-name").Status.CurrentStatus.Phase)
	s.Cloud.ClearFaults()
	others.remove(t)
	removeAll(t, s)
	removeAll(t, victim)
}

// claimNode creates a machine of the tenant that names a Node.
func claimNode(t *testing.T, s *env.Env, tenant typed.MachineInterface, c claim) *v1alpha1.Machine {
	t.Helper()
	m := s.Machine(c.machine, "small")
	m.Spec.ProviderID = c.id
	if c.label != "" {
		m.Labels = map[string]string{v1alpha1.NodeLabelKey: c.label}
	}
	m.Spec.NodeTemplateSpec = v1alpha1.NodeTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"tenant": "owns"}, Annotations: map[string]string{v1alpha1.MachineUIDAnnotation: "forged"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "tenant", Effect: corev1.TaintEffectNoExecute}}},
	}
	if c.refused {
		s.Cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Machine: c.machine, Code: codes.ResourceExhausted})
	}
	made, err := tenant.Create(t.Context(), m, metav1.CreateOptions{})
	require.NoError(t, err)
	return made
}
