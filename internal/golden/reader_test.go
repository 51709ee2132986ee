// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
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

func TestSlowStart_NoFirstBatch_NoCalls(t *testing.T) {
	judge := read(slowStart)
	for _, first := range []string{"0", "-1"} {
		in := []byte(`{"count":5,"failFromCall":0,"initialBatchSize":` + first + `}`)
		deviations, err := judge(in, []byte(`{"calls":0,"failed":false,"successes":0}`))
		require.NoError(t, err)
		require.Empty(t, deviations)
		_, err = judge(in, []byte(`{"calls":5,"failed":false,"successes":5}`))
		require.ErrorContains(t, err, "calls")
	}
}

// TestSafetyFreeze_SurgeOfUpdateInPlace_CountsAsInMCMOrDeviates has bounds that MCM reads in another way:
// an update in place of three machines with a surge of 4, and one of -1.
func TestSafetyFreeze_SurgeOfUpdateInPlace_CountsAsInMCMOrDeviates(t *testing.T) {
	percent := bound{ptr.To(intstr.FromString("134%"))}
	for name, tc := range map[string]struct {
		surge, unavailable bound
		orchestration      string
		limit              int // of MCM
		want               []string
	}{
		"none":         {number(4), number(0), "", 9, nil},
		"auto":         {number(4), number(0), "Auto", 9, nil},
		"manual":       {number(4), number(0), "Manual", 9, []string{"surge in place"}},
		"not readable": {number(4), bound{}, "Auto", 9, []string{"bounds not read"}},
		"negative":     {number(-1), number(1), "Auto", 4, []string{"DS-14"}},
		"percent":      {percent, number(1), "Auto", 10, nil},
	} {
		md := machineDeployment{Name: "md", Replicas: 3, Strategy: "InPlaceUpdate", MaxSurge: tc.surge, MaxUnavailable: tc.unavailable, OrchestrationType: tc.orchestration}
		in := safetyFreezeIn{MachineDeployment: &md, MachineSet: machineSet{Name: "ms", Replicas: 1}, SafetyDown: 1, SafetyUp: 2}
		for machines := tc.limit - 1; machines <= tc.limit; machines++ {
			in.MachineCount = machines
			out := freezeModel(in, nil)
			require.Equal(t, machines == tc.limit, out.FrozenLabel == "True", name)
			deviations, err := safetyFreeze(in, out)
			require.NoError(t, err, name)
			if machines == tc.limit || tc.limit > 5 { // below the limit of the SDK, too, nothing is frozen
				require.Equal(t, tc.want, deviations, "%d machines, %s", machines, name)
			}
			in.MachineCount = 2*tc.limit - 1 - machines // the other number
			_, err = safetyFreeze(in, out)
			require.ErrorContains(t, err, "does not reproduce", name)
		}
	}
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
