// Package amp is a client of the Prometheus HTTP API as Amazon Managed Service
// for Prometheus serves it. It asks, bounds, retries and decodes; what the
// series mean is not its business.
package amp

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	defaultMaxResponseBytes = 64 << 20
	defaultMaxSeries        = 50_000
	defaultConcurrency      = 8
)

// Options bound what a Client asks for and accepts. The zero value is usable.
type Options struct {
	Method    string // of queries, label names and series: "POST" (default) or "GET"
	UserAgent string // kept by AMP's query log; empty = the http.Client's own

	Timeout          time.Duration // for one answer, its retries included; 0 = the context's deadline only
	Concurrency      int           // requests at a time; default 8
	MaxResponseBytes int64         // of one answer, decompressed; default 64 MiB
	MaxSeries        int           // of one answer; default 50,000

	SamplesWarning int64 // samples processed above which AMP warns; 0 = not sent
	SamplesError   int64 // samples processed above which AMP refuses; 0 = not sent
}

// Client asks one workspace, or one Prometheus. It is safe for concurrent use.
type Client struct {
	http    *http.Client
	baseURL string
	host    string
	options Options
	limiter limiter
}

// Answer is what a query came to.
type Answer struct {
	Series           []Series
	SamplesProcessed int64    // AMP's billing unit
	Warnings         []string // the server's warnings, then its infos
}

// Series is one row of a vector (one point), of a matrix (one point or more,
// ascending in time), or a scalar (one point, no labels).
type Series struct {
	Labels map[string]string
	Times  []int64 // Unix milliseconds, one per value
	Values []float64
}

// New gives a client of the API below baseURL, such as
// "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-...". The
// http.Client signs; it should not follow redirects.
func New(doer *http.Client, baseURL string, o Options) *Client {
	if o.Method == "" {
		o.Method = http.MethodPost
	}
	if o.Concurrency <= 0 {
		o.Concurrency = defaultConcurrency
	}
	if o.MaxResponseBytes <= 0 {
		o.MaxResponseBytes = defaultMaxResponseBytes
	}
	if o.MaxSeries <= 0 {
		o.MaxSeries = defaultMaxSeries
	}
	return &Client{
		http:    doer,
		baseURL: strings.TrimRight(baseURL, "/"),
		host:    hostOf(baseURL),
		options: o,
		limiter: newLimiter(o.Concurrency),
	}
}

// Query evaluates expr at one time, kept to the millisecond. Errors are *Error.
func (c *Client) Query(ctx context.Context, expr string, at time.Time) (Answer, error) {
	form := c.queryForm(expr)
	form.Set("time", unixSeconds(at))
	return c.query(ctx, "query", form)
}

// QueryRange evaluates expr at from, from + step, ... up to to. AMP aligns
// results to the step, so from and to should be multiples of it. Errors are *Error.
func (c *Client) QueryRange(ctx context.Context, expr string, from, to time.Time, step time.Duration) (Answer, error) {
	form := c.queryForm(expr)
	setRange(form, from, to)
	form.Set("step", strconv.FormatFloat(step.Seconds(), 'f', -1, 64))
	return c.query(ctx, "query_range", form)
}

// LabelNames lists the label names of the series that any of the selectors
// match (none = all) between from and to. Errors are *Error.
func (c *Client) LabelNames(ctx context.Context, match []string, from, to time.Time) ([]string, error) {
	return c.names(ctx, c.options.Method, "labels", matchForm(match, from, to))
}

// LabelValues lists the values of a label in the series that any of the
// selectors match (none = all) between from and to. Errors are *Error.
func (c *Client) LabelValues(ctx context.Context, label string, match []string, from, to time.Time) ([]string, error) {
	// The API knows no POST here.
	return c.names(ctx, http.MethodGet, "label/"+url.PathEscape(label)+"/values", matchForm(match, from, to))
}

// Series lists the label sets that any of the selectors match between from and
// to, at most limit of them (0 = no limit of its own). Errors are *Error.
func (c *Client) Series(ctx context.Context, match []string, from, to time.Time, limit int) ([]map[string]string, error) {
	form := matchForm(match, from, to)
	if limit > 0 {
		form.Set("limit", strconv.Itoa(limit))
	}
	var sets []map[string]string
	err := c.fetch(ctx, c.options.Method, "series", form, func(d *decoder) (err error) {
		sets, err = d.labelSets()
		return err
	})
	if err != nil {
		return nil, err
	}
	return sets, nil
}

func (c *Client) query(ctx context.Context, path string, form url.Values) (Answer, error) {
	var answer Answer
	err := c.fetch(ctx, c.options.Method, path, form, func(d *decoder) (err error) {
		answer, err = d.answer()
		return err
	})
	if err != nil {
		return Answer{}, err
	}
	return answer, nil
}

func (c *Client) names(ctx context.Context, method, path string, form url.Values) ([]string, error) {
	var names []string
	err := c.fetch(ctx, method, path, form, func(d *decoder) (err error) {
		names, err = d.names()
		return err
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

func (c *Client) queryForm(expr string) url.Values {
	form := url.Values{"query": {expr}, "stats": {"all"}}
	if c.options.SamplesWarning > 0 {
		form.Set("max_samples_processed_warning_threshold", strconv.FormatInt(c.options.SamplesWarning, 10))
	}
	if c.options.SamplesError > 0 {
		form.Set("max_samples_processed_error_threshold", strconv.FormatInt(c.options.SamplesError, 10))
	}
	return form
}

func matchForm(match []string, from, to time.Time) url.Values {
	form := url.Values{}
	for _, selector := range match {
		form.Add("match[]", selector)
	}
	setRange(form, from, to)
	return form
}

func setRange(form url.Values, from, to time.Time) {
	form.Set("start", unixSeconds(from))
	form.Set("end", unixSeconds(to))
}

func unixSeconds(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', -1, 64)
}

func hostOf(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	return u.Host
}
