// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
)

func TestCategory_EveryCode_MatchesPackageComment(t *testing.T) {
	t.Parallel()
	want := map[codes.Code]codes.Category{
		codes.OK:                 codes.Proceed,
		codes.Canceled:           codes.RetryLater,
		codes.Unknown:            codes.RetrySoon,
		codes.InvalidArgument:    codes.FixRequest,
		codes.DeadlineExceeded:   codes.RetrySoon,
		codes.NotFound:           codes.TreatAsAbsent,
		codes.AlreadyExists:      codes.Investigate,
		codes.PermissionDenied:   codes.FixCredentials,
		codes.ResourceExhausted:  codes.WaitForCapacity,
		codes.FailedPrecondition: codes.RetryLater,
		codes.Aborted:            codes.RetrySoon,
		codes.OutOfRange:         codes.Investigate,
		codes.Unimplemented:      codes.TreatAsAbsent,
		codes.Internal:           codes.RetryLater,
		codes.Unavailable:        codes.RetrySoon,
		codes.DataLoss:           codes.Investigate,
		codes.Unauthenticated:    codes.FixCredentials,
		codes.Uninitialized:      codes.Investigate,
	}
	require.Len(t, want, len(codes.All()))
	comment, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, c := range codes.All() {
		require.Equal(t, want[c], c.Category(), c.String())
		require.Equal(t, c == codes.OK, c.Category() == codes.Proceed, "only success proceeds")
		require.Contains(t, string(comment), fmt.Sprintf("//\t%2d  %-18s  %s\n", uint32(c), c, c.Category()))
	}
	for _, c := range future {
		require.Equal(t, codes.RetryLater, c.Category())
	}
	require.Equal(t, codes.RetryLater, codes.Category(0), "the zero category is the cautious one")
	require.Equal(t, "Category(200)", codes.Category(200).String())
}
