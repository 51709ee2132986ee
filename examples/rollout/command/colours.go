// SPDX-License-Identifier: Apache-2.0

package command

import "strconv"

// Colours can be told apart on white and on black. Those of what is drawn with ink are changed by
// the style sheet if the viewer prefers dark.
const (
	paper      = "#ffffff"
	ink        = "#1f2328"
	faint      = "#8c959f"
	grid       = "#d0d7de"
	capRed     = "#cf222e"
	floorGreen = "#1a7f37"
	eventPink  = "#bf3989"
)

// style is for viewers that prefer dark; without it the attributes of the elements hold.
const style = `text{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;font-size:12px}
@media (prefers-color-scheme:dark){
.paper{fill:#0d1117}
.ink{fill:#e6edf3}
.faint{fill:#9198a1}
.grid{stroke:#2f353d}
.wanted{stroke:#e6edf3}
.wanted-name{fill:#e6edf3}
.cap{stroke:#ff7b72}
.cap-name{fill:#ff7b72}
.floor{stroke:#3fb950}
.floor-name{fill:#3fb950}
.event{stroke:#f778ba}
.event-name{fill:#f778ba}
.why{fill:#21262d;stroke:#484f58}
}
`

// generations are the colours of sets; older ones are never lighter or darker, as both may be
// hard to see.
var generations = []string{"#8590a3", "#2f81f7", "#d9822b", "#8957e5", "#1b9e8a", "#b35900"}

func generation(set int) string { return generations[set%len(generations)] }

// fillOf is what an area is filled with: the colour of its set if its machines are available,
// and a pattern of that colour otherwise.
func fillOf(p part) string {
	if p.state.pattern == nil {
		return generation(p.set)
	}
	return "url(#" + patternOf(p) + ")"
}

func patternOf(p part) string { return p.state.name + "-" + strconv.Itoa(p.set) }

// define writes the patterns of the parts.
func (p *picture) define(parts []part) {
	p.begin("defs")
	for _, part := range parts {
		if part.state.pattern == nil {
			continue
		}
		p.begin("pattern", "id", patternOf(part), "width", "8", "height", "8", "patternUnits", "userSpaceOnUse")
		part.state.pattern(p, generation(part.set))
		p.shut()
	}
	p.shut()
}

// tint is a light colour, to draw a pattern on.
func (p *picture) tint(colour, opacity string) {
	p.empty("rect", "width", "8", "height", "8", "fill", colour, "fill-opacity", opacity)
}

func (p *picture) stroke(path, colour string) {
	p.empty("path", "d", path, "stroke", colour, "stroke-width", "1.6", "fill", "none")
}

func settling(p *picture, colour string) { p.tint(colour, "0.6") }

func updating(p *picture, colour string) {
	p.tint(colour, "0.3")
	p.stroke("M0 2H8M0 6H8", colour)
}

func joining(p *picture, colour string) {
	p.tint(colour, "0.15")
	p.stroke("M-2 2L2 -2M0 8L8 0M6 10L10 6", colour)
}

func failed(p *picture, colour string) {
	p.tint(capRed, "0.75")
	p.stroke("M0 0L8 8M8 0L0 8", colour)
}

func leaving(p *picture, colour string) {
	p.tint(colour, "0.15")
	p.empty("circle", "cx", "2", "cy", "2", "r", "1.2", "fill", colour)
	p.empty("circle", "cx", "6", "cy", "6", "r", "1.2", "fill", colour)
}
