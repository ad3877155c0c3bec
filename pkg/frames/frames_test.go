package frames_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/data"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
	"github.com/gpucost/gpucost-amp-datasource/pkg/frames"
	"github.com/gpucost/gpucost-amp-datasource/pkg/plan"
	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

var hour = cost.Axis{
	Intervals: []cost.Interval{{From: time.Unix(0, 0), To: time.Unix(3600, 0)}},
	Points:    []cost.Point{{At: time.Unix(3600, 0), Hours: 1}},
}

// oneDollar is a price of 1 USD per GPU-hour.
type oneDollar struct{}

func (oneDollar) Price(cost.Node, time.Time) (cost.USDPerGPUHour, bool) { return 1, true }
func (oneDollar) Source() string                                        { return "test" }
func (oneDollar) Split() string                                         { return "" }

func pods(n int, prices cost.PriceBook) []cost.Line {
	var usage []cost.Usage
	for i := range n {
		usage = append(usage, cost.Usage{Group: cost.Group{Pod: fmt.Sprintf("p%03d", i), BusinessUnit: "b"}, Share: 1, Held: []float64{float64(i + 1)}})
	}
	usage = append(usage, cost.Usage{Group: cost.Group{Pod: "ended"}, Share: 1, Held: []float64{0}})
	return cost.Assess(cost.Account{Axis: hour, Usage: usage}, prices, []cost.Dimension{cost.ByPod})
}

func TestGroupsBeyondTheLimitAreAddedUp(t *testing.T) {
	prices := oneDollar{}
	q := query.Query{Metrics: []cost.Metric{cost.Allocated}, GroupBy: []cost.Dimension{cost.ByPod}, Format: query.Table, Period: cost.PerRange}
	frame := frames.For(q, pods(203, prices), frames.About{Axis: hour, Prices: prices})[0]
	if frame.Rows() != 201 {
		t.Fatalf("%d rows", frame.Rows())
	}
	sum := 0.0
	for i := range frame.Rows() {
		v, _ := frame.Fields[1].At(i).(*float64)
		sum += *v
	}
	if first, last := frame.Fields[0].At(0), frame.Fields[0].At(200); first != "p202" || last != cost.OtherRow || sum != 203*204/2 {
		t.Errorf("first %v, last %v, sum %v", first, last, sum)
	}
	if v, _ := frame.Fields[1].At(200).(*float64); *v != 1+2+3 {
		t.Errorf("the rest is %v", *v)
	}
}

func TestNoDataIsAnEmptyFrameOfTheRightFields(t *testing.T) {
	q := query.Query{Metrics: []cost.Metric{cost.Allocated, cost.Waste}, GroupBy: []cost.Dimension{cost.ByCluster}, Format: query.Table}
	frame := frames.For(q, nil, frames.About{})[0]
	if len(frame.Fields) != 3 || frame.Rows() != 0 || frame.Meta.Type != data.FrameTypeNumericLong {
		t.Errorf("table: %d fields, %d rows, %s", len(frame.Fields), frame.Rows(), frame.Meta.Type)
	}
	q.Format = query.TimeSeries
	frame = frames.For(q, nil, frames.About{})[0]
	if len(frame.Fields) != 1 || frame.Fields[0].Type() != data.FieldTypeTime || frame.Meta.Type != data.FrameTypeTimeSeriesWide {
		t.Errorf("time series: %+v", frame)
	}
}

func TestFieldsAreNamedByTheLegend(t *testing.T) {
	prices := oneDollar{}
	for legend, want := range map[string]string{
		"": "p000", "{{pod}} costs {{ metric }}": "p000 costs allocated", "{{unheard}}x": "x",
	} {
		q := query.Query{Metrics: []cost.Metric{cost.Allocated}, GroupBy: []cost.Dimension{cost.ByPod}, Format: query.TimeSeries, Legend: legend}
		field := frames.For(q, pods(1, prices), frames.About{Axis: hour, Prices: prices})[0].Fields[1]
		if got := field.Config.DisplayNameFromDS; got != want || field.Config.Unit != "currencyUSD" {
			t.Errorf("%q gives %q in %s", legend, got, field.Config.Unit)
		}
	}
}

func TestExecutedPromQLCanBeRepeated(t *testing.T) {
	at := func(minute int64) time.Time { return time.Unix(minute*60, 0) }
	got := frames.Executed([]plan.Request{
		{Title: "base", Expr: "up", From: at(1), To: at(2), Step: time.Minute},
		{Title: "base", Expr: "up", From: at(0), To: at(1), Step: time.Minute},
		{Title: "more", Expr: "down", From: at(0), To: at(0), Step: time.Minute},
	})
	want := `# base: from 1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z, step 1m0s
# base: from 1970-01-01T00:01:00Z to 1970-01-01T00:02:00Z, step 1m0s
up

# more: from 1970-01-01T00:00:00Z to 1970-01-01T00:00:00Z, step 1m0s
down`
	if got != want {
		t.Errorf("got %s", got)
	}
}
