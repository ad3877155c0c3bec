package amptest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/stats"
)

// query answers an instant query.
func (s *Server) query(r *http.Request) (answer, error) {
	at, err := timeParam(r, "time", s.now())
	if err != nil {
		return answer{}, err
	}
	expr, err := s.parse(r)
	if err != nil {
		return answer{}, err
	}
	if lookBack(expr, at) >= s.limits.LookBack {
		return answer{}, execution(fmt.Errorf("queries with long day range (%dd to %dd) are currently only supported for range type queries",
			s.limits.LookBack/day, s.limits.Range/day))
	}
	return s.run(r, func(ctx context.Context) (promql.Query, error) {
		return s.engine.NewInstantQuery(ctx, s.storage, nil, r.Form.Get("query"), at)
	})
}

// queryRange answers a range query, at the multiples of its step: AMP aligns them.
func (s *Server) queryRange(r *http.Request) (answer, error) {
	g, err := gridParams(r)
	if err != nil {
		return answer{}, err
	}
	if err := g.check(s.limits); err != nil {
		return answer{}, err
	}
	if _, err := s.parse(r); err != nil {
		return answer{}, err
	}
	return s.run(r, func(ctx context.Context) (promql.Query, error) {
		return s.engine.NewRangeQuery(ctx, s.storage, nil, r.Form.Get("query"), alignDown(g.start, g.step), g.end, g.step)
	})
}

func (s *Server) parse(r *http.Request) (parser.Expr, error) {
	expr, err := s.parser.ParseExpr(r.Form.Get("query"))
	if err != nil {
		return nil, invalidParam("query", err)
	}
	return expr, nil
}

// grid is the points in time of a range query.
type grid struct {
	start, end time.Time
	step       time.Duration
}

func gridParams(r *http.Request) (grid, error) {
	start, err := requiredTime(r, "start")
	if err != nil {
		return grid{}, err
	}
	end, err := requiredTime(r, "end")
	if err != nil {
		return grid{}, err
	}
	step, err := durationParam(r, "step")
	return grid{start, end, step}, err
}

// check returns which rule or limit the grid breaks.
func (g grid) check(limits Limits) error {
	switch length := g.end.Sub(g.start); {
	case length < 0:
		return invalidParam("end", errors.New("end timestamp must not be before start time"))
	case g.step <= 0:
		return invalidParam("step", errors.New("zero or negative query resolution step widths are not accepted. Try a positive integer"))
	case length/g.step > time.Duration(limits.Points):
		return badData(fmt.Errorf("exceeded maximum resolution of %s points per timeseries. Try decreasing the query resolution (?step=XX)", thousands(limits.Points)))
	case length > limits.Range:
		return execution(fmt.Errorf("the query time range exceeds the limit (query length: %s, limit: %s)", length, limits.Range))
	}
	return nil
}

// run executes a query and applies the caller's thresholds of samples processed.
func (s *Server) run(r *http.Request, prepare func(context.Context) (promql.Query, error)) (answer, error) {
	limits, err := thresholdParams(r)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel, err := contextParam(r)
	if err != nil {
		return answer{}, err
	}
	defer cancel()
	q, err := prepare(ctx)
	if err != nil {
		return answer{}, badData(err)
	}
	defer q.Close()
	result := q.Exec(ctx)
	if result.Err != nil {
		return answer{}, engineError(result.Err)
	}
	got := answer{samplesProcessed: q.Stats().Samples.TotalSamples}
	if err := limits.refuse(got.samplesProcessed); err != nil {
		return answer{}, err
	}
	got.warnings, got.infos = result.Warnings.AsStrings(r.Form.Get("query"), 10, 10)
	got.warnings = limits.warn(got.warnings, got.samplesProcessed)
	var statistics stats.QueryStats
	if r.Form.Get("stats") != "" {
		statistics = stats.NewQueryStats(q.Stats())
	}
	got.data = appendResult(nil, result.Value, statistics)
	return got, nil
}

// thresholds of the samples that one query may process; 0 means none.
type thresholds struct{ warning, refusal int64 }

func thresholdParams(r *http.Request) (thresholds, error) {
	warning, err := countParam(r, "max_samples_processed_warning_threshold")
	if err != nil {
		return thresholds{}, err
	}
	refusal, err := countParam(r, "max_samples_processed_error_threshold")
	return thresholds{warning, refusal}, err
}

func (t thresholds) refuse(samples int64) error {
	if t.refusal == 0 || samples <= t.refusal {
		return nil
	}
	return execution(fmt.Errorf("the query processes %d samples, more than its error threshold of %d", samples, t.refusal))
}

func (t thresholds) warn(warnings []string, samples int64) []string {
	if t.warning == 0 || samples <= t.warning {
		return warnings
	}
	return append(warnings, fmt.Sprintf("the query processed %d samples, more than its warning threshold of %d", samples, t.warning))
}

// lookBack is how far before at an expression reads: the largest sum of range
// and offset of its selectors.
func lookBack(expr parser.Expr, at time.Time) time.Duration {
	if len(parser.ExtractSelectors(expr)) == 0 {
		return 0
	}
	// A selector's first millisecond is outside it: windows are left-open.
	first, _ := promql.FindMinMaxTime(&parser.EvalStmt{Expr: expr, Start: at, End: at})
	return time.Duration(at.UnixMilli()-first+1) * time.Millisecond
}

// alignDown returns the last multiple of step, counted from Unix time 0, that is
// not after t.
func alignDown(t time.Time, step time.Duration) time.Time {
	ms, width := t.UnixMilli(), max(step.Milliseconds(), 1)
	remainder := ms % width
	if remainder < 0 {
		remainder += width
	}
	return time.UnixMilli(ms - remainder)
}

func invalidParam(name string, err error) error {
	return badData(fmt.Errorf("invalid parameter %q: %w", name, err))
}

func timeParam(r *http.Request, name string, absent time.Time) (time.Time, error) {
	if r.Form.Get(name) == "" {
		return absent, nil
	}
	return requiredTime(r, name)
}

// requiredTime reads Unix seconds, with decimals, or RFC 3339.
func requiredTime(r *http.Request, name string) (time.Time, error) {
	text := r.Form.Get(name)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && inMilliseconds(seconds) {
		return time.UnixMilli(int64(math.Round(seconds * 1000))), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, invalidParam(name, fmt.Errorf("cannot parse %q to a valid timestamp", text))
	}
	return t, nil
}

// durationParam reads seconds, with decimals, or Prometheus' notation (1h30m).
func durationParam(r *http.Request, name string) (time.Duration, error) {
	text := r.Form.Get(name)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && inMilliseconds(seconds/1000) {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	d, err := model.ParseDuration(text)
	if err != nil {
		return 0, invalidParam(name, fmt.Errorf("cannot parse %q to a valid duration", text))
	}
	return time.Duration(d), nil
}

// inMilliseconds tells whether so many seconds are a number of milliseconds that
// times can be computed with.
func inMilliseconds(seconds float64) bool {
	return math.Abs(seconds) < float64(math.MaxInt64)/float64(time.Second)
}

func countParam(r *http.Request, name string) (int64, error) {
	text := r.Form.Get(name)
	if text == "" {
		return 0, nil
	}
	count, err := strconv.ParseInt(text, 10, 64)
	if err != nil || count < 0 {
		return 0, invalidParam(name, fmt.Errorf("cannot parse %q to a positive number", text))
	}
	return count, nil
}

// contextParam bounds the request's context by the parameter timeout.
func contextParam(r *http.Request) (context.Context, context.CancelFunc, error) {
	if r.Form.Get("timeout") == "" {
		return r.Context(), func() {}, nil
	}
	timeout, err := durationParam(r, "timeout")
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	return ctx, cancel, nil
}

// thousands writes a number as Prometheus' sentences do: 11,000.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
