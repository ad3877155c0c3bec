package plugin

import (
	"net/http"
	"time"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
	"github.com/gpucost/gpucost-amp-datasource/pkg/frames"
	"github.com/gpucost/gpucost-amp-datasource/pkg/plan"
	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

// explanation is how a figure came about.
type explanation struct {
	Requests []explainedRequest `json:"requests"`
	Prices   struct {
		Source        string   `json:"source"`
		Split         string   `json:"split"`
		USDPerGPUHour *float64 `json:"usdPerGpuHour"` // null = not set
	} `json:"prices"`
	Attribution explainedAttribution `json:"attribution"`
	Coverage    *float64             `json:"coverage"` // 0 to 1; null = nothing was held
	// ScrapeIntervals are in seconds, by cluster.
	ScrapeIntervals  map[string]scrapeIntervals `json:"scrapeIntervals"`
	SamplesProcessed int64                      `json:"samplesProcessed"`
	Notices          []explainedNote            `json:"notices"`
}

type scrapeIntervals struct {
	KubeStateMetrics float64 `json:"kubeStateMetrics"`
	DCGM             float64 `json:"dcgm"`
}

type explainedRequest struct {
	Title  string    `json:"title"`
	PromQL string    `json:"promql"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Step   float64   `json:"step"` // seconds
}

// explainedAttribution tells where the knowledge of use comes from, in parts of the allocated cost, 0 to 1.
type explainedAttribution struct {
	Mode         string   `json:"mode"`
	Metrics      []string `json:"metrics"` // utilization metrics found, the first is preferred
	Measured     float64  `json:"measured"`
	Node         float64  `json:"node"`
	BusinessUnit float64  `json:"businessUnit"`
	Cluster      float64  `json:"cluster"`
	Unmeasured   float64  `json:"unmeasured"`
}

type explainedNote struct {
	Severity string `json:"severity"`
	Text     string `json:"text"`
}

// explain answers a POSTed query, over the parameters from and to, with how its figures come about.
func (d *DataSource) explain(r *http.Request) (any, error) {
	scope, err := d.scope(r.URL.Query())
	if err != nil {
		return nil, err
	}
	stored, err := readQuery(r)
	if err != nil {
		return nil, err
	}
	q, err := query.Parse(stored, query.Window{From: scope.From, To: scope.To, Step: d.settings.TimeInterval})
	if err != nil {
		return nil, err
	}
	answer, err := d.assess(r.Context(), q)
	if err != nil {
		return nil, err
	}
	return d.explained(q, answer), nil
}

func (d *DataSource) explained(q query.Query, a assessment) explanation {
	e := explanation{Requests: []explainedRequest{}, Notices: []explainedNote{}}
	for _, sent := range a.requests {
		e.Requests = append(e.Requests, explainedRequest{sent.Title, sent.Pretty(), sent.From.UTC(), sent.To.UTC(), sent.Step.Seconds()})
	}
	e.Prices.Source, e.Prices.Split = d.prices.Source(), d.prices.Split()
	e.Prices.USDPerGPUHour = d.settings.Price.USDPerGPUHour
	total := frames.Total(a.lines)
	e.Attribution = attributionOf(total)
	e.Attribution.Mode, e.Attribution.Metrics = string(d.options.Attribution), a.found.Utilization
	if coverage, known := total.Value(cost.Coverage, cost.PerRange, 1); known {
		e.Coverage = &coverage
	}
	e.ScrapeIntervals = map[string]scrapeIntervals{}
	for cluster, s := range a.found.Scrapes {
		e.ScrapeIntervals[cluster] = scrapeIntervals{s.KSM.Interval.Seconds(), s.DCGM.Interval.Seconds()}
	}
	e.SamplesProcessed = a.samples
	for _, n := range frames.Notices(q, a.lines, a.notices) {
		e.Notices = append(e.Notices, explainedNote{severity(n), n.Text})
	}
	return e
}

func severity(n plan.Notice) string {
	if n.Warning {
		return "warning"
	}
	return "info"
}

func attributionOf(total cost.Amounts) explainedAttribution {
	part := func(usd cost.USD) float64 {
		if total.Allocated <= 0 {
			return 0
		}
		return float64(usd / total.Allocated)
	}
	unmeasured, _ := total.Value(cost.Unmeasured, cost.PerRange, 1)
	return explainedAttribution{
		Measured: part(total.ByStep[cost.OwnDevices]), Node: part(total.ByStep[cost.NodeDevices]),
		BusinessUnit: part(total.ByStep[cost.BusinessUnitDevices]), Cluster: part(total.ByStep[cost.ClusterDevices]),
		Unmeasured: part(cost.USD(unmeasured)),
	}
}
