// Package plan turns a question into requests to AMP, and the answers into what was held and used. schema.go names every
// series that is relied on, promql.go holds every query, probe.go looks at what a workspace has, and plan.go and ladder.go
// decide what to ask.
package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

// Plan is what AMP must be asked to answer a query, and how to read what it says.
type Plan struct {
	query    query.Query
	options  Options
	found    Found
	time     timetable
	composer composer

	notices []Notice
}

// New plans a query for a workspace in which the probes found this.
func New(q query.Query, o Options, f Found) (Plan, error) {
	p := Plan{query: q, options: o, found: f, time: newTimetable(q, f.interval(KubeStateMetrics))}
	if n := len(p.time.evaluations); n > maxRequests {
		return Plan{}, &query.Error{Field: "range", Problem: fmt.Sprintf(
			"an exact total of this range takes %d requests, of %d allowed: choose a shorter range", n, maxRequests)}
	}
	p.composer = composer{found: f, clusterLabel: o.ClusterLabel, group: groupLabels(q)}
	p.composer.scope = scope{clusters: q.Filters.Clusters, namespaces: p.namespaces()}
	p.composer.choose(o)
	p.composer.models = q.Filters.GPUModels != nil && len(p.composer.main) > 0
	p.noteFound()
	if p.time.step > q.Window.Step && q.Format == query.TimeSeries {
		p.note("The step was raised from %s to %s: AMP allows %d points, and sums can't be finer than a scrape.", q.Window.Step, p.time.step, maxPoints)
	}
	return p, nil
}

// maxRequests bounds what one query asks of AMP: about a hundred days of totals at 30 s scrapes.
const maxRequests = 400

// Notice is a remark on an answer.
type Notice struct {
	Warning bool // else information
	Text    string
}

// Step is the distance of a curve's points.
func (p Plan) Step() time.Duration { return p.time.step }

// Axis is the time that the answer covers.
func (p Plan) Axis() cost.Axis { return p.time.axis }

// groupLabels are the labels that rows must be told apart by, besides cluster and namespace.
func groupLabels(q query.Query) []string {
	var labels []string
	if q.Groups(cost.ByNode) {
		labels = append(labels, labelNode)
	}
	if q.Groups(cost.ByPod) {
		labels = append(labels, labelPod)
	}
	return labels
}

// namespaces returns those whose pods must be read: of those that ask for GPUs the ones that the filters leave; all if
// idle capacity is asked for, since what others hold isn't idle.
func (p Plan) namespaces() []string {
	if p.query.ShowsIdle() {
		return p.found.Namespaces
	}
	return slices.DeleteFunc(slices.Clone(p.found.Namespaces), func(ns string) bool { return !p.shows(ns) })
}

// shows tells whether the filters leave a namespace.
func (p Plan) shows(namespace string) bool {
	return query.Match(p.query.Filters.Namespaces, namespace) &&
		query.Match(p.query.Filters.BusinessUnits, p.options.BusinessUnits.Of(namespace))
}

// quantity names what a row counts.
type quantity string

// The quantities, in units (devices or slices), and the skeletons that ask for them.
const (
	held      quantity = "HELD"
	used      quantity = "USED"
	measured  quantity = "MEASURED"
	capacity  quantity = "CAPACITY"
	seen      quantity = "SEEN" // GPUs, not units
	idle      quantity = "IDLE"
	untold    quantity = "UNTOLD"
	observed  quantity = "OBSERVED"
	dark      quantity = "DARK_HELD"
	nodeKnown quantity = "NODE_KNOWN"
	nodeUsed  quantity = "NODE_USED"
	allBusy   quantity = "ALL_BUSY"
	all       quantity = "ALL_DEVICES"

	demand      quantity = "DEMAND"
	gone        quantity = "GONE"
	unrequested quantity = "UNREQUESTED"
	stuck       quantity = "STUCK"   // GPUs
	crowded     quantity = "CROWDED" // pods
	overfull    quantity = "OVERFULL"
)

// source tells whose scrapes a quantity is counted at.
func (q quantity) source() Source {
	switch q {
	case used, measured, seen, allBusy, all:
		return DCGM
	default:
		return KubeStateMetrics
	}
}

// base lists the quantities that the query needs whatever they turn out to be.
func (p Plan) base() []quantity {
	quantities := []quantity{}
	if len(p.composer.scope.namespaces) > 0 {
		quantities = append(quantities, held)
		if p.needsUtilization() && p.options.Attribution != AttributionCluster {
			quantities = append(quantities, used, measured)
		}
	}
	if p.needsCapacity() {
		quantities = append(quantities, capacity)
		if p.query.ShowsIdle() {
			quantities = append(quantities, idle)
		}
		if len(p.composer.main) > 0 {
			quantities = append(quantities, seen)
		}
	}
	return append(quantities, observed)
}

// needsUtilization tells whether devices must be read, and can be.
func (p Plan) needsUtilization() bool {
	return len(p.composer.main) > 0 && p.query.AsksAny(cost.Metric.NeedsUtilization)
}

func (p Plan) needsCapacity() bool {
	return p.query.ShowsIdle() || p.query.Asks(cost.Capacity)
}

// choose picks the utilization metric among those that exist.
func (c *composer) choose(o Options) {
	existing := func(u Utilization) []string { return present(u.names(), c.found.Utilization) }
	unit := o.Unit
	if o.Metric == MetricAuto {
		c.main, c.spare = existing(engineActive), existing(gpuUtil)
		if len(c.main) == 0 {
			c.main, c.spare = c.spare, nil
		}
	} else {
		c.main = present([]string{o.Metric}, c.found.Utilization)
	}
	if len(c.main) == 0 {
		return
	}
	if unit == UnitAuto {
		unit, _ = UnitOf(c.main[0])
	}
	switch {
	case unit == Ratio:
		c.devicesMain = "DEVICES_RATIO"
	case blindUnderMIG(c.main[0]):
		c.devicesMain = "DEVICES_WHOLE"
	default:
		c.devicesMain = "DEVICES_PERCENT"
	}
	c.devices = c.devicesMain
	if len(c.spare) > 0 {
		c.devices = "DEVICES_SPARED"
	}
}
