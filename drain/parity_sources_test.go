// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/informers"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// DD-23: any number of drains may look while events arrive, and no event is lost however
// many there are. The race detector sees the rest.
func TestDD23DrainsLookWhileAttachmentsChange(t *testing.T) {
	cluster := draintest.New(draintest.Options{})
	for i := range 4 {
		node := newNode()
		node.Name = fmt.Sprint("node-", i)
		require.NoError(t, cluster.Add(node))
	}
	factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
	found, err := runner.NewInformers(factory, drain.SourceAttachments)
	require.NoError(t, err)
	var heard [4]atomic.Int64
	require.NoError(t, found.OnChange(func(node string) {
		var i int
		if _, err := fmt.Sscanf(node, "node-%d", &i); err == nil {
			heard[i].Add(1)
		}
	}))
	sourceStart(t, factory)

	const events = 50
	var drains sync.WaitGroup
	for i := range 4 {
		drains.Go(func() {
			for n := range events {
				past := drain.State{Volumes: map[string]drain.VolumeState{fmt.Sprint("pv-", n): {}}}
				if _, err := runner.Observe(t.Context(), found, fmt.Sprint("node-", i), everything, past); err != nil {
					t.Error(err)
				}
			}
		})
		drains.Go(func() {
			for n := range events {
				if err := cluster.Add(sourceAttachment(fmt.Sprint(n), fmt.Sprint("node-", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	drains.Wait()
	for i := range heard {
		require.Eventually(t, func() bool { return heard[i].Load() > events }, 10*time.Second, time.Millisecond, "each of them, and that of the Node itself")
	}
}

// DD-69: somebody who does not return from an event holds up events, and no drain.
func TestDD69AListenerThatStallsHoldsNoDrain(t *testing.T) {
	cluster := sourceTown(t)
	factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
	found, err := runner.NewInformers(factory, sourceAll...)
	require.NoError(t, err)
	stalled, release := make(chan struct{}, 1), make(chan struct{})
	require.NoError(t, found.OnChange(func(string) {
		select {
		case stalled <- struct{}{}:
		default:
		}
		<-release
	}))
	sourceStart(t, factory)
	defer close(release)
	<-stalled
	looked := make(chan int, 2)
	go func() {
		past := drain.State{Volumes: map[string]drain.VolumeState{"pv-db": {}}}
		for _, node := range []string{"node-1", "node-2"} {
			in, err := runner.Observe(t.Context(), found, node, everything, past)
			if err != nil {
				t.Error(err)
			}
			looked <- len(in.Pods.Items)
		}
	}()
	for _, want := range []int{9, 1} {
		select {
		case pods := <-looked:
			require.Equal(t, want, pods)
		case <-time.After(10 * time.Second):
			require.Fail(t, "a drain waits for a listener")
		}
	}
}
