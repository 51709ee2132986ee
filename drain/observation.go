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

// Observation is what is known about a Node and its pods. On the zero Observation nothing is done.
// Only Node and Pods are required. Each other list makes the decision more precise.
type Observation struct {
	// Node is the Node as last read. Nil means that it does not exist, if Looked is set.
	Node *corev1.Node
	// Looked means that the Node was read.
	Looked bool
	// Reachability is whether the kubelet of the Node answers.
	Reachability NodeReachability
	// Pods are the pods on the Node. Pods of other Nodes are ignored. While the list is incomplete
	// nothing is done. A cache may be stale: confirm the end of a drain with a list from the API
	// server that was read after the cordon was observed.
	Pods List[*corev1.Pod]
	// Budgets are the PodDisruptionBudgets of the namespaces of the pods. Without them evictions
	// are requested until the API server allows them.
	Budgets List[*policyv1.PodDisruptionBudget]
	// DaemonSets are those of the namespaces of the pods. Without them pods of deleted DaemonSets
	// are ignored too.
	DaemonSets List[*appsv1.DaemonSet]
	// Attachments are the VolumeAttachments of the Node, and those of volumes in [State] on other
	// Nodes.
	Attachments List[*storagev1.VolumeAttachment]
	// Claims are the PersistentVolumeClaims of the pods.
	Claims List[*corev1.PersistentVolumeClaim]
	// Volumes are the PersistentVolumes of the claims and those in [State].
	Volumes List[*corev1.PersistentVolume]
	// Results are the results of the requests since the last step.
	Results []Result
}

// List is the result of a list request. The zero List was not read and is not the same as an empty
// one.
type List[T any] struct {
	// Items are in any order. Nil items and copies are allowed.
	Items []T
	// Complete means that Items are all objects: all pages were read, without an error.
	Complete bool
	// AsOf is a time at which the list was correct. Packages that need it say so; a drain does not.
	AsOf time.Time
}

// All returns the complete list of items.
func All[T any](items ...T) List[T] { return List[T]{Items: items, Complete: true} }

// Source is the name of an optional list of an [Observation].
type Source string

// Optional lists.
const (
	SourceBudgets     Source = "budgets"
	SourceDaemonSets  Source = "daemonsets"
	SourceAttachments Source = "volumeattachments"
	SourceClaims      Source = "persistentvolumeclaims"
	SourceVolumes     Source = "persistentvolumes"
)

// incomplete returns the wanted lists that are incomplete.
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

// Result is the result of one request.
type Result struct {
	// Row is the row that was carried out.
	Row Row
	// Err is the error of the API server, or nil.
	Err error
	// At is when the request was made. Zero means the time of the next step.
	At time.Time
}

// nodeHold returns a hold about the Node.
func nodeHold(name string, reason machinist.Reason, message string) machinist.Hold {
	return machinist.Hold{Subject: "node/" + name, Reason: reason, Message: message}
}
