package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

var everyQuantity = []quantity{
	held, used, measured, capacity, idle, seen, untold, observed, dark, nodeKnown, nodeUsed, allBusy, all, demand, gone, unrequested, stuck, crowded, overfull,
}

// shapes are workspaces that make the composer choose differently.
func shapes() map[string]Found {
	minute := Scrape{Interval: time.Minute}
	plain := Found{
		LeftOpen: true, UID: true, Clusters: []string{"c1"}, Namespaces: []string{"a", "b"},
		Scrapes:     map[string]Scrapes{"c1": {KSM: minute, DCGM: minute}},
		DCGMLabels:  map[string]bool{"UUID": true, "GPU_I_ID": true, "Hostname": true},
		Utilization: []string{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"},
	}
	old := plain
	old.LeftOpen, old.UID = false, false
	old.DCGMLabels = map[string]bool{"uuid": true, "gpu_i_id": true, "pod_name": true, "pod_namespace": true, "hostname": true}
	old.Utilization = []string{"dcgm_fi_dev_gpu_util"}
	several := plain
	several.Clusters = []string{"__unknown__", "c1", "c2"}
	several.Scrapes = map[string]Scrapes{
		"c1": {KSM: minute, DCGM: Scrape{Interval: 15 * time.Second}},
		"c2": {KSM: Scrape{Interval: time.Minute, Shift: 30 * time.Second}, DCGM: minute}, "__unknown__": {KSM: minute, DCGM: minute},
	}
	several.ClustersWithoutNodes, several.NodeLabels = []string{"c2"}, classLabels
	lacking := plain
	lacking.Unlabeled, lacking.Assumed = map[Source]bool{DCGM: true}, "c1"
	lacking.DCGMLabels = map[string]bool{"gpu": true, "Hostname": true, "exported_pod": true, "exported_namespace": true}
	return map[string]Found{"plain": plain, "old": old, "several clusters": several, "labels lacking": lacking}
}

func composed(t *testing.T, f Found, namespaces []string, quantities []quantity, visit func(parser.Expr)) {
	t.Helper()
	q := query.Query{Metrics: cost.Metrics, GroupBy: []cost.Dimension{cost.ByPod, cost.ByNode}, Filters: query.Filters{GPUModels: []string{"A100"}},
		Window: query.Window{From: time.Unix(0, 0), To: time.Unix(3600, 0), Step: time.Minute}}
	p, err := New(q, Options{ClusterLabel: "cluster", Metric: MetricAuto, Unit: UnitAuto, Attribution: AttributionAuto}, f)
	if err != nil {
		t.Fatal(err)
	}
	c := p.composer
	c.scope.namespaces = namespaces
	if len(c.spare) == 0 {
		quantities = slices.DeleteFunc(slices.Clone(quantities), func(q quantity) bool { return q == stuck })
	}
	for _, e := range []evaluation{
		{first: time.Unix(3600, 0), step: time.Minute, count: 1},
		{first: time.Unix(3600, 0), step: time.Hour, count: 5, window: time.Hour},
		{first: time.Unix(3605, 0), step: 17 * time.Minute, count: 1, window: 17*time.Minute + 3*time.Second},
		{first: time.Unix(3605, 0), step: time.Second, count: 1, window: time.Second},
	} {
		for _, c.capped = range []bool{false, true} {
			expr, some := c.compose(quantities, e)
			if !some {
				t.Fatal("nothing to ask")
			}
			visit(expr)
		}
	}
}

func TestEveryExpressionParsesBackToItself(t *testing.T) {
	for name, f := range shapes() {
		t.Run(name, func(t *testing.T) {
			composed(t, f, f.Namespaces, everyQuantity, func(e parser.Expr) {
				parsed, err := promQL.ParseExpr(e.String())
				if err != nil {
					t.Fatalf("%v in %s", err, e)
				}
				if parsed.String() != e.String() {
					t.Errorf("%s\nbecame\n%s", e, parsed)
				}
			})
		})
	}
}

func TestNoPlaceholderIsLeftAndOnlyKnownSeriesAreRead(t *testing.T) {
	known := append(slices.Clone(nodeSeries), seriesRequests, seriesPhase)
	known = slices.Concat(known, engineActive.names(), gpuUtil.names())
	for name, f := range shapes() {
		t.Run(name, func(t *testing.T) {
			composed(t, f, f.Namespaces, everyQuantity, func(e parser.Expr) {
				parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
					switch n := n.(type) {
					case *parser.VectorSelector:
						for _, m := range n.LabelMatchers {
							if m.Name == labelName && m.Type == labels.MatchEqual && !slices.Contains(known, m.Value) {
								t.Errorf("reads %s", m.Value)
							}
							if m.Value == "GPU" {
								t.Errorf("placeholder left in %s", n)
							}
						}
					case *parser.AggregateExpr:
						for _, l := range n.Grouping {
							if slices.Contains([]string{"GROUP", "CLASS", "FALLBACK", "HOST"}, l) {
								t.Errorf("placeholder %s left", l)
							}
						}
					}
					return nil
				})
			})
		})
	}
}

// TestHostileNamesNeverChangeTheStructure puts names that try to end a string, a matcher or a pattern into filters.
func TestHostileNamesNeverChangeTheStructure(t *testing.T) {
	f := shapes()["plain"]
	structure := func(namespaces []string) string {
		var nodes []string
		f.Namespaces = namespaces
		composed(t, f, namespaces, []quantity{held, dark, gone}, func(e parser.Expr) {
			parsed, err := promQL.ParseExpr(e.String())
			if err != nil {
				t.Fatalf("%q: %v", namespaces, err)
			}
			parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
				if s, ok := n.(*parser.VectorSelector); ok {
					for _, m := range s.LabelMatchers {
						if m.Name == labelNamespace {
							for _, name := range namespaces {
								if !m.Matches(name) {
									t.Errorf("%s does not match %q", m, name)
								}
							}
							if m.Matches("innocent") {
								t.Errorf("%s matches too much", m)
							}
						}
					}
				}
				nodes = append(nodes, typeName(n))
				return nil
			})
		})
		return strings.Join(nodes, " ")
	}
	want := structure([]string{"a", "b"})
	for _, hostile := range []string{`x"} or vector(1) #`, "a\\", ".*", "a|b|innocent", "x`", "new\nline", "日本", `"`, "a{b=\"c\"}"} {
		if got := structure([]string{"a", hostile}); got != want {
			t.Errorf("%q changes the structure", hostile)
		}
	}
}

func typeName(n parser.Node) string { return fmt.Sprintf("%T", n) }

func TestSkeletonsAreValid(t *testing.T) {
	for name, text := range skeletons {
		if _, err := promQL.ParseExpr(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestScrapesAreReadFromTimestamps(t *testing.T) {
	for _, c := range []struct {
		name  string
		times []int64
		want  Scrape
		ok    bool
	}{
		{"two samples tell nothing", []int64{0, 30_000}, Scrape{}, false},
		{"a steady scrape", []int64{5_000, 35_000, 65_000}, Scrape{Interval: 30 * time.Second, Measured: true}, true},
		{"a gap does not count", []int64{0, 30_000, 60_000, 600_000, 630_000}, Scrape{Interval: 30 * time.Second, Measured: true}, true},
		{"jitter in mid-interval", []int64{15_000, 45_020, 74_990, 105_000}, Scrape{Interval: 30 * time.Second, Measured: true}, true},
		{"jitter around the multiples", []int64{29_990, 60_010, 89_980, 120_000}, Scrape{Interval: 30 * time.Second, Shift: 15 * time.Second, Measured: true}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := readScrape(c.times); got != c.want || ok != c.ok {
				t.Errorf("got %+v %t", got, ok)
			}
		})
	}
}

func TestTimetablesCoverTheirRangeOnce(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(0, 0).UTC().Add(d) }
	for _, w := range []query.Window{
		{From: at(0), To: at(time.Hour), Step: 5 * time.Minute},
		{From: at(90 * time.Second), To: at(26*time.Hour + 7*time.Second), Step: time.Minute},
		{From: at(61 * time.Minute), To: at(62 * time.Minute), Step: time.Minute},
		{From: at(0), To: at(40 * 24 * time.Hour), Step: 7 * time.Hour},
	} {
		for _, format := range []query.Format{query.Table, query.TimeSeries} {
			q := query.Query{Format: format, Period: cost.PerRange, Window: w}
			table := newTimetable(q, 30*time.Second)
			end, covered := w.From, time.Duration(0)
			for i, interval := range table.axis.Intervals {
				if i > 0 && !interval.From.Equal(end) {
					t.Fatalf("%v %s: interval %d begins at %s, not %s", w, format, i, interval.From, end)
				}
				if clockHour(interval.From.Add(1)) != clockHour(interval.To) {
					t.Errorf("interval %v crosses a clock hour", interval)
				}
				end, covered = interval.To, covered+interval.To.Sub(interval.From)
			}
			count := 0
			for _, e := range table.evaluations {
				if e.offset != count {
					t.Errorf("evaluation at %d, not %d", e.offset, count)
				}
				count += e.count
				if e.count > 1 && e.first.UnixNano()%int64(e.step) != 0 {
					t.Errorf("AMP would move a range query at %s to its step %s", e.first, e.step)
				}
			}
			if count != len(table.axis.Intervals) {
				t.Errorf("%d evaluations for %d intervals", count, len(table.axis.Intervals))
			}
			if format == query.Table && (covered != w.To.Sub(w.From) || !end.Equal(w.To)) {
				t.Errorf("covers %s until %s", covered, end)
			}
		}
	}
}
