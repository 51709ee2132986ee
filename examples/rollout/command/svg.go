// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// A picture is an SVG document in the making. It has no scripts, and refers to nothing outside.
type picture struct {
	text strings.Builder
	open []string // elements
}

// attributes are names and values by turns.
type attributes []string

// begin opens an element.
func (p *picture) begin(name string, a ...string) {
	p.tag(name, a, ">\n")
	p.open = append(p.open, name)
}

// shut closes the element that was opened last.
func (p *picture) shut() {
	last := len(p.open) - 1
	p.text.WriteString("</" + p.open[last] + ">\n")
	p.open = p.open[:last]
}

// empty writes an element without content.
func (p *picture) empty(name string, a ...string) { p.tag(name, a, "/>\n") }

// words writes an element that holds text.
func (p *picture) words(name, text string, a ...string) {
	p.tag(name, a, ">")
	p.escaped(text)
	p.text.WriteString("</" + name + ">\n")
}

func (p *picture) tag(name string, a attributes, end string) {
	p.text.WriteString("<" + name)
	for i := 0; i+1 < len(a); i += 2 {
		p.text.WriteString(" " + a[i] + `="`)
		p.escaped(a[i+1])
		p.text.WriteString(`"`)
	}
	p.text.WriteString(end)
}

// escaped writes text; what XML cannot hold becomes the replacement character.
func (p *picture) escaped(text string) {
	_ = xml.EscapeText(&p.text, []byte(text)) // a Builder does not fail
}

// number is a coordinate, to a tenth.
func number(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}
