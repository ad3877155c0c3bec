package plan

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
)

// Scope restricts what names are looked for. Empty lists don't restrict.
type Scope struct {
	From, To   time.Time
	Clusters   []string
	Namespaces []string
}

// Namespaces lists the namespaces that ask for GPUs, sorted.
func Namespaces(ctx context.Context, client Client, o Options, s Scope) ([]string, error) {
	return s.values(ctx, client, o, labelNamespace, matchName(seriesRequests), matchRegexp(labelResource, gpuResources))
}

// GPUModels lists the GPU models, sorted: as the nodes' labels name them, else as dcgm-exporter does.
func GPUModels(ctx context.Context, client Client, o Options, s Scope) ([]string, error) {
	s.Namespaces = nil // of nodes, not of their pods
	products, err := s.values(ctx, client, o, labelGPUProduct, matchName(seriesNodeLabels))
	if err != nil {
		return nil, err
	}
	models := map[string]bool{}
	for _, p := range products {
		models[Model(p, "")] = true
	}
	if len(models) == 0 {
		names, err := s.values(ctx, client, o, labelModelName, matchNames(labelName, o.candidates()))
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			models[Model("", n)] = true
		}
	}
	return slices.Sorted(maps.Keys(models)), nil
}

func (s Scope) values(ctx context.Context, client Client, o Options, label string, matchers ...*labels.Matcher) ([]string, error) {
	if len(s.Clusters) > 0 {
		matchers = append(matchers, matchNames(o.ClusterLabel, s.Clusters))
	}
	if len(s.Namespaces) > 0 {
		matchers = append(matchers, matchNames(labelNamespace, s.Namespaces))
	}
	return client.LabelValues(ctx, label, []string{selectorText(matchers...)}, s.From, s.To)
}

// UtilizationMetric is a metric of dcgm-exporter that could say how busy devices are.
type UtilizationMetric struct {
	Name    string
	Unit    UtilizationUnit
	Devices int // that have it
}

// utilizationWindow is how far back devices are counted.
const utilizationWindow = time.Hour

// UtilizationMetrics lists the metrics whose names tell that they are utilizations, with the devices that had them in
// the hour before.
func UtilizationMetrics(ctx context.Context, client Client, o Options, at time.Time) ([]UtilizationMetric, error) {
	pattern := matchRegexp(labelName, `(?i:dcgm_fi_prof_.+|dcgm_fi_dev_.+_util)`)
	keys := []string{labelName, o.ClusterLabel, labelUUID, labelInstance, labelHostname, labelGPU}
	devices := &parser.AggregateExpr{
		Op: parser.COUNT, Grouping: []string{labelName},
		Expr: &parser.AggregateExpr{
			Op: parser.GROUP, Grouping: keys,
			Expr: call("last_over_time", rangeOf(utilizationWindow, pattern)),
		},
	}
	answer, err := client.Query(ctx, devices.String(), at)
	if err != nil {
		return nil, err
	}
	var found []UtilizationMetric
	for _, s := range answer.Series {
		name := s.Labels[labelName]
		if unit, ok := UnitOf(name); ok && len(s.Values) > 0 {
			found = append(found, UtilizationMetric{Name: name, Unit: unit, Devices: int(s.Values[0])})
		}
	}
	slices.SortFunc(found, func(a, b UtilizationMetric) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// Labeled tells how many devices carry the label of a pod that holds them, and how many there are, at one time.
func Labeled(ctx context.Context, client Client, o Options, f Found, at time.Time) (labeled, devices int, err error) {
	c := composer{found: f, clusterLabel: o.ClusterLabel}
	c.scope.namespaces = f.Namespaces
	c.choose(o)
	if len(c.main) == 0 {
		return 0, 0, nil
	}
	e := evaluation{first: at, step: time.Minute, count: 1}
	expr, some := c.compose([]quantity{measured, all}, e)
	if !some {
		return 0, 0, nil
	}
	answer, err := client.Query(ctx, expr.String(), at)
	if err != nil {
		return 0, 0, err
	}
	for _, s := range answer.Series {
		switch quantity(s.Labels[labelQuantity]) {
		case measured:
			labeled += int(sum(s.Values))
		case all:
			devices += int(sum(s.Values))
		}
	}
	return labeled, devices, nil
}

// BusinessUnitsOf maps namespaces to business units, sorted.
func (o Options) BusinessUnitsOf(namespaces []string) []string {
	units := map[string]bool{}
	for _, ns := range namespaces {
		units[o.BusinessUnits.Of(ns)] = true
	}
	names := slices.Sorted(maps.Keys(units))
	// The special row is no name like the others.
	if i := slices.Index(names, cost.UnallocatedRow); i >= 0 {
		names = append(slices.Delete(names, i, i+1), cost.UnallocatedRow)
	}
	return names
}
