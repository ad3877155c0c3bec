package amp_test

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amp"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 250e6, time.UTC)
	one  = time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)
)

const empty = `{"status":"success","data":{"resultType":"vector","result":[]}}`

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func serveJSON(t *testing.T, body string) *amp.Client {
	t.Helper()
	return amp.New(http.DefaultClient, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}), amp.Options{})
}

// record answers with body and gives what was asked last.
func record(t *testing.T, body string, o amp.Options) (*amp.Client, *http.Request) {
	t.Helper()
	var last http.Request
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		last = *r
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, body)
	})
	return amp.New(http.DefaultClient, address+"/workspaces/ws-1/", o), &last
}

func TestWhatIsAsked(t *testing.T) {
	ctx := t.Context()

	t.Run("a query is a POST of a form with the time in seconds and stats", func(t *testing.T) {
		client, asked := record(t, empty, amp.Options{})
		if _, err := client.Query(ctx, `up{a="+&"}`, noon); err != nil {
			t.Fatal(err)
		}
		if asked.Method != http.MethodPost || asked.URL.String() != "/workspaces/ws-1/api/v1/query" {
			t.Errorf("asked %s %s", asked.Method, asked.URL)
		}
		want := url.Values{"query": {`up{a="+&"}`}, "time": {"1772366400.25"}, "stats": {"all"}}
		if !reflect.DeepEqual(asked.PostForm, want) {
			t.Errorf("form %v, want %v", asked.PostForm, want)
		}
	})

	t.Run("a GET carries the same in its URL", func(t *testing.T) {
		client, asked := record(t, empty, amp.Options{Method: "GET"})
		if _, err := client.QueryRange(ctx, "up", noon, one, 90*time.Second); err != nil {
			t.Fatal(err)
		}
		want := url.Values{"query": {"up"}, "start": {"1772366400.25"}, "end": {"1772370000"}, "step": {"90"}, "stats": {"all"}}
		if asked.Method != http.MethodGet || asked.URL.Path != "/workspaces/ws-1/api/v1/query_range" || !reflect.DeepEqual(asked.URL.Query(), want) {
			t.Errorf("asked %s %s", asked.Method, asked.URL)
		}
	})

	t.Run("thresholds are sent when set", func(t *testing.T) {
		client, asked := record(t, empty, amp.Options{SamplesWarning: 7, SamplesError: 9})
		if _, err := client.Query(ctx, "up", noon); err != nil {
			t.Fatal(err)
		}
		if asked.Form.Get("max_samples_processed_warning_threshold") != "7" || asked.Form.Get("max_samples_processed_error_threshold") != "9" {
			t.Errorf("form %v", asked.Form)
		}
	})

	t.Run("the query log learns the dashboard, the panel and the version, and no other header", func(t *testing.T) {
		client, asked := record(t, empty, amp.Options{UserAgent: "gpucost/1.2.3"})
		incoming := http.Header{"X-Dashboard-Uid": {"d1"}, "X-Panel-Id": {"7"}, "Cookie": {"session=1"}}
		if _, err := client.Query(amp.WithHeaders(ctx, incoming), "up", noon); err != nil {
			t.Fatal(err)
		}
		h := asked.Header
		if h.Get("X-Dashboard-Uid") != "d1" || h.Get("X-Panel-Id") != "7" || h.Get("User-Agent") != "gpucost/1.2.3" || h.Get("Cookie") != "" {
			t.Errorf("headers %v", h)
		}
	})

	t.Run("label names, values and series carry their selectors and range", func(t *testing.T) {
		client, asked := record(t, `{"status":"success","data":["a","b"]}`, amp.Options{})
		match := []string{"x", `y{z="1"}`}
		names, err := client.LabelNames(ctx, match, noon, one)
		if err != nil || !reflect.DeepEqual(names, []string{"a", "b"}) {
			t.Errorf("names %v, %v", names, err)
		}
		if asked.Method != http.MethodPost || !reflect.DeepEqual(asked.PostForm["match[]"], match) || asked.PostForm.Get("end") != "1772370000" {
			t.Errorf("asked %s %v", asked.Method, asked.PostForm)
		}
		if _, err := client.LabelValues(ctx, "name/space", match, noon, one); err != nil {
			t.Error(err)
		}
		if asked.Method != http.MethodGet || asked.URL.EscapedPath() != "/workspaces/ws-1/api/v1/label/name%2Fspace/values" || asked.Form.Get("start") != "1772366400.25" {
			t.Errorf("asked %s %s", asked.Method, asked.URL)
		}
	})

	t.Run("series come as label sets, as many as asked for", func(t *testing.T) {
		client, asked := record(t, `{"status":"success","data":[{"a":"1"},{"a":"2","b":"3"}]}`, amp.Options{})
		sets, err := client.Series(ctx, []string{"x"}, noon, one, 5)
		if want := []map[string]string{{"a": "1"}, {"a": "2", "b": "3"}}; err != nil || !reflect.DeepEqual(sets, want) {
			t.Errorf("sets %v, %v", sets, err)
		}
		if asked.Form.Get("limit") != "5" {
			t.Errorf("form %v", asked.Form)
		}
	})
}

func TestAnswers(t *testing.T) {
	query := func(t *testing.T, body string) amp.Answer {
		t.Helper()
		answer, err := serveJSON(t, body).Query(t.Context(), "up", noon)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}

	t.Run("a vector gives one point per series", func(t *testing.T) {
		got := query(t, `{"status":"success","data":{"resultType":"vector","result":[
			{"metric":{"__name__":"up","a":"é\"\\"},"value":[1435781430.781,"1"]}, {"metric":{},"value":[ 1435781430 , "-2.5e3" ]}]}}`)
		want := []amp.Series{
			{Labels: map[string]string{"__name__": "up", "a": `é"\`}, Times: []int64{1435781430781}, Values: []float64{1}},
			{Labels: map[string]string{}, Times: []int64{1435781430000}, Values: []float64{-2500}},
		}
		if !reflect.DeepEqual(got.Series, want) {
			t.Errorf("got %v", got.Series)
		}
	})

	t.Run("a matrix keeps its gaps", func(t *testing.T) {
		got := query(t, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"1"},"values":[[60,"1"],[180,"2"]]}]}}`)
		want := []amp.Series{{Labels: map[string]string{"a": "1"}, Times: []int64{60000, 180000}, Values: []float64{1, 2}}}
		if !reflect.DeepEqual(got.Series, want) {
			t.Errorf("got %v", got.Series)
		}
	})

	t.Run("a scalar is one series without labels", func(t *testing.T) {
		got := query(t, `{"status":"success","data":{"resultType":"scalar","result":[60.5,"3"]}}`)
		if want := []amp.Series{{Times: []int64{60500}, Values: []float64{3}}}; !reflect.DeepEqual(got.Series, want) {
			t.Errorf("got %v", got.Series)
		}
	})

	t.Run("NaN and infinities are values", func(t *testing.T) {
		got := query(t, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"NaN"],[2,"+Inf"],[3,"-Inf"]]}]}}`)
		values := got.Series[0].Values
		if !math.IsNaN(values[0]) || !math.IsInf(values[1], 1) || !math.IsInf(values[2], -1) {
			t.Errorf("got %v", values)
		}
	})

	t.Run("fields in any order, unknown fields, stats, warnings and infos are accepted", func(t *testing.T) {
		got := query(t, `{"infos":["i"],"new":{"a":[1,{"b":null}]},"data":{"stats":{"timings":{"x":1},"samples":{"peakSamples":3,"totalQueryableSamples":12345678901}},
			"result":[{"histogram":null,"value":[1,"2"],"metric":{"a":"b"}}],"resultType":"vector","other":7},"warnings":["w1","w2"],"status":"success"}`)
		want := amp.Answer{
			Series:           []amp.Series{{Labels: map[string]string{"a": "b"}, Times: []int64{1000}, Values: []float64{2}}},
			SamplesProcessed: 12345678901,
			Warnings:         []string{"w1", "w2", "i"},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("a gzipped answer is read like any other", func(t *testing.T) {
		client := amp.New(http.DefaultClient, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(gzipped(t, empty))
		}), amp.Options{})
		if _, err := client.Query(t.Context(), "up", noon); err != nil {
			t.Error(err)
		}
	})
}

func TestConcurrency(t *testing.T) {
	t.Run("at most eight requests are under way at a time", func(t *testing.T) {
		arrived, leave := make(chan struct{}, 20), make(chan struct{})
		client := amp.New(http.DefaultClient, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			arrived <- struct{}{}
			<-leave
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, empty)
		}), amp.Options{})
		done := make(chan error, 20)
		for range 20 {
			go func() {
				_, err := client.Query(context.Background(), "up", noon)
				done <- err
			}()
		}
		for range 8 {
			<-arrived
		}
		time.Sleep(50 * time.Millisecond)
		if extra := len(arrived); extra > 0 {
			t.Errorf("%d requests more", extra)
		}
		close(leave)
		for range 20 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestBaseURL(t *testing.T) {
	t.Run("a URL that can't be parsed is an error, not a panic", func(t *testing.T) {
		_, err := amp.New(http.DefaultClient, "http://[::1", amp.Options{}).Query(t.Context(), "up", noon)
		if err == nil || !strings.Contains(err.Error(), "URL is not valid") {
			t.Errorf("got %v", err)
		}
	})
}
