// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/simulation"
)

// element is an element of a picture.
type element struct {
	name, text string
	attributes map[string]string
}

// elements parses a picture with an XML decoder.
func elements(t *testing.T, svg string) []element {
	t.Helper()
	var all, open []element
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			require.Empty(t, open)
			return all
		}
		require.NoError(t, err)
		switch x := token.(type) {
		case xml.StartElement:
			e := element{name: x.Name.Local, attributes: map[string]string{}}
			for _, a := range x.Attr {
				require.NotContains(t, e.attributes, a.Name.Local, "twice")
				e.attributes[a.Name.Local] = a.Value
			}
			open = append(open, e)
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].text += string(x)
			}
		case xml.EndElement:
			all, open = append(all, open[len(open)-1]), open[:len(open)-1]
		default:
			require.Failf(t, "neither an element nor text", "%T", token)
		}
	}
}

// ruler converts coordinates of a picture to numbers of machines.
type ruler struct{ zero, one float64 }

func newRuler(t *testing.T, all []element) ruler {
	t.Helper()
	at := map[int]float64{}
	for _, e := range all {
		if n, err := strconv.Atoi(e.text); err == nil && e.name == "text" && e.attributes["text-anchor"] == "end" {
			at[n] = coordinate(t, e.attributes["y"])
		}
	}
	require.Greater(t, len(at), 1)
	most := 0
	for n := range at {
		most = max(most, n)
	}
	return ruler{zero: at[0], one: (at[0] - at[most]) / float64(most)}
}

func coordinate(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return v
}

// heights returns the numbers of machines that a line of a picture shows, from left to right.
func (r ruler) heights(t *testing.T, path string) []int {
	t.Helper()
	var out []int
	_, start, found := strings.Cut(path, " ")
	require.True(t, found)
	start = start[:strings.IndexAny(start, "HV")]
	ys := []string{start}
	for _, part := range strings.Split(path, "V")[1:] {
		y, _, _ := strings.Cut(part, "H")
		ys = append(ys, y)
	}
	for _, y := range ys {
		n := (r.zero - 4 - coordinate(t, y)) / r.one // labels stand 4 below their line
		require.InDelta(t, n, float64(int(n+0.5)), 0.06, "on a whole number")
		out = append(out, int(n+0.5))
	}
	return out
}

func TestPicture_Bounds_AtTheirHeights(t *testing.T) {
	for _, args := range [][]string{
		{"-f", pool}, {"-f", pool, "--at=4m=replicas:40"}, {"-f", pool, "--at=1m=surge:10", "--at=2m=unavailable:60%", "--at=3m=replicas:3"}, {"-f", pool, "--never"},
	} {
		_, d := document(t, args...)
		_, svg, _ := run(t, append(args, "-o=svg")...)
		all := elements(t, svg)
		r := newRuler(t, all)
		for id, of := range map[string]func(simulation.Frame) int{
			"maximum":  func(f simulation.Frame) int { return f.Maximum },
			"minimum":  func(f simulation.Frame) int { return f.Minimum },
			"replicas": func(f simulation.Frame) int { return f.Replicas },
		} {
			var want []int
			for _, f := range d.Frames {
				want = append(want, of(f.Frame))
			}
			i := slices.IndexFunc(all, func(e element) bool { return e.attributes["id"] == id })
			require.GreaterOrEqual(t, i, 0)
			require.Equal(t, slices.Compact(want), r.heights(t, all[i].attributes["d"]), "%s of %v", id, args)
		}
	}
}

func TestPicture_Stack_AllMachines(t *testing.T) {
	args := []string{"-f", pool, "--fail=0.3", "--at=2m=delete:oldest"}
	_, d := document(t, args...)
	_, svg, _ := run(t, append(args, "-o=svg")...)
	all := elements(t, svg)
	r := newRuler(t, all)
	var want []int
	for _, f := range d.Frames {
		n := 0
		for _, s := range f.Sets {
			n += s.Machines.All()
		}
		want = append(want, n)
	}
	var top string // the upper edge of the last area
	for _, e := range all {
		if e.attributes["class"] == "area" {
			top = e.attributes["d"]
		}
	}
	upper, _, found := strings.Cut(top, "H824V") // the right edge, from which it continues to the left
	require.True(t, found, top)
	require.Equal(t, slices.Compact(want), r.heights(t, upper))
}

func TestPicture_HostileNames_AreText(t *testing.T) {
	file := edited(t, "name: small", `name: "</svg><script>alert(1)</script>&\"'\u0001"`)
	_, svg, errOut := run(t, "-f", file, "-o=svg")
	require.NotEmpty(t, svg, errOut)
	all := elements(t, svg)
	require.Equal(t, "svg", all[len(all)-1].name, "the last element to end")
	found := false
	for _, e := range all {
		require.Contains(t, []string{"svg", "title", "desc", "style", "defs", "pattern", "rect", "path", "circle", "text"}, e.name)
		for name, value := range e.attributes {
			require.False(t, strings.HasPrefix(name, "on"), name)
			require.NotContains(t, name, "href")
			if strings.Contains(value, "url(") {
				require.True(t, strings.HasPrefix(value, "url(#"), value)
			}
		}
		found = found || strings.Contains(e.text, "<script>alert(1)</script>")
	}
	require.True(t, found, "the name is text")
}

func TestPicture_UsedPatterns_AreDefined(t *testing.T) {
	file := edited(t, "RollingUpdate", "InPlaceUpdate", "rollingUpdate:", "inPlaceUpdate:\n      orchestrationType: Auto", "  progressDeadline", "  minReadySeconds: 30\n  progressDeadline")
	for _, args := range [][]string{{"-f", file, "--fail=0.3"}, {"-f", pool, "--quota=5"}, {"-f", pool, "--at=1m=class:a", "--at=2m=class:b"}} {
		_, svg, _ := run(t, append(args, "-o=svg")...)
		ids := map[string]bool{}
		for _, e := range elements(t, svg) {
			ids[e.attributes["id"]] = true
		}
		for _, e := range elements(t, svg) {
			if name, is := strings.CutPrefix(e.attributes["fill"], "url(#"); is {
				require.True(t, ids[strings.TrimSuffix(name, ")")], name)
			}
		}
	}
}

func TestPicture_LongRollout_SmallWithEachViolation(t *testing.T) {
	var frames []simulation.Frame
	for i := range 10_000 {
		f := simulation.Frame{Maximum: 12, Minimum: 9, Available: 9 + i%3, Total: 10 + i%3}
		f.After.Duration = time.Duration(i) * time.Second
		frames = append(frames, f)
	}
	frames[4_321].Available, frames[7_777].Total = 8, 13
	few := simulation.Thinned(frames, 100*time.Second)
	require.LessOrEqual(t, len(few), 400)
	require.True(t, slices.ContainsFunc(few, func(f simulation.Frame) bool { return f.Available < f.Minimum }))
	require.True(t, slices.ContainsFunc(few, func(f simulation.Frame) bool { return f.Total > f.Maximum }))
	require.True(t, slices.IsSortedFunc(few, func(a, b simulation.Frame) int { return int(a.After.Duration - b.After.Duration) }))
	require.Equal(t, frames[0], few[0])
	require.Equal(t, frames[9_999], few[len(few)-1])
	require.Empty(t, simulation.Thinned(nil, time.Second))
}

func TestPicture_Axes_HaveTitles(t *testing.T) {
	_, svg, _ := run(t, "-f", pool, "--never", "-o=svg")
	var texts []string
	for _, e := range elements(t, svg) {
		if e.name == "text" {
			texts = append(texts, e.text)
		}
	}
	for _, text := range []string{
		"number of machines", "time since the change", "waits for", "at most 7 machines", "at least 4 available", "5 replicas",
		"5 machines, class small -> small-next (assumed: no --class or --to), RollingUpdate (surge 2, unavailable 1)",
		"surge used up, minimum available, new machines unavailable",
	} {
		require.Contains(t, texts, text)
	}
}
