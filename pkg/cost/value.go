package cost

// Period says what a dollar figure covers.
type Period string

// The periods.
const (
	PerHour  Period = "hour"  // USD per hour
	PerRange Period = "range" // USD over the point's time
	PerMonth Period = "month" // USD per month of HoursPerMonth at the hourly rate
)

// rounding is the relative error that float64 sums of a long range may have: less than that is nothing.
const rounding = 1e-9

// Value returns the metric at a point of so many hours; false where it is not known, or where the group has none of it.
// Dollars are per period; units and GPUs are the mean over the point; ratios are 0 to 1.
func (a Amounts) Value(m Metric, period Period, hours float64) (float64, bool) {
	switch m {
	case Units:
		return a.Units / hours, a.Units > 0
	case Requested:
		return float64(a.Held) / hours, a.Held > 0
	case Capacity:
		return float64(a.Capacity) / hours, a.hasStock
	case Utilization:
		return ratio(float64(a.Used), float64(a.Known))
	case Efficiency:
		return ratio(float64(a.Effective), float64(a.known))
	case Coverage:
		return ratio(a.coverage, a.Units)
	default:
		usd, known := a.usd(m)
		return period.of(float64(usd), hours), known
	}
}

func (a Amounts) usd(m Metric) (USD, bool) {
	priced := a.Held > a.Unpriced
	used := a.known > 0
	switch m {
	case Allocated:
		return a.Allocated, priced
	case Effective:
		return a.Effective, used
	case Estimated:
		return a.Estimated, used
	case Waste:
		return a.nothingIfRounding(a.known - a.Effective), used
	case Unmeasured:
		return a.nothingIfRounding(a.Allocated - a.known), priced
	default:
		return a.Idle, a.hasIdle
	}
}

func (a Amounts) nothingIfRounding(d USD) USD {
	if d <= a.Allocated*rounding {
		return 0
	}
	return d
}

func (p Period) of(usd, hours float64) float64 {
	switch p {
	case PerRange:
		return usd
	case PerMonth:
		return usd / hours * HoursPerMonth
	default:
		return usd / hours
	}
}

func ratio(part, whole float64) (float64, bool) {
	if whole <= 0 {
		return 0, false
	}
	return part / whole, true
}

// Plus adds the amounts of two groups, or of two times.
func (a Amounts) Plus(b Amounts) Amounts {
	a.Units += b.Units
	a.UnknownUnits += b.UnknownUnits
	a.Held += b.Held
	a.Unpriced += b.Unpriced
	a.Known += b.Known
	a.Used += b.Used
	a.Allocated += b.Allocated
	for step := range a.ByStep {
		a.ByStep[step] += b.ByStep[step]
	}
	a.Effective += b.Effective
	a.Estimated += b.Estimated
	a.known += b.known
	a.Capacity += b.Capacity
	a.Idle += b.Idle
	a.hasStock = a.hasStock || b.hasStock
	a.hasIdle = a.hasIdle || b.hasIdle
	a.coverage += b.coverage
	return a
}

// Nothing tells whether there is nothing to show: nothing held, and no capacity known.
func (a Amounts) Nothing() bool { return a.Units <= 0 && !a.hasStock && !a.hasIdle }

// Total adds up all points of the line.
func (l Line) Total() Amounts {
	var total Amounts
	for _, a := range l.Amounts {
		total = total.Plus(a)
	}
	return total
}
