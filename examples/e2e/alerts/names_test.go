// SPDX-License-Identifier: Apache-2.0

package alerts_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/driver/drivertest"
)

const dashboardFile = "../../programs/manager/metrics/dashboard.json"

// dashboard is what Grafana reads.
type dashboard struct {
	Title      string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		ID          int
		Type, Title string
		GridPos     struct{ H, W, X, Y int }
		Targets     []struct{ RefID, Expr string }
	}
}

// queries are the expressions of the dashboard, by panel, with a value for each variable.
func queries(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	require.NotEmpty(t, d.Title)
	var known []string
	all := map[string][]string{}
	values := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	for _, v := range d.Templating.List {
		known = append(known, "$"+v.Name, ".*")
		if v.Type == "query" {
			parts := values.FindStringSubmatch(v.Query)
			require.NotEmpty(t, parts, v.Query)
			all["variable "+v.Name] = []string{parts[1]}
		}
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], "two panels have the number %d", p.ID)
		ids[p.ID] = true
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], target.Expr)
		}
	}
	for title := range all {
		for i, expr := range all[title] {
			all[title][i] = strings.NewReplacer(known...).Replace(expr)
			require.NotContains(t, all[title][i], "$", title)
		}
	}
	return all
}

// selectors are what an expression reads.
func selectors(t *testing.T, expr string) (all []*parser.VectorSelector) {
	t.Helper()
	e, err := parser.ParseExpr(expr)
	require.NoError(t, err, expr)
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, is := n.(*parser.VectorSelector); is {
			all = append(all, s)
		}
		return nil
	})
	require.NotEmpty(t, all, expr)
	return all
}

// labelsOf are the names of labels that each metric has in any of the scrapes.
func labelsOf(t *testing.T, scrapes []scrape) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, s := range scrapes {
		for p := textparse.NewPromParser(s.text, labels.NewSymbolTable(), false); ; {
			entry, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if entry != textparse.EntrySeries {
				continue
			}
			var series labels.Labels
			p.Labels(&series)
			name := series.Get(model.MetricNameLabel)
			if all[name] == nil {
				all[name] = map[string]bool{model.MetricNameLabel: true, "job": true}
			}
			series.Range(func(l labels.Label) { all[name][l.Name] = true })
		}
	}
	return all
}

// TestNames_RulesAndDashboard_ExistInAScrape reads the labels too: of a selector and of the
// grouping around it.
func TestNames_RulesAndDashboard_ExistInAScrape(t *testing.T) {
	there := labelsOf(t, play(t, drivertest.CloudOptions{BootTime: time.Minute, Quota: 3}, 0, everything))
	expressions := queries(t)
	for _, r := range parsed(t) {
		expressions[r.Alert] = append(expressions[r.Alert], r.Expr)
	}
	for title, all := range expressions {
		for _, expr := range all {
			for _, s := range selectors(t, expr) {
				require.Contains(t, there, s.Name, title)
				for _, m := range s.LabelMatchers {
					require.True(t, there[s.Name][m.Name], "%s: %s has no label %s", title, s.Name, m.Name)
				}
				for _, name := range grouped(t, expr) {
					require.True(t, there[s.Name][name], "%s: %s has no label %s", title, s.Name, name)
				}
			}
		}
	}
}

// grouped are the labels that an expression groups by.
func grouped(t *testing.T, expr string) (all []string) {
	t.Helper()
	e, err := parser.ParseExpr(expr)
	require.NoError(t, err, expr)
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if a, is := n.(*parser.AggregateExpr); is && !a.Without {
			all = append(all, a.Grouping...)
		}
		return nil
	})
	return all
}

// everything is a life in which each metric has a value: machines come, fail, drain and go.
func everything(f *fleet) {
	request := httptest.NewRequestWithContext(f.Context(), http.MethodGet, "http://machines/", nil)
	answer, err := f.metrics.Transport("machines")(refusing{}).RoundTrip(request)
	require.NoError(f, err)
	require.NoError(f, answer.Body.Close())
	blocked(f)
	f.nodes.SilenceNext(1)
	f.deploy(5) // beyond the quota
	f.create("cursed")
	f.pass(40 * time.Minute)
	f.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: "lost", Class: "small"})
	f.pass(time.Hour)
}

// refusing answers requests with 404.
type refusing struct{}

// RoundTrip implements [http.RoundTripper].
func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNotFound, Body: io.NopCloser(strings.NewReader(""))}, nil
}
