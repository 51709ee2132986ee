// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// decisions records the decisions about machines.
type decisions struct {
	mu   sync.Mutex
	text map[string][]string
}

func (d *decisions) note(n controllers.Note) {
	if n.Kind != "machine" || n.Err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.text == nil {
		d.text = map[string][]string{}
	}
	d.text[n.Key] = append(d.text[n.Key], n.Text)
}

// last returns the last decision about a machine.
func (d *decisions) last(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.text[namespace+"/"+name]
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// running creates machines and waits until they are Running.
func (r *harness) running(names ...string) {
	r.t.Helper()
	for i, name := range names {
		if i == 0 {
			r.create(name)
			continue
		}
		r.add(name)
	}
	for _, name := range names {
		r.eventually("running", func() bool { return r.phase(name) == v1alpha1.MachineRunning })
	}
}

// add creates another machine of the class.
func (r *harness) add(name string) *v1alpha1.Machine {
	r.t.Helper()
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: ofClass("class")}
	return create(r.t, r.machines.MachineV1alpha1().Machines(namespace).Create, m)
}

func (r *harness) remove(name string) {
	r.t.Helper()
	require.NoError(r.t, r.machines.MachineV1alpha1().Machines(namespace).Delete(r.t.Context(), name, metav1.DeleteOptions{}))
}

func (r *harness) patch(name, patch string) {
	r.t.Helper()
	merge(r.t, r.machines.MachineV1alpha1().Machines(namespace).Patch, name, patch)
}

// blocked creates a pod on a Node whose PodDisruptionBudget allows no disruption.
func (r *harness) blocked(node string) {
	r.t.Helper()
	labels, one := map[string]string{"app": node}, intstr.FromInt32(1)
	require.NoError(r.t, r.target.Add(
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: node},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}},
		},
		pod(node, "ReplicaSet", func(p *corev1.Pod) { p.Name, p.Labels = "db-"+node, labels }),
	))
}

// pod returns a ready pod on a Node.
func pod(node, owner string, edit func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, OwnerReferences: []metav1.OwnerReference{controller(owner)}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	edit(p)
	return p
}

func (r *harness) free(budget string) {
	r.t.Helper()
	require.NoError(r.t, r.target.Client().PolicyV1().PodDisruptionBudgets(namespace).Delete(r.t.Context(), budget, metav1.DeleteOptions{}))
}

// podThere reports whether the pod of a blocked Node exists and is not being deleted.
func (r *harness) podThere(node string) bool {
	r.t.Helper()
	p, err := r.target.Client().CoreV1().Pods(namespace).Get(r.t.Context(), "db-"+node, metav1.GetOptions{})
	return err == nil && p.DeletionTimestamp == nil
}

func evictionsOf(c *fake.Clientset) (n int) {
	for _, a := range c.Actions() {
		if a.Matches("create", "pods/eviction") {
			n++
		}
	}
	return n
}

func TestDrain_BudgetRefuses_HoldNamesItAndNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, said := newHarness(t), decisions{}
		client := r.target.Clientset()
		r.nodes, r.observe = client, said.note
		r.blocked("m") // before the start, so that the caches show the budget
		r.start()
		r.running("m")
		r.remove("m")
		for i := range 50 { // each wakes the machine up
			patch := fmt.Sprintf(`{"metadata":{"labels":{"beat":"%d"}}}`, i)
			merge(t, r.target.Client().CoreV1().Pods(namespace).Patch, "db-m", patch)
		}
		r.eventually("it says what it waits for", func() bool {
			return waitsFor(said.last("m"), "pod/"+namespace+"/db-m: BudgetNeverAllows: ") || waitsFor(said.last("m"), "pod/"+namespace+"/db-m: DisruptionBudget: ")
		})
		require.Zero(t, evictionsOf(client))
		require.Len(t, r.cloud.Snapshot().VMs, 1, "the budget holds the machine")

		freed := time.Now()
		r.free("m")
		r.eventually("gone", func() bool { return r.gone(t.Context(), "m") })
		require.Less(t, time.Since(freed), 3*time.Second, "the drain continues on the event, not on the next poll")
		require.Equal(t, 1, evictionsOf(client))
	})
}

// TestDrain_VolumeOfAPodThatStays_IsNotWaitedFor compares a pod of a DaemonSet with an evicted pod.
// The drain waits for the volumes of the second only.
func TestDrain_VolumeOfAPodThatStays_IsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, said := newHarness(t), decisions{}
		r.observe = said.note
		for name, owner := range map[string]string{"agent": "DaemonSet", "db": "ReplicaSet"} { // before the start, so that the caches show them
			volume := "pv-" + name
			require.NoError(t, r.target.Add(
				&corev1.PersistentVolumeClaim{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume},
				},
				&storagev1.VolumeAttachment{
					ObjectMeta: metav1.ObjectMeta{Name: name},
					Spec:       storagev1.VolumeAttachmentSpec{NodeName: "m", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
					Status:     storagev1.VolumeAttachmentStatus{Attached: true},
				},
				pod("m", owner, func(p *corev1.Pod) {
					p.Name = name
					p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
					}}}
				}),
			))
		}
		r.start()
		r.running("m")
		r.remove("m")
		r.eventually("it waits for the volume", func() bool { return waitsFor(said.last("m"), "volumeattachment/db: Detaching") })
		require.NotContains(t, said.last("m"), "agent")
		require.NoError(t, r.target.Client().StorageV1().VolumeAttachments().Delete(t.Context(), "db", metav1.DeleteOptions{}))
		r.eventually("gone", func() bool { return r.gone(t.Context(), "m") })
	})
}

// TestDrain_ManyWait_WorkersStayFree checks that waiting drains occupy no worker, and that changes
// of a machine take effect at once.
func TestDrain_ManyWait_WorkersStayFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, said := newHarness(t), decisions{}
		r.observe, r.workers = said.note, 1
		r.start()
		names := []string{"m-0", "m-1", "m-2", "m-3", "m-4"}
		r.running(names...)
		for _, name := range names {
			r.blocked(name)
			r.remove(name)
		}
		for _, name := range names {
			r.eventually("it waits", func() bool { return waitsFor(said.last(name), "pod/"+namespace+"/db-"+name) })
		}
		r.add("other")
		r.eventually("another lives", func() bool { return r.phase("other") == v1alpha1.MachineRunning })
		r.remove("other")
		r.eventually("and dies", func() bool { return r.gone(t.Context(), "other") })

		r.patch("m-0", `{"metadata":{"labels":{"`+v1alpha1.LabelKeyForceDeletion+`":"true"}}}`)
		r.eventually("the label forces at once", func() bool { return r.gone(t.Context(), "m-0") })
		r.patch("m-1", `{"spec":{"drainTimeout":"1s"}}`)
		r.eventually("so does another timeout", func() bool { return r.gone(t.Context(), "m-1") })
		for _, name := range names[2:] {
			require.True(t, r.podThere(name), "the others wait")
		}
		for _, name := range names[2:] {
			r.free(name)
			r.eventually("freed", func() bool { return r.gone(t.Context(), name) })
		}
	})
}

// TestDrain_AfterAForcedDrain_StartsWithoutForce checks that a forced drain does not affect a later
// drain of the same machine.
func TestDrain_AfterAForcedDrain_StartsWithoutForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, said := newHarness(t), decisions{}
		r.observe = said.note
		r.start()
		r.running("m")
		r.blocked("m")
		r.patch("m", `{"metadata":{"labels":{"`+v1alpha1.LabelKeyForceDrain+`":"True"}}}`)
		label := `{"metadata":{"labels":{"` + v1alpha1.LabelKeyNodeCandidateForUpdate + `":"true","` + v1alpha1.LabelKeyNodeSelectedForUpdate + `":"true"}}}`
		merge(t, r.target.Client().CoreV1().Nodes().Patch, "m", label)
		r.eventually("drained by force for its update", func() bool {
			return r.phase("m") == v1alpha1.MachineInPlaceUpdating && !r.podThere("m")
		})
		r.free("m")
		r.eventually("the pod has gone", func() bool {
			_, err := r.target.Client().CoreV1().Pods(namespace).Get(t.Context(), "db-m", metav1.GetOptions{})
			return err != nil
		})
		r.blocked("m")
		r.remove("m")
		r.eventually("it waits", func() bool { return waitsFor(said.last("m"), "pod/"+namespace+"/db-m") })
		require.True(t, r.podThere("m"))
		r.free("m")
		r.eventually("gone", func() bool { return r.gone(t.Context(), "m") })
	})
}

// waitsFor reports whether the text of a decision has a hold with a subject.
func waitsFor(decision, what string) bool { return strings.Contains(decision, "waits for "+what) }
