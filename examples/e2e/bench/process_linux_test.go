// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCPUTime_Process_AsTheKernelCounts(t *testing.T) {
	me, sum := process(os.Getpid()), 0
	enough := me.cpu() + 200*time.Millisecond
	for began := time.Now(); me.cpu() < enough; {
		require.Less(t, time.Since(began), 10*time.Second, "this loop takes CPU time")
		for i := range 10_000_000 { // of the user, not of the system
			sum += i
		}
	}
	require.NotZero(t, sum)
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	told := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	require.InDelta(t, float64(told), float64(me.cpu()), float64(50*time.Millisecond))
}
