// SPDX-License-Identifier: Apache-2.0

package observe

import (
	corev1 "k8s.io/api/core/v1"
	kube "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
)

// Events returns an observer that records Kubernetes Events on the given object. Nil
// means the drained Node. Reasons begin with Drain, such as DrainStarted, DrainRefused,
// DrainEnded. Warnings (see [Slog]) have type Warning.
//
// Accepted requests, terminating pods and deleted pods are in the log only. The recorder
// aggregates equal Events.
func Events(recorder record.EventRecorder, on kube.Object) runner.Observer {
	return observerFunc(func(e drain.Progress) {
		if recorder == nil || !isNews(e) {
			return
		}
		regarding := on
		if regarding == nil {
			regarding = nodeReference(e.Node)
		}
		kind := corev1.EventTypeNormal
		if isWarning(e) {
			kind = corev1.EventTypeWarning
		}
		recorder.Event(regarding, kind, eventReason(e), shorten(e.String()))
	})
}

// isNews reports whether an event becomes a Kubernetes Event.
func isNews(e drain.Progress) bool {
	switch e.Type {
	case drain.ProgressRequested:
		return e.Err != nil
	case drain.ProgressWaiting:
		return e.Row == nil || e.Row.Action == drain.Block || ofBudget(e.Reason)
	case drain.ProgressGone:
		return false
	default:
		return true
	}
}

func eventReason(e drain.Progress) string {
	switch {
	case e.Type == drain.ProgressRequested:
		return "DrainRefused"
	case e.Err != nil:
		return "DrainNot" + string(e.Type)
	default:
		return "Drain" + string(e.Type)
	}
}

// nodeReference returns the reference to a Node that the kubelet uses in Events, so that kubectl
// describe shows the Event.
func nodeReference(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}

// maxMessage is the maximum size of an Event message in bytes.
const maxMessage = 1024

// shorten cuts a text to maxMessage at the beginning of a character.
func shorten(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	cut := maxMessage - len("…")
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
