// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
)

// print writes a rollout in a format of -o.
func (d Document) print(out io.Writer, format string) error {
	switch format {
	case outputJSON:
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(d)
	case outputSVG:
		return writeSVG(out, d)
	case outputSummary:
		_, err := fmt.Fprintf(out, "%s: %s\n%s", d.Deployment, d.Change, d.summary())
		return err
	default:
		_, err := io.WriteString(out, table(d, format == outputWide))
		return err
	}
}
