// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
)

func TestEveryCodeHasItsCategory(t *testing.T) {
	t.Parallel()
	want := map[codes.Code]codes.Category{
		codes.OK:                 codes.Proceed,
		codes.Canceled:           codes.RetryLater,
		codes.Unknown:            codes.RetrySoon,
		codes.InvalidArgument:    codes.FixRequest,
		codes.DeadlineExceeded:   codes.RetrySoon,
		codes.NotFound:           codes.TreatAsAbsent,
		codes.AlreadyExists:      codes.Adopt,
		codes.PermissionDenied:   codes.FixCredentials,
		codes.ResourceExhausted:  codes.WaitForCapacity,
		codes.FailedPrecondition: codes.RetryLater,
		codes.Aborted:            codes.RetrySoon,
		codes.OutOfRange:         codes.Investigate,
		codes.Unimplemented:      codes.TreatAsUnsupported,
		codes.Internal:           codes.RetryLater,
		codes.Unavailable:        codes.RetrySoon,
		codes.DataLoss:           codes.Investigate,
		codes.Unauthenticated:    codes.FixCredentials,
		codes.Uninitialized:      codes.Initialize,
	}
	require.Len(t, want, len(codes.All()))
	used := map[codes.Category]bool{}
	for _, c := range codes.All() {
		require.Equal(t, want[c], c.Category(), c.String())
		used[c.Category()] = true
	}
	require.Len(t, used, len(codes.Categories()), "a category without a code")
}

func TestACodeOfTheFutureIsRetriedWithCare(t *testing.T) {
	t.Parallel()
	for _, c := range future {
		require.Equal(t, codes.RetryLater, c.Category())
	}
}

func TestOnlySuccessProceeds(t *testing.T) {
	t.Parallel()
	for _, c := range append(codes.All(), future...) {
		require.Equal(t, c == codes.OK, c.Category() == codes.Proceed, c.String())
	}
}

func TestTheZeroCategoryIsTheCautiousOne(t *testing.T) {
	t.Parallel()
	var zero codes.Category
	require.Equal(t, codes.RetryLater, zero)
	require.Equal(t, zero, codes.Categories()[0])
}

func TestCategoriesSurviveTextAndUnknownNamesBecomeTheCautiousOne(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range codes.Categories() {
		require.False(t, seen[c.String()], "two categories named %s", c)
		seen[c.String()] = true
		data, err := json.Marshal(c)
		require.NoError(t, err)
		back := codes.Category(200)
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, c, back)
	}
	require.Equal(t, "Category(200)", codes.Category(200).String())
	for _, name := range []string{"", "PanicNow", "Category(200)"} {
		got := codes.Proceed
		require.NoError(t, got.UnmarshalText([]byte(name)))
		require.Equal(t, codes.RetryLater, got)
	}
}

func TestThePackageCommentShowsTheTable(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(codes.Table(), "\n"), "\n")
	require.Len(t, lines, len(codes.All()))
	commented := "//\t" + strings.Join(lines, "\n//\t") + "\n"
	require.Contains(t, string(source), commented)
}
