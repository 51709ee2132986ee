// SPDX-License-Identifier: Apache-2.0

package line_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/line"
)

type action string

func (a action) String() string { return string(a) }

func TestDecision_EachPart_HasItsPlace(t *testing.T) {
	holds := []machinist.Hold{{Subject: "pod a", Reason: "Budget"}, {Subject: "pod b", Reason: "Wave", Message: "after pod a"}}
	require.Equal(t, "nothing", line.Decision[action](nil, "", "", nil))
	require.Equal(t, "nothing (Settled)", line.Decision[action](nil, "Settled", "", nil))
	require.Equal(t, "nothing (all is well)", line.Decision[action](nil, "", "all is well", nil))
	require.Equal(t, "one; two (Why: because)", line.Decision([]action{"one", "two"}, "Why", "because", nil))
	require.Equal(t, "one (Why); waits for pod a: Budget; waits for pod b: Wave: after pod a", line.Decision([]action{"one"}, "Why", "", holds))
}

func TestDecision_ManyActionsAndHolds_AreCounted(t *testing.T) {
	var actions []action
	var holds []machinist.Hold
	for i := range line.Shown + 2 {
		actions = append(actions, action(strconv.Itoa(i)))
		holds = append(holds, machinist.Hold{Subject: strconv.Itoa(i), Reason: "Waits"})
	}
	text := line.Decision(actions, "Why", "", holds)
	require.Contains(t, text, "; 29; 2 more actions (Why); waits for 0: Waits; ")
	require.Contains(t, text, "; waits for 29: Waits; 2 more holds")
}
