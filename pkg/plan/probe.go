package plan

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"golang.org/x/sync/errgroup"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amp"
	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
)

// Client asks a Prometheus-compatible API; *amp.Client is one.
type Client interface {
	Query(ctx context.Context, expr string, at time.Time) (amp.Answer, error)
	QueryRange(ctx context.Context, expr string, from, to time.Time, step time.Duration) (amp.Answer, error)
	LabelNames(ctx context.Context, match []string, from, to time.Time) ([]string, error)
	LabelValues(ctx context.Context, label string, match []string, from, to time.Time) ([]string, error)
}

// Options are the settings that decide what is asked, and what the answers mean.
type Options struct {
	ClusterLabel   string
	ScrapeInterval time.Duration // where the data doesn't tell
	Sharing        cost.Sharing
	BusinessUnits  cost.BusinessUnits
	Metric         string          // utilization metric, or "auto"
	Unit           UtilizationUnit // of its values
	Attribution    Attribution
}

// Attribution says whose devices tell what a pod uses.
type Attribution string

// The attributions.
const (
	AttributionAuto    Attribution = "auto"    // own devices, then the rest of the ladder
	AttributionPod     Attribution = "pod"     // own devices only
	AttributionCluster Attribution = "cluster" // the mean of all devices of the cluster, for everyone
)

// MetricAuto lets the data choose the utilization metric.
const MetricAuto = "auto"

// classLabels are the node labels that tell what a unit is.
var classLabels = []string{labelGPUProduct, labelGPUReplicas}

// probeConcurrency is low because AMP allows 10 label requests a second in all.
const probeConcurrency = 2

// Probe looks at what a workspace has in (from, to]. Names come from the index, which is complete for any range and
// costs no samples; only the scrape intervals and the kind of window are queried.
func Probe(ctx context.Context, client Client, o Options, from, to time.Time) (Found, error) {
	p := prober{Client: client, options: o, from: from, to: to}
	var (
		requests = []string{selectorText(requestMatchers()...)}
		phases   = []string{selectorText(matchName(seriesPhase))}
		nodes    = []string{selectorText(nodeMatchers()...)}
		capacity = []string{selectorText(capacityMatchers()...)}
		devices  = []string{selectorText(deviceMatchers(o)...)}
		all      = slices.Concat(requests, phases, nodes, devices)
	)
	var names, namespaces, requestLabels, phaseLabels, nodeLabels, deviceLabels []string
	var inRequests, inNodes, inCapacity, inDevices []string
	g, probing := errgroup.WithContext(ctx)
	g.SetLimit(probeConcurrency)
	g.Go(p.values(probing, &names, labelName, all))
	g.Go(p.values(probing, &namespaces, labelNamespace, requests))
	g.Go(p.labels(probing, &requestLabels, requests))
	g.Go(p.labels(probing, &phaseLabels, phases))
	g.Go(p.labels(probing, &nodeLabels, nodes))
	g.Go(p.labels(probing, &deviceLabels, devices))
	g.Go(p.values(probing, &inRequests, o.ClusterLabel, requests))
	g.Go(p.values(probing, &inNodes, o.ClusterLabel, nodes))
	g.Go(p.values(probing, &inCapacity, o.ClusterLabel, capacity))
	g.Go(p.values(probing, &inDevices, o.ClusterLabel, devices))
	if err := g.Wait(); err != nil {
		return Found{}, err
	}
	in := clusterLists{requests: inRequests, nodes: inNodes, capacity: inCapacity, devices: inDevices}
	if err := p.addUnlabeled(ctx, o.ClusterLabel, &in); err != nil {
		return Found{}, err
	}

	f := Found{
		Namespaces: namespaces,
		Requests:   len(requestLabels) > 0,
		Phases:     slices.Contains(names, seriesPhase),
		UID:        slices.Contains(requestLabels, labelUID) && slices.Contains(phaseLabels, labelUID),
		NodeLabels: present(classLabels, nodeLabels),
		DCGMLabels: map[string]bool{},
	}
	for _, l := range deviceLabels {
		f.DCGMLabels[l] = true
	}
	for _, n := range o.candidates() {
		if slices.Contains(names, n) {
			f.Utilization = append(f.Utilization, n)
		}
	}
	f.readClusters(in)
	return f, p.measure(ctx, &f, o, names)
}

// candidates are the utilization metrics that the settings let us use.
func (o Options) candidates() []string {
	if o.Metric != MetricAuto {
		return []string{o.Metric}
	}
	return slices.Concat(engineActive.names(), gpuUtil.names())
}

type prober struct {
	Client
	options  Options
	from, to time.Time
}

func requestMatchers() []*labels.Matcher {
	return []*labels.Matcher{matchName(seriesRequests), matchRegexp(labelResource, gpuResources)}
}

func nodeMatchers() []*labels.Matcher { return []*labels.Matcher{matchNames(labelName, nodeSeries)} }

func capacityMatchers() []*labels.Matcher {
	return []*labels.Matcher{matchNames(labelName, []string{seriesCapacity, seriesAllocatable}), matchRegexp(labelResource, gpuResources)}
}

func deviceMatchers(o Options) []*labels.Matcher {
	return []*labels.Matcher{matchNames(labelName, o.candidates())}
}

func (p prober) values(ctx context.Context, into *[]string, label string, match []string) func() error {
	return func() (err error) {
		*into, err = p.LabelValues(ctx, label, match, p.from, p.to)
		return err
	}
}

func (p prober) labels(ctx context.Context, into *[]string, match []string) func() error {
	return func() (err error) {
		*into, err = p.LabelNames(ctx, match, p.from, p.to)
		return err
	}
}

// clusterLists are the clusters that each kind of series is seen in.
type clusterLists struct{ requests, nodes, capacity, devices []string }

// addUnlabeled adds cluster "" to the lists of those kinds of series of which some lack the cluster label.
func (p prober) addUnlabeled(ctx context.Context, clusterLabel string, in *clusterLists) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(probeConcurrency)
	for _, kind := range []struct {
		list     *[]string
		matchers []*labels.Matcher
	}{
		{&in.requests, requestMatchers()}, {&in.nodes, nodeMatchers()}, {&in.capacity, capacityMatchers()}, {&in.devices, deviceMatchers(p.options)},
	} {
		g.Go(func() error {
			bare := selectorText(append(kind.matchers, matchNames(clusterLabel, []string{""}))...)
			found, err := p.LabelNames(ctx, []string{bare}, p.from, p.to)
			if len(found) > 0 {
				*kind.list = append(*kind.list, "")
			}
			return err
		})
	}
	return g.Wait()
}

// readClusters tells which clusters there are. A source without the cluster label belongs to the only cluster that the
// others name; where they name several, nobody can tell to which.
func (f *Found) readClusters(in clusterLists) {
	named := map[string]bool{}
	for _, list := range [][]string{in.requests, in.nodes, in.capacity, in.devices} {
		for _, c := range list {
			if c != "" {
				named[c] = true
			}
		}
	}
	f.Unlabeled = map[Source]bool{
		KubeStateMetrics: slices.Contains(in.requests, "") || slices.Contains(in.nodes, ""),
		DCGM:             slices.Contains(in.devices, ""),
	}
	if len(named) > 0 && (f.Unlabeled[KubeStateMetrics] || f.Unlabeled[DCGM]) {
		f.Assumed = cost.Unknown
		if len(named) == 1 && !mixed(in.requests) && !mixed(in.nodes) && !mixed(in.devices) {
			f.Assumed = slices.Collect(maps.Keys(named))[0]
		}
	}
	rename := func(list []string) []string {
		renamed := make([]string, len(list))
		for i, c := range list {
			if c == "" {
				c = f.unlabeledName()
			}
			renamed[i] = c
		}
		slices.Sort(renamed)
		return slices.Compact(renamed)
	}
	requests, nodes, capacity, devices := rename(in.requests), rename(in.nodes), rename(in.capacity), rename(in.devices)
	f.Clusters = rename(slices.Concat(requests, nodes, devices))
	f.ClustersWithoutNodes = without(requests, nodes)
	f.ClustersWithoutCapacity = without(devices, capacity)
	f.Capacity = len(capacity) > 0
}

// mixed tells of a source of which some series have the cluster label and some don't: these are another cluster's.
func mixed(list []string) bool { return slices.Contains(list, "") && len(list) > 1 }

func present(wanted, have []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(s string) bool { return !slices.Contains(have, s) })
}

func without(list, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(gone, s) })
}

// measure finds the scrape intervals and the kind of window.
func (p prober) measure(ctx context.Context, f *Found, o Options, names []string) error {
	var ksm, dcgm map[string]Scrape
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		f.LeftOpen, err = p.leftOpen(ctx)
		return err
	})
	g.Go(func() (err error) {
		ksm, err = p.scrapes(ctx, o, *f, present([]string{seriesNodeInfo, seriesNodeLabels, seriesCapacity, seriesRequests}, names))
		return err
	})
	g.Go(func() (err error) {
		dcgm, err = p.scrapes(ctx, o, *f, f.Utilization)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	f.Scrapes = map[string]Scrapes{}
	for _, cluster := range f.Clusters {
		both := Scrapes{KSM: Scrape{Interval: o.ScrapeInterval}, DCGM: Scrape{Interval: o.ScrapeInterval}}
		if s, ok := ksm[cluster]; ok {
			both.KSM = s
		}
		if s, ok := dcgm[cluster]; ok {
			both.DCGM = s
		}
		f.Scrapes[cluster] = both
	}
	return nil
}

// leftOpen asks for a window that holds one evaluation if it is left-open, and two if it is closed.
func (p prober) leftOpen(ctx context.Context) (bool, error) {
	answer, err := p.Query(ctx, `count_over_time(vector(1)[1m:1m])`, p.to.Truncate(time.Minute))
	if err != nil {
		return false, err
	}
	return len(answer.Series) == 0 || len(answer.Series[0].Values) == 0 || answer.Series[0].Values[0] < 2, nil
}

const (
	scrapeWindow = 10 * time.Minute // in which scrapes are counted to find a series without gaps
	scrapeLooks  = 12               // how often in a range
	scrapeSpan   = time.Hour        // of which that series' timestamps are read
)

// sighting is the series of a cluster that has most samples in a window, and where.
type sighting struct {
	series string
	labels map[string]string
	at     time.Time
	count  float64
}

// scrapes finds how a source is scraped in each cluster, from the timestamps of the series that has most samples there.
// It looks here and there at first, and everywhere only where that shows nothing.
func (p prober) scrapes(ctx context.Context, o Options, f Found, series []string) (map[string]Scrape, error) {
	if len(series) == 0 {
		return nil, nil
	}
	step := ceilTo(max(scrapeWindow, p.to.Sub(p.from)/scrapeLooks), scrapeWindow)
	seen := map[string]sighting{}
	for _, window := range []time.Duration{scrapeWindow, step} {
		expr := busiest(o.ClusterLabel, series, window).String()
		answer, err := p.QueryRange(ctx, expr, ceil(p.from, step), ceil(p.to, step), step)
		if err != nil {
			return nil, err
		}
		for _, s := range answer.Series {
			f.sight(seen, s, o.ClusterLabel)
		}
		if len(seen) >= len(f.Clusters) || window == step {
			break
		}
	}
	return p.timestamps(ctx, seen)
}

func (f Found) sight(seen map[string]sighting, s amp.Series, clusterLabel string) {
	cluster := s.Labels[clusterLabel]
	if cluster == "" {
		cluster = f.unlabeledName()
	}
	for i, count := range s.Values {
		if count > seen[cluster].count {
			own := maps.Clone(s.Labels)
			delete(own, labelSeries)
			seen[cluster] = sighting{s.Labels[labelSeries], own, time.UnixMilli(s.Times[i]), count}
		}
	}
}

// timestamps reads when each cluster's series was scraped.
func (p prober) timestamps(ctx context.Context, seen map[string]sighting) (map[string]Scrape, error) {
	found := map[string]Scrape{}
	var mutex sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(probeConcurrency)
	for cluster, s := range seen {
		g.Go(func() error {
			matchers := []*labels.Matcher{matchName(s.series)}
			for _, label := range slices.Sorted(maps.Keys(s.labels)) {
				matchers = append(matchers, labels.MustNewMatcher(labels.MatchEqual, label, s.labels[label]))
			}
			raw, err := p.Query(ctx, rangeOf(scrapeSpan, matchers...).String(), s.at)
			if err != nil {
				return err
			}
			mutex.Lock()
			defer mutex.Unlock()
			for _, s := range raw.Series {
				if scrape, ok := readScrape(s.Times); ok {
					found[cluster] = scrape
				}
			}
			return nil
		})
	}
	return found, g.Wait()
}

// readScrape tells from at least three timestamps, in Unix ms, how a source is scraped: the median distance, to the
// second where it is longer; and half of it as shift where timestamps jitter around its multiples.
func readScrape(times []int64) (Scrape, bool) {
	if len(times) < 3 {
		return Scrape{}, false
	}
	distances := make([]int64, len(times)-1)
	for i := range distances {
		distances[i] = times[i+1] - times[i]
	}
	slices.Sort(distances)
	s := Scrape{Interval: time.Duration(distances[len(distances)/2]) * time.Millisecond, Measured: true}
	if s.Interval >= time.Second {
		s.Interval = s.Interval.Round(time.Second)
	}
	interval := s.Interval.Milliseconds()
	if interval <= 0 {
		return Scrape{}, false
	}
	jitters, near := false, 0
	for _, t := range times {
		phase := t % interval
		jitters = jitters || phase != times[0]%interval
		if phase < interval/4 || phase > interval-interval/4 {
			near++
		}
	}
	if jitters && near > len(times)/2 {
		s.Shift = s.Interval / 2
	}
	return s, true
}

// busiest asks for the series with most samples in the window, per cluster, of the first metric that the cluster has.
func busiest(clusterLabel string, series []string, window time.Duration) parser.Expr {
	var first parser.Expr
	for _, name := range series {
		e := call("label_replace", &parser.AggregateExpr{
			Op: parser.TOPK, Param: &parser.NumberLiteral{Val: 1}, Grouping: []string{clusterLabel},
			Expr: call("count_over_time", rangeOf(window, matchName(name))),
		}, text(labelSeries), text(name), text(""), text(""))
		if first == nil {
			first = e
			continue
		}
		first = or(first, e, clusterLabel)
	}
	return first
}

func rangeOf(window time.Duration, matchers ...*labels.Matcher) parser.Expr {
	return &parser.MatrixSelector{VectorSelector: selector(matchers...), Range: window}
}

func selectorText(matchers ...*labels.Matcher) string { return selector(matchers...).String() }
