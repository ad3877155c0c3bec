package cost_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
)

// twoDollars is a price of 2 USD per GPU-hour until noon, and none after.
type twoDollars struct{ noon time.Time }

func (p twoDollars) Price(_ cost.Node, at time.Time) (cost.USDPerGPUHour, bool) {
	return 2, !at.After(p.noon)
}
func (twoDollars) Source() string { return "test" }
func (twoDollars) Split() string  { return "" }

var noon = time.Unix(12*3600, 0)

// twoHours is an axis of two one-hour intervals in one point of two hours.
func twoHours() cost.Axis {
	return cost.Axis{
		Intervals: []cost.Interval{{From: noon.Add(-2 * time.Hour), To: noon.Add(-time.Hour)}, {From: noon.Add(-time.Hour), To: noon}},
		Points:    []cost.Point{{At: noon, Hours: 2}},
	}
}

func values(t *testing.T, line cost.Line, want map[cost.Metric]float64) {
	t.Helper()
	for metric, v := range want {
		got, known := line.Total().Value(metric, cost.PerRange, 2)
		if known != !math.IsNaN(v) || known && math.Abs(got-v) > 1e-12 {
			t.Errorf("%v %s: got %v (known: %t), want %v", line.Group, metric, got, known, v)
		}
	}
}

var null = math.NaN()

func TestDollarsFollowFromUnits(t *testing.T) {
	usage := cost.Usage{
		Group: cost.Group{BusinessUnit: "a", Cluster: "c"}, Share: 0.5,
		Held: []float64{4, 2}, Pending: []float64{0, 1},
		Known: [cost.Steps][]float64{{2, 1}, {1, 0}}, Used: [cost.Steps][]float64{{1, 0.5}, {0.25, 0}},
	}
	lines := cost.Assess(cost.Account{
		Axis: twoHours(), Usage: []cost.Usage{usage}, Observed: cost.Observed{"c": {1, 0.5}},
		Stock: []cost.Stock{{Group: cost.Group{Cluster: "c"}, Share: 0.5, Units: []float64{8, 8}, Idle: []float64{4, 6}}},
	}, twoDollars{noon}, []cost.Dimension{cost.ByBusinessUnit})
	if len(lines) != 2 {
		t.Fatalf("got %+v", lines)
	}
	values(t, lines[0], map[cost.Metric]float64{
		cost.Units: 3, cost.Requested: 1.5, cost.Allocated: 6, cost.Effective: 1.75, cost.Estimated: 0.25, cost.Unmeasured: 2,
		cost.Waste: 2.25, cost.Efficiency: 1.75 / 4, cost.Utilization: 0.875 / 2, cost.Coverage: 0.75, cost.Idle: null, cost.Capacity: null,
	})
	values(t, lines[1], map[cost.Metric]float64{cost.Idle: 10, cost.Allocated: null, cost.Units: null})
}

func TestWhatIsUnknownIsNullAndTheKnownPartStays(t *testing.T) {
	noShare := cost.Usage{Group: cost.Group{BusinessUnit: "a"}, ShareErr: errors.New("unknown"), Held: []float64{1, 1}}
	known := cost.Usage{Group: cost.Group{BusinessUnit: "b"}, Share: 1, Held: []float64{1, 1}}
	axis := twoHours()
	lines := cost.Assess(cost.Account{Axis: axis, Usage: []cost.Usage{noShare, known}}, twoDollars{noon}, []cost.Dimension{cost.ByBusinessUnit})
	values(t, lines[0], map[cost.Metric]float64{cost.Units: 1, cost.Requested: null, cost.Allocated: null, cost.Waste: null})
	values(t, lines[1], map[cost.Metric]float64{cost.Allocated: 4, cost.Unmeasured: 4, cost.Effective: null, cost.Waste: null, cost.Utilization: null})

	lines = cost.Assess(cost.Account{Axis: axis, Usage: []cost.Usage{noShare, known}}, twoDollars{noon.Add(-time.Hour)}, nil)
	values(t, lines[0], map[cost.Metric]float64{cost.Units: 2, cost.Requested: 1, cost.Allocated: 2})
	if total := lines[0].Total(); total.Unpriced != 1 || total.UnknownUnits != 2 {
		t.Errorf("got %+v", total)
	}
}

func TestMoreIsNeverKnownThanIsHeld(t *testing.T) {
	usage := cost.Usage{
		Share: 1, Held: []float64{1, 1},
		Known: [cost.Steps][]float64{{2, 2}, {1, 1}}, Used: [cost.Steps][]float64{{2, 1}, {1, 1}},
	}
	lines := cost.Assess(cost.Account{Axis: twoHours(), Usage: []cost.Usage{usage}}, twoDollars{noon}, nil)
	values(t, lines[0], map[cost.Metric]float64{cost.Allocated: 4, cost.Effective: 3, cost.Unmeasured: 0, cost.Estimated: 0})
}

func TestIdleOfSeenGPUsIsTheSameHoweverItIsGrouped(t *testing.T) {
	on := func(node string) cost.Group { return cost.Group{Cluster: "c", Node: node} }
	account := func(node func(string) cost.Group) cost.Account {
		return cost.Account{
			Axis: twoHours(),
			Seen: []cost.Stock{{Group: node("exporter-1"), Share: 1, Units: []float64{4, 4}}, {Group: node("exporter-2"), Share: 1, Units: []float64{3, 3}}},
			Untold: []cost.Stock{
				{Group: node("n1"), Share: 1, Units: []float64{1, 1}}, {Group: node("n2"), Share: 1, Units: []float64{1, 1}},
			},
		}
	}
	idle := func(lines []cost.Line) float64 {
		sum := 0.0
		for _, l := range lines {
			v, _ := l.Total().Value(cost.Idle, cost.PerRange, 2)
			sum += v
		}
		return sum
	}
	byNode := cost.Assess(account(on), twoDollars{noon}, []cost.Dimension{cost.ByNode})
	total := cost.Assess(account(func(string) cost.Group { return on("") }), twoDollars{noon}, nil)
	if a, b := idle(byNode), idle(total); math.Abs(a-20) > 1e-12 || math.Abs(b-20) > 1e-12 {
		t.Errorf("by node %v, in total %v, want 20", a, b)
	}
}

func TestRulesGiveNamespacesToBusinessUnits(t *testing.T) {
	if got := (cost.BusinessUnits{}).Of("ns"); got != "ns" {
		t.Errorf("without rules: %s", got)
	}
}

func TestEveryMetricHasAUnit(t *testing.T) {
	inUSD := slices.DeleteFunc(slices.Clone(cost.Metrics), func(m cost.Metric) bool { return !m.InUSD() })
	want := []cost.Metric{cost.Allocated, cost.Effective, cost.Waste, cost.Unmeasured, cost.Estimated, cost.Idle}
	if !slices.Equal(inUSD, want) {
		t.Errorf("got %v", inUSD)
	}
}
