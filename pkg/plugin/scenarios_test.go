package plugin_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/data"
	"golang.org/x/tools/txtar"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amptest"
	"github.com/gpucost/gpucost-amp-datasource/pkg/host"
	"github.com/gpucost/gpucost-amp-datasource/pkg/plugin"
)

var update = flag.Bool("update", false, "rewrite the promql sections of scenarios; never anything that was typed by hand")

// built is the plugin as Grafana runs it, for all tests of the package.
var built *host.Plugin

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(withPlugin(m.Run))
}

func withPlugin(run func() int) int {
	directory, err := os.MkdirTemp("", "gpucost")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(directory) }()
	binary := filepath.Join(directory, "gpx_gpucost")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "..").CombinedOutput(); err != nil {
		panic(string(out))
	}
	if built, err = host.Start(binary, nil, os.Stderr); err != nil {
		panic(err)
	}
	defer built.Stop()
	return run()
}

// TestScenarios is the executable specification: real PromQL engine, real plugin, dollars typed by hand.
func TestScenarios(t *testing.T) {
	for _, path := range scenarioFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			s, err := readScenario(path)
			if err != nil {
				t.Fatal(err)
			}
			s.check(t, newWorkspace(t, s))
		})
	}
}

// dataSources numbers the data sources: the plugin keeps an instance for each.
var dataSources atomic.Int64

// workspace is an embedded AMP with a data source on it.
type workspace struct {
	server  *amptest.Server
	context backend.PluginContext
}

var testKeys = amptest.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "a-secret-that-no-answer-may-show"}

func newWorkspace(t *testing.T, s scenario) workspace {
	t.Helper()
	server, err := amptest.New(amptest.Options{Credentials: testKeys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := server.Load(s.series); err != nil {
		t.Fatalf("series: %v", err)
	}
	if err := server.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	settings := map[string]any{"sigV4Auth": true, "sigV4AuthType": "keys", "sigV4Region": "us-east-1"}
	maps.Copy(settings, s.settings)
	jsonData, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	return workspace{server, host.Context(plugin.ID, backend.DataSourceInstanceSettings{
		ID: dataSources.Add(1), UID: t.Name(), Name: t.Name(), URL: server.URL(), JSONData: jsonData, Updated: time.Now(),
		DecryptedSecureJSONData: map[string]string{
			"sigV4AccessKey": testKeys.AccessKeyID, "sigV4SecretKey": testKeys.SecretAccessKey,
		},
	})}
}

func (w workspace) ask(t *testing.T, query json.RawMessage, from, to time.Time, step time.Duration, headers map[string]string) backend.DataResponse {
	t.Helper()
	answer, err := built.Query(t.Context(), &backend.QueryDataRequest{
		PluginContext: w.context,
		Headers:       headers,
		Queries: []backend.DataQuery{{
			RefID: "A", JSON: query, Interval: step, MaxDataPoints: 11_000, TimeRange: backend.TimeRange{From: from, To: to},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Responses["A"]
}

func (s scenario) check(t *testing.T, w workspace) {
	t.Helper()
	if s.settingsError != "" {
		s.checkHealth(t, w)
		return
	}
	r := w.ask(t, s.query, s.from, s.to, s.step, s.headers)
	if s.queryError != "" {
		if r.Error == nil || !strings.Contains(r.Error.Error(), s.queryError) {
			t.Errorf("error: want %q, got %v", s.queryError, r.Error)
		}
		return
	}
	if r.Error != nil {
		t.Fatalf("status %d: %v", r.Status, r.Error)
	}
	if len(r.Frames) != 1 {
		t.Fatalf("want one frame, got %d", len(r.Frames))
	}
	frame := r.Frames[0]
	if s.want != nil {
		for _, problem := range s.comparable().compare(readFrame(t, frame), s.tolerance) {
			t.Error(problem)
		}
	}
	s.checkNotices(t, frame)
	s.checkPromQL(t, frame)
	if t.Failed() {
		for _, n := range frame.Meta.Notices {
			t.Logf("notice: %s", n.Text)
		}
		t.Logf("executed:\n%s", frame.Meta.ExecutedQueryString)
	}
}

func (s scenario) checkHealth(t *testing.T, w workspace) {
	t.Helper()
	health, err := built.Health(t.Context(), w.context)
	if err != nil {
		t.Fatal(err)
	}
	if health.Status != backend.HealthStatusError || !strings.Contains(health.Message, s.settingsError) {
		t.Errorf("health: want an error with %q, got %s: %s", s.settingsError, health.Status, health.Message)
	}
	if r := w.ask(t, s.query, s.from, s.to, s.step, nil); r.Error == nil || !strings.Contains(r.Error.Error(), s.settingsError) {
		t.Errorf("query: want an error with %q, got %v", s.settingsError, r.Error)
	}
}

func (s scenario) checkNotices(t *testing.T, frame *data.Frame) {
	t.Helper()
	for _, text := range s.notices {
		if !slices.ContainsFunc(frame.Meta.Notices, func(n data.Notice) bool {
			return strings.Contains(strings.ToLower(n.Text), strings.ToLower(text))
		}) {
			t.Errorf("no notice contains %q", text)
		}
	}
}

func (s scenario) checkPromQL(t *testing.T, frame *data.Frame) {
	t.Helper()
	if s.promQL == nil {
		return
	}
	executed := strings.TrimSpace(frame.Meta.ExecutedQueryString)
	if executed == *s.promQL {
		return
	}
	if !*update {
		t.Errorf("promql differs; with -update it is rewritten. Got:\n%s", executed)
		return
	}
	archive, err := txtar.ParseFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range archive.Files {
		if f.Name == "promql" {
			archive.Files[i].Data = []byte(executed + "\n")
		}
	}
	if err := os.WriteFile(s.path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// comparable is what is wanted. Of a time series without the rows and columns that hold nothing: the frame leaves them
// out.
func (s scenario) comparable() *sheet {
	if !slices.Contains(s.want.columns, "time") {
		return s.want
	}
	w := &sheet{rows: slices.DeleteFunc(slices.Clone(s.want.rows), row.blank)}
	for _, column := range s.want.columns {
		if slices.ContainsFunc(w.rows, func(r row) bool { return r.values[column] != nil || r.keys[column] != "" }) {
			w.columns = append(w.columns, column)
		}
	}
	return w
}

// readFrame reads an answer of any shape as rows.
func readFrame(t *testing.T, frame *data.Frame) *sheet {
	t.Helper()
	switch frame.Meta.Type {
	case data.FrameTypeNumericLong:
		return readLong(frame)
	case data.FrameTypeTimeSeriesWide, data.FrameTypeNumericWide:
		return readWide(frame)
	default:
		t.Fatalf("frame type %q", frame.Meta.Type)
		return nil
	}
}

func readLong(frame *data.Frame) *sheet {
	s := &sheet{}
	for _, f := range frame.Fields {
		s.columns = append(s.columns, f.Name)
	}
	for i := range frame.Rows() {
		r := row{keys: map[string]string{}, values: map[string]*float64{}}
		for _, f := range frame.Fields {
			switch v := f.At(i).(type) {
			case string:
				r.keys[f.Name] = v
			case *float64:
				r.values[f.Name] = v
			}
		}
		s.rows = append(s.rows, r)
	}
	return s
}

// readWide turns labeled columns, with or without a time, into a row per time and group.
func readWide(frame *data.Frame) *sheet {
	s := &sheet{}
	columns := map[string]bool{}
	rows := map[string]row{}
	var times *data.Field
	for _, f := range frame.Fields {
		if f.Type() == data.FieldTypeTime {
			times = f
			columns["time"] = true
			continue
		}
		metric := f.Labels["metric"]
		columns[metric] = true
		for i := range f.Len() {
			r := row{keys: map[string]string{}, values: map[string]*float64{}}
			if times != nil {
				at, _ := times.At(i).(time.Time)
				r.keys["time"] = at.Sub(time.Unix(0, 0)).String()
			}
			for name, v := range f.Labels {
				if name != "metric" {
					r.keys[name] = v
					columns[name] = true
				}
			}
			if known, ok := rows[r.name()]; ok {
				r = known
			}
			rows[r.name()] = r
			r.values[metric], _ = f.At(i).(*float64)
		}
	}
	s.columns = slices.Sorted(maps.Keys(columns))
	for _, r := range rows {
		if times == nil || !r.blank() {
			s.rows = append(s.rows, r)
		}
	}
	return s
}
