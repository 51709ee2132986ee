// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Now returns the time of a clock. Nil means the real clock.
func Now(c clock.PassiveClock) time.Time {
	if c == nil {
		return time.Now()
	}
	return c.Now()
}

// Random returns f. Nil means math/rand/v2.
func Random(f func() float64) func() float64 {
	if f == nil {
		return rand.Float64
	}
	return f
}

// Lazy is a value that is made when it is first used. The zero value has none. It is safe for concurrent
// use.
type Lazy[T any] struct {
	once  sync.Once
	value *T
}

// Get returns the value. The first call makes it.
func (l *Lazy[T]) Get(makeValue func() *T) *T {
	l.once.Do(func() { l.value = makeValue() })
	return l.value
}

// Required returns an error that names the first field that is nil, in the order of their names, or nil.
func Required(owner string, fields map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] == nil {
			return fmt.Errorf("%s: no %s", owner, name)
		}
	}
	return nil
}
