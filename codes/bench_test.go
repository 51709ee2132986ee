// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

// benchErrors are the measured errors.
func benchErrors() (typed, wrapped, foreign error) {
	typed = status.Error(codes.NotFound, "no such instance")
	wrapped = fmt.Errorf("reconcile: %w", fmt.Errorf("machine m-1: %w", typed))
	foreign = fmt.Errorf("reconcile: %w", fmt.Errorf("machine m-1: %w", errors.New("boom")))
	return typed, wrapped, foreign
}

func BenchmarkOf(b *testing.B) {
	typed, wrapped, foreign := benchErrors()
	for _, bc := range []struct {
		name string
		err  error
	}{{"nil", nil}, {"typed", typed}, {"wrapped", wrapped}, {"foreign", foreign}} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sink = codes.Of(bc.err)
			}
		})
	}
}

func BenchmarkBackoff(b *testing.B) {
	failure := codes.Failure{Category: codes.RetrySoon, Attempts: 5}
	var wait time.Duration
	b.ReportAllocs()
	for b.Loop() {
		wait = codes.Backoff(codes.BackoffPolicy{}, failure, nil)
	}
	_ = wait
}
