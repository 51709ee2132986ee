// SPDX-License-Identifier: Apache-2.0

package draining_test

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// demoNode is the Node of the demo cluster that is drained by default.
const demoNode = "node-1"

// demoObjects returns the objects of the demo cluster: web, whose PodDisruptionBudget allows one
// eviction at a time, ledger with a volume, a DaemonSet, and on node-1 a pod with an emptyDir volume
// and a pod without a controller.
func demoObjects(now time.Time) []runtime.Object {
	born := metav1.NewTime(now.Add(-time.Hour)).Rfc3339Copy()
	objects := []runtime.Object{
		demoNamespace("shop"), demoNamespace("kube-system"),
		demoNodeObject("node-1", born), demoNodeObject("node-2", born), demoNodeObject("node-3", born),
	}
	web, webPods := demoSet("web", 3, born, "node-1", "node-1", "node-2")
	ledger, ledgerPods := demoSet("ledger", 1, born, "node-1")
	search, searchPods := demoSet("search", 1, born, "node-1")
	withClaim(&ledger.Spec.Template.Spec)
	withClaim(&ledgerPods[0].Spec)
	withCache(&search.Spec.Template.Spec)
	withCache(&searchPods[0].Spec)
	debug := demoPod("debug", "node-1", map[string]string{"app": "debug"}, born)
	objects = append(objects, web, ledger, search, debug)
	for _, p := range append(append(webPods, ledgerPods...), searchPods...) {
		objects = append(objects, p)
	}
	objects = append(objects, demoBudget("web", 2, 3))
	objects = append(objects, demoVolume(born)...)
	return append(objects, demoDaemons(born)...)
}

func demoNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
}

func demoNodeObject(name string, born metav1.Time) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: born, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// demoSet returns a ReplicaSet and its pods on these Nodes.
func demoSet(name string, replicas int32, born metav1.Time, nodes ...string) (*appsv1.ReplicaSet, []*corev1.Pod) {
	labels := map[string]string{"app": name}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("set-" + name), CreationTimestamp: born, Labels: labels},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: demoPodSpec("")},
		},
	}
	var pods []*corev1.Pod
	for i, node := range nodes {
		p := demoPod(name+"-"+string(rune('a'+i)), node, labels, born)
		controlledBy(p, set, "ReplicaSet")
		pods = append(pods, p)
	}
	return set, pods
}

func demoPod(name, node string, labels map[string]string, born metav1.Time) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("pod-" + name), CreationTimestamp: born, Labels: labels},
		Spec:       demoPodSpec(node),
	}
	ready(p)
	return p
}

func demoPodSpec(node string) corev1.PodSpec {
	return corev1.PodSpec{
		NodeName: node, TerminationGracePeriodSeconds: new(int64(30)), Containers: []corev1.Container{{Name: "app", Image: "hollow"}},
	}
}

func withClaim(spec *corev1.PodSpec) {
	spec.Volumes = []corev1.Volume{{Name: "books", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "books"},
	}}}
}

func withCache(spec *corev1.PodSpec) {
	spec.Volumes = []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

func demoBudget(name string, needed, pods int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(needed)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, DisruptionsAllowed: pods - needed, CurrentHealthy: pods, DesiredHealthy: needed, ExpectedPods: pods,
		},
	}
}

// demoVolume returns the volume of ledger, which is attached to node-1.
func demoVolume(born metav1.Time) []runtime.Object {
	return []runtime.Object{
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "books", CreationTimestamp: born},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "disk-7"},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		},
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "disk-7", CreationTimestamp: born},
			Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "7"}},
			},
		},
		&storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "csi-disk-7", CreationTimestamp: born},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "csi.example.com", NodeName: demoNode, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("disk-7")},
			},
			Status: storagev1.VolumeAttachmentStatus{Attached: true},
		},
	}
}

// demoDaemons returns a DaemonSet, its pods, and a mirror pod.
func demoDaemons(born metav1.Time) []runtime.Object {
	labels := map[string]string{"app": "agent"}
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent", UID: "daemonset-agent", CreationTimestamp: born, Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: demoPodSpec("")},
		},
	}
	objects := []runtime.Object{set}
	for _, node := range []string{"node-1", "node-2", "node-3"} {
		p := demoPod("agent-"+node, node, labels, born)
		p.Namespace = "kube-system"
		controlledBy(p, set, "DaemonSet")
		objects = append(objects, p)
	}
	mirror := demoPod("proxy-"+demoNode, demoNode, nil, born)
	mirror.Namespace = "kube-system"
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	return append(objects, mirror)
}
