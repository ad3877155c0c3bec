package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

var promQL = parser.NewParser(parser.Options{})

// composer turns skeletons into PromQL for one cluster's shape and one question.
type composer struct {
	found        Found
	scrapes      Scrapes // of the clusters in scope
	clusterLabel string
	devices      string   // the skeleton that stands for DEVICES
	devicesMain  string   // the skeleton that stands for DEVICES_MAIN in it
	main, spare  []string // spellings of the utilization metric, and of the one that stands in for it; spare may be empty
	capped       bool     // some pods' labels are on more devices than they ask for
	models       bool     // nodes carry the model that dcgm-exporter tells
	group        []string // GROUP
	scope        scope
}

// scope keeps selectors to what the query is about.
type scope struct {
	clusters   []string // nil = all
	namespaces []string // for series that carry the pod's namespace; nil = all
}

// place is where in an expression a skeleton stands.
type place struct {
	source Source        // whose scrapes are counted
	grid   time.Duration // distance of evaluations; 0 = instants of a curve
	window time.Duration // that source's samples are taken from; 0 = its scrape interval
	offset time.Duration // by which the time meant lies before the time of evaluation
	onNode bool          // devices carry the node that they are in
}

// instant returns a quantity as it is at each time of evaluation.
func (c composer) instant(q quantity) parser.Expr {
	return rows(q, "", c.expand(string(q), place{source: q.source()}))
}

// totals returns, in parts to be added up, the sum over a quantity's scrapes in (end-window, end]. At scrapes' multiples a
// window is cut into body, head and tail: a scrape that lies outside must not slip in by the slot that it falls into.
// A run of windows has a body only: one expression serves them all, and they begin and end at scrapes' multiples wherever
// the interval divides their length.
func (c composer) totals(q quantity, e evaluation) []parser.Expr {
	grid := c.scrapes.grid(q)
	at := place{source: q.source(), grid: grid}
	from, to := e.first.Add(-e.window), e.first
	first, last := ceil(from, grid), to.Truncate(grid)
	if e.count > 1 {
		first, last = from, to
	}
	if last.Before(first) {
		at.window = e.window
		return []parser.Expr{rows(q, "", c.expand(string(q), at))}
	}
	var parts []parser.Expr
	if first.After(from) {
		head := at
		head.window, head.offset = first.Sub(from), to.Sub(first)
		parts = append(parts, rows(q, "head", c.expand(string(q), head)))
	}
	if last.After(first) {
		parts = append(parts, rows(q, "body", call("sum_over_time", &parser.SubqueryExpr{
			Expr:           paren(c.expand(string(q), at)),
			Range:          c.found.window(last.Sub(first)),
			Step:           grid,
			OriginalOffset: to.Sub(last),
		})))
	}
	if to.After(last) {
		tail := at
		tail.window = to.Sub(last)
		parts = append(parts, rows(q, "tail", c.expand(string(q), tail)))
	}
	return parts
}

// rows labels an expression's rows with the quantity that they tell, and the part of it.
func rows(q quantity, part string, e parser.Expr) parser.Expr {
	e = call("label_replace", e, text(labelQuantity), text(string(q)), text(""), text(""))
	if part != "" {
		e = call("label_replace", e, text(labelPart), text(part), text(""), text(""))
	}
	return e
}

// union joins expressions whose rows differ in a label.
func union(exprs []parser.Expr) parser.Expr {
	joined := exprs[0]
	for _, e := range exprs[1:] {
		joined = or(joined, e)
	}
	return joined
}

// expand parses a skeleton and replaces all that is a placeholder in it.
func (c composer) expand(name string, at place) parser.Expr {
	e, err := promQL.ParseExpr(skeletons[c.variant(name)])
	if err != nil {
		panic(fmt.Sprintf("skeleton %s: %v", name, err)) // init has parsed it
	}
	return c.fill(e, at)
}

// variant picks the skeleton that fits what was found, where there is more than one.
func (c composer) variant(name string) string {
	switch {
	case name == "DEVICES":
		return c.devices
	case name == "DEVICES_MAIN":
		return c.devicesMain
	case (name == "USED" || name == "MEASURED") && c.capped:
		return name + "_CAPPED"
	case name == "NODE" && c.models:
		return "NODE_MODELED"
	case name == "NODE" || name == "PLAIN_NODE":
		return "NODE" + c.nodesKnown()
	case name == "OBSERVED":
		return "OBSERVED" + c.nodesKnown()
	default:
		return name
	}
}

func (c composer) nodesKnown() string {
	if len(c.found.ClustersWithoutNodes) > 0 {
		return "_ASSUMED"
	}
	return "_TOLD"
}

// fill replaces the placeholders of a parsed skeleton, from the leaves up.
func (c composer) fill(e parser.Expr, at place) parser.Expr {
	switch e := e.(type) {
	case *parser.VectorSelector:
		return c.selector(e, at)
	case *parser.AggregateExpr:
		e.Grouping = c.labels(e.Grouping, at)
		e.Expr = c.fill(e.Expr, at)
	case *parser.BinaryExpr:
		if m := e.VectorMatching; m != nil {
			m.MatchingLabels = c.labels(m.MatchingLabels, at)
			m.Include = c.labels(m.Include, at)
		}
		e.LHS, e.RHS = c.fill(e.LHS, at), c.fill(e.RHS, at)
	case *parser.Call:
		for i, arg := range e.Args {
			e.Args[i] = c.fill(arg, at)
		}
	case *parser.ParenExpr:
		e.Expr = c.fill(e.Expr, at)
	case *parser.SubqueryExpr:
		at = place{source: DCGM, grid: at.grid, onNode: at.onNode}
		if e.Step == 0 {
			e.Step = c.scrapes.DCGM.Interval
			e.Range = c.found.window(e.Range)
			at.grid = e.Step
		}
		e.Expr = c.fill(e.Expr, at)
	case *parser.StringLiteral:
		if e.Val == "SPARE_NAME" {
			e.Val = c.spare[0]
		}
	}
	return e
}

// labels replaces placeholders in a list of labels.
func (c composer) labels(names []string, at place) []string {
	var out []string
	for _, name := range names {
		switch name {
		case "GROUP":
			out = append(out, c.group...)
		case "CLASS":
			out = append(out, c.found.NodeLabels...)
			if c.models {
				out = append(out, labelModelName)
			}
		case "FALLBACK":
			if len(c.spare) > 0 {
				out = append(out, labelFallback)
			}
		case "HOST":
			if at.onNode {
				out = append(out, labelNode)
			}
		case labelUID:
			if c.found.UID {
				out = append(out, name)
			}
		case labelUUID:
			out = append(out, c.found.deviceLabels()...)
		case labelCluster:
			out = append(out, c.clusterLabel)
		default:
			out = append(out, name)
		}
	}
	return out
}

// selector replaces a placeholder selector by what it stands for, and narrows any other one.
func (c composer) selector(s *parser.VectorSelector, at place) parser.Expr {
	switch s.Name {
	case "NODE_MEAN":
		c.scope.namespaces = c.found.Namespaces // a filter must not change an estimate
	case "PLACED_DEVICES":
		at.onNode = true
		return paren(c.expand("DEVICES", at))
	case "MAIN":
		return c.utilization(c.main, s.LabelMatchers, at)
	case "PLACED_MAIN":
		at.onNode = true
		return c.utilization(c.main, s.LabelMatchers, at)
	case "SPARE":
		return c.utilization(c.spare, s.LabelMatchers, at)
	case "REQUESTS_WITHOUT_NODES":
		return c.read(KubeStateMetrics, at, matchName(seriesRequests), c.inClusters(c.found.ClustersWithoutNodes),
			matchRegexp(labelResource, gpuResources))
	case "PHASES_WITHOUT_NODES":
		return c.read(KubeStateMetrics, at, matchName(seriesPhase), c.inClusters(c.found.ClustersWithoutNodes))
	}
	if _, ok := skeletons[c.variant(s.Name)]; ok {
		return paren(c.expand(s.Name, at))
	}
	matchers := slices.Clone(s.LabelMatchers)
	for i, m := range matchers {
		if m.Name == labelResource && m.Value == "GPU" {
			matchers[i] = matchRegexp(labelResource, gpuResources)
		}
	}
	if namespacedSeries[s.Name] && c.scope.namespaces != nil {
		matchers = append(matchers, matchNames(labelNamespace, c.scope.namespaces))
	}
	return c.read(KubeStateMetrics, at, matchers...)
}

// utilization reads a utilization metric under the usual names of its labels.
func (c composer) utilization(names []string, extra []*labels.Matcher, at place) parser.Expr {
	matchers := []*labels.Matcher{matchNames(labelName, names)}
	for _, m := range extra {
		if m.Name == labelInstance && !c.found.DCGMLabels[labelInstance] && c.found.DCGMLabels["gpu_i_id"] {
			m = labels.MustNewMatcher(m.Type, "gpu_i_id", m.Value)
		}
		if m.Name != labelName {
			matchers = append(matchers, m)
		}
	}
	e := c.read(DCGM, at, matchers...)
	for _, s := range spellings {
		if c.found.DCGMLabels[s.alias] {
			e = copyLabel(e, s.label, s.alias)
		}
	}
	if at.onNode && !c.found.DCGMLabels[labelNode] {
		e = copyLabel(e, labelNode, labelHostname)
	}
	return e
}

// read selects series and takes of each the newest sample of the scrape interval that a time stands in. Where a source is
// scraped less often than we look, its sample speaks for the interval before it: we look ahead for it.
func (c composer) read(source Source, at place, matchers ...*labels.Matcher) parser.Expr {
	if c.scope.clusters != nil {
		matchers = append(matchers, c.inClusters(c.scope.clusters))
	}
	s := selector(matchers...)
	scrape := c.scrapes.of(source)
	window := scrape.Interval
	s.OriginalOffset = at.offset - scrape.Shift
	switch {
	case at.window > 0 && at.source == source && at.grid >= scrape.Interval:
		window = at.window
	case at.grid > 0 && at.grid < scrape.Interval:
		s.OriginalOffset += time.Millisecond - scrape.Interval
	}
	e := call("last_over_time", &parser.MatrixSelector{VectorSelector: s, Range: c.found.window(window)})
	if c.found.Unlabeled[source] && c.found.Assumed != "" {
		e = call("label_replace", e, text(c.clusterLabel), text(c.found.Assumed), text(c.clusterLabel), text(""))
	}
	return e
}

// inClusters matches clusters by the names that they have in answers.
func (c composer) inClusters(names []string) *labels.Matcher {
	if slices.Contains(names, c.found.unlabeledName()) {
		names = append(slices.Clone(names), "")
	}
	return matchNames(c.clusterLabel, names)
}

// selector selects the series that match, spelled with the metric's name in front where there is just one.
func selector(matchers ...*labels.Matcher) *parser.VectorSelector {
	s := &parser.VectorSelector{LabelMatchers: matchers}
	for _, m := range matchers {
		if m.Name == labelName && m.Type == labels.MatchEqual {
			s.Name = m.Value
		}
	}
	return s
}

func matchName(name string) *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchEqual, labelName, name)
}

// matchNames matches exactly these values, whatever characters they hold.
func matchNames(label string, values []string) *labels.Matcher {
	if len(values) == 1 {
		return labels.MustNewMatcher(labels.MatchEqual, label, values[0])
	}
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = regexp.QuoteMeta(v)
	}
	return matchRegexp(label, strings.Join(quoted, "|"))
}

func matchRegexp(label, pattern string) *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchRegexp, label, pattern)
}

func call(name string, args ...parser.Expr) parser.Expr {
	return &parser.Call{Func: parser.MustGetFunction(name), Args: args}
}

// copyLabel sets a label to another's value where that has one.
func copyLabel(e parser.Expr, to, from string) parser.Expr {
	return call("label_replace", e, text(to), text("$1"), text(from), text("(.+)"))
}

func text(s string) parser.Expr { return &parser.StringLiteral{Val: s} }

func paren(e parser.Expr) parser.Expr { return &parser.ParenExpr{Expr: e} }

// or joins two expressions; with labels, of the second only what differs from the first in them.
func or(a, b parser.Expr, on ...string) parser.Expr {
	return &parser.BinaryExpr{
		Op: parser.LOR, LHS: a, RHS: b,
		VectorMatching: &parser.VectorMatching{Card: parser.CardManyToMany, MatchingLabels: on, On: len(on) > 0},
	}
}
