// SPDX-License-Identifier: Apache-2.0

package nodetools_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/rigs/cloud/kubelets"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Run(m, controlplane.Options{}, func(c *controlplane.ControlPlane) { plane = c }))
}

// patience is how long a test waits for a change.
const patience = 2 * time.Minute

// world is a namespace, and Nodes of its own, which are kubelets.
type world struct {
	*testing.T
	client kubernetes.Interface
	ns     string
	nodes  []string
}

func newWorld(t *testing.T, nodes int) *world {
	t.Helper()
	client, err := kubernetes.NewForConfig(plane.Config())
	require.NoError(t, err)
	w := &world{T: t, client: client, ns: plane.Namespace(t, "tools")}
	kubemark, err := controlplane.Kubemark(t.Context(), os.Stderr)
	require.NoError(t, err)
	folder, err := plane.TempDir("vms-")
	require.NoError(t, err)
	fleet, err := kubelets.Open(kubelets.Options{Folder: folder, Kubemark: kubemark, Observe: func(err error) { t.Log(err) }})
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = fleet.Run(ctx) }) // it ends with the context
	t.Cleanup(func() {
		end()
		running.Wait()
		require.NoError(t, fleet.Close())
		for _, node := range w.nodes {
			_ = client.CoreV1().Nodes().Delete(context.WithoutCancel(ctx), node, metav1.DeleteOptions{})
		}
	})
	admin, err := controlplane.Kubeconfig(plane.Config()) // with which the kubelets request their certificates
	require.NoError(t, err)
	for i := range nodes {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: fmt.Sprintf("%s-%d", w.ns, i)}}
		secret := fleet.Cloud.Secret(w.ns, "small")
		secret.Data["userData"] = admin
		_, err := fleet.Cloud.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: m, MachineClass: fleet.Cloud.MachineClass(w.ns, "small"), Secret: secret})
		require.NoError(t, err)
		w.nodes = append(w.nodes, m.Name)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"world":%q}}}`, w.ns)
	for _, node := range w.nodes {
		w.until("node "+node+" is ready", func() bool {
			n, err := client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
			return err == nil && nodeReady(n)
		})
	}
	return w
}

func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// until waits until a condition holds.
func (w *world) until(what string, holds func() bool) {
	w.Helper()
	require.Eventually(w, holds, patience, 100*time.Millisecond, what)
}

// node reads a Node.
func (w *world) node(name string) *corev1.Node {
	w.Helper()
	node, err := w.client.CoreV1().Nodes().Get(w.Context(), name, metav1.GetOptions{})
	require.NoError(w, err)
	return node
}

// deploy makes the pods of a Deployment on all Nodes, of which at least some stay available, and waits until all are ready.
// Nodes of other worlds have none of them.
func (w *world) deploy(app string, replicas, least int32) {
	w.Helper()
	labels := map[string]string{"app": app}
	_, err := w.client.AppsV1().Deployments(w.ns).Create(w.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{"world": w.ns}, TerminationGracePeriodSeconds: new(int64(1)),
				TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
					MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
				}},
				Containers: []corev1.Container{{Name: "c", Image: "none.example.com/none"}},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
	w.budget(app, least)
	w.until(app+" is ready", func() bool { return w.available(app) == replicas })
}

// budget sets how many pods of an app stay available.
func (w *world) budget(app string, least int32) {
	w.Helper()
	budgets := w.client.PolicyV1().PodDisruptionBudgets(w.ns)
	budget, err := budgets.Get(w.Context(), app, metav1.GetOptions{})
	if err == nil {
		budget.Spec.MinAvailable = new(intstr.FromInt32(least))
		_, err = budgets.Update(w.Context(), budget, metav1.UpdateOptions{})
		require.NoError(w, err)
		return
	}
	_, err = budgets.Create(w.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(least)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
}

// available returns how many pods of an app are available.
func (w *world) available(app string) int32 {
	w.Helper()
	d, err := w.client.AppsV1().Deployments(w.ns).Get(w.Context(), app, metav1.GetOptions{})
	require.NoError(w, err)
	return d.Status.AvailableReplicas
}

// pods returns the pods of an app on a Node. An empty app or Node means all.
func (w *world) pods(app, node string) (found []corev1.Pod) {
	w.Helper()
	list, err := w.client.CoreV1().Pods(w.ns).List(w.Context(), metav1.ListOptions{})
	require.NoError(w, err)
	for _, pod := range list.Items {
		if (app == "" || pod.Labels["app"] == app) && (node == "" || pod.Spec.NodeName == node) {
			found = append(found, pod)
		}
	}
	return found
}

// nodeOf returns the Node of a pod of an app that is not being deleted, once there is one.
func (w *world) nodeOf(app string) (node string) {
	w.Helper()
	w.until("a pod of "+app+" has a Node", func() bool {
		for _, pod := range w.pods(app, "") {
			if pod.DeletionTimestamp == nil {
				node = pod.Spec.NodeName
			}
		}
		return node != ""
	})
	return node
}

// as returns the config of a service account with these rights.
func (w *world) as(name string, role rbacv1.ClusterRole) *rest.Config {
	w.Helper()
	role.Name = w.ns + "-" + name
	_, err := w.client.CoreV1().ServiceAccounts(w.ns).Create(w.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(w, err)
	_, err = w.client.RbacV1().ClusterRoles().Create(w.Context(), &role, metav1.CreateOptions{})
	require.NoError(w, err)
	_, err = w.client.RbacV1().ClusterRoleBindings().Create(w.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: name}},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
	config, err := plane.ServiceAccount(w.Context(), w.ns, name)
	require.NoError(w, err)
	return config
}

// tool is a program of examples/samples/nodetools.
type tool struct {
	*world
	program, kubeconfig string
	cmd                 *exec.Cmd
	ended               chan error
	out                 output
}

// newTool builds a program, with the rights of its ClusterRole.
func (w *world) newTool(name string) *tool {
	w.Helper()
	x := &tool{world: w, program: filepath.Join(w.TempDir(), name), kubeconfig: filepath.Join(w.TempDir(), "kubeconfig")}
	require.NoError(w, env.Build(w.Context(), "samples/nodetools", x.program, "./"+name))
	var role rbacv1.ClusterRole
	text, err := os.ReadFile(filepath.Join("..", "..", "samples", "nodetools", name, "role.yaml"))
	require.NoError(w, err)
	require.NoError(w, yaml.UnmarshalStrict(text, &role))
	text, err = controlplane.Kubeconfig(w.as(name, role))
	require.NoError(w, err)
	require.NoError(w, os.WriteFile(x.kubeconfig, text, 0o600))
	return x
}

// start starts a process of the program, which is killed at the end of the test.
func (x *tool) start(args ...string) {
	x.Helper()
	x.cmd, x.ended = exec.CommandContext(x.Context(), x.program, args...), make(chan error, 1)
	x.cmd.Env = append(os.Environ(), "KUBECONFIG="+x.kubeconfig)
	x.out.log = x.Output()
	x.cmd.Stdout, x.cmd.Stderr = &x.out, &x.out
	require.NoError(x, x.cmd.Start())
	cmd, ended := x.cmd, x.ended
	go func() { ended <- cmd.Wait() }()
	x.Cleanup(func() { _ = cmd.Process.Kill() })
}

// output has what the processes of a program have written.
type output struct {
	mu   sync.Mutex
	text strings.Builder
	log  io.Writer
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.text.Write(data)
	return o.log.Write(data)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// kill kills the process as kill -9 does.
func (x *tool) kill() {
	x.Helper()
	require.NoError(x, x.cmd.Process.Kill())
	require.Error(x, <-x.ended)
}
