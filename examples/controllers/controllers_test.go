// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

const namespace = "default"

// harness runs the controllers in real time over clusters in memory and a cloud without latency.
type harness struct {
	t         *testing.T
	control   *draintest.Cluster
	target    *draintest.Cluster
	machines  versioned.Interface
	secrets   kubernetes.Interface
	nodes     kubernetes.Interface
	cloud     *drivertest.Cloud
	orphans   safety.Policy
	observe   func(controllers.Note)
	events    record.EventRecorder
	driver    driver.Driver // nil means the cloud
	workers   int
	shard     string
	collected func(kind string, err error)
	tick      time.Duration // of kubelets and pods; zero is 5 ms
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	control, machines := machinetest.New(draintest.Options{})
	r := &harness{
		t: t, control: control, machines: machines, cloud: drivertest.NewCloud(drivertest.CloudOptions{}), target: draintest.New(draintest.Options{StopTime: stopTime}),
	}
	r.secrets, r.nodes = r.control.Client(), r.target.Client()
	return r
}

// stopTime returns how long a pod takes to stop: no time, unless the pod is slow.
func stopTime(pod *corev1.Pod) time.Duration {
	if pod.Name == "slow" {
		return 2 * time.Second // counted from the last full second
	}
	return 0
}

// start runs everything until the test ends.
func (r *harness) start() { r.t.Cleanup(r.begin()) }

// begin runs everything until the result is called.
func (r *harness) begin() (end func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	policy := machine.DefaultPolicy()
	policy.Settle = time.Millisecond // this cloud shows everything at once
	go func() {
		done <- controllers.Run(ctx, controllers.Config{
			Machines: r.machines, Control: r.secrets, Target: r.nodes, Driver: cmp.Or(r.driver, driver.Driver(r.cloud)), Policy: policy, Orphans: r.orphans, Observe: r.observe, Events: r.events, Workers: r.workers, Shard: r.shard, Collected: r.collected,
		})
	}()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		nodes := &hollow.Nodes{Client: r.target.Client(), Clock: clock.RealClock{}, VMs: hollow.VMsOf(r.cloud)}
		for ctx.Err() == nil {
			_ = nodes.Step(ctx) // repeated at the next step
			r.target.Tick()
			select {
			case <-ctx.Done():
			case <-time.After(cmp.Or(r.tick, 5*time.Millisecond)):
			}
		}
	}()
	return func() {
		cancel()
		require.NoError(r.t, <-done)
		<-stopped
	}
}

// eventually waits until f returns true.
func (r *harness) eventually(what string, f func() bool) {
	r.t.Helper()
	require.Eventually(r.t, f, time.Minute, 2*time.Millisecond, what)
}

// deploy creates deployment d with the given replicas and maxSurge 1.
func (r *harness) deploy(ctx context.Context, replicas int32) {
	r.t.Helper()
	labels, one, none := map[string]string{"name": "d"}, intstr.FromInt32(1), intstr.FromInt32(0)
	create(r.t, r.machines.MachineV1alpha1().MachineDeployments(namespace).Create, &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &one, MaxUnavailable: &none},
				},
			},
			Template: v1alpha1.MachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: ofClass("class")},
		},
	})
}

// deployment returns deployment d.
func (r *harness) deployment() *v1alpha1.MachineDeployment {
	r.t.Helper()
	return get(r.t, r.machines.MachineV1alpha1().MachineDeployments(namespace).Get, "d")
}

// complete reports whether deployment d is complete.
func (r *harness) complete() bool {
	r.t.Helper()
	d := r.deployment()
	return deployment.Complete(d, d.Status)
}

func (r *harness) patchDeployment(data string) {
	r.t.Helper()
	merge(r.t, r.machines.MachineV1alpha1().MachineDeployments(namespace).Patch, "d", data)
}

// create creates a class with its Secret, and a machine.
func (r *harness) create(name string) *v1alpha1.Machine {
	r.t.Helper()
	api := r.machines.MachineV1alpha1()
	create(r.t, r.secrets.CoreV1().Secrets(namespace).Create, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "class"}, Data: map[string][]byte{machine.UserDataKey: []byte("#!")},
	})
	create(r.t, api.MachineClasses(namespace).Create, &v1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Name: "class"}, Provider: "simulated", ProviderSpec: apiruntime.RawExtension{Raw: []byte("{}")},
		SecretRef: &corev1.SecretReference{Namespace: namespace, Name: "class"},
	})
	return r.add(name)
}

func (r *harness) phase(name string) v1alpha1.MachinePhase {
	m, err := r.machines.MachineV1alpha1().Machines(namespace).Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return m.Status.CurrentStatus.Phase
}

func (r *harness) gone(ctx context.Context, name string) bool {
	_, err := r.machines.MachineV1alpha1().Machines(namespace).Get(ctx, name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

func TestMachine_DeletedWithoutPods_EndsWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.start()
		r.running("m")

		began := time.Now()
		r.remove("m")
		r.eventually("gone", func() bool { return r.gone(t.Context(), "m") })
		took := time.Since(began)
		t.Logf("gone after %s, with a driver that takes no time", took)
		require.Less(t, took, time.Second)
		require.True(t, r.cloud.Snapshot().Empty(), r.cloud.Snapshot())
		nodes := list(t, r.nodes.CoreV1().Nodes().List, metav1.ListOptions{})
		require.Empty(t, nodes.Items)
	})
}

func TestFinalizers_ClassAndSecretInUse_StayUntilTheMachineIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.start()
		r.running("m")
		ctx, api := t.Context(), r.machines.MachineV1alpha1()
		require.NoError(t, r.secrets.CoreV1().Secrets(namespace).Delete(ctx, "class", metav1.DeleteOptions{}))
		require.NoError(t, api.MachineClasses(namespace).Delete(ctx, "class", metav1.DeleteOptions{}))
		class, err := api.MachineClasses(namespace).Get(ctx, "class", metav1.GetOptions{})
		require.NoError(t, err, "the finalizer of the class stays")
		require.NotNil(t, class.DeletionTimestamp)

		r.remove("m")
		r.eventually("everything gone", func() bool {
			_, classErr := api.MachineClasses(namespace).Get(ctx, "class", metav1.GetOptions{})
			_, secretErr := r.secrets.CoreV1().Secrets(namespace).Get(ctx, "class", metav1.GetOptions{})
			return r.gone(ctx, "m") && apierrors.IsNotFound(classErr) && apierrors.IsNotFound(secretErr)
		})
		require.True(t, r.cloud.Snapshot().Empty(), r.cloud.Snapshot())
	})
}

func TestMachine_NameOfADeletedMachine_IsNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.start()
		r.running("m")
		api := r.machines.MachineV1alpha1().Machines(namespace)
		require.NoError(t, api.Delete(t.Context(), "m", metav1.DeleteOptions{}))
		r.eventually("gone", func() bool { return r.gone(t.Context(), "m") })
		r.add("m")
		r.eventually("running again", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
		require.Len(t, r.cloud.Snapshot().VMs, 1)
	})
}

func TestMachine_DeletedDuringCreate_NodeIsDrainedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ctx := t.Context()
		require.NoError(t, r.target.Add(
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, // it joined faster than the driver answers
			&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", OwnerReferences: []metav1.OwnerReference{controller("ReplicaSet")}},
				Spec:       corev1.PodSpec{NodeName: "m"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
			},
		))
		left := make(chan int, 1)
		defer r.cloud.Subscribe(func(e drivertest.Event) {
			if e.Kind == drivertest.VMCreated {
				assert.NoError(t, r.machines.MachineV1alpha1().Machines(namespace).Delete(ctx, "m", metav1.DeleteOptions{}))
			}
			if e.Kind == drivertest.VMDeletionBegan {
				pods, err := r.nodes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
				assert.NoError(t, err)
				left <- len(pods.Items)
			}
		})()
		r.start()
		r.create("m")
		r.eventually("gone", func() bool { return r.gone(ctx, "m") })
		require.Zero(t, <-left, "pods on the node when the VM's deletion began")
	})
}

func TestDrain_PodMissingInCache_IsEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.start()
		r.running("m")
		ctx, nodes := t.Context(), r.target.Client().CoreV1().Nodes()
		for _, patch := range []struct{ data, subresource string }{
			{`{"spec":{"unschedulable":true}}`, ""}, {`{"status":{"conditions":[{"type":"Seen","status":"True"}]}}`, "status"},
		} {
			_, err := nodes.Patch(ctx, "m", types.StrategicMergePatchType, []byte(patch.data), metav1.PatchOptions{}, patch.subresource)
			require.NoError(t, err)
		}
		r.eventually("the cordon is seen", func() bool {
			m, err := r.machines.MachineV1alpha1().Machines(namespace).Get(ctx, "m", metav1.GetOptions{})
			return err == nil && slices.ContainsFunc(m.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == "Seen" })
		})
		defer r.target.HoldWatches()()
		require.NoError(t, r.target.Add(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "slow", OwnerReferences: []metav1.OwnerReference{controller("ReplicaSet")}},
			Spec:       corev1.PodSpec{NodeName: "m", TerminationGracePeriodSeconds: ptr.To(int64(30))},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning},
		}))
		r.remove("m")
		r.eventually("evicted", func() bool {
			pod, err := r.target.Client().CoreV1().Pods(namespace).Get(ctx, "slow", metav1.GetOptions{})
			return err == nil && pod.DeletionTimestamp != nil
		})
		require.Len(t, r.cloud.Snapshot().VMs, 1, "the pod has not ended")
	})
}

func TestDrain_LastPodDeleted_ContinuesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.start()
		r.running("m")
		grace := int64(30)
		require.NoError(t, r.target.Add(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "slow", OwnerReferences: []metav1.OwnerReference{controller("ReplicaSet")}},
			Spec:       corev1.PodSpec{NodeName: "m", TerminationGracePeriodSeconds: &grace}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}))
		began := time.Now()
		r.remove("m")
		r.eventually("gone", func() bool { return r.gone(t.Context(), "m") })
		require.Greater(t, time.Since(began), 500*time.Millisecond, "the pod was waited for")
		require.Less(t, time.Since(began), 4*time.Second, "less than the pause between two rounds of a drain")
	})
}

func TestMergedSecret_SameKey_CredentialsWin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.cloud.SetCredential("right")
		r.start()
		for name, credential := range map[string]string{"data": "wrong", "credentials": "right"} {
			create(t, r.secrets.CoreV1().Secrets(namespace).Create, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Data:       map[string][]byte{machine.UserDataKey: []byte("#!"), "credential": []byte(credential)},
			})
		}
		create(t, r.machines.MachineV1alpha1().MachineClasses(namespace).Create, &v1alpha1.MachineClass{
			ObjectMeta: metav1.ObjectMeta{Name: "both"}, Provider: "simulated", ProviderSpec: apiruntime.RawExtension{Raw: []byte("{}")},
			SecretRef:            &corev1.SecretReference{Name: "data"},
			CredentialsSecretRef: &corev1.SecretReference{Namespace: namespace, Name: "credentials"},
		})
		create(t, r.machines.MachineV1alpha1().Machines(namespace).Create, &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: ofClass("both"),
		})
		r.eventually("running", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
	})
}

func TestControllers_WithoutFaults_NoPassFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		var mu sync.Mutex
		var failed []string
		r.observe = func(n controllers.Note) {
			var status *apierrors.StatusError
			if errors.As(n.Err, &status) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "machinedeployments" {
				return // the test writes it too
			}
			if n.Err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, fmt.Sprintf("%s %s: %v", n.Kind, n.Key, n.Err))
			}
		}
		r.start()
		r.create("alone")
		r.deploy(t.Context(), 3)
		r.eventually("complete", r.complete)
		r.patchDeployment(`{"spec":{"template":{"metadata":{"annotations":{"generation":"two"}}}}}`)
		r.eventually("rolled", r.complete)
		mu.Lock()
		defer mu.Unlock()
		require.Empty(t, failed)
	})
}

// controller returns the owner reference of a pod to a controller.
func controller(kind string) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: "owner", UID: "owner", Controller: &yes}
}

func TestRun_IncompleteConfig_ReturnsError(t *testing.T) {
	require.ErrorContains(t, controllers.Run(t.Context(), controllers.Config{}), "controllers.Config needs Machines, and, for the controllers of machines, Control and Driver")
}

// TestRun_Ends_LeavesNoGoroutine ends its bubble, which fails if a goroutine remains.
func TestRun_Ends_LeavesNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.start()
		r.running("m")
	})
}

func TestRun_ContextCanceled_Ends(t *testing.T) {
	r := newHarness(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	err := controllers.Run(ctx, controllers.Config{Machines: r.machines, Control: r.secrets, Target: r.nodes, Driver: r.cloud})
	require.ErrorContains(t, err, "enough")
}
