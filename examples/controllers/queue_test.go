// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestLoop_ConflictJoinedWithAnotherError_ErrorIsReported checks that a conflict alone is not
// reported, and that an error joined with it is.
func TestLoop_ConflictJoinedWithAnotherError_ErrorIsReported(t *testing.T) {
	resource := schema.GroupResource{Resource: "machines"}
	conflict := apierrors.NewConflict(resource, "m", errors.New("later"))
	forbidden := apierrors.NewForbidden(resource, "m", errors.New("no"))
	for name, tt := range map[string]struct {
		err  error
		told bool
	}{
		"a conflict":                   {conflict, false},
		"a wrapped conflict":           {fmt.Errorf("status: %w", conflict), false},
		"conflicts":                    {errors.Join(conflict, fmt.Errorf("update: %w", conflict)), false},
		"a conflict of a cordon":       {fmt.Errorf("drain: cordon node n: %w", conflict), false},
		"forbidden":                    {forbidden, true},
		"a conflict, then forbidden":   {errors.Join(conflict, forbidden), true},
		"forbidden, then a conflict":   {errors.Join(forbidden, conflict), true},
		"forbidden, deep in the tree":  {fmt.Errorf("pass: %w", errors.Join(errors.Join(conflict), fmt.Errorf("%w: %w", conflict, forbidden))), true},
		"a conflict and another error": {errors.Join(conflict, errors.New("disk full")), true},
	} {
		t.Run(name, func(t *testing.T) {
			var told []error
			cfg := Config{Clock: clock.RealClock{}, Observe: func(n Note) { told = append(told, n.Err) }}
			cfg.newQueue = func(kind string) workqueue.TypedRateLimitingInterface[types.NamespacedName] {
				return newQueue(kind, cfg.Clock, nil)
			}
			l := newLoop(&cfg, "machine", func(context.Context, types.NamespacedName) (time.Time, error) { return time.Time{}, tt.err })
			defer l.queue.ShutDown()
			l.queue.Add(types.NamespacedName{Namespace: "n", Name: "m"})
			require.True(t, l.next(t.Context()))
			require.Equal(t, tt.told, len(told) == 1)
			require.Equal(t, 1, l.queue.NumRequeues(types.NamespacedName{Namespace: "n", Name: "m"}))
			if tt.told {
				require.Equal(t, tt.err, told[0])
			}
		})
	}
}

// TestLoop_NextCheckInThePast_WaitsBeforeTheNextPass checks that a next check in the past does not
// start a pass at once.
func TestLoop_NextCheckInThePast_WaitsBeforeTheNextPass(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for due, want := range map[time.Duration]time.Duration{0: overdue, -time.Hour: overdue, time.Millisecond: time.Millisecond} {
		queue, key := newHandQueue(clocktesting.NewFakePassiveClock(now)), types.NamespacedName{Name: "o"}
		l := &loop{cfg: &Config{Clock: clocktesting.NewFakeClock(now)}, queue: queue, pass: func(context.Context, types.NamespacedName) (time.Time, error) { return now.Add(due), nil }}
		queue.Add(key)
		queue.chosen = key
		require.True(t, l.next(t.Context()))
		require.Equal(t, now.Add(want), queue.later[key], due)
	}
}
