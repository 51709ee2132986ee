// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// mostAtATime is the number of concurrent requests of one set or deployment.
const mostAtATime = 16

// errNotSent is the error of a request that was not sent because the context had ended.
var errNotSent = errors.New("the request was not sent")

// inParallel calls send with the numbers from 0 to n-1, several at a time, and returns their errors.
// A panic of send becomes an error.
func (c *Config) inParallel(ctx context.Context, n int, send func(i int) error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = errNotSent
	}
	var taken atomic.Int64
	work := func() {
		for ctx.Err() == nil {
			i := int(taken.Add(1)) - 1
			if i >= n {
				return
			}
			errs[i] = c.trySend(send, i)
		}
	}
	var others sync.WaitGroup
	for range min(cmp.Or(c.parallel, mostAtATime), n) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return errs
}

// trySend calls send. A panic becomes an error.
func (c *Config) trySend(send func(i int) error, i int) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = c.caught(value)
		}
	}()
	return send(i)
}
