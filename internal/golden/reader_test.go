// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReader_UnknownField_IsAnError(t *testing.T) {
	judge := read(slowStart)
	in, out := []byte(`{"count":3,"failFromCall":2,"initialBatchSize":1}`), []byte(`{"calls":3,"failed":true,"successes":1}`)
	deviations, err := judge(in, out)
	require.NoError(t, err)
	require.Empty(t, deviations)

	_, err = judge(in, []byte(`{"calls":3,"failed":true,"successes":2}`))
	require.ErrorContains(t, err, "calls")
	_, err = judge([]byte(`{"count":3,"colour":"red"}`), out)
	require.ErrorContains(t, err, "input")
	_, err = judge(in, []byte(`{"colour":"red"}`))
	require.ErrorContains(t, err, "output")
	_, err = read(func(in map[string]int, _ []int) ([]string, error) { panic(len(in)) })([]byte(`{}`), []byte(`[]`))
	require.ErrorContains(t, err, "panic: 0")
}

func TestModel_Defect_ExcusesWhatItCauses(t *testing.T) {
	model := func(m mended) int {
		n := 10
		if m["a"] {
			n++
		}
		if m["b"] {
			n += 0
		}
		return n
	}
	deviations, err := explain([]string{"a", "b"}, model, 10, 11)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, deviations)

	_, err = explain([]string{"a", "b"}, model, 10, 12)
	require.ErrorContains(t, err, "does not agree with us")
	_, err = explain([]string{"a", "b"}, model, 9, 11)
	require.ErrorContains(t, err, "does not reproduce")
	deviations, err = explain([]string{"b"}, model, 10, 10)
	require.NoError(t, err)
	require.Empty(t, deviations)
}

func TestVectors_OtherFolder_IsRead(t *testing.T) {
	t.Setenv("MACHINIST_GOLDEN", "")
	require.Equal(t, builtIn, folder())
	t.Setenv("MACHINIST_GOLDEN", "/vectors")
	require.Equal(t, "/vectors", folder())
	t.Setenv("MACHINIST_GOLDEN", "vectors")
	require.Equal(t, filepath.Join("..", "..", "vectors"), folder())
}
