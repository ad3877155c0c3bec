// Package plugin is Grafana's side of the door: it takes queries, resource calls and health checks, and is the one
// package that knows all the others.
package plugin

import (
	"context"
	"net/http"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/instancemgmt"
	"github.com/grafana/grafana-plugin-sdk-go/backend/resource/httpadapter"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amp"
	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
	"github.com/gpucost/gpucost-amp-datasource/pkg/plan"
	"github.com/gpucost/gpucost-amp-datasource/pkg/price"
)

// ID is the plugin's id in Grafana.
const ID = "gpucost-amp-datasource"

// DataSource is one configured data source.
type DataSource struct {
	backend.CallResourceHandler

	settings Settings
	// broken says why the settings can't be used. The instance exists all the same, so that panels and health say it.
	broken error

	http    *http.Client
	client  *amp.Client
	options plan.Options
	prices  cost.PriceBook
	found   probes
	now     func() time.Time
}

// NewInstance makes a data source of its settings. It never fails: wrong settings are told by whatever is asked of it.
func NewInstance(ctx context.Context, s backend.DataSourceInstanceSettings) (instancemgmt.Instance, error) {
	return newDataSource(ctx, s), nil
}

func newDataSource(ctx context.Context, s backend.DataSourceInstanceSettings) *DataSource {
	d := &DataSource{now: time.Now}
	d.CallResourceHandler = httpadapter.New(d.routes())
	if d.settings, d.broken = ParseSettings(s); d.broken != nil {
		return d
	}
	if d.http, d.broken = NewHTTPClient(ctx, s, d.settings); d.broken != nil {
		return d
	}
	d.client = amp.New(d.http, d.settings.URL, amp.Options{
		Method:           d.settings.Method,
		UserAgent:        userAgent(),
		Timeout:          d.settings.QueryTimeout,
		MaxResponseBytes: int64(d.settings.Limits.ResponseMB) << 20,
		MaxSeries:        d.settings.Limits.Series,
		SamplesWarning:   d.settings.Limits.SamplesWarning,
		SamplesError:     d.settings.Limits.SamplesError,
	})
	d.options = d.settings.planOptions()
	d.prices = price.Flat{USDPerGPUHour: d.settings.Price.USDPerGPUHour}
	return d
}

// Dispose closes what the instance holds, when its settings have changed.
func (d *DataSource) Dispose() {
	if d.http != nil {
		d.http.CloseIdleConnections()
	}
}

func (s Settings) planOptions() plan.Options {
	o := plan.Options{
		ClusterLabel:   s.ClusterLabel,
		ScrapeInterval: s.TimeInterval,
		Sharing:        cost.Sharing{SlicesPerGPU: s.Shares.SlicesPerGPU},
		Metric:         s.Utilization.Metric,
		Unit:           plan.UtilizationUnit(s.Utilization.Unit),
		Attribution:    plan.Attribution(s.Utilization.Attribution),
	}
	if s.BusinessUnit.Source == "rules" {
		for _, r := range s.BusinessUnit.Rules {
			o.BusinessUnits.Rules = append(o.BusinessUnits.Rules, cost.Rule{BusinessUnit: r.BusinessUnit, Namespaces: r.Namespaces})
		}
	}
	return o
}
