// SPDX-License-Identifier: Apache-2.0

package simulation

import "strconv"

// The colors are readable on white and on black. The style sheet replaces some of them in dark mode.
const (
	paper        = "#ffffff"
	ink          = "#1f2328"
	faint        = "#8c959f"
	grid         = "#d0d7de"
	maximumRed   = "#cf222e"
	minimumGreen = "#1a7f37"
	eventPink    = "#bf3989"
)

// style is the style sheet for dark mode. In light mode the attributes of the elements apply.
const style = `text{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;font-size:12px}
@media (prefers-color-scheme:dark){
.paper{fill:#0d1117}
.ink{fill:#e6edf3}
.faint{fill:#9198a1}
.grid{stroke:#2f353d}
.replicas{stroke:#e6edf3}
.replicas-name{fill:#e6edf3}
.maximum{stroke:#ff7b72}
.maximum-name{fill:#ff7b72}
.minimum{stroke:#3fb950}
.minimum-name{fill:#3fb950}
.event{stroke:#f778ba}
.event-name{fill:#f778ba}
.why{fill:#21262d;stroke:#484f58}
}
`

// setColors are the colors of the sets.
var setColors = []string{"#8590a3", "#2f81f7", "#d9822b", "#8957e5", "#1b9e8a", "#b35900"}

func setColor(set int) string { return setColors[set%len(setColors)] }

// fillOf returns the fill of an area: the color of its set if its machines are available, and a
// pattern in that color otherwise.
func fillOf(a area) string {
	if a.state.pattern == nil {
		return setColor(a.set)
	}
	return "url(#" + patternOf(a) + ")"
}

func patternOf(a area) string { return a.state.name + "-" + strconv.Itoa(a.set) }

// define writes the patterns of the areas.
func (p *picture) define(areas []area) {
	p.begin("defs")
	for _, a := range areas {
		if a.state.pattern == nil {
			continue
		}
		p.begin("pattern", "id", patternOf(a), "width", "8", "height", "8", "patternUnits", "userSpaceOnUse")
		a.state.pattern(p, setColor(a.set))
		p.end()
	}
	p.end()
}

// tint fills a pattern with a color of an opacity.
func (p *picture) tint(color, opacity string) {
	p.empty("rect", "width", "8", "height", "8", "fill", color, "fill-opacity", opacity)
}

func (p *picture) stroke(path, color string) {
	p.empty("path", "d", path, "stroke", color, "stroke-width", "1.6", "fill", "none")
}

func readyPattern(p *picture, color string) { p.tint(color, "0.6") }

func updatingPattern(p *picture, color string) {
	p.tint(color, "0.3")
	p.stroke("M0 2H8M0 6H8", color)
}

func pendingPattern(p *picture, color string) {
	p.tint(color, "0.15")
	p.stroke("M-2 2L2 -2M0 8L8 0M6 10L10 6", color)
}

func failedPattern(p *picture, color string) {
	p.tint(maximumRed, "0.75")
	p.stroke("M0 0L8 8M8 0L0 8", color)
}

func terminatingPattern(p *picture, color string) {
	p.tint(color, "0.15")
	p.empty("circle", "cx", "2", "cy", "2", "r", "1.2", "fill", color)
	p.empty("circle", "cx", "6", "cy", "6", "r", "1.2", "fill", color)
}
