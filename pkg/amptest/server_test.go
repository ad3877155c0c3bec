package amptest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

const twoJobs = `
load 1m
  up{job="a"} 0+1x120
  up{job="b"} 1 NaN Inf -Inf 1e-9 1e300 stale

load 30s
  half{job="a"} 1 _ 3 _x2 6
`

// start serves a workspace with the script loaded.
func start(t *testing.T, opts Options, script string) *Server {
	t.Helper()
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Load(script); err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return s
}

func prometheusClient(t *testing.T, address string) v1.API {
	t.Helper()
	client, err := api.NewClient(api.Config{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	return v1.NewAPI(client)
}

// plainURL is where a plain Prometheus would be.
func plainURL(s *Server) string {
	return strings.TrimSuffix(s.URL(), "/workspaces/"+defaultWorkspace)
}

// get asks the handler directly: path and query, answered with status and body.
func get(t *testing.T, s *Server, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, strings.ReplaceAll(target, " ", "%20"), nil))
	return w
}

// errorType is what the client makes of an error answer.
func errorType(err error) v1.ErrorType {
	if answered, ok := errors.AsType[*v1.Error](err); ok {
		return answered.Type
	}
	return ""
}

func at(minutes float64) time.Time {
	return time.Unix(0, int64(minutes*float64(time.Minute)))
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestAnIndependentClientReadsTheAnswers(t *testing.T) {
	s := start(t, Options{}, twoJobs)
	ctx := context.Background()
	for name, address := range map[string]string{
		"of the workspace":              s.URL(),
		"of a plain Prometheus as well": plainURL(s),
	} {
		client := prometheusClient(t, address)

		t.Run("an instant vector "+name, func(t *testing.T) {
			got, warnings, infos, err := client.Query(ctx, `up{job="a"}`, at(90))
			if err != nil || len(warnings)+len(infos) > 0 {
				t.Fatal(err, warnings, infos)
			}
			expect(t, "vector", got.String(), `up{job="a"} => 90 @[5400]`)
		})

		t.Run("a matrix "+name, func(t *testing.T) {
			got, _, _, err := client.QueryRange(ctx, `sum by (job) (half)`, v1.Range{Start: at(0), End: at(2), Step: 30 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "matrix", got.String(), "{job=\"a\"} =>\n1 @[0]\n1 @[30]\n3 @[60]\n3 @[90]\n3 @[120]")
		})

		t.Run("a scalar "+name, func(t *testing.T) {
			scalar, _, _, err := client.Query(ctx, `scalar(half) + 0.5`, time.UnixMilli(60_250))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "scalar", scalar.String(), "scalar: 3.5 @[60.25]")
		})

		t.Run("labels, values and series "+name, func(t *testing.T) {
			names, _, _, err := client.LabelNames(ctx, nil, time.Time{}, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "names", names, model.LabelNames{"__name__", "job"})
			values, _, _, err := client.LabelValues(ctx, "job", []string{"half"}, at(0), at(5))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "values", values, model.LabelValues{"a"})
			series, warnings, _, err := client.Series(ctx, []string{`{job="a"}`, "half"}, at(0), at(5), v1.WithLimit(1))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "series", series, []model.LabelSet{{"__name__": "half", "job": "a"}})
			expect(t, "warnings", warnings, v1.Warnings{"results truncated due to limit"})
			gone, _, _, err := client.LabelValues(ctx, "job", []string{"half"}, at(60), at(90))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "values after the series ended", len(gone), 0)
			metadata, err := client.Metadata(ctx, "", "")
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "metadata", len(metadata), 0)
		})

		t.Run("an error of the query "+name, func(t *testing.T) {
			_, _, _, err := client.Query(ctx, `up + on (nothing) up`, at(1))
			expect(t, "type", errorType(err), v1.ErrExec)
			_, _, _, err = client.Query(ctx, `up +`, at(1))
			expect(t, "type", errorType(err), v1.ErrBadData)
		})

		t.Run("warnings and infos "+name, func(t *testing.T) {
			_, warnings, infos, err := client.Query(ctx, `quantile(2, up) + rate(half[2m])`, at(1))
			if err != nil {
				t.Fatal(err)
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0], "quantile value should be between 0 and 1") {
				t.Error("warnings", warnings)
			}
			if len(infos) != 1 || !strings.Contains(infos[0], "metric might not be a counter") {
				t.Error("infos", infos)
			}
		})
	}
}

func TestValuesAndTimesArePrintedAsPrometheusPrintsThem(t *testing.T) {
	s := start(t, Options{}, twoJobs)
	got := get(t, s, `/api/v1/query?time=330.125&query=up{job="b"}[10m]`)
	expect(t, "body", got.Body.String(), `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up","job":"b"},`+
		`"values":[[0,"1"],[60,"NaN"],[120,"+Inf"],[180,"-Inf"],[240,"0.000000001"],[300,"1`+strings.Repeat("0", 300)+`"]]}]}}`)
	got = get(t, s, `/api/v1/query?time=330.125&query=vector(1)`)
	expect(t, "body", got.Body.String(), `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[330.125,"1"]}]}}`)
	got = get(t, s, `/api/v1/query?time=60&query="a \"b\""`)
	expect(t, "a string", got.Body.String(), `{"status":"success","data":{"resultType":"string","result":[60,"a \"b\""]}}`)
	expect(t, "content type", got.Header().Get("Content-Type"), "application/json")
	got = get(t, s, `/api/v1/query?time=1970-01-01T00:05:30.125Z&query=timestamp(vector(1))`)
	if !strings.Contains(got.Body.String(), `"330.125"`) {
		t.Error(got.Body)
	}
	got = get(t, s, `/api/v1/query?time=0&query=nothing`)
	expect(t, "an empty vector", got.Body.String(), `{"status":"success","data":{"resultType":"vector","result":[]}}`)
}

func TestAQueryWithoutATimeIsAnsweredForTheServersPresent(t *testing.T) {
	s := start(t, Options{Now: func() time.Time { return time.Unix(600, 0) }}, twoJobs)
	got := get(t, s, `/api/v1/query?query=up{job="a"}`)
	if !strings.Contains(got.Body.String(), `"value":[600,"10"]`) {
		t.Error(got.Body)
	}
}

func TestARangeQueryIsAlignedToItsStep(t *testing.T) {
	s := start(t, Options{}, twoJobs)
	got, _, _, err := prometheusClient(t, s.URL()).QueryRange(context.Background(), `up{job="a"}`,
		v1.Range{Start: time.Unix(310, 0), End: time.Unix(659, 0), Step: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "points", got.String(), "up{job=\"a\"} =>\n4 @[240]\n6 @[360]\n8 @[480]\n10 @[600]")
	early := get(t, s, "/api/v1/query_range?query=time()&start=-90.5&end=10&step=60")
	if !strings.Contains(early.Body.String(), `"values":[[-120,"-120"],[-60,"-60"],[0,"0"]]`) {
		t.Error("before Unix time 0:", early.Body)
	}
}

func TestTheSamplesProcessedAreCounted(t *testing.T) {
	s := start(t, Options{}, twoJobs)
	body := struct {
		Data struct {
			Stats *struct {
				Samples struct{ TotalQueryableSamples, PeakSamples int64 }
			}
		}
		Warnings []string
	}{}
	ask := func(t *testing.T, parameters string) int {
		t.Helper()
		body.Data.Stats, body.Warnings = nil, nil
		got := get(t, s, `/api/v1/query?time=3600&query=sum_over_time(up{job="a"}[10m])`+parameters)
		if err := json.Unmarshal(got.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		return got.Code
	}

	t.Run("in the stats, if asked for", func(t *testing.T) {
		ask(t, "")
		if body.Data.Stats != nil {
			t.Error("stats without stats=all")
		}
		ask(t, "&stats=all")
		if body.Data.Stats == nil || body.Data.Stats.Samples.TotalQueryableSamples != 10 || body.Data.Stats.Samples.PeakSamples == 0 {
			t.Errorf("stats %+v", body.Data.Stats)
		}
	})

	t.Run("in the bill and in the log", func(t *testing.T) {
		expect(t, "bill", s.SamplesProcessed(), 20)
		log := s.Requests()
		expect(t, "requests", len(log), 2)
		expect(t, "samples", log[1].SamplesProcessed, 10)
		expect(t, "form", log[1].Form.Get("query"), `sum_over_time(up{job="a"}[10m])`)
	})

	t.Run("for each step, whole windows, of a range query", func(t *testing.T) {
		before := s.SamplesProcessed()
		get(t, s, `/api/v1/query_range?start=3600&end=3720&step=60&query=sum_over_time(up{job="a"}[10m])`)
		expect(t, "samples", s.SamplesProcessed()-before, 30)
	})

	t.Run("against a threshold that warns", func(t *testing.T) {
		expect(t, "status", ask(t, "&max_samples_processed_warning_threshold=10"), 200)
		expect(t, "warnings at the threshold", len(body.Warnings), 0)
		expect(t, "status", ask(t, "&max_samples_processed_warning_threshold=9"), 200)
		expect(t, "warnings above it", body.Warnings, []string{"the query processed 10 samples, more than its warning threshold of 9"})
	})

	t.Run("against a threshold that refuses, free of charge", func(t *testing.T) {
		expect(t, "status at the threshold", ask(t, "&max_samples_processed_error_threshold=10"), 200)
		before := s.SamplesProcessed()
		expect(t, "status above it", ask(t, "&max_samples_processed_error_threshold=9"), 422)
		expect(t, "charge", s.SamplesProcessed()-before, 0)
		expect(t, "a threshold that is no number", ask(t, "&max_samples_processed_error_threshold=x"), 400)
	})
}

func TestErrorsHaveThePrometheusShape(t *testing.T) {
	s := start(t, Options{Limits: Limits{Samples: 60}}, twoJobs)
	for _, c := range []struct {
		name, target string
		status       int
		kind, says   string
	}{
		{"a query that can't be parsed", `query?query=up)`, 400, "bad_data", `invalid parameter "query": 1:4: parse error`},
		{"a time that is none", `query?query=up&time=noon`, 400, "bad_data", `invalid parameter "time": cannot parse "noon" to a valid timestamp`},
		{"a time beyond all times", `query?query=up&time=1e300`, 400, "bad_data", "valid timestamp"},
		{"a range without a start", `query_range?query=up&end=1&step=1`, 400, "bad_data", `invalid parameter "start"`},
		{"a range without a step", `query_range?query=up&start=0&end=1`, 400, "bad_data", `invalid parameter "step"`},
		{"a range that ends before it starts", `query_range?query=up&start=2&end=1&step=1`, 400, "bad_data", "end timestamp must not be before start time"},
		{"a step of 0", `query_range?query=up&start=0&end=1&step=0`, 400, "bad_data", "zero or negative query resolution step widths"},
		{"more than 11,000 points", `query_range?query=up&start=0&end=11001&step=1`, 400, "bad_data", "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)"},
		{"a range above 95 days", `query_range?query=up&start=0&end=8208001&step=1h`, 422, "execution", "the query time range exceeds the limit"},
		{"an instant query that looks back 32 days", `query?query=sum_over_time(up[30d] offset 2d)`, 422, "execution", "queries with long day range (32d to 95d) are currently only supported for range type queries"},
		{"a subquery that looks back 32 days", `query?query=max_over_time(rate(up[1d])[31d:1h])`, 422, "execution", "32d"},
		{"too many samples", `query?time=7200&query=up[2h]`, 422, "execution", "query processing would load too many samples into memory in query execution"},
		{"many to many matching", `query?time=60&query=up%2Bon()up`, 422, "execution", "many-to-many matching not allowed"},
		{"a timeout", `query?query=up&timeout=0.000000001`, 503, "timeout", "query timed out"},
		{"a label that can't be one", `label/%ff/values`, 400, "bad_data", "invalid label name"},
		{"series of everything", `series`, 400, "bad_data", "no match[] parameter provided"},
		{"a selector that can't be parsed", `labels?match[]={`, 400, "bad_data", `invalid parameter "match[]"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := get(t, s, "/workspaces/"+defaultWorkspace+"/api/v1/"+c.target)
			var body struct{ Status, ErrorType, Error string }
			if err := json.Unmarshal(got.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			expect(t, "HTTP status", got.Code, c.status)
			expect(t, "status", body.Status, "error")
			expect(t, "error type", body.ErrorType, c.kind)
			if !strings.Contains(body.Error, c.says) {
				t.Errorf("error %q lacks %q", body.Error, c.says)
			}
		})
	}
}

func TestLimitsAreNotReachedByWhatTheyAllow(t *testing.T) {
	s := start(t, Options{}, twoJobs)
	for name, target := range map[string]string{
		"11,000 points":                        `query_range?query=up&start=0&end=11000&step=1`,
		"95 days":                              `query_range?query=up&start=0&end=8208000&step=1h`,
		"a look-back just short of 32 days":    `query?query=sum_over_time(up[31d] offset 23h59m)`,
		"a query without selectors":            `query?query=count_over_time(vector(1)[1m:1m])`,
		"a range query with a long look-back":  `query_range?query=up offset 40d&start=0&end=60&step=60`,
		"the modifier @ and a negative offset": `query_range?query=up @ end() - up offset -1m&start=0&end=60&step=60`,
		"a duration in Prometheus' notation":   `query_range?query=up&start=0&end=60&step=1m`,
		"a time before the beginning of times": `query_range?query=up&start=-90.5&end=60&step=60`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := get(t, s, "/api/v1/"+target); got.Code != http.StatusOK {
				t.Error(got.Code, got.Body)
			}
		})
	}
}

func TestAResponseAboveTheLimitIsRefusedInPlainText(t *testing.T) {
	s := start(t, Options{Limits: Limits{ResponseBytes: 500}}, twoJobs)
	got := get(t, s, `/api/v1/query?time=7200&query=up[2h]`)
	expect(t, "status", got.Code, http.StatusRequestEntityTooLarge)
	expect(t, "content type", got.Header().Get("Content-Type"), "text/plain; charset=utf-8")
	expect(t, "charge", s.SamplesProcessed() > 0, true)
}

func TestWhatAMPDoesNotHaveIsNotFound(t *testing.T) {
	signed := start(t, Options{Credentials: testCredentials}, "")
	unsigned := start(t, Options{}, "")
	for _, target := range []string{"/api/v1/status/buildinfo", "/api/v1/rules", "/", "/api/v1/label/job", "/api/v1/querying"} {
		got := get(t, unsigned, "/workspaces/"+defaultWorkspace+target)
		expect(t, target, got.Code, http.StatusNotFound)
		expect(t, "exception", got.Header().Get("x-amzn-ErrorType"), "UnknownOperationException")
	}
	got := get(t, unsigned, "/workspaces/ws-other/api/v1/query?query=up")
	expect(t, "another workspace", got.Body.String(), `{"message":"Workspace not found"}`)
	request, _ := http.NewRequest(http.MethodGet, plainURL(signed)+"/api/v1/query?query=up", nil)
	expect(t, "plain paths where signatures are wanted", signedRoundTrip(t, request, validSigning).StatusCode, http.StatusNotFound)
}

func TestAnAnswerIsCompressedForAClientThatAcceptsIt(t *testing.T) {
	s := start(t, Options{}, twoJobs)
	target := s.URL() + "/api/v1/query?time=7200&query=" + url.QueryEscape("up[2h]")
	plain, err := http.Get(target) // net/http accepts gzip and unpacks it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plain.Body.Close() }()
	body, err := io.ReadAll(plain.Body)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "unpacked by the transport", plain.Uncompressed, true)
	expect(t, "body", string(body), get(t, s, "/api/v1/query?time=7200&query="+url.QueryEscape("up[2h]")).Body.String())
}

func TestTheLogHoldsWhatTheClientSent(t *testing.T) {
	s := start(t, Options{}, twoJobs)
	request, _ := http.NewRequest(http.MethodPost, s.URL()+"/api/v1/query?time=60", strings.NewReader("query=up"))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("X-Dashboard-Uid", "gpu")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	log := s.Requests()
	expect(t, "requests", len(log), 1)
	expect(t, "method", log[0].Method, http.MethodPost)
	expect(t, "path", log[0].Path, "/workspaces/"+defaultWorkspace+"/api/v1/query")
	expect(t, "form", log[0].Form, url.Values{"query": {"up"}, "time": {"60"}})
	expect(t, "header", log[0].Header.Get("X-Dashboard-Uid"), "gpu")
	expect(t, "status", log[0].Status, 200)

	for range requestsKept {
		s.record(Request{Path: "later"})
	}
	expect(t, "requests kept", len(s.Requests()), requestsKept)
	expect(t, "oldest", s.Requests()[0].Path, "later")
}

func TestAPortInUseIsAClearError(t *testing.T) {
	first := start(t, Options{}, "")
	second, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	expect(t, "URL before Listen", second.URL(), "")
	address := strings.Split(first.URL(), "/")[2]
	if err := second.Listen(address); err == nil || !strings.Contains(err.Error(), address+" is taken by another program") {
		t.Error(err)
	}
	if err := second.Listen("nonsense"); err == nil || strings.Contains(err.Error(), "taken") {
		t.Error(err)
	}
}

func TestCloseRemovesTheFiles(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := s.storage.dir
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error(dir, "is still there:", err)
	}
}

func TestSamplesMayComeInAnyOrder(t *testing.T) {
	s := start(t, Options{}, "")
	series := labels.FromStrings("__name__", "x")
	for _, t0 := range []time.Time{at(10_000_000), at(5), at(1), at(9_000_000)} {
		if err := s.Append([]Sample{{series, t0, t0.Sub(at(0)).Minutes()}}); err != nil {
			t.Fatal(err)
		}
	}
	got, _, _, err := prometheusClient(t, s.URL()).Query(context.Background(), "x[10m]", at(6))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "early samples", got.String(), "x =>\n1 @[60]\n5 @[300]")
	if err := s.Append([]Sample{{series, at(10_000_000), math.Pi}}); err == nil {
		t.Error("a second value at the series' latest time is stored")
	}
}
