package plan

import (
	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
)

// mean is how much of what is held in a clock hour is used, weighed by share of a GPU.
type mean struct{ used, known float64 }

func (m mean) plus(used, known float64) mean { return mean{m.used + used, m.known + known} }

// means are the means of clock hours, by cluster, and by cluster and business unit.
type means struct {
	hourOf    []int // clock hour of each interval
	clusters  map[string][]mean
	divisions map[division][]mean
}

type division struct{ cluster, businessUnit string }

// readMeans sums the hours' rows up. With attribution "cluster" they tell of all devices, else of those that pods hold.
func (p *Plan) readMeans(hours *table) means {
	m := means{clusters: map[string][]mean{}, divisions: map[division][]mean{}}
	if hours == nil {
		return m
	}
	intervals := p.time.axis.Intervals
	first := clockHour(intervals[0].To)
	for _, interval := range intervals {
		m.hourOf = append(m.hourOf, int(clockHour(interval.To).Sub(first).Hours()))
	}
	for _, key := range hours.keys() {
		columns := hours.rows[key]
		if columns[all] != nil {
			add(m.clusters, key.cluster, hours.intervals, columns[allBusy], columns[all], 1)
		}
		share, err := p.options.Sharing.Of(key.resource, key.class())
		if columns[measured] == nil || err != nil {
			continue
		}
		of := division{key.cluster, p.options.BusinessUnits.Of(key.namespace)}
		add(m.clusters, key.cluster, hours.intervals, columns[used], columns[measured], float64(share))
		add(m.divisions, of, hours.intervals, columns[used], columns[measured], float64(share))
	}
	return m
}

func add[K comparable](to map[K][]mean, key K, hours int, used, known []float64, share float64) {
	if to[key] == nil {
		to[key] = make([]mean, hours)
	}
	for i := range hours {
		to[key][i] = to[key][i].plus(value(used, i)*share, value(known, i)*share)
	}
}

func (m means) cluster(name string, interval int) mean {
	if hours := m.clusters[name]; hours != nil {
		return hours[m.hourOf[interval]]
	}
	return mean{}
}

func (m means) division(d division, interval int) mean {
	if hours := m.divisions[d]; hours != nil {
		return hours[m.hourOf[interval]]
	}
	return mean{}
}

// apply values units by a mean: how many of them have one, and how much of these is used.
func (m means) apply(units []float64, of func(interval int) mean) (known, used []float64) {
	if units == nil || m.hourOf == nil {
		return nil, nil
	}
	known, used = make([]float64, len(units)), make([]float64, len(units))
	for i, n := range units {
		if mean := of(i); n > 0 && mean.known > 0 {
			known[i], used[i] = n, n*mean.used/mean.known
		}
	}
	return known, used
}

// estimate climbs down the last rungs for units that neither own devices nor the node's tell anything of: the mean of
// the business unit in the cluster, else of the cluster.
func (p *Plan) estimate(u *cost.Usage, units []float64, m means) {
	of := division{u.Group.Cluster, u.Group.BusinessUnit}
	known, used := m.apply(units, func(i int) mean { return m.division(of, i) })
	u.Known[cost.BusinessUnitDevices], u.Used[cost.BusinessUnitDevices] = known, used
	u.Known[cost.ClusterDevices], u.Used[cost.ClusterDevices] = m.apply(minus(units, known), func(i int) mean { return m.cluster(u.Group.Cluster, i) })
}
