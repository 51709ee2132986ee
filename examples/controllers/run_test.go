// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
)

func TestRun_CachesNotSynced_EndsItsQueues(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	machines := fake.NewSimpleClientset()
	machines.PrependReactor("list", "machines", func(clienttesting.Action) (bool, runtime.Object, error) {
		cancel()
		return true, nil, errors.New("not now")
	})
	var queues []workqueue.TypedRateLimitingInterface[types.NamespacedName]
	err := Run(ctx, Config{
		Machines: machines, Control: kubefake.NewClientset(), Driver: drivertest.NewCloud(drivertest.CloudOptions{}),
		newQueue: func(string) workqueue.TypedRateLimitingInterface[types.NamespacedName] {
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())
			queues = append(queues, queue)
			return queue
		},
	})
	require.ErrorContains(t, err, "caches not synced")
	require.NotEmpty(t, queues)
	for _, queue := range queues {
		require.True(t, queue.ShuttingDown())
	}
}
