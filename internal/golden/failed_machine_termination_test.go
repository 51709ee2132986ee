// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	sdkmachine "github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

type failedMachineTerminationIn struct {
	LastAppliedNodeValue, MachineAnnotation, Node string
	PreserveExpiryInSeconds                       *int
}

type failedMachineTerminationOut struct{ Terminate bool }

func failedMachineTermination(in failedMachineTerminationIn, out failedMachineTerminationOut) ([]string, error) {
	m := machine{
		Name: "m", Phase: v1alpha1.MachineFailed, PreserveExpiryInSeconds: in.PreserveExpiryInSeconds,
		Annotations: map[string]string{
			v1alpha1.PreserveMachineAnnotationKey:              in.MachineAnnotation,
			v1alpha1.LastAppliedNodePreserveValueAnnotationKey: in.LastAppliedNodeValue,
		},
	}.object()
	var view sdkmachine.NodeView
	switch in.Node {
	case "<nonode>":
	case "<missing>":
		m.Labels[v1alpha1.NodeLabelKey] = "n"
		view.Looked = true
	default:
		m.Labels[v1alpha1.NodeLabelKey] = "n"
		node := &corev1.Node{}
		if in.Node != "" {
			node.Annotations = map[string]string{v1alpha1.PreserveMachineAnnotationKey: in.Node}
		}
		view.Looked, view.Node = true, node
	}
	got, reason := machineset.ReplaceFailed(m, view, time.Time{}, now)
	if reason == "" {
		return nil, errors.New("no reason")
	}
	model := func(m mended) failedMachineTerminationOut { return failedMachineTerminationOut{terminateModel(in, m)} }
	return explain([]string{"DS-28", "DM-15"}, model, out, failedMachineTerminationOut{got})
}

// terminateModel decides by the preservation time, then by the Node, then by the
// value in force. Mended (DS-28), a machine whose Node is gone has its own value; and
// (DM-15) a value of the Node that means nothing is none.
func terminateModel(in failedMachineTerminationIn, m mended) bool {
	asks := func(value string) bool {
		return slices.Contains([]string{"now", "when-failed", "auto-preserved"}, value)
	}
	if s := in.PreserveExpiryInSeconds; s != nil {
		return time.Duration(*s) <= 0
	}
	node := in.Node
	switch node {
	case "<missing>":
		return !m["DS-28"] || !asks(in.MachineAnnotation)
	case "<nonode>":
		node = ""
	}
	if m["DM-15"] && !asks(node) && node != "false" {
		node = ""
	}
	if node != "" || in.LastAppliedNodeValue != "" {
		return !asks(node)
	}
	return !asks(in.MachineAnnotation)
}
