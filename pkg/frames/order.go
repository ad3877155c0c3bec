package frames

import (
	"cmp"
	"slices"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

// byName sorts lines by their group, special rows last.
func byName(lines []cost.Line) {
	slices.SortStableFunc(lines, compareNames)
}

// bySize sorts lines by the first metric in dollars, else the first metric: largest first, unknown after, special rows
// last.
func bySize(lines []cost.Line, q query.Query, hours float64) {
	lead := q.Metrics[0]
	if i := slices.IndexFunc(q.Metrics, cost.Metric.InUSD); i >= 0 {
		lead = q.Metrics[i]
	}
	slices.SortStableFunc(lines, func(a, b cost.Line) int {
		if rank := cmp.Compare(specialRank(a.Group), specialRank(b.Group)); rank != 0 {
			return rank
		}
		x, xKnown := a.Total().Value(lead, q.Period, hours)
		y, yKnown := b.Total().Value(lead, q.Period, hours)
		switch {
		case xKnown != yKnown && xKnown:
			return -1
		case xKnown != yKnown:
			return 1
		case xKnown && x != y:
			return cmp.Compare(y, x)
		default:
			return compareNames(a, b)
		}
	})
}

func compareNames(a, b cost.Line) int {
	if rank := cmp.Compare(specialRank(a.Group), specialRank(b.Group)); rank != 0 {
		return rank
	}
	for _, d := range cost.Dimensions {
		if c := cmp.Compare(a.Group.Of(d), b.Group.Of(d)); c != 0 {
			return c
		}
	}
	return 0
}

// specialRank is 0 for ordinary groups, and the place among the special rows for others.
func specialRank(g cost.Group) int {
	for _, d := range cost.Dimensions {
		if i := slices.Index(cost.SpecialRows, g.Of(d)); i >= 0 {
			return i + 1
		}
	}
	return 0
}

const (
	// maxPods bounds the groups of a grouping by pod, which would else grow with the cluster.
	maxPods = 200
	// maxValues keeps an answer under 12 MiB, of the 16 that Grafana takes.
	maxValues = 12 << 20 / 9
)

// fold keeps the groups with the largest allocated cost and adds the rest up in one row, so that the total stays. It
// returns how many groups that row stands for.
func fold(lines []cost.Line, q query.Query, points int) ([]cost.Line, int) {
	limit := maxValues / max(points*len(q.Metrics), 1)
	if q.Groups(cost.ByPod) {
		limit = min(limit, maxPods)
	}
	ordinary := 0
	for _, l := range lines {
		if foldable(l.Group, q) {
			ordinary++
		}
	}
	if ordinary <= limit {
		return lines, 0
	}
	slices.SortStableFunc(lines, func(a, b cost.Line) int {
		if x, y := foldable(a.Group, q), foldable(b.Group, q); x != y {
			if x {
				return -1
			}
			return 1
		}
		x, y := a.Total(), b.Total()
		return cmp.Or(cmp.Compare(y.Allocated, x.Allocated), cmp.Compare(y.Units, x.Units), compareNames(a, b))
	})
	other := cost.Line{Amounts: make([]cost.Amounts, points)}
	for _, d := range q.GroupBy {
		other.Group = other.Group.With(d, cost.OtherRow)
	}
	for _, l := range lines[limit:ordinary] {
		for i, a := range l.Amounts {
			other.Amounts[i] = other.Amounts[i].Plus(a)
		}
	}
	kept := slices.Concat(lines[:limit], []cost.Line{other}, lines[ordinary:])
	return kept, ordinary - limit
}

// foldable tells of groups that may be added up with others: those that some holder's own name tells apart, even if
// another of its names is that of a special row.
func foldable(g cost.Group, q query.Query) bool {
	for _, d := range q.GroupBy {
		if d.OfHolder() && !slices.Contains(cost.SpecialRows, g.Of(d)) {
			return true
		}
	}
	return specialRank(g) == 0
}
