// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// FenceNode sets a fence. A uid that is not empty says which Node is meant: one that
// took its name later is left alone. The fence of nobody, which only cordons, is one
// patch; any other is made by the rules of [UpdateNode]. A Node that does not exist is an
// error, which is NotFound.
func FenceNode(ctx context.Context, c kubernetes.Interface, nodeName string, uid types.UID, f Fence, now time.Time) error {
	nodes, err := nodesOf(c, nodeName)
	if err != nil {
		return err
	}
	type fields map[string]any
	body := fields{"spec": fields{"unschedulable": true}}
	if uid != "" {
		body["metadata"] = fields{"uid": uid}
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = nodes.Patch(ctx, nodeName, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}
