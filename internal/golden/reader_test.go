// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"
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
	judge := read(safetyFreeze)
	vector := func(machines int, bounds string, limit int) ([]byte, []byte) {
		in := fmt.Sprintf(`{"machineCount":%d,"machineDeployment":{"name":"md","replicas":3,"strategy":"InPlaceUpdate",%s,"status":{"replicas":0}},`+
			`"machineSet":{"name":"ms","createdOffset":0,"replicas":1,"status":{"replicas":0}},"safetyDown":1,"safetyUp":2}`, machines, bounds)
		if machines < limit {
			return []byte(in), []byte(`{"conditions":[],"error":null,"events":[],"frozenLabel":"","mdConditions":[],"mdFrozenLabel":""}`)
		}
		frozen := fmt.Sprintf(`[{"type":"Frozen","status":"True","reason":"OverShootingReplicaCount",`+
			`"message":"The number of machines backing MachineSet: ms is %d >= %d which is the Max-ScaleUp-Limit"}]`, machines, limit)
		return []byte(in), []byte(`{"conditions":` + frozen + `,"error":null,"events":["Normal FrozeMachineSet SafetyController: Froze MachineSet ms due to replica overshooting"],` +
			`"frozenLabel":"True","mdConditions":` + frozen + `,"mdFrozenLabel":"True"}`)
	}
	for bounds, tc := range map[string]struct {
		limit int // of MCM
		want  []string
	}{
		`"maxSurge":4,"maxUnavailable":0`:                                 {9, nil},
		`"maxSurge":4,"maxUnavailable":0,"orchestrationType":"Auto"`:      {9, nil},
		`"maxSurge":4,"maxUnavailable":0,"orchestrationType":"Manual"`:    {9, []string{"surge in place"}},
		`"maxSurge":4,"maxUnavailable":null,"orchestrationType":"Auto"`:   {9, []string{"bounds not read"}},
		`"maxSurge":-1,"maxUnavailable":1,"orchestrationType":"Auto"`:     {4, []string{"DS-14"}},
		`"maxSurge":"134%","maxUnavailable":1,"orchestrationType":"Auto"`: {10, nil},
	} {
		for machines := tc.limit - 1; machines <= tc.limit; machines++ {
			in, out := vector(machines, bounds, tc.limit)
			deviations, err := judge(in, out)
			require.NoError(t, err, bounds)
			if machines == tc.limit || tc.limit > 5 { // below the limit of the SDK, too, nothing is frozen
				require.Equal(t, tc.want, deviations, "%d machines, %s", machines, bounds)
			}
		}
		in, out := vector(tc.limit, bounds, tc.limit+1)
		_, err := judge(in, out)
		require.ErrorContains(t, err, "does not reproduce", bounds)
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
