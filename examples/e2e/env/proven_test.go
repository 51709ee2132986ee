// SPDX-License-Identifier: Apache-2.0

package env

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/rigs/audit"
)

func TestBounds_NotJudged_Fails(t *testing.T) {
	tests := map[string]struct {
		figures audit.Figures
		outage  bool
		says    string
	}{
		"all was judged":              {},
		"all was judged in an outage": {outage: true},
		"a gap":                       {figures: audit.Figures{Gaps: 1}, says: "has missed something"},
		"something unproven":          {figures: audit.Figures{Unproven: []string{"x"}}, says: "not judged: x"},
		"a gap in an outage":          {figures: audit.Figures{Gaps: 1}, outage: true},
		"something unproven for a gap in an outage":    {figures: audit.Figures{Gaps: 1, Unproven: []string{"x"}}, outage: true},
		"something unproven for nothing, in an outage": {figures: audit.Figures{Unproven: []string{"x"}}, outage: true, says: "although it has missed nothing"},
		"the end is missing after an outage": {
			figures: audit.Figures{Gaps: 1, Unproven: []string{"x"}, CutShort: true}, outage: true, says: "has missed something",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Options{Outage: test.outage}.proven(test.figures)
			if test.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.says)
		})
	}
}
