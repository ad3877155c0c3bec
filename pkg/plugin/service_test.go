package plugin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amptest"
	"github.com/gpucost/gpucost-amp-datasource/pkg/host"
	"github.com/gpucost/gpucost-amp-datasource/pkg/plugin"
)

// published is a workspace with two hours of the proof of concept's cluster, until now.
func published(t *testing.T, settings string) workspace {
	t.Helper()
	s := scenario{settings: map[string]any{}}
	if err := json.Unmarshal([]byte(settings), &s.settings); err != nil {
		t.Fatal(err)
	}
	w := newWorkspace(t, s)
	now := time.Now()
	if err := w.server.Backfill(t.Context(), amptest.PublishedCluster(), now.Add(-2*time.Hour), now, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w workspace) with(change func(*backend.DataSourceInstanceSettings)) workspace {
	settings := *w.context.DataSourceInstanceSettings
	change(&settings)
	settings.ID = dataSources.Add(1)
	w.context = host.Context(plugin.ID, settings)
	return w
}

func (w workspace) call(t *testing.T, method, path, body string, answer any) int {
	t.Helper()
	r, err := built.Call(t.Context(), &backend.CallResourceRequest{
		PluginContext: w.context, Method: method, Path: strings.SplitN(path, "?", 2)[0], URL: path, Body: []byte(body),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(r.Body, answer); err != nil {
		t.Fatalf("%s: %v in %s", path, err, r.Body)
	}
	return r.Status
}

const priced = `{"price": {"usdPerGpuHour": 12}, "shares": {"slicesPerGpu": 7}}`

func TestHealthTellsEachStep(t *testing.T) {
	healthy := published(t, priced)
	for _, c := range []struct {
		name    string
		w       workspace
		status  backend.HealthStatus
		message string
		steps   string
	}{
		{"all is well", healthy, backend.HealthStatusOk, "3 business units", "settings ok, credentials ok, query ok, GPU requests ok, utilization ok, price ok"},
		{"no price is a warning", published(t, `{}`), backend.HealthStatusOk, "usdPerGpuHour", "settings ok, credentials ok, query ok, GPU requests ok, utilization ok, price warning"},
		{"an empty workspace is a warning that names the metrics", newWorkspace(t, scenario{}), backend.HealthStatusOk,
			"kube_pod_container_resource_requests", "settings ok, credentials ok, query ok, GPU requests warning, utilization warning, price warning"},
		{"a wrong secret key", healthy.with(func(s *backend.DataSourceInstanceSettings) {
			s.DecryptedSecureJSONData = map[string]string{"sigV4AccessKey": testKeys.AccessKeyID, "sigV4SecretKey": "CANARY"}
		}), backend.HealthStatusError, "sigV4SecretKey", "settings ok, credentials ok, query error, GPU requests skipped, utilization skipped, price skipped"},
		{"a wrong region", healthy.with(func(s *backend.DataSourceInstanceSettings) {
			s.JSONData = []byte(`{"sigV4Auth": true, "sigV4AuthType": "keys", "sigV4Region": "eu-west-1"}`)
		}), backend.HealthStatusError, "sigV4Region", "settings ok, credentials ok, query error, GPU requests skipped, utilization skipped, price skipped"},
		{"a server that isn't there", healthy.with(func(s *backend.DataSourceInstanceSettings) { s.URL = "http://127.0.0.1:1/workspaces/ws-x" }),
			backend.HealthStatusError, "can't be reached", "settings ok, credentials ok, query error, GPU requests skipped, utilization skipped, price skipped"},
		{"an authentication that Grafana forbids", healthy.with(func(s *backend.DataSourceInstanceSettings) {
			s.JSONData = []byte(`{"sigV4Auth": true, "sigV4AuthType": "ec2_iam_role", "sigV4Region": "us-east-1"}`)
		}), backend.HealthStatusError, "GF_AWS_ALLOWED_AUTH_PROVIDERS", "settings ok, credentials error, query skipped, GPU requests skipped, utilization skipped, price skipped"},
		{"wrong settings", healthy.with(func(s *backend.DataSourceInstanceSettings) { s.URL = "" }), backend.HealthStatusError, "url: is empty",
			"settings error, credentials skipped, query skipped, GPU requests skipped, utilization skipped, price skipped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := built.Health(t.Context(), c.w.context)
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != c.status || !strings.Contains(r.Message, c.message) {
				t.Errorf("got %s: %s", r.Status, r.Message)
			}
			var details struct {
				Steps []struct{ Name, Status string }
			}
			if err := json.Unmarshal(r.JSONDetails, &details); err != nil {
				t.Fatal(err)
			}
			var steps []string
			for _, s := range details.Steps {
				steps = append(steps, s.Name+" "+s.Status)
			}
			if got := strings.Join(steps, ", "); got != c.steps {
				t.Errorf("steps: %s", got)
			}
			if strings.Contains(r.Message+string(r.JSONDetails), "CANARY") {
				t.Error("a secret shows")
			}
		})
	}
}

func TestResourcesFillTheDropdowns(t *testing.T) {
	w := published(t, priced)
	for path, want := range map[string]string{
		"business-units":                    "bu-a bu-b bu-c",
		"business-units?q=B-C":              "",
		"business-units?q=U-C":              "bu-c",
		"business-units?limit=2":            "bu-a bu-b more",
		"business-units?clusters=elsewhere": "",
		"business-units?clusters=poc":       "bu-a bu-b bu-c",
		"namespaces":                        "bu-a bu-b bu-c",
		"clusters":                          "poc",
		"gpu-models":                        "NVIDIA-A100-SXM4-40GB",
		"business-units?from=0&to=1000":     "",
		fmt.Sprint("namespaces?from=", time.Now().Add(-time.Hour).UnixMilli()): "bu-a bu-b bu-c",
	} {
		t.Run(path, func(t *testing.T) {
			var answer struct {
				Items []struct{ Value, Label string }
				More  bool
			}
			if status := w.call(t, http.MethodGet, path, "", &answer); status != http.StatusOK {
				t.Fatalf("status %d", status)
			}
			var names []string
			for _, i := range answer.Items {
				names = append(names, i.Value)
			}
			if answer.More {
				names = append(names, "more")
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	t.Run("a wrong parameter is named", func(t *testing.T) {
		var answer struct{ Message string }
		if status := w.call(t, http.MethodGet, "namespaces?limit=many", "", &answer); status != http.StatusBadRequest || !strings.Contains(answer.Message, "limit") {
			t.Errorf("%d %s", status, answer.Message)
		}
	})
	t.Run("utilization metrics come with unit and devices", func(t *testing.T) {
		var answer struct {
			Items []struct {
				Name, Unit string
				Devices    int
			}
		}
		w.call(t, http.MethodGet, "utilization-metrics", "", &answer)
		if len(answer.Items) == 0 || answer.Items[len(answer.Items)-1].Name != "DCGM_FI_PROF_GR_ENGINE_ACTIVE" ||
			answer.Items[len(answer.Items)-1].Unit != "ratio" || answer.Items[len(answer.Items)-1].Devices != 56 {
			t.Errorf("got %+v", answer.Items)
		}
	})
}

func TestExplainTellsHowAFigureComesAbout(t *testing.T) {
	w := published(t, priced)
	var answer struct {
		Requests []struct{ Title, PromQL string }
		Prices   struct {
			Source        string
			USDPerGPUHour float64
		}
		Attribution      struct{ Measured float64 }
		SamplesProcessed int64
	}
	if status := w.call(t, http.MethodPost, "explain", `{"format": "table"}`, &answer); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	if len(answer.Requests) == 0 || !strings.Contains(answer.Requests[0].PromQL, "kube_pod_container_resource_requests") {
		t.Errorf("requests: %+v", answer.Requests)
	}
	if answer.Prices.Source != "flat" || answer.Prices.USDPerGPUHour != 12 || answer.Attribution.Measured != 1 || answer.SamplesProcessed <= 0 {
		t.Errorf("got %+v", answer)
	}
	var refused struct{ Message string }
	if status := w.call(t, http.MethodPost, "explain", `{"metrics": ["nonsense"]}`, &refused); status != http.StatusBadRequest || !strings.Contains(refused.Message, "metrics") {
		t.Errorf("%d %s", status, refused.Message)
	}
}

func TestTimeThatHasNotPassedCostsNothing(t *testing.T) {
	w := published(t, priced)
	for _, format := range []string{"table", "timeseries"} {
		r := w.ask(t, json.RawMessage(`{"format": "`+format+`", "groupBy": []}`), time.Now().Add(-time.Hour), time.Now().Add(time.Hour), time.Minute, nil)
		if r.Error != nil {
			t.Fatalf("%s: %v", format, r.Error)
		}
		rows := readFrame(t, r.Frames[0]).rows
		if len(rows) == 0 {
			t.Fatalf("%s: no rows", format)
		}
		// All seven slices cost 12 USD per hour and GPU; the hour to come must not halve that.
		if got := rows[len(rows)/2].values["allocated"]; got == nil || *got < 11.7 || *got > 12.3 {
			t.Errorf("%s: allocated %s", format, show(got))
		}
	}
	r := w.ask(t, json.RawMessage(`{"format": "table"}`), time.Now().Add(time.Hour), time.Now().Add(2*time.Hour), time.Minute, nil)
	if r.Error != nil || r.Frames[0].Rows() != 0 {
		t.Errorf("a range to come: %v", r.Error)
	}
}

func TestAMPLearnsWhoAsks(t *testing.T) {
	w := published(t, priced)
	w.ask(t, json.RawMessage(`{}`), time.Now().Add(-time.Hour), time.Now(), time.Minute, map[string]string{
		"http_X-Dashboard-Uid": "dash", "http_X-Panel-Id": "4",
	})
	for _, r := range w.server.Requests() {
		if strings.HasSuffix(r.Path, "/query_range") && (r.Header.Get("X-Dashboard-Uid") != "dash" || r.Header.Get("X-Panel-Id") != "4") {
			t.Errorf("%s: %v", r.Path, r.Header)
		}
		if !strings.HasPrefix(r.Header.Get("User-Agent"), plugin.ID) {
			t.Errorf("User-Agent %q", r.Header.Get("User-Agent"))
		}
	}
}

// TestThePluginIsThatOfItsMetaData keeps plugin.json's id and the code's the same.
func TestThePluginIsThatOfItsMetaData(t *testing.T) {
	raw, err := os.ReadFile("../../plugin.json")
	if err != nil {
		t.Fatal(err)
	}
	var meta struct{ ID, Executable string }
	if err := json.Unmarshal(raw, &meta); err != nil || meta.ID != plugin.ID || meta.Executable != "gpx_gpucost" {
		t.Errorf("%v %+v", err, meta)
	}
}
