// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// managedAttach is the annotation of Nodes whose volumes the attach-detach controller attaches.
const managedAttach = "volumes.kubernetes.io/controller-managed-attach-detach"

// newNode returns the Node that a kubelet registers. It is Ready at once. Controllers of a real
// cluster remove its initial taint.
func newNode(vm VM, now time.Time) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: vm.NodeName,
			Labels: map[string]string{
				corev1.LabelHostname: hostname(vm.NodeName), corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			},
		},
		Spec: corev1.NodeSpec{ProviderID: vm.ProviderID},
	}
	describe(node)
	setConditions(&node.Status, true, now)
	return node
}

// describe sets the fields of the Node status that describe the machine.
func describe(node *corev1.Node) {
	if node.Annotations[managedAttach] == "" {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, managedAttach, "true")
	}
	if len(node.Status.Capacity) == 0 {
		node.Status.Capacity = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
			corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		}
	}
	if len(node.Status.Allocatable) == 0 {
		node.Status.Allocatable = maps.Clone(node.Status.Capacity)
	}
	if len(node.Status.Addresses) == 0 {
		node.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: address("192.168", node.Name)}, {Type: corev1.NodeHostName, Address: node.Name},
		}
	}
	if node.Status.NodeInfo.KubeletVersion == "" {
		node.Status.NodeInfo = corev1.NodeSystemInfo{
			KubeletVersion: "v1.36.0-hollow", ContainerRuntimeVersion: "hollow://1", OperatingSystem: "linux", Architecture: "amd64",
		}
	}
}

// address returns an address of a network that depends on a name only.
func address(network, name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it returns no error
	sum := h.Sum32()
	return fmt.Sprintf("%s.%d.%d", network, sum>>8&0xff, 1+sum%254)
}

// report writes the status of the Node if it has changed or StatusInterval is over.
func report(v view, p pace, now time.Time, out *plan) {
	due := now
	for _, c := range v.node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			due = c.LastHeartbeatTime.Add(p.status)
		}
	}
	after := v.node.DeepCopy()
	describe(after)
	setConditions(&after.Status, !due.After(now), now)
	if !maps.Equal(v.node.Annotations, after.Annotations) || !equality.Semantic.DeepEqual(v.node.Status, after.Status) {
		out.do(reportNode{v.node, after})
	}
	if !due.After(now) {
		due = now.Add(p.status)
	}
	out.until(due)
}

// own returns the conditions that a kubelet reports. It includes NetworkUnavailable,
// because there is no network plugin that would set it.
func own() []corev1.NodeCondition {
	is := func(t corev1.NodeConditionType, s corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: t, Status: s, Reason: reason, Message: message}
	}
	return []corev1.NodeCondition{
		is(corev1.NodeNetworkUnavailable, corev1.ConditionFalse, "RouteCreated", "hollow node has a route"),
		is(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		is(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		is(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		is(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
	}
}

// setConditions sets the conditions that the kubelet reports. If one changes, or if beat is set, all
// heartbeat times are now. Conditions of other clients stay.
func setConditions(status *corev1.NodeStatus, beat bool, now time.Time) {
	says := own()
	for _, c := range says {
		beat = beat || !slices.ContainsFunc(status.Conditions, func(o corev1.NodeCondition) bool { return sameCondition(o, c) })
	}
	if !beat {
		return
	}
	at := metav1.NewTime(now).Rfc3339Copy()
	for _, c := range says {
		c.LastHeartbeatTime, c.LastTransitionTime = at, at
		i := slices.IndexFunc(status.Conditions, func(o corev1.NodeCondition) bool { return o.Type == c.Type })
		if i < 0 {
			status.Conditions = append(status.Conditions, c)
			continue
		}
		if was := status.Conditions[i]; was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
		status.Conditions[i] = c
	}
}

func sameCondition(a, b corev1.NodeCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// hostname returns the host name of a Node: its name, or its name without the domain if it is
// longer than a host name or a label value may be.
func hostname(node string) string {
	const longest = 63
	if host, _, _ := strings.Cut(node, "."); len(node) > longest && len(host) <= longest {
		return host
	}
	return node
}
