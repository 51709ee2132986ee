// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// defaultParallel is the number of concurrent requests for one object. At 10 ms for a request, the
// requests for 110 pods take 70 ms.
const defaultParallel = 16

// errNotSent is the error of a request that was not sent because the context had ended.
var errNotSent = errors.New("the request was not sent")

// A Panic is the panic of another goroutine.
type Panic struct {
	value any
	stack []byte
}

// String returns the value of the panic.
func (p *Panic) String() string { return fmt.Sprint(p.value) }

// Stack returns the stack of the goroutine that panicked.
func (p *Panic) Stack() []byte { return p.stack }

// Recover calls f. It returns its panic, or nil.
func Recover(f func()) (p *Panic) {
	defer func() {
		if value := recover(); value != nil {
			p = &Panic{value, debug.Stack()}
		}
	}()
	f()
	return nil
}

// InParallel calls send with the numbers from 0 to n-1, at most limit at a time, and returns their
// errors. Zero means 16 at a time. If send panics, InParallel panics after all calls have ended.
func InParallel(ctx context.Context, limit, n int, send func(i int) error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = errNotSent
	}
	workers := min(cmp.Or(max(limit, 0), defaultParallel), n)
	if workers == 1 {
		for i := 0; i < n && ctx.Err() == nil; i++ {
			errs[i] = send(i)
		}
		return errs
	}
	var taken atomic.Int64
	var first atomic.Pointer[Panic]
	work := func() {
		for ctx.Err() == nil && first.Load() == nil {
			i := int(taken.Add(1)) - 1
			if i >= n {
				return
			}
			errs[i] = send(i)
		}
	}
	var others sync.WaitGroup
	for range workers {
		others.Go(func() {
			if p := Recover(work); p != nil {
				first.CompareAndSwap(nil, p)
			}
		})
	}
	others.Wait()
	if p := first.Load(); p != nil {
		panic(p)
	}
	return errs
}
