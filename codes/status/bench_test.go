// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

func BenchmarkFromError(b *testing.B) {
	typed := status.Error(codes.NotFound, "no such instance")
	for _, bc := range []struct {
		name string
		err  error
	}{
		{"typed", typed},
		{"wrapped", fmt.Errorf("reconcile: %w", fmt.Errorf("machine m-1: %w", typed))},
		{"text", errors.New(typed.Error())},
		{"foreign20B", errors.New(strings.Repeat("x", 20))},
		{"foreign2kB", errors.New(strings.Repeat("x", 2000))},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = status.FromError(bc.err)
			}
		})
	}
}
