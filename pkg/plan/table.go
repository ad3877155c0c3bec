package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amp"
	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
)

// pending and spared are quantities that rows tell by a label: held by pods that don't run yet, and measured by the
// spare metric.
const (
	pending quantity = "PENDING"
	spared  quantity = "SPARED"
)

// rowKey is all that AMP's rows are told apart by.
type rowKey struct {
	cluster, namespace, pod, node string
	resource                      string
	product, replicas, modelName  string
}

// table holds rows of unit-hours: per key and quantity a column with one value per interval. Values are added up, since
// rows that differ only in a label that isn't asked for are one.
type table struct {
	intervals int
	rows      map[rowKey]map[quantity][]float64
}

func newTable(intervals int) *table {
	return &table{intervals: intervals, rows: map[rowKey]map[quantity][]float64{}}
}

// file adds an answer's series. Sums of scrapes become hours; instants stand for one hour.
func (t *table) file(series []amp.Series, e evaluation, p *Plan) error {
	for _, s := range series {
		q := quantity(s.Labels[labelQuantity])
		hours := 1.0
		if e.window > 0 {
			hours = p.found.scrapesOf(p.key(s.Labels).cluster).grid(q).Hours()
		}
		key := p.key(s.Labels)
		if q == held && s.Labels[labelPhase] == "Pending" {
			q = pending
		}
		column := t.column(key, q)
		var mark []float64
		if q == measured && s.Labels[labelFallback] != "" {
			mark = t.column(key, spared)
		}
		for i, ms := range s.Times {
			at, ok := e.index(time.UnixMilli(ms))
			if !ok {
				return fmt.Errorf("AMP answered for %s, which was not asked", time.UnixMilli(ms).UTC())
			}
			column[e.offset+at] += s.Values[i] * hours
			if mark != nil {
				mark[e.offset+at] += s.Values[i] * hours
			}
		}
	}
	return nil
}

func (t *table) column(key rowKey, q quantity) []float64 {
	columns, ok := t.rows[key]
	if !ok {
		columns = map[quantity][]float64{}
		t.rows[key] = columns
	}
	if columns[q] == nil {
		columns[q] = make([]float64, t.intervals)
	}
	return columns[q]
}

func (p *Plan) key(labels map[string]string) rowKey {
	cluster := labels[p.options.ClusterLabel]
	if cluster == "" {
		cluster = cost.Unknown
	}
	return rowKey{
		cluster: cluster, namespace: labels[labelNamespace], pod: labels[labelPod], node: labels[labelNode],
		resource: labels[labelResource], product: labels[labelGPUProduct], replicas: labels[labelGPUReplicas],
		modelName: labels[labelModelName],
	}
}

// has tells whether any row counts the quantity.
func (t *table) has(q quantity) bool {
	for _, columns := range t.rows {
		if columns[q] != nil {
			return true
		}
	}
	return false
}

// keys returns the rows' keys in an order that doesn't depend on AMP's.
func (t *table) keys() []rowKey {
	return slices.SortedFunc(maps.Keys(t.rows), func(a, b rowKey) int {
		return slices.Compare(a.fields(), b.fields())
	})
}

func (k rowKey) fields() []string {
	return []string{k.cluster, k.namespace, k.pod, k.node, k.resource, k.product, k.replicas, k.modelName}
}

// nothing is the relative size under which a difference of sums is rounding.
const nothing = 1e-9

// unexplained lists the namespaces in which running pods hold more than devices show.
func (t *table) unexplained() []string {
	type namespaced struct{ cluster, namespace string }
	short := map[namespaced][]float64{}
	total := map[namespaced][]float64{}
	for key, columns := range t.rows {
		k := namespaced{key.cluster, key.namespace}
		if short[k] == nil {
			short[k], total[k] = make([]float64, t.intervals), make([]float64, t.intervals)
		}
		for i, v := range columns[held] {
			short[k][i] += v
			total[k][i] += v
		}
		for i, v := range columns[measured] {
			short[k][i] -= v
		}
	}
	found := map[string]bool{}
	for k, missing := range short {
		for i, v := range missing {
			if v > total[k][i]*nothing {
				found[k.namespace] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// beyondNodes tells whether pods without a device of their own hold more than their nodes can explain.
func (t *table) beyondNodes() bool {
	for _, columns := range t.rows {
		for i, v := range columns[dark] {
			if v > value(columns[nodeKnown], i)+v*nothing {
				return true
			}
		}
	}
	return false
}

func value(column []float64, i int) float64 {
	if column == nil {
		return 0
	}
	return column[i]
}
