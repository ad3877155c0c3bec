package plugin_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amptest"
)

// TestADayOfARichClusterCostsWhatItsGeneratorKnows compares tables over a day and a ragged part of it with a truth that
// no PromQL had a hand in.
func TestADayOfARichClusterCostsWhatItsGeneratorKnows(t *testing.T) {
	w := newWorkspace(t, scenario{settings: map[string]any{"price": map[string]any{"usdPerGpuHour": 3}}})
	cluster := amptest.RichCluster(7)
	start := time.Unix(1_700_000_000, 0).Truncate(24 * time.Hour)
	if err := w.server.Backfill(t.Context(), cluster, start, start.Add(26*time.Hour), nil); err != nil {
		t.Fatal(err)
	}
	for _, window := range []struct{ from, to time.Duration }{
		{time.Hour, 25 * time.Hour},
		{3*time.Hour + 12*time.Minute + 30*time.Second, 7*time.Hour + 41*time.Minute},
	} {
		t.Run(fmt.Sprintf("from %s to %s", window.from, window.to), func(t *testing.T) {
			from, to := start.Add(window.from), start.Add(window.to)
			r := w.ask(t, json.RawMessage(`{"metrics": ["units", "requested", "allocated", "effective", "unmeasured", "coverage"], "groupBy": ["namespace"], "format": "table", "period": "range"}`), from, to, time.Minute, nil)
			if r.Error != nil {
				t.Fatal(r.Error)
			}
			rows := readFrame(t, r.Frames[0]).rows
			truths := slices.DeleteFunc(cluster.Truth(from, to), func(truth amptest.Truth) bool { return truth.UnitHours == 0 })
			if len(rows) != len(truths) || len(truths) < 6 {
				t.Errorf("%d rows for %d namespaces", len(rows), len(truths))
			}
			for _, truth := range truths {
				i := slices.IndexFunc(rows, func(r row) bool { return r.keys["namespace"] == truth.Namespace })
				if i < 0 {
					t.Errorf("no row for %s", truth.Namespace)
					continue
				}
				hours := to.Sub(from).Hours()
				for metric, want := range map[string]float64{
					"units": truth.UnitHours / hours, "requested": truth.GPUHours / hours, "allocated": truth.GPUHours * 3,
					"effective": truth.UsedGPUHours * 3, "unmeasured": truth.UnmeasuredGPUHours * 3, "coverage": 1,
				} {
					got := rows[i].values[metric]
					if got == nil || math.Abs(*got-want) > 1e-9*math.Max(want, 1e-3) {
						t.Errorf("%s %s: want %v, got %s", truth.Namespace, metric, want, show(got))
					}
				}
			}
		})
	}
}

// TestInvariantsHoldInEveryScenario asks each scenario's workspace for everything, grouped in several ways.
func TestInvariantsHoldInEveryScenario(t *testing.T) {
	for _, path := range scenarioFiles(t) {
		s, err := readScenario(path)
		if err != nil {
			t.Fatal(err)
		}
		if s.settingsError != "" || !s.to.After(s.from) {
			continue
		}
		t.Run(path, func(t *testing.T) {
			w := newWorkspace(t, s)
			total := everything(t, w, s.from, s.to, "[]")
			dollars(t, total)
			for _, by := range []string{`["bu"]`, `["namespace", "pod", "node"]`, `["cluster"]`} {
				same := everything(t, w, s.from, s.to, by)
				dollars(t, same)
				compareSums(t, "grouped by "+by, total, same)
			}
			middle := s.from.Add(s.to.Sub(s.from) / 2).Truncate(time.Minute)
			if middle.After(s.from) {
				halves := append(everything(t, w, s.from, middle, "[]"), everything(t, w, middle, s.to, "[]")...)
				compareSums(t, "in two halves", total, halves)
			}
		})
	}
}

func everything(t *testing.T, w workspace, from, to time.Time, by string) []row {
	t.Helper()
	r := w.ask(t, json.RawMessage(`{"metrics": ["allocated", "effective", "waste", "unmeasured", "estimated", "idle"], "groupBy": `+by+`, "format": "table", "period": "range"}`), from, to, time.Minute, nil)
	if r.Error != nil {
		t.Fatal(r.Error)
	}
	return readFrame(t, r.Frames[0]).rows
}

// dollars checks each row: allocated = effective + waste + unmeasured, and nothing is negative or more than its whole.
func dollars(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		v := func(metric string) float64 {
			if p := r.values[metric]; p != nil {
				return *p
			}
			return 0
		}
		if d := v("allocated") - v("effective") - v("waste") - v("unmeasured"); math.Abs(d) > 1e-9*v("allocated") {
			t.Errorf("row %s: allocated differs from its parts by %v", r.name(), d)
		}
		for metric := range r.values {
			if v(metric) < 0 {
				t.Errorf("row %s: %s is %v", r.name(), metric, v(metric))
			}
		}
		if v("effective") > v("allocated")*(1+1e-9) || v("estimated") > v("effective")*(1+1e-9) {
			t.Errorf("row %s: a part is more than its whole: %s", r.name(), showRow(r))
		}
	}
}

func compareSums(t *testing.T, how string, a, b []row) {
	t.Helper()
	for _, metric := range []string{"allocated", "effective", "waste", "unmeasured", "estimated", "idle"} {
		x, y := sumOf(a, metric), sumOf(b, metric)
		if math.Abs(x-y) > 1e-9*math.Max(math.Abs(x), 1e-3) {
			t.Errorf("%s: %s is %v, not %v", how, metric, y, x)
		}
	}
}

func sumOf(rows []row, metric string) float64 {
	sum := 0.0
	for _, r := range rows {
		if v := r.values[metric]; v != nil {
			sum += *v
		}
	}
	return sum
}
