package cost

// Step is a rung of the attribution ladder: where the utilization of what a pod holds is known from.
type Step int

// The rungs, best first. All but the first are averages over devices that are not the pod's own.
const (
	OwnDevices Step = iota
	NodeDevices
	BusinessUnitDevices
	ClusterDevices
	Steps int = iota
)

// Usage is what one group held of one kind of unit, and what is known of its use: columns of unit-hours, one value per
// interval of the axis. A nil column is zero throughout.
type Usage struct {
	Group Group
	Node  Node
	Share Share
	// ShareErr says why Share is not known. Such units are shown but not priced.
	ShareErr error
	// Filtered usage appears in no row.
	Filtered bool

	Held    []float64
	Pending []float64        // the part of Held by pods that don't run yet, of whose use nothing can be known
	Known   [Steps][]float64 // the part of Held whose utilization is known, by rung
	Used    [Steps][]float64 // the used part of Known, by rung
}

// Stock is what nodes have of one kind of unit, in unit-hours per interval.
type Stock struct {
	Group    Group
	Node     Node
	Share    Share
	ShareErr error
	Units    []float64
	Idle     []float64 // the part of Units that nobody holds; nil = not asked
}

// Observed tells for a cluster how much of each interval kube-state-metrics was seen, in hours.
type Observed map[string][]float64

// Account is all that was found out about an axis.
type Account struct {
	Axis  Axis
	Usage []Usage
	Stock []Stock
	// Seen are the GPUs that dcgm-exporter sees in nodes of which Kubernetes tells no capacity, and Untold the units held
	// on such nodes.
	Seen, Untold []Stock
	Observed     Observed
}

// Line is one row of the answer: a group and its amounts at each point of the axis.
type Line struct {
	Group   Group
	Amounts []Amounts
}

// Amounts are what a group held, used and cost within one point of the axis. Hours are GPU-hours of physical GPUs.
type Amounts struct {
	Units        float64  // unit-hours held
	UnknownUnits float64  // the part of Units whose share of a GPU is not known; in none of the amounts below
	Held         GPUHours // what the units amount to
	Unpriced     GPUHours // the part of Held whose price is not known; in none of the dollars below
	Known        GPUHours // the part of Held whose utilization is known, from own devices or by estimate
	Used         GPUHours

	Allocated USD
	ByStep    [Steps]USD // the part of Allocated whose utilization is known, by rung
	Effective USD
	Estimated USD // the part of Effective that comes from averages
	known     USD // the part of Allocated whose utilization is known

	Capacity GPUHours
	Idle     USD
	hasStock bool // capacity is known, if only in part
	hasIdle  bool // idle is known, if only in part

	coverage float64 // weighed by unit-hours
}

// Assess prices an account and sums it by the dimensions. Idle capacity stands in rows of its own, IdleRow, where the
// dimensions say who holds a GPU.
func Assess(a Account, prices PriceBook, by []Dimension) []Line {
	s := sheet{axis: a.Axis, by: by, prices: prices, lines: map[Group]int{}, balances: map[Group][]balance{}}
	coverage := a.coverage()
	for _, u := range a.Usage {
		s.addUsage(u, coverage[u.Group.Cluster])
	}
	for _, st := range a.Stock {
		s.addStock(st)
	}
	for _, st := range a.Seen {
		s.addStock(st)
		s.eachUSD(st, st.Units, func(i int, usd USD) {
			b := &s.balance(st.Group)[i]
			b.seen, b.known = b.seen+usd, true
		})
	}
	for _, st := range a.Untold {
		s.eachUSD(st, st.Units, func(i int, usd USD) { s.balance(st.Group)[i].held += usd })
	}
	for _, cluster := range s.clusters() {
		s.addSeenIdle(cluster)
	}
	return s.rows
}

// sheet collects lines.
type sheet struct {
	axis   Axis
	by     []Dimension
	prices PriceBook

	lines map[Group]int // index in rows
	rows  []Line

	balances map[Group][]balance // by place, one per interval
	places   []Group             // of balances, in the order of the input
}

// balance is what is seen of GPUs against what is held, where Kubernetes tells no capacity.
type balance struct {
	seen, held USD
	known      bool
}

func (s *sheet) line(g Group) []Amounts {
	i, ok := s.lines[g]
	if !ok {
		i = len(s.rows)
		s.lines[g] = i
		s.rows = append(s.rows, Line{Group: g, Amounts: make([]Amounts, len(s.axis.Points))})
	}
	return s.rows[i].Amounts
}

func (s *sheet) addUsage(u Usage, coverage []float64) {
	if u.Filtered {
		return
	}
	amounts := s.line(u.Group.Keep(s.by))
	for i, interval := range s.axis.Intervals {
		units := at(u.Held, i)
		if units <= 0 {
			continue
		}
		price, priced := s.prices.Price(u.Node, interval.To)
		a := &amounts[interval.Point]
		a.Units += units
		if coverage != nil {
			a.coverage += units * coverage[interval.Point]
		}
		if u.ShareErr != nil {
			a.UnknownUnits += units
			continue
		}
		a.addHeld(u, i, units)
		if !priced {
			a.Unpriced += GPUHours(units * float64(u.Share))
			continue
		}
		a.addCost(u, i, units, float64(u.Share)*float64(price))
	}
}

func (a *Amounts) addHeld(u Usage, i int, units float64) {
	share := float64(u.Share)
	a.Held += GPUHours(units * share)
	u.eachStep(i, func(_ Step, known, used float64) {
		a.Known += GPUHours(known * share)
		a.Used += GPUHours(used * share)
	})
}

func (a *Amounts) addCost(u Usage, i int, units, perUnit float64) {
	a.Allocated += USD(units * perUnit)
	u.eachStep(i, func(step Step, known, used float64) {
		a.known += USD(known * perUnit)
		a.ByStep[step] += USD(known * perUnit)
		a.Effective += USD(used * perUnit)
		if step != OwnDevices {
			a.Estimated += USD(used * perUnit)
		}
	})
}

// eachStep gives the unit-hours known and used at each rung. More can't be known than is held: devices may carry the
// label of a pod that asked for fewer. Their use then counts by the mean.
func (u Usage) eachStep(i int, visit func(step Step, known, used float64)) {
	left := at(u.Held, i) - at(u.Pending, i)
	for step := range Steps {
		known, used := at(u.Known[step], i), at(u.Used[step], i)
		if known <= 0 || left <= 0 {
			continue
		}
		if known > left {
			used, known = used*left/known, left
		}
		visit(Step(step), known, min(used, known))
		left -= known
	}
}

// addStock adds capacity, where it isn't told apart by holders, and idle.
func (s *sheet) addStock(st Stock) {
	if st.ShareErr != nil {
		return
	}
	if !s.byHolder() {
		amounts := s.line(st.Group.Keep(s.by))
		for i, interval := range s.axis.Intervals {
			if units := at(st.Units, i); units > 0 {
				a := &amounts[interval.Point]
				a.Capacity += GPUHours(units * float64(st.Share))
				a.hasStock = true
			}
		}
	}
	if st.Idle == nil {
		return
	}
	amounts := s.line(s.idleRow(st.Group))
	s.eachUSD(st, st.Idle, func(i int, usd USD) {
		a := &amounts[s.axis.Intervals[i].Point]
		a.Idle += usd
		a.hasIdle = true
	})
}

// eachUSD gives what units of a stock cost, for each interval in which the stock exists and has a price.
func (s *sheet) eachUSD(st Stock, units []float64, visit func(interval int, usd USD)) {
	if st.ShareErr != nil {
		return
	}
	for i, interval := range s.axis.Intervals {
		price, priced := s.prices.Price(st.Node, interval.To)
		if priced && at(st.Units, i) > 0 {
			visit(i, USD(at(units, i)*float64(st.Share)*float64(price)))
		}
	}
}

// clusters returns the places of each cluster.
func (s *sheet) clusters() [][]Group {
	index := map[string]int{}
	var clusters [][]Group
	for _, place := range s.places {
		i, ok := index[place.Cluster]
		if !ok {
			i = len(clusters)
			index[place.Cluster] = i
			clusters = append(clusters, nil)
		}
		clusters[i] = append(clusters[i], place)
	}
	return clusters
}

// balance returns the balances of the place that a group's GPUs are in: its node where nodes are told apart, else its
// cluster.
func (s *sheet) balance(place Group) []balance {
	if s.balances[place] == nil {
		s.balances[place] = make([]balance, len(s.axis.Intervals))
		s.places = append(s.places, place)
	}
	return s.balances[place]
}

// addSeenIdle sets what is seen in a cluster against what is held there. A device's place may not be known by the name
// that Kubernetes has for it: what is held is taken off all that is seen, in proportion, so that grouping never changes a
// total.
func (s *sheet) addSeenIdle(places []Group) {
	for i, interval := range s.axis.Intervals {
		var seen, held, idle USD
		for _, place := range places {
			b := s.balances[place][i]
			seen, held, idle = seen+b.seen, held+b.held, idle+b.idle()
		}
		left := seen - held
		if left <= seen*rounding {
			left = 0
		}
		for _, place := range places {
			b := s.balances[place][i]
			if !b.known {
				continue
			}
			a := &s.line(s.idleRow(place))[interval.Point]
			a.hasIdle = true
			if idle > 0 {
				a.Idle += b.idle() * left / idle
			}
		}
	}
}

func (b balance) idle() USD { return max(b.seen-b.held, 0) }

// idleRow is the group that shows a place's idle capacity.
func (s *sheet) idleRow(place Group) Group {
	for _, d := range s.by {
		if d.OfHolder() {
			place = place.With(d, IdleRow)
		}
	}
	return place.Keep(s.by)
}

func (s *sheet) byHolder() bool {
	for _, d := range s.by {
		if d.OfHolder() {
			return true
		}
	}
	return false
}

// coverage is the observed part of each point, 0 to 1, per cluster.
func (a Account) coverage() map[string][]float64 {
	byCluster := make(map[string][]float64, len(a.Observed))
	for cluster, observed := range a.Observed {
		points := make([]float64, len(a.Axis.Points))
		for i, interval := range a.Axis.Intervals {
			points[interval.Point] += at(observed, i)
		}
		for p := range points {
			points[p] = min(points[p]/a.Axis.Points[p].Hours, 1)
		}
		byCluster[cluster] = points
	}
	return byCluster
}

func at(column []float64, i int) float64 {
	if column == nil {
		return 0
	}
	return column[i]
}
