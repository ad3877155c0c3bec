package frames

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/grafana-plugin-sdk-go/data"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
	"github.com/gpucost/gpucost-amp-datasource/pkg/plan"
	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

// Custom is the part of an answer's meta data that is ours.
type Custom struct {
	Coverage         *float64 `json:"coverage"`      // 0 to 1: observed scrapes of kube-state-metrics over expected ones
	MeasuredShare    *float64 `json:"measuredShare"` // 0 to 1: the part of allocated whose use the pods' own devices tell
	PriceSource      string   `json:"priceSource"`
	PriceSplit       string   `json:"priceSplit"`
	SamplesProcessed int64    `json:"samplesProcessed"`
}

// describe adds what the answer tells besides its figures.
func describe(frame *data.Frame, lines []cost.Line, about About) {
	total := Total(lines)
	custom := Custom{SamplesProcessed: about.SamplesProcessed}
	if about.Prices != nil {
		custom.PriceSource, custom.PriceSplit = about.Prices.Source(), about.Prices.Split()
	}
	custom.Coverage = value(total, cost.Coverage, cost.PerRange, 1)
	if total.Allocated > 0 {
		share := float64(total.ByStep[cost.OwnDevices] / total.Allocated)
		custom.MeasuredShare = &share
	}
	if frame.Meta == nil {
		frame.Meta = &data.FrameMeta{}
	}
	meta := frame.Meta
	meta.TypeVersion = data.FrameTypeVersion{0, 1}
	meta.Custom = custom
	meta.ExecutedQueryString = Executed(about.Requests)
	meta.Stats = []data.QueryStat{{
		FieldConfig: data.FieldConfig{DisplayName: "AMP samples processed", Unit: "short"},
		Value:       float64(about.SamplesProcessed),
	}}
	for _, n := range about.Notices {
		severity := data.NoticeSeverityInfo
		if n.Warning {
			severity = data.NoticeSeverityWarning
		}
		meta.Notices = append(meta.Notices, data.Notice{Severity: severity, Text: n.Text})
	}
}

// Failed is the frame of a query that has no answer: it still tells what was asked.
func Failed(about About) data.Frames {
	frame := data.NewFrame("")
	describe(frame, nil, about)
	frame.Meta.TypeVersion = data.FrameTypeVersion{}
	return data.Frames{frame}
}

// Executed is all PromQL that was sent, as one can repeat it: each expression once, under its purpose and all its times.
func Executed(requests []plan.Request) string {
	var order []string
	times := map[string][]string{}
	for _, r := range requests {
		if times[r.Expr] == nil {
			order = append(order, r.Expr)
		}
		times[r.Expr] = append(times[r.Expr], fmt.Sprintf("# %s: from %s to %s, step %s", r.Title,
			r.From.UTC().Format("2006-01-02T15:04:05Z"), r.To.UTC().Format("2006-01-02T15:04:05Z"), r.Step))
	}
	texts := make([]string, len(order))
	for i, expr := range order {
		slices.Sort(times[expr])
		texts[i] = strings.Join(times[expr], "\n") + "\n" + plan.Request{Expr: expr}.Pretty()
	}
	return strings.Join(texts, "\n\n")
}

// Total adds up all lines.
func Total(lines []cost.Line) cost.Amounts {
	var sum cost.Amounts
	for _, l := range lines {
		sum = sum.Plus(l.Total())
	}
	return sum
}

// Notices are all remarks on an answer: those of its plan, and what a reader must know of the figures: what was estimated,
// and what is missing in them.
func Notices(q query.Query, lines []cost.Line, planned []plan.Notice) []plan.Notice {
	notices := slices.Clone(planned)
	sum := Total(lines)
	if q.AsksAny(cost.Metric.InUSD) && sum.Unpriced > 0 {
		notices = append(notices, plan.Notice{Warning: true, Text: fmt.Sprintf(
			"No price is known for %s of the GPU time held: its cost is not in the figures. Set price.usdPerGpuHour in the data source.", percent(sum.Unpriced, sum.Held))})
	}
	if q.AsksAny(cost.Metric.NeedsUtilization) && sum.Allocated > 0 {
		notices = append(notices, attribution(sum)...)
	}
	return notices
}

// attribution tells where the knowledge of use comes from, unless it is all measured.
func attribution(sum cost.Amounts) []plan.Notice {
	measured := sum.ByStep[cost.OwnDevices]
	unmeasured, _ := sum.Value(cost.Unmeasured, cost.PerRange, 1)
	estimated := sum.Allocated - measured - cost.USD(unmeasured)
	var notices []plan.Notice
	if estimated > sum.Allocated*1e-9 {
		var by []string
		for _, s := range []struct {
			step cost.Step
			name string
		}{{cost.NodeDevices, "node"}, {cost.BusinessUnitDevices, "business unit"}, {cost.ClusterDevices, "cluster"}} {
			if sum.ByStep[s.step] > 0 {
				by = append(by, fmt.Sprintf("%s by the mean of the %s", percent(sum.ByStep[s.step], sum.Allocated), s.name))
			}
		}
		notices = append(notices, plan.Notice{Text: fmt.Sprintf(
			"estimated: the use of %s of the allocated cost comes from averages, not from the pods' own devices (%s); %s is measured.",
			percent(estimated, sum.Allocated), strings.Join(by, ", "), percent(measured, sum.Allocated))})
	}
	if unmeasured > 0 {
		notices = append(notices, plan.Notice{Warning: true, Text: fmt.Sprintf(
			"unmeasured: no utilization is known for %s of the allocated cost; it is neither effective nor waste.",
			percent(cost.USD(unmeasured), sum.Allocated))})
	}
	return notices
}

func percent[T ~float64](part, whole T) string {
	return fmt.Sprintf("%.1f%%", float64(part/whole)*100)
}
