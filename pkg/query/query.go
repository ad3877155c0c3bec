// Package query reads the question that a panel stores: which metrics, of which business units, grouped how, over what time.
package query

import (
	"slices"
	"time"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
)

// Query is a complete, valid question.
type Query struct {
	Metrics []cost.Metric // at least one, no duplicates
	GroupBy []cost.Dimension
	Filters Filters
	Format  Format
	Period  cost.Period
	Legend  string // template such as "{{bu}} {{metric}}"; empty = a readable default
	Window  Window
}

// Filters restrict the answer to exact names. A nil list doesn't restrict.
type Filters struct {
	BusinessUnits, Namespaces, Clusters, GPUModels []string
}

// Format is the shape of the answer.
type Format string

// The formats.
const (
	TimeSeries Format = "timeseries"
	Table      Format = "table"
)

// Window is the time asked for, (From, To], and the resolution of a curve.
type Window struct {
	From, To time.Time
	Step     time.Duration // of curves; positive
}

// Hours is the length of the window.
func (w Window) Hours() float64 { return w.To.Sub(w.From).Hours() }

// Empty tells whether the window holds no time at all.
func (w Window) Empty() bool { return !w.To.After(w.From) }

// Asks tells whether the metric is asked for.
func (q Query) Asks(m cost.Metric) bool { return slices.Contains(q.Metrics, m) }

// AsksAny tells whether a metric of the kind is asked for.
func (q Query) AsksAny(kind func(cost.Metric) bool) bool { return slices.ContainsFunc(q.Metrics, kind) }

// Groups tells whether the answer is grouped by the dimension.
func (q Query) Groups(d cost.Dimension) bool { return slices.Contains(q.GroupBy, d) }

// ShowsIdle tells whether idle capacity belongs in the answer: a filter on its holders leaves it out unless it names it.
func (q Query) ShowsIdle() bool {
	if !q.Asks(cost.Idle) {
		return false
	}
	for _, names := range [][]string{q.Filters.BusinessUnits, q.Filters.Namespaces} {
		if names != nil && !slices.Contains(names, cost.IdleRow) {
			return false
		}
	}
	return true
}

// Match tells whether a list of names, nil for all, has the name.
func Match(names []string, name string) bool { return names == nil || slices.Contains(names, name) }
