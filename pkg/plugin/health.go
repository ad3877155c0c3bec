package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amp"
	"github.com/gpucost/gpucost-amp-datasource/pkg/plan"
)

// healthRange is how far back "Save & test" looks for series.
const healthRange = time.Hour

// healthStep is a step of "Save & test". A warning lets cost be shown, if not all of it.
type healthStep struct {
	Name    string `json:"name"`
	Status  string `json:"status"` // "ok", "warning", "error" or "skipped"
	Message string `json:"message"`
}

// The steps, in their order.
const (
	stepSettings    = "settings"
	stepCredentials = "credentials"
	stepAMP         = "query"
	stepRequests    = "GPU requests"
	stepUtilization = "utilization"
	stepPrice       = "price"
)

var healthSteps = []string{stepSettings, stepCredentials, stepAMP, stepRequests, stepUtilization, stepPrice}

// checkup collects steps. The first error ends it.
type checkup struct{ steps []healthStep }

func (c *checkup) add(name, status, format string, args ...any) {
	c.steps = append(c.steps, healthStep{name, status, fmt.Sprintf(format, args...)})
}

// CheckHealth runs "Save & test": settings, credentials, a signed query, GPU requests, utilization, price. The message is
// the first failing step's; all steps are in the details.
func (d *DataSource) CheckHealth(ctx context.Context, _ *backend.CheckHealthRequest) (*backend.CheckHealthResult, error) {
	var c checkup
	d.checkup(ctx, &c)
	return c.result()
}

func (d *DataSource) checkup(ctx context.Context, c *checkup) {
	if d.broken != nil {
		c.add(stepSettings, "error", "%s", d.broken)
		return
	}
	if len(d.settings.Warnings) > 0 {
		c.add(stepSettings, "warning", "%s", strings.Join(d.settings.Warnings, ". "))
	} else {
		c.add(stepSettings, "ok", "The settings are complete.")
	}
	if !d.checkConnection(ctx, c) {
		return
	}
	now := d.now()
	found, err := plan.Probe(ctx, d.client, d.options, now.Add(-healthRange), now)
	if err != nil {
		c.add(stepRequests, "error", "%s", err)
		return
	}
	d.checkRequests(c, found)
	d.checkUtilization(ctx, c, found, now)
	d.checkPrice(c)
}

// checkConnection asks the smallest question, and tells credentials that can't be had from a query that is refused.
func (d *DataSource) checkConnection(ctx context.Context, c *checkup) bool {
	_, err := d.client.Query(ctx, "vector(1)", d.now())
	var fault *amp.Error
	switch {
	case err == nil && d.settings.SigV4.Enabled:
		c.add(stepCredentials, "ok", "Credentials of type %q are there.", d.settings.SigV4.AuthType)
		c.add(stepAMP, "ok", "AMP answers a query signed for %s.", d.settings.SigV4.Region)
		return true
	case err == nil:
		c.add(stepCredentials, "ok", "SigV4 is off: nothing is signed.")
		c.add(stepAMP, "ok", "The server answers a query.")
		return true
	case errors.As(err, &fault) && fault.Kind.OfCredentials():
		c.add(stepCredentials, "error", "%s", err)
	default:
		c.add(stepCredentials, "ok", "Credentials were found or are not needed.")
		c.add(stepAMP, "error", "%s", err)
	}
	return false
}

func (d *DataSource) checkRequests(c *checkup, found plan.Found) {
	units := d.options.BusinessUnitsOf(found.Namespaces)
	switch {
	case !found.Requests:
		c.add(stepRequests, "warning", "kube_pod_container_resource_requests shows no GPU requests in the last hour: no cost can be shown. "+
			"If pods do hold GPUs, check that kube-state-metrics is scraped into this workspace.")
	case !found.Phases:
		c.add(stepRequests, "warning", "kube_pod_status_phase is missing: it can't be told which pods run, so nothing counts as held. "+
			"Let kube-state-metrics collect it.")
	case !found.Capacity:
		c.add(stepRequests, "warning", "%s asking for GPUs found, but no kube_node_status_capacity for GPUs: idle capacity stays unknown.", count(len(units), "business unit"))
	default:
		c.add(stepRequests, "ok", "%s asking for GPUs found in %s.", count(len(units), "business unit"), count(len(found.Clusters), "cluster"))
	}
}

func (d *DataSource) checkUtilization(ctx context.Context, c *checkup, found plan.Found, now time.Time) {
	if len(found.Utilization) == 0 {
		c.add(stepUtilization, "warning", "No utilization metric was found in the last hour (%s): allocated cost is shown, but not what is used of it. "+
			"Check that dcgm-exporter is scraped into this workspace.", strings.Join(d.options.WantedMetrics(), ", "))
		return
	}
	labeled, devices, err := plan.Labeled(ctx, d.client, d.options, found, now)
	switch {
	case err != nil:
		c.add(stepUtilization, "error", "%s", err)
	case labeled == 0:
		c.add(stepUtilization, "warning", "%s found for %s, but none carries the label of a pod that holds it: use is estimated from averages. "+
			"Let dcgm-exporter map devices to pods (DCGM_EXPORTER_KUBERNETES=true).", found.Utilization[0], count(devices, "device"))
	default:
		c.add(stepUtilization, "ok", "%s found for %s, %d of them under the pods that hold them.", found.Utilization[0], count(devices, "device"), labeled)
	}
}

func (d *DataSource) checkPrice(c *checkup) {
	if d.settings.Price.USDPerGPUHour == nil {
		c.add(stepPrice, "warning", "No price is set: GPUs are shown, dollars are not. Set price.usdPerGpuHour.")
		return
	}
	c.add(stepPrice, "ok", "Every GPU costs %g USD per hour.", *d.settings.Price.USDPerGPUHour)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// result sums the steps up. Steps that an error kept from running are skipped, by name.
func (c *checkup) result() (*backend.CheckHealthResult, error) {
	r := &backend.CheckHealthResult{Status: backend.HealthStatusOk}
	var warnings []string
	for _, s := range c.steps {
		switch s.Status {
		case "error":
			r.Status, r.Message = backend.HealthStatusError, s.Message
		case "warning":
			warnings = append(warnings, s.Message)
		}
	}
	for _, name := range healthSteps[len(c.steps):] {
		c.steps = append(c.steps, healthStep{name, "skipped", "Not tried, since a step before it failed."})
	}
	if r.Status == backend.HealthStatusOk {
		r.Message = "GPU cost is ready. " + c.steps[3].Message
		if len(warnings) > 0 {
			r.Message = "Works, but: " + strings.Join(warnings, " ")
		}
	}
	details, err := json.Marshal(map[string]any{"steps": c.steps})
	r.JSONDetails = details
	return r, err
}
