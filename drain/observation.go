// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/machinist-dev/machinist"
)

// Observation is what is known of a Node and its pods. On the zero Observation
// nothing is ever done. Only the Node and its pods are necessary. Every other
// list makes the decision say more, and wait less.
type Observation struct {
	// Node is the object as last read. Nil means that it does not exist, if it
	// was looked for.
	Node *corev1.Node
	// Looked says that the Node was looked for.
	Looked bool
	// Reachability says whether the kubelet of the Node answers.
	Reachability NodeReachability
	// Pods are the pods on the Node. Pods of other Nodes do no harm. While the list is not
	// complete nothing is done, and the drain never ends. A cache may lag behind: before a
	// caller with a cache believes that a drain is over, it decides once more on a list that
	// was read from the API server after the cordon was seen.
	Pods List[*corev1.Pod]
	// Budgets are the PodDisruptionBudgets of the namespaces of these pods. Without
	// them the drain asks for evictions until the API server allows them.
	Budgets List[*policyv1.PodDisruptionBudget]
	// DaemonSets are those of the namespaces of these pods, to find the pods whose
	// DaemonSet was deleted. Without them every pod of a DaemonSet is left alone.
	DaemonSets List[*appsv1.DaemonSet]
	// Attachments are the VolumeAttachments of the Node, and those of the volumes
	// in [State] on other Nodes.
	Attachments List[*storagev1.VolumeAttachment]
	// Claims are the PersistentVolumeClaims of the pods.
	Claims List[*corev1.PersistentVolumeClaim]
	// Volumes are the PersistentVolumes of the claims and those in [State].
	Volumes List[*corev1.PersistentVolume]
	// Results are what the requests since the last step came to.
	Results []Result
}

// List is what a source returned. The zero List was never read, which is
// not the same as an empty one.
type List[T any] struct {
	// Items in any order. Nil ones and second copies do no harm.
	Items []T
	// Complete says that Items are all there are.
	Complete bool
}

// All returns the complete list of items.
func All[T any](items ...T) List[T] { return List[T]{Items: items, Complete: true} }

// Source names one of the lists of an [Observation].
type Source string

// The lists that are not necessary.
const (
	SourceBudgets     Source = "budgets"
	SourceDaemonSets  Source = "daemonsets"
	SourceAttachments Source = "volumeattachments"
	SourceClaims      Source = "persistentvolumeclaims"
	SourceVolumes     Source = "persistentvolumes"
)

// incomplete returns which of these lists are not complete.
func (in *Observation) incomplete(wanted []Source) []Source {
	complete := map[Source]bool{
		SourceBudgets: in.Budgets.Complete, SourceDaemonSets: in.DaemonSets.Complete,
		SourceAttachments: in.Attachments.Complete, SourceClaims: in.Claims.Complete, SourceVolumes: in.Volumes.Complete,
	}
	var missing []Source
	for _, source := range wanted {
		if !complete[source] {
			missing = append(missing, source)
		}
	}
	return missing
}

// Result is what one request came to.
type Result struct {
	// Row that was carried out.
	Row Row
	// Err of the API server, or nil.
	Err error
	// At is when the request was made. Zero means when the result is observed.
	At time.Time
}

// subjectOf returns the name of an object as decisions write it.
func subjectOf(kind, name string) string { return kind + "/" + name }

// nodeHold returns a hold that is about the Node.
func nodeHold(name string, reason machinist.Reason, message string) machinist.Hold {
	return machinist.Hold{Subject: subjectOf("node", name), Reason: reason, Message: message}
}
