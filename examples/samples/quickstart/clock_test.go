// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
)

func TestClock_ProgramWorks_StandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var busy atomic.Bool
		c := newFastClock(60)
		begin := c.Now()
		go c.run(ctx, busy.Load)
		time.Sleep(time.Second)
		passed := c.Since(begin)
		require.InDelta(t, time.Minute, passed, float64(longestStep))
		busy.Store(true)
		due := c.After(time.Millisecond)
		time.Sleep(time.Hour)
		require.Equal(t, passed, c.Since(begin))
		require.Empty(t, due)
		busy.Store(false)
		require.Equal(t, passed+longestStep, (<-due).Sub(begin), "one step at a time, however long it stood still")
		cancel()
		synctest.Wait()
		c.Step(time.Second)
	})
}

func TestClock_SlowerThanRealTime_Passes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newFastClock(0.01)
		begin := c.Now()
		go c.run(ctx, never)
		time.Sleep(100 * time.Second)
		require.InDelta(t, time.Second, c.Since(begin), float64(10*time.Microsecond))
		cancel()
		synctest.Wait()
	})
}

func TestClock_Sleep_DoesNotAdvanceTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFastClock(1)
		begin := c.Now()
		slept := make(chan struct{})
		go func() { c.Sleep(time.Second); close(slept) }()
		synctest.Wait()
		require.Zero(t, c.Since(begin))
		c.Step(time.Second)
		<-slept
	})
}

func TestWorking_GoroutineRuns_UntilItEnds(t *testing.T) {
	var end atomic.Bool
	go func() {
		for !end.Load() { //nolint:revive // it only works
		}
	}()
	require.True(t, working())
	end.Store(true)
	require.Eventually(t, func() bool { return !working() }, time.Minute, time.Millisecond)
}

func TestBusy_WatchIsClosed_UntilItIsOpenAgain(t *testing.T) {
	w := newWorld(settings{speed: 60}, never)
	watch := func() {
		_, err := w.nodes.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
	}
	require.False(t, w.busy(), "before the first watch")
	watch()
	watch()
	require.False(t, w.busy())
	require.Equal(t, 2, w.target.DropWatches())
	require.True(t, w.busy())
	watch()
	require.True(t, w.busy(), "one of two")
	watch()
	require.False(t, w.busy())
	w.working = func() bool { return true }
	require.True(t, w.busy())
}

func TestDriverCall_NoAnswer_EndsOnTheClockOfTheDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(settings{speed: 60}, never)
		ctx, cancel := context.WithCancel(t.Context())
		hang := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		result := make(chan error, 2)
		go func() { result <- w.bounded(ctx, "a call", hang) }()
		time.Sleep(time.Hour)
		w.clock.Step(driverTimeout - time.Second)
		synctest.Wait()
		require.Empty(t, result, "an hour of real time ends no call")
		w.clock.Step(time.Second)
		err := <-result
		require.Equal(t, codes.DeadlineExceeded, codes.Of(err))
		require.ErrorContains(t, err, "a call did not end within 30s")

		go func() { result <- w.bounded(ctx, "a call", hang) }()
		synctest.Wait()
		cancel()
		require.Equal(t, context.Canceled, <-result)
		require.NoError(t, w.bounded(ctx, "a call", func(context.Context) error { return nil }))
	})
}

func TestFaults_Watches_StayOpenForAMinute(t *testing.T) {
	w := newWorld(settings{speed: 60, faults: true}, never)
	w.target.Inject(apiFaults()[len(apiFaults())-1])
	api := w.nodes.CoreV1().Nodes()
	_, err := api.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	open := func() int {
		if w.target.Watching("") == 0 {
			_, err := api.Watch(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
		}
		_, err := api.Update(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.UpdateOptions{})
		require.NoError(t, err)
		return w.target.Watching("")
	}
	require.Zero(t, open())
	require.Equal(t, 1, open())
	w.clock.Step(watchTime)
	require.Zero(t, open())
}
