package plugin

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/build/buildinfo"
	"github.com/grafana/grafana-plugin-sdk-go/data"
	"github.com/grafana/grafana-plugin-sdk-go/experimental/concurrent"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amp"
	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
	"github.com/gpucost/gpucost-amp-datasource/pkg/frames"
	"github.com/gpucost/gpucost-amp-datasource/pkg/plan"
	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

// concurrentQueries is how many queries of one request run at a time.
const concurrentQueries = 8

// QueryData answers the queries of a panel, each by itself: one that fails takes no other down.
func (d *DataSource) QueryData(ctx context.Context, req *backend.QueryDataRequest) (*backend.QueryDataResponse, error) {
	ctx = amp.WithHeaders(ctx, origin(req.Headers))
	labeled := forExpression(req.Headers)
	return concurrent.QueryData(ctx, req, func(ctx context.Context, q concurrent.Query) backend.DataResponse {
		found, err := d.answer(ctx, q.DataQuery, labeled)
		if err != nil {
			return failed(err, found)
		}
		return backend.DataResponse{Frames: found, Status: backend.StatusOK}
	}, concurrentQueries)
}

// answer is the way from a stored query to frames. With an error come frames that tell what was asked until then.
func (d *DataSource) answer(ctx context.Context, dq backend.DataQuery, labeled bool) (data.Frames, error) {
	if d.broken != nil {
		return nil, settingsError{d.broken}
	}
	q, err := query.Parse(dq.JSON, d.window(dq))
	if err != nil {
		return nil, err
	}
	a, err := d.assess(ctx, q)
	about := frames.About{
		Axis: a.axis, Step: a.step, Requests: a.requests, SamplesProcessed: a.samples, Notices: a.notices,
		Prices: d.prices, LabeledNumbers: labeled,
	}
	if err != nil {
		return frames.Failed(about), err
	}
	return frames.For(q, a.lines, about), nil
}

// assessment is what a query came to, and how.
type assessment struct {
	lines    []cost.Line
	axis     cost.Axis
	step     time.Duration
	requests []plan.Request
	samples  int64 // processed by AMP
	notices  []plan.Notice
	found    plan.Found
}

// assess is the pipeline. What is known of an assessment that fails is returned with the error.
func (d *DataSource) assess(ctx context.Context, q query.Query) (a assessment, err error) {
	if q.Window.Empty() {
		return a, nil
	}
	if a.found, err = d.probe(ctx, q.Window.From, q.Window.To); err != nil { // what the workspace has
		return a, err
	}
	p, err := plan.New(q, d.options, a.found) // what AMP must be asked
	if err != nil {
		return a, err
	}
	got, err := p.Run(ctx, d.client) // vectors and matrices
	a.requests, a.samples = got.Requests, got.SamplesProcessed
	if err != nil {
		return a, err
	}
	usage := p.Decode(got)                            // what was held and used, per group and time
	a.lines = cost.Assess(usage, d.prices, q.GroupBy) // dollars
	a.axis, a.step, a.notices = p.Axis(), p.Step(), p.Notices()
	return a, nil
}

// window is the time that a query asks for, as far as it has passed.
func (d *DataSource) window(dq backend.DataQuery) query.Window {
	w := query.Window{From: dq.TimeRange.From, To: dq.TimeRange.To, Step: dq.Interval}
	if now := d.now().Truncate(time.Millisecond); w.To.After(now) { // Prometheus counts in milliseconds
		w.To = now
	}
	if w.Step <= 0 {
		w.Step = d.settings.TimeInterval
	}
	return w
}

// forExpression tells whether an alert rule or a server-side expression asks.
func forExpression(headers map[string]string) bool {
	return header(headers, backend.FromAlertHeaderName) == "true" || header(headers, "X-Grafana-From-Expr") == "true"
}

// origin is what AMP's query log should know of a request.
func origin(headers map[string]string) http.Header {
	h := http.Header{}
	for _, name := range []string{"X-Dashboard-Uid", "X-Panel-Id"} {
		if value := header(headers, name); value != "" {
			h.Set(name, value)
		}
	}
	return h
}

// header finds a header as Grafana forwards it: as it came, or behind "http_".
func header(headers map[string]string, name string) string {
	for key, value := range headers {
		if strings.EqualFold(strings.TrimPrefix(key, "http_"), name) {
			return value
		}
	}
	return ""
}

func userAgent() string {
	info, err := buildinfo.GetBuildInfo()
	if err != nil || info.Version == "" {
		return ID
	}
	return ID + "/" + info.Version
}
