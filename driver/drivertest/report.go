// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// report has the results of one run. It is safe for use by multiple goroutines.
type report struct {
	mu         sync.Mutex
	kept       int
	broken     []string // names
	notChecked []string // names with reasons
}

// check checks a promise and records the result. It skips a promise that needs a broken one.
func (r *report) check(ctx context.Context, h Harness, p promise) error {
	need := r.brokenNeed(p)
	if need != "" {
		return r.record(p, fmt.Errorf("%w: it needs %s, which is broken", errNotChecked, need))
	}
	return r.record(p, check(ctx, h, p))
}

// brokenNeed returns the first broken promise that p needs. Empty means none.
func (r *report) brokenNeed(p promise) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, need := range p.Needs {
		if slices.Contains(r.broken, need) {
			return need
		}
	}
	return ""
}

// record records the result of a promise and returns it.
func (r *report) record(p promise, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.kept++
	case errors.Is(err, errNotChecked):
		r.notChecked = append(r.notChecked, fmt.Sprintf("%s: %s", p.Name, strings.TrimPrefix(err.Error(), errNotChecked.Error()+": ")))
	default:
		r.broken = append(r.broken, p.Name)
	}
	return err
}

// String returns the numbers, and one line for each promise that is broken or not checked.
func (r *report) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "driver contract: %d promises kept, %d broken, %d not checked", r.kept, len(r.broken), len(r.notChecked))
	for _, name := range slices.Sorted(slices.Values(r.broken)) {
		b.WriteString("\n  broken: " + name)
	}
	for _, text := range slices.Sorted(slices.Values(r.notChecked)) {
		b.WriteString("\n  not checked: " + text)
	}
	return b.String()
}
