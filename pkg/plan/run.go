package plan

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"golang.org/x/sync/errgroup"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amp"
)

// Answers are what AMP said, and what it was asked.
type Answers struct {
	Requests         []Request
	SamplesProcessed int64
	Warnings         []string

	table  *table // of the axis
	hours  *table // of clock hours, where means were needed
	signal []amp.Series
}

// Request is one request that was sent, as a user may repeat it.
type Request struct {
	Expr  string
	From  time.Time
	To    time.Time
	Step  time.Duration
	Title string // what it asks for
}

// Pretty is the expression laid out for reading.
func (r Request) Pretty() string {
	expr, err := promQL.ParseExpr(r.Expr)
	if err != nil {
		return r.Expr
	}
	return parser.Prettify(expr)
}

// Run asks AMP: first what every answer needs; then, only where pods are found that show no device of their own, what
// their nodes, business units and clusters do.
func (p *Plan) Run(ctx context.Context, client Client) (Answers, error) {
	r := &run{plan: p, client: client}
	r.table = newTable(len(p.time.axis.Intervals))
	if err := r.base(ctx); err != nil {
		return r.Answers, err
	}
	if err := r.ladder(ctx); err != nil {
		return r.Answers, err
	}
	return r.Answers, nil
}

// run is a plan being carried out.
type run struct {
	Answers
	plan   *Plan
	client Client
	mutex  sync.Mutex
}

func (r *run) base(ctx context.Context) error {
	if err := r.signals(ctx); err != nil {
		return err
	}
	err := r.ask(ctx, "base quantities", r.plan.composer, r.plan.base(), r.plan.time.evaluations, r.table)
	if err != nil || !r.plan.query.ShowsIdle() || !r.table.has(seen) {
		return err
	}
	return r.ask(ctx, "held on nodes without capacity", r.plan.composer, []quantity{untold}, r.plan.time.evaluations, r.table)
}

// ladder asks what the lower rungs need, as far down as there are pods to be placed.
func (r *run) ladder(ctx context.Context) error {
	if !r.plan.needsUtilization() {
		return nil
	}
	if r.plan.options.Attribution == AttributionCluster {
		return r.means(ctx, "means of all devices by clock hour", []quantity{allBusy, all})
	}
	if r.plan.options.Attribution == AttributionPod {
		return nil
	}
	unexplained := r.table.unexplained()
	if len(unexplained) == 0 {
		return nil
	}
	narrow := r.plan.composer
	narrow.scope.namespaces = unexplained
	if err := r.ask(ctx, "pods without a device of their own", narrow, []quantity{dark, nodeKnown, nodeUsed}, r.plan.time.evaluations, r.table); err != nil {
		return err
	}
	if !r.table.beyondNodes() {
		return nil
	}
	return r.means(ctx, "means of held devices by clock hour", []quantity{used, measured})
}

// means asks for whole clock hours, whole clusters, whatever the query shows: a filter must not change an estimate.
func (r *run) means(ctx context.Context, title string, quantities []quantity) error {
	intervals := r.plan.time.axis.Intervals
	if len(intervals) == 0 {
		return nil
	}
	hours := hoursTime(intervals[0].To, intervals[len(intervals)-1].To, r.plan.found.interval(DCGM))
	wide := r.plan.composer
	wide.group, wide.scope.namespaces = nil, r.plan.found.Namespaces
	r.hours = newTable(len(hours.axis.Intervals))
	return r.ask(ctx, title, wide, quantities, hours.evaluations, r.hours)
}

// concurrentRequests is how many requests of one query are under way at a time.
const concurrentRequests = 8

// ask sends one request per evaluation for all quantities together, and files the rows.
func (r *run) ask(ctx context.Context, title string, c composer, quantities []quantity, evaluations []evaluation, into *table) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrentRequests)
	for _, e := range evaluations {
		expr, some := c.compose(quantities, e)
		if !some || ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			answer, err := r.send(ctx, Request{Title: title, Expr: expr.String(), From: e.first, To: e.last(), Step: e.step})
			if err != nil {
				return err
			}
			r.mutex.Lock()
			defer r.mutex.Unlock()
			return into.file(answer.Series, e, r.plan)
		})
	}
	return g.Wait()
}

// compose joins quantities into one expression, whose rows tell which is which; false if the filters leave no cluster.
func (c composer) compose(quantities []quantity, e evaluation) (parser.Expr, bool) {
	var exprs []parser.Expr
	for _, class := range c.found.classes() {
		own, some := c.of(class)
		if !some {
			continue
		}
		for _, q := range quantities {
			if fit := own.fitted(q); e.window == 0 {
				exprs = append(exprs, fit.instant(q))
			} else {
				exprs = append(exprs, fit.totals(q, e)...)
			}
		}
	}
	if len(exprs) == 0 {
		return nil, false
	}
	return union(exprs), true
}

// of narrows the composer to clusters that are scraped alike; false if the filters leave none of them.
func (c composer) of(k class) (composer, bool) {
	c.scrapes = k.Scrapes
	switch {
	case k.clusters == nil:
	case c.scope.clusters == nil:
		c.scope.clusters = k.clusters
	default:
		c.scope.clusters = present(k.clusters, c.scope.clusters)
	}
	return c, c.scope.clusters == nil || len(c.scope.clusters) > 0
}

// fitted adapts labels and scope to quantities that are not of a question's pods.
func (c composer) fitted(q quantity) composer {
	switch q {
	case capacity, idle, seen, untold:
		c.group = present([]string{labelNode}, c.group)
		c.scope.namespaces = c.found.Namespaces
	case unrequested, overfull:
		c.scope.namespaces = c.found.Namespaces // others' devices are not unrequested because a filter hides them
	}
	return c
}

func (r *run) send(ctx context.Context, q Request) (amp.Answer, error) {
	r.mutex.Lock()
	r.Requests = append(r.Requests, q)
	r.mutex.Unlock()
	answer, err := r.evaluate(ctx, q)
	if err != nil {
		return amp.Answer{}, fmt.Errorf("%s: %w", q.Title, err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.SamplesProcessed += answer.SamplesProcessed
	r.Warnings = append(r.Warnings, answer.Warnings...)
	return answer, nil
}

// evaluate asks for one time by an instant query: AMP would move it to a multiple of a range query's step.
func (r *run) evaluate(ctx context.Context, q Request) (amp.Answer, error) {
	if q.From.Equal(q.To) {
		return r.client.Query(ctx, q.Expr, q.To)
	}
	return r.client.QueryRange(ctx, q.Expr, q.From, q.To, q.Step)
}

// signalLooks is how often in a range we look for what only notices tell.
const signalLooks = 12

// signals looks for what is worth a remark, and for labels that must be capped: demand, vanished and overfull nodes, use
// that nobody asked for.
func (r *run) signals(ctx context.Context) error {
	p := r.plan
	var quantities []quantity
	if len(p.composer.scope.namespaces) > 0 {
		quantities = append(quantities, demand, gone)
	}
	if len(p.composer.main) > 0 {
		quantities = append(quantities, unrequested, crowded)
	}
	if p.found.Capacity {
		quantities = append(quantities, overfull)
	}
	if len(p.composer.spare) > 0 {
		quantities = append(quantities, stuck)
	}
	if len(quantities) == 0 || len(p.found.Clusters) == 0 {
		return nil
	}
	scrape := max(p.found.interval(KubeStateMetrics), p.found.interval(DCGM))
	step := max(ceilTo(p.query.Window.To.Sub(p.query.Window.From)/signalLooks, scrape), scrape)
	e := evaluation{first: p.query.Window.To.Truncate(step), step: step, count: 1}
	if !e.first.After(p.query.Window.From) {
		e.first = p.query.Window.To
	}
	for e.count < signalLooks && e.first.Add(-step).After(p.query.Window.From) {
		e.first, e.count = e.first.Add(-step), e.count+1
	}
	expr, some := p.composer.compose(quantities, e)
	if !some {
		return nil
	}
	answer, err := r.send(ctx, Request{Title: "remarks", Expr: expr.String(), From: e.first, To: e.last(), Step: e.step})
	r.signal = answer.Series
	for _, s := range r.signal {
		p.composer.capped = p.composer.capped || quantity(s.Labels[labelQuantity]) == crowded
	}
	return err
}
