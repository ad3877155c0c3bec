package plan

import (
	"strings"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

// Decode reads what AMP said as an account of what was held, used and available.
func (p *Plan) Decode(a Answers) cost.Account {
	account := cost.Account{Axis: p.time.axis, Observed: cost.Observed{}}
	means := p.readMeans(a.hours)
	for _, key := range a.table.keys() {
		columns := a.table.rows[key]
		if observed := columns[observed]; observed != nil {
			account.Observed[key.cluster] = observed
		}
		if !query.Match(p.query.Filters.GPUModels, key.model()) {
			continue
		}
		if columns[held] != nil || columns[pending] != nil {
			account.Usage = append(account.Usage, p.usage(key, columns, means))
		}
		if columns[capacity] != nil {
			stock := p.stock(key, key.resource, columns[capacity])
			stock.Idle = columns[idle]
			account.Stock = append(account.Stock, stock)
		}
		if columns[seen] != nil {
			account.Seen = append(account.Seen, p.stock(key, cost.PhysicalGPU, columns[seen]))
		}
		if columns[untold] != nil {
			account.Untold = append(account.Untold, p.stock(key, key.resource, columns[untold]))
		}
	}
	p.noteAnswers(a, account)
	return account
}

func (p *Plan) usage(key rowKey, columns map[quantity][]float64, means means) cost.Usage {
	u := cost.Usage{
		Group: cost.Group{
			BusinessUnit: p.options.BusinessUnits.Of(key.namespace),
			Namespace:    key.namespace, Cluster: key.cluster, Pod: key.pod, Node: key.node,
		},
		Node:     key.class(),
		Filtered: !p.shows(key.namespace),
		Held:     plus(columns[held], columns[pending]),
		Pending:  columns[pending],
	}
	u.Share, u.ShareErr = p.options.Sharing.Of(key.resource, u.Node)
	if p.options.Attribution == AttributionCluster {
		u.Known[cost.ClusterDevices], u.Used[cost.ClusterDevices] = means.apply(u.Held, func(i int) mean { return means.cluster(key.cluster, i) })
		u.Pending = nil // this reading takes the mean for everyone
		return u
	}
	u.Known[cost.OwnDevices], u.Used[cost.OwnDevices] = columns[measured], columns[used]
	u.Known[cost.NodeDevices], u.Used[cost.NodeDevices] = columns[nodeKnown], columns[nodeUsed]
	p.estimate(&u, minus(columns[dark], columns[nodeKnown]), means)
	return u
}

func (p *Plan) stock(key rowKey, resource string, units []float64) cost.Stock {
	s := cost.Stock{Group: cost.Group{Cluster: key.cluster, Node: key.node}, Node: key.class(), Units: units}
	s.Share, s.ShareErr = p.options.Sharing.Of(resource, s.Node)
	return s
}

func (k rowKey) class() cost.Node {
	return cost.Node{Cluster: k.cluster, GPUProduct: k.product, Replicas: k.replicas}
}

// model returns the GPU model of the nodes that the row is about.
func (k rowKey) model() string { return Model(k.product, k.modelName) }

// Model is the GPU model that a node's product label names, without what it says of sharing; else the one that
// dcgm-exporter names, spelled like the label.
func Model(product, modelName string) string {
	model, _, _ := strings.Cut(product, "-MIG-")
	model = strings.TrimSuffix(model, "-SHARED")
	if model == "" {
		model = strings.Join(strings.Fields(modelName), "-")
	}
	if model == "" {
		return cost.Unknown
	}
	return model
}

func plus(a, b []float64) []float64 {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	sum := make([]float64, len(a))
	for i := range a {
		sum[i] = a[i] + b[i]
	}
	return sum
}

// minus returns what b leaves of a; less than rounding is nothing.
func minus(a, b []float64) []float64 {
	if a == nil || b == nil {
		return a
	}
	rest := make([]float64, len(a))
	for i := range a {
		if d := a[i] - b[i]; d > a[i]*nothing {
			rest[i] = d
		}
	}
	return rest
}
