// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// picture builds an SVG document. It has no scripts and no external references.
type picture struct {
	text strings.Builder
	open []string // names of the open elements
}

// begin opens an element. Attributes are names and values, alternating.
func (p *picture) begin(name string, a ...string) {
	p.tag(name, a, ">\n")
	p.open = append(p.open, name)
}

// end closes the last open element.
func (p *picture) end() {
	last := len(p.open) - 1
	p.text.WriteString("</" + p.open[last] + ">\n")
	p.open = p.open[:last]
}

// empty writes an element without content.
func (p *picture) empty(name string, a ...string) { p.tag(name, a, "/>\n") }

// content writes an element with text.
func (p *picture) content(name, text string, a ...string) {
	p.tag(name, a, ">")
	p.escaped(text)
	p.text.WriteString("</" + name + ">\n")
}

func (p *picture) tag(name string, a []string, end string) {
	p.text.WriteString("<" + name)
	for i := 0; i+1 < len(a); i += 2 {
		p.text.WriteString(" " + a[i] + `="`)
		p.escaped(a[i+1])
		p.text.WriteString(`"`)
	}
	p.text.WriteString(end)
}

// escaped writes text. Characters that XML does not allow become the replacement character.
func (p *picture) escaped(text string) {
	_ = xml.EscapeText(&p.text, []byte(text)) // a Builder returns no error
}

// number returns a coordinate as text, rounded to a tenth.
func number(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}
