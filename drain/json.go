// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"encoding/json"

	"github.com/machinist-dev/machinist/nodeops"
)

// MarshalJSON returns the decision as JSON, with two more fields: feasible is [Decision.Feasible],
// and obstacles are the subjects of [Decision.Obstacles]. The rungs of the ladders are text.
func (d Decision) MarshalJSON() ([]byte, error) {
	type fields Decision
	out := struct {
		fields
		Feasible  bool            `json:"feasible"`
		Obstacles []string        `json:"obstacles,omitempty"`
		Cordon    *nodeops.Cordon `json:"cordon,omitempty"`
		Ladder    []string        `json:"ladder,omitempty"`
		Reached   []string        `json:"reachedRungs,omitempty"`
	}{fields: fields(d), Feasible: d.Feasible(), Ladder: rungTexts(d.Ladder), Reached: rungTexts(d.Rungs)}
	for _, row := range d.Obstacles() {
		out.Obstacles = append(out.Obstacles, row.subject())
	}
	if d.Cordon != nil {
		out.Cordon = &d.Cordon.Cordon
	}
	if out.Rows == nil {
		out.Rows = []Row{}
	}
	return json.Marshal(out)
}

func rungTexts(rungs []Rung) []string {
	var texts []string
	for _, r := range rungs {
		texts = append(texts, r.String())
	}
	return texts
}
