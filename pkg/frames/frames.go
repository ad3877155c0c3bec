// Package frames shows lines of cost as Grafana's data frames: names, units, order, notices, and the PromQL behind them.
package frames

import (
	"fmt"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/data"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
	"github.com/gpucost/gpucost-amp-datasource/pkg/plan"
	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

// About is what an answer tells besides its figures.
type About struct {
	Axis             cost.Axis
	Step             time.Duration // of a curve
	Requests         []plan.Request
	SamplesProcessed int64
	Notices          []plan.Notice
	Prices           cost.PriceBook
	// LabeledNumbers asks for a table in the one shape from which alert rules and expressions read several metrics.
	LabeledNumbers bool
}

// For returns the one frame that answers a query.
func For(q query.Query, lines []cost.Line, about About) data.Frames {
	about.Notices = Notices(q, lines, about.Notices)
	lines, folded := fold(shown(lines), q, len(about.Axis.Points))
	if folded > 0 {
		about.Notices = append(about.Notices, plan.Notice{Text: fmt.Sprintf("%d smaller groups are added up in the row %s.", folded, cost.OtherRow)})
	}
	var frame *data.Frame
	switch {
	case q.Format == query.TimeSeries:
		frame = timeSeries(q, lines, about)
	case about.LabeledNumbers:
		frame = labeledNumbers(q, lines, about)
	default:
		frame = table(q, lines, about)
	}
	describe(frame, lines, about)
	return data.Frames{frame}
}

// shown leaves out groups that hold nothing.
func shown(lines []cost.Line) []cost.Line {
	var kept []cost.Line
	for _, l := range lines {
		if !l.Total().Nothing() {
			kept = append(kept, l)
		}
	}
	return kept
}

// timeSeries is one wide frame: a time field, and a field per group and metric. Fields that are unknown throughout are
// left out.
func timeSeries(q query.Query, lines []cost.Line, about About) *data.Frame {
	times := make([]time.Time, len(about.Axis.Points))
	for i, p := range about.Axis.Points {
		times[i] = p.At
	}
	timeField := data.NewField("time", nil, times)
	timeField.Config = &data.FieldConfig{Interval: float64(about.Step.Milliseconds())}
	frame := data.NewFrame("", timeField)
	byName(lines)
	for _, l := range lines {
		for _, m := range q.Metrics {
			values := make([]*float64, len(l.Amounts))
			known := false
			for i, a := range l.Amounts {
				values[i] = value(a, m, q.Period, about.Axis.Points[i].Hours)
				known = known || values[i] != nil
			}
			if known {
				frame.Fields = append(frame.Fields, metricField(q, l.Group, m, values))
			}
		}
	}
	frame.Meta = &data.FrameMeta{Type: data.FrameTypeTimeSeriesWide, PreferredVisualization: data.VisTypeGraph}
	return frame
}

// table is one long frame: a text column per group key, a number column per metric, a row per group.
func table(q query.Query, lines []cost.Line, about About) *data.Frame {
	hours := tableHours(about.Axis)
	bySize(lines, q, hours)
	frame := data.NewFrame("")
	for _, d := range q.GroupBy {
		column := make([]string, len(lines))
		for i, l := range lines {
			column[i] = l.Group.Of(d)
		}
		frame.Fields = append(frame.Fields, data.NewField(string(d), nil, column))
	}
	for _, m := range q.Metrics {
		column := make([]*float64, len(lines))
		for i, l := range lines {
			column[i] = value(l.Total(), m, q.Period, hours)
		}
		field := data.NewField(string(m), nil, column)
		field.Config = &data.FieldConfig{Unit: unit(m)}
		frame.Fields = append(frame.Fields, field)
	}
	frame.Meta = &data.FrameMeta{Type: data.FrameTypeNumericLong, PreferredVisualization: data.VisTypeTable}
	return frame
}

// labeledNumbers is a table as one row of numbers, labeled with the group keys and the metric. Of a long frame with
// several number columns alert rules would read the same labels more than once, and fail.
func labeledNumbers(q query.Query, lines []cost.Line, about About) *data.Frame {
	hours := tableHours(about.Axis)
	bySize(lines, q, hours)
	frame := data.NewFrame("")
	for _, l := range lines {
		for _, m := range q.Metrics {
			frame.Fields = append(frame.Fields, metricField(q, l.Group, m, []*float64{value(l.Total(), m, q.Period, hours)}))
		}
	}
	frame.Meta = &data.FrameMeta{Type: data.FrameTypeNumericWide}
	return frame
}

// tableHours is the length of a table's time; an empty axis has none, and no rows to divide by it.
func tableHours(axis cost.Axis) float64 {
	if len(axis.Points) == 0 {
		return 1
	}
	return axis.Points[0].Hours
}

func metricField(q query.Query, g cost.Group, m cost.Metric, values []*float64) *data.Field {
	labels := data.Labels{"metric": string(m)}
	for _, d := range q.GroupBy {
		labels[string(d)] = g.Of(d)
	}
	field := data.NewField(string(m), labels, values)
	field.Config = &data.FieldConfig{Unit: unit(m), DisplayNameFromDS: displayName(q, labels)}
	return field
}

func value(a cost.Amounts, m cost.Metric, period cost.Period, hours float64) *float64 {
	v, known := a.Value(m, period, hours)
	if !known {
		return nil
	}
	return &v
}

// unit is Grafana's name of a metric's unit.
func unit(m cost.Metric) string {
	switch m.Unit() {
	case cost.UnitUSD:
		return "currencyUSD"
	case cost.UnitRatio:
		return "percentunit"
	default:
		return "short"
	}
}
