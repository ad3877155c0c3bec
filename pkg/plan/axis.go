package plan

import (
	"time"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

// evaluation is a run of equally spaced times at which AMP evaluates an expression. Each fills one interval of the axis.
type evaluation struct {
	first  time.Time
	step   time.Duration
	count  int
	window time.Duration // that each time sums up; 0 = an instant
	offset int           // index of the first interval
}

func (e evaluation) at(i int) time.Time { return e.first.Add(time.Duration(i) * e.step) }

func (e evaluation) last() time.Time { return e.at(e.count - 1) }

// index returns which of the evaluation's times t is; false if none.
func (e evaluation) index(t time.Time) (int, bool) {
	i := int(t.Sub(e.first) / e.step)
	return i, i >= 0 && i < e.count && e.at(i).Equal(t)
}

const (
	// maxPoints is how many points a range query of AMP may have.
	maxPoints = 11_000
	// maxScrapes bounds how many scrapes one request sums up, so that its samples fit AMP's limits and memory.
	maxScrapes = 720
)

// timetable says when to evaluate what, and which interval and point of the answer each evaluation fills.
type timetable struct {
	axis        cost.Axis
	evaluations []evaluation
	step        time.Duration // of a curve, as it became
}

// newTimetable lays out a query's time. Curves of rates look at instants; all else sums up pieces of time that never
// cross a clock hour, since the attribution ladder is decided by the hour.
func newTimetable(q query.Query, scrape time.Duration) timetable {
	switch {
	case q.Window.Empty():
		return timetable{}
	case q.Format == query.Table:
		return tableTime(q.Window, scrape)
	case q.Period == cost.PerRange:
		return sumsTime(q.Window, scrape)
	default:
		return instantsTime(q.Window)
	}
}

// instantsTime has a point at every multiple of the step in [From, To].
func instantsTime(w query.Window) timetable {
	step := raise(w.Step, w)
	first := ceil(w.From, step)
	if first.After(w.To) {
		return timetable{step: step}
	}
	t := timetable{step: step}
	e := evaluation{first: first, step: step, count: int(w.To.Sub(first)/step) + 1}
	for i := range e.count {
		t.axis.Intervals = append(t.axis.Intervals, cost.Interval{From: e.at(i), To: e.at(i), Point: i})
		t.axis.Points = append(t.axis.Points, cost.Point{At: e.at(i), Hours: 1})
	}
	t.evaluations = []evaluation{e}
	return t
}

// sumsTime has a point at every multiple of the step in (From, To], that stands for the step before it.
func sumsTime(w query.Window, scrape time.Duration) timetable {
	step := raise(ceilTo(max(w.Step, scrape), time.Second), w)
	t := timetable{step: step}
	first := ceil(w.From, step)
	if first.Equal(w.From) {
		first = first.Add(step)
	}
	if first.After(w.To) {
		return t
	}
	points := int(w.To.Sub(first)/step) + 1
	for p := range points {
		t.axis.Points = append(t.axis.Points, cost.Point{At: first.Add(time.Duration(p) * step), Hours: step.Hours()})
	}
	start := first.Add(-step)
	t.sum(start, first.Add(time.Duration(points-1)*step), gcd(step, time.Hour), scrape, func(end time.Time) int {
		return int((end.Sub(start) - 1) / step)
	})
	return t
}

// tableTime has one point for the whole of (From, To], summed up by clock hours.
func tableTime(w query.Window, scrape time.Duration) timetable {
	t := timetable{axis: cost.Axis{Points: []cost.Point{{At: w.To, Hours: w.Hours()}}}}
	only := func(time.Time) int { return 0 }
	firstHour, lastHour := ceil(w.From, time.Hour), w.To.Truncate(time.Hour)
	if firstHour.After(lastHour) {
		t.sum(w.From, w.To, w.To.Sub(w.From), scrape, only)
		return t
	}
	t.sum(w.From, firstHour, firstHour.Sub(w.From), scrape, only)
	t.sum(firstHour, lastHour, time.Hour, scrape, only)
	t.sum(lastHour, w.To, w.To.Sub(lastHour), scrape, only)
	return t
}

// sum adds intervals of a length that cover (from, to], in evaluations of bounded size.
func (t *timetable) sum(from, to time.Time, length, scrape time.Duration, point func(end time.Time) int) {
	if !to.After(from) {
		return
	}
	most := min(max(int(maxScrapes*scrape/length), 1), maxPoints)
	for left := int(to.Sub(from) / length); left > 0; {
		e := evaluation{first: from.Add(length), step: length, count: min(left, most), window: length, offset: len(t.axis.Intervals)}
		for i := range e.count {
			end := e.at(i)
			t.axis.Intervals = append(t.axis.Intervals, cost.Interval{From: end.Add(-length), To: end, Point: point(end)})
		}
		t.evaluations = append(t.evaluations, e)
		from, left = e.last(), left-e.count
	}
}

// raise returns the step, or the smallest multiple of it that keeps the window within AMP's points.
func raise(step time.Duration, w query.Window) time.Duration {
	if n := int64(w.To.Sub(w.From)/step) + 1; n > maxPoints {
		step *= time.Duration(n/maxPoints + 1)
	}
	return step
}

// ceil returns the first multiple of d since the Unix epoch that is not before t.
func ceil(t time.Time, d time.Duration) time.Time {
	if rest := time.Duration(t.UnixNano() % int64(d)); rest > 0 {
		return t.Add(d - rest)
	}
	return t
}

// clockHour returns the end of the UTC clock hour that t belongs to: a sample on the hour ends it.
func clockHour(t time.Time) time.Time { return ceil(t, time.Hour) }

func gcd(a, b time.Duration) time.Duration {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// hoursTime covers the clock hours of all times from first to last.
func hoursTime(first, last time.Time, scrape time.Duration) timetable {
	t := timetable{}
	from := clockHour(first).Add(-time.Hour)
	t.sum(from, clockHour(last), time.Hour, scrape, func(end time.Time) int { return int(end.Sub(from)/time.Hour) - 1 })
	return t
}

// ceilTo rounds up to a multiple.
func ceilTo(d, multiple time.Duration) time.Duration {
	if rest := d % multiple; rest > 0 {
		return d + multiple - rest
	}
	return d
}
