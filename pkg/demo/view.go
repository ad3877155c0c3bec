package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/data"

	"github.com/gpucost/gpucost-amp-datasource/pkg/host"
)

const pluginID = "gpucost-amp-datasource"

// lookback is the range of the tables: the hour until now.
const lookback = time.Hour

// view is a data source with a question to it.
type view struct {
	title      string
	dataSource backend.DataSourceInstanceSettings
	clusters   []string
}

// settings are the jsonData of a data source.
type settings map[string]any

func (s settings) with(key string, value any) settings {
	s[key] = value
	return s
}

func (o options) settings() settings {
	s := settings{"price": map[string]any{"usdPerGpuHour": o.price}}
	if o.slices > 0 {
		s["shares"] = map[string]any{"slicesPerGpu": o.slices}
	}
	return s
}

func newView(title, url string, s settings, secrets map[string]string, clusters ...string) view {
	jsonData, err := json.Marshal(s)
	if err != nil {
		panic(err) // maps of texts and numbers always marshal
	}
	return view{title, backend.DataSourceInstanceSettings{
		UID: title, Name: title, URL: url, JSONData: jsonData, DecryptedSecureJSONData: secrets, Updated: time.Now(),
	}, clusters}
}

// realView asks a real workspace with the usual AWS credentials, or a Prometheus without.
func realView(o options) view {
	s := o.settings()
	if o.region != "" || strings.Contains(o.url, "aps-workspaces") {
		s.with("sigV4Auth", true).with("sigV4AuthType", "default")
		if o.region != "" {
			s.with("sigV4Region", o.region)
		}
	}
	return newView("GPU cost by business unit (namespace), last hour", o.url, s, nil)
}

// embeddedViews show the published proof of concept as it read its metric, as it should have, and a richer cluster.
func embeddedViews(o options, url string) []view {
	signed := func() settings {
		return o.settings().with("sigV4Auth", true).with("sigV4AuthType", "keys").with("sigV4Region", "us-east-1")
	}
	secrets := map[string]string{"sigV4AccessKey": keys.AccessKeyID, "sigV4SecretKey": keys.SecretAccessKey}
	published := signed().with("utilization", map[string]any{"attribution": "cluster", "unit": "percent"})
	return []view{
		newView("Cluster poc as published: one average for everyone, a ratio read as percent", url, published, secrets, "poc"),
		newView("Cluster poc as it is: each pod's own devices", url, signed(), secrets, "poc"),
		newView("Cluster prod: six teams, whole GPUs of four kinds at one price", url, signed(), secrets, "prod"),
	}
}

// print asks the plugin for the table and prints it with the remarks that go with it.
func (v view) print(ctx context.Context, plugin *host.Plugin) error {
	query, err := json.Marshal(map[string]any{
		"metrics": []string{"units", "requested", "utilization", "allocated", "effective", "waste"},
		"format":  "table", "period": "hour", "clusters": v.clusters,
	})
	if err != nil {
		return err
	}
	now := time.Now()
	answer, err := plugin.Query(ctx, &backend.QueryDataRequest{
		PluginContext: host.Context(pluginID, v.dataSource),
		Queries:       []backend.DataQuery{{RefID: "A", JSON: query, TimeRange: backend.TimeRange{From: now.Add(-lookback), To: now}}},
	})
	if err != nil {
		return err
	}
	r := answer.Responses["A"]
	if r.Error != nil {
		return r.Error
	}
	fmt.Printf("\n%s (USD per hour, %s until %s)\n", v.title, lookback, now.Format(time.TimeOnly))
	for _, frame := range r.Frames {
		if err := printFrame(frame); err != nil {
			return err
		}
	}
	return nil
}

func printFrame(frame *data.Frame) error {
	var lines strings.Builder
	for _, f := range frame.Fields {
		lines.WriteString(f.Name + "\t")
	}
	lines.WriteString("\n")
	for row := range frame.Rows() {
		for _, f := range frame.Fields {
			lines.WriteString(show(f.At(row)) + "\t")
		}
		lines.WriteString("\n")
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	if _, err := w.Write([]byte(lines.String())); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if frame.Rows() == 0 {
		fmt.Println("No pod held a GPU.")
	}
	for _, n := range frame.Meta.Notices {
		fmt.Println("- " + n.Text)
	}
	return nil
}

func show(cell any) string {
	switch v := cell.(type) {
	case *float64:
		if v == nil {
			return "unknown"
		}
		return strconv.FormatFloat(*v, 'g', 7, 64)
	default:
		return fmt.Sprint(v)
	}
}
