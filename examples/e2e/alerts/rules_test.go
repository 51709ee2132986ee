// SPDX-License-Identifier: Apache-2.0

package alerts_test

import (
	"errors"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"
)

const rulesFile = "../../programs/manager/metrics/alerts.yaml"

// parsed are the rules of the file.
func parsed(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation)
	require.Empty(t, errs)
	require.Len(t, groups.Groups, 1)
	return groups.Groups[0].Rules
}

// alerting are the rules, ready to be evaluated.
func alerting(t *testing.T) (all []*rules.AlertingRule) {
	t.Helper()
	for _, r := range parsed(t) {
		expr, err := parser.ParseExpr(r.Expr)
		require.NoError(t, err, r.Alert)
		all = append(all, rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), time.Duration(r.KeepFiringFor),
			labels.FromMap(r.Labels), labels.FromMap(r.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler)))
	}
	return all
}

// fired is when an alert fired first, and whether it still does in the end.
type fired struct {
	first time.Time
	still bool
	told  string // its summary
}

// evaluate evaluates the rules at each scrape, as Prometheus does, and returns the alerts that
// fired.
func evaluate(t *testing.T, scrapes []scrape) map[string]*fired {
	t.Helper()
	store := teststorage.New(t)
	defer func() { require.NoError(t, store.Close()) }()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	query := rules.EngineQueryFunc(engine, store)
	all, known, results := alerting(t), map[string]labels.Labels{}, map[string]*fired{}
	for _, s := range scrapes {
		known = ingest(t, store, s, known)
		for _, r := range all {
			_, err := r.Eval(t.Context(), 0, s.at, query, nil, 0)
			require.NoError(t, err, r.Name())
			if f := results[r.Name()]; f != nil {
				f.still = false
			}
			for _, a := range r.ActiveAlerts() {
				if a.State != rules.StateFiring {
					continue
				}
				if results[r.Name()] == nil {
					results[r.Name()] = &fired{first: s.at, told: a.Annotations.Get("summary")}
				}
				results[r.Name()].still = true
			}
		}
	}
	return results
}

// ingest stores a scrape, and ends the series that were there before and are not any more. It
// returns those that are there.
func ingest(t *testing.T, store *teststorage.TestStorage, s scrape, before map[string]labels.Labels) map[string]labels.Labels {
	t.Helper()
	now, at := map[string]labels.Labels{}, timestamp.FromTime(s.at)
	appender := store.Appender(t.Context())
	for p := textparse.NewPromParser(s.text, labels.NewSymbolTable(), false); ; {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, v := p.Series()
		var series labels.Labels
		p.Labels(&series)
		series = labels.NewBuilder(series).Set("job", "manager").Labels()
		now[series.String()] = series
		_, err = appender.Append(0, series, at, v)
		require.NoError(t, err)
	}
	for key, series := range before {
		if _, there := now[key]; !there {
			_, err := appender.Append(0, series, at, math.Float64frombits(value.StaleNaN))
			require.NoError(t, err)
		}
	}
	require.NoError(t, appender.Commit())
	return now
}

// requireFired requires that the alerts of a story fired, that of the others only those fired
// that may, and that all of them ended.
func requireFired(t *testing.T, results map[string]*fired, fires, may []string) {
	t.Helper()
	for name, f := range results {
		t.Logf("%s fired at %s: %s", name, f.first.Format(time.TimeOnly), f.told)
		require.Contains(t, slices.Concat(fires, may), name)
		require.False(t, f.still, "%s still fires in the end", name)
	}
	require.Subset(t, slices.Collect(maps.Keys(results)), fires)
}

func TestRules_EachSaysWhatToDo(t *testing.T) {
	for _, r := range parsed(t) {
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.NotEmpty(t, r.Annotations["description"], r.Alert)
		require.Contains(t, []string{"warning", "critical"}, r.Labels["severity"], r.Alert)
	}
}
