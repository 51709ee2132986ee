// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
)

// Observation is what is known of a Node and its pods. On the zero Observation
// nothing is ever done. Only the Node and its pods are necessary; every other
// source makes the plan say more, and wait less.
type Observation struct {
	// Node is the object as last read. Nil means that it does not exist, if it
	// was looked for.
	Node *corev1.Node
	// Looked says that the Node was looked for.
	Looked bool
	// Reachability says whether the kubelet of the Node answers. The zero value is a
	// kubelet that answers.
	Reachability NodeReachability
	// Pods are the pods on the Node; those of other Nodes do no harm. As long as
	// they are not complete nothing is done and the drain never ends. A cache may
	// lag behind: before it believes a [Decision] that is over, a caller with a cache
	// decides once more on a list that was read from the API server after the
	// fence was seen, for a pod may have been bound just before it. [Executor.Round]
	// does.
	Pods List[*corev1.Pod]
	// Budgets are the disruption budgets of the namespaces of these pods. Without
	// them the drain asks for evictions until it is not refused any more.
	Budgets List[*policyv1.PodDisruptionBudget]
	// Namespaces are those of the pods, for rules that select by their labels.
	Namespaces List[*corev1.Namespace]
	// DaemonSets are those of the namespaces of these pods, to know the pods that
	// no DaemonSet brings back. Without them every pod of a DaemonSet is left alone.
	DaemonSets List[*appsv1.DaemonSet]
	// Attachments are the volume attachments of the Node, and those of the volumes
	// in [State] on other Nodes.
	Attachments List[*storagev1.VolumeAttachment]
	// Claims are those of the pods, to know which volumes belong to which of them.
	Claims List[*corev1.PersistentVolumeClaim]
	// Volumes are those of the claims and of the volumes in [State], to know them in the
	// status of the Node, and when one that was detached will not be used again.
	Volumes List[*corev1.PersistentVolume]
	// Hooks are what others want to do before or after the drain.
	Hooks []Hook
	// Results are what the requests since the last step came to.
	Results []Result
}

// Reachability says who carries out what is asked of a Node.
type Reachability string

// The reachabilities. The zero value is the cautious one.
const (
	// Reachable is a kubelet that stops pods.
	Reachable Reachability = ""
	// Unreachable is a kubelet that does not answer. Its pods may run or not.
	Unreachable Reachability = "Unreachable"
	// PoweredOff is an instance that is known to be off: nothing runs there.
	PoweredOff Reachability = "PoweredOff"
	// NeverRegistered is a Node that never was: the machine did not join.
	NeverRegistered Reachability = "NeverRegistered"
	// Gone is a Node that is not there any more.
	Gone Reachability = "Gone"
)

// NodeReachability is the reachability of a Node.
type NodeReachability struct {
	// State of it.
	State Reachability
	// Since when. Zero means since the drain first heard of it.
	Since time.Time
}

// ReachabilityOf reads the reachability of a Node from its condition Ready: it is
// unreachable since the condition is Unknown. A kubelet that says False answers, and stops
// pods. A nil Node is gone. Whether an instance is off only its provider knows.
func ReachabilityOf(node *corev1.Node) NodeReachability {
	if node == nil {
		return NodeReachability{State: Gone}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue && c.Status != corev1.ConditionFalse {
			return NodeReachability{State: Unreachable, Since: c.LastTransitionTime.Time}
		}
	}
	return NodeReachability{}
}

// absent says whether there is no Node to drain. A Node with another UID than the one
// whose drain began has only its name.
func (in *Observation) absent(uid types.UID) (machinist.Reason, bool) {
	switch {
	case in.Reachability.State == NeverRegistered:
		return ReasonNeverRegistered, true
	case in.Reachability.State == Gone, in.Looked && in.Node == nil,
		in.Looked && uid != "" && in.Node.UID != uid:
		return ReasonNodeGone, true
	default:
		return "", false
	}
}

// Stage is when a [Hook] is waited for.
type Stage string

// The stages.
const (
	// BeforeDrain holds every request to pods; the Node is fenced before.
	BeforeDrain Stage = "BeforeDrain"
	// AfterDrain holds the end of the drain.
	AfterDrain Stage = "AfterDrain"
)

// Hook is something that somebody else does before or after a drain. It holds the
// drain as long as it is observed, and no longer than its deadline.
type Hook struct {
	// Name says what is waited for.
	Name string
	// Owner says who is waited for.
	Owner string
	// Stage at which it is waited for. Any other value means BeforeDrain.
	Stage Stage
	// Until is its deadline; zero means that only its owner ends it.
	Until time.Time
}
