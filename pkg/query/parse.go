package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
)

// Error says which field of a query is wrong, and what is allowed there.
type Error struct {
	Field   string
	Problem string
}

func (e *Error) Error() string { return e.Field + ": " + e.Problem }

func wrong(field, format string, args ...any) error {
	return &Error{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// stored is a query as dashboards store it. Unknown fields are ignored, so that older plugins read newer dashboards.
type stored struct {
	Metrics       *[]string `json:"metrics"`
	BusinessUnits *[]string `json:"businessUnits"`
	Namespaces    *[]string `json:"namespaces"`
	Clusters      *[]string `json:"clusters"`
	GPUModels     *[]string `json:"gpuModels"`
	GroupBy       *[]string `json:"groupBy"`
	Format        string    `json:"format"`
	Period        string    `json:"period"`
	Legend        string    `json:"legend"`
}

// Defaults of the fields that a query may leave out.
var (
	defaultMetrics = []cost.Metric{cost.Allocated, cost.Effective, cost.Waste}
	defaultGroupBy = []cost.Dimension{cost.ByBusinessUnit}
)

// unbuilt dimensions are valid names that this version can't answer.
var unbuilt = []cost.Dimension{cost.ByWorkload, cost.ByInstanceType, cost.ByGPUModel}

var built = slices.DeleteFunc(slices.Clone(cost.Dimensions), func(d cost.Dimension) bool { return slices.Contains(unbuilt, d) })

// Parse reads a stored query for a window of time. Its errors are of type *Error and name the field.
func Parse(raw json.RawMessage, w Window) (Query, error) {
	var s stored
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &s); err != nil {
			return Query{}, malformed(err)
		}
	}
	q := Query{Legend: s.Legend, Window: w}
	for _, step := range []func(*Query, stored) error{readMetrics, readGroupBy, readFilters, readFormat, readPeriod, checkCapacity} {
		if err := step(&q, s); err != nil {
			return Query{}, err
		}
	}
	return q, nil
}

func malformed(err error) error {
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) || mismatch.Field == "" {
		return wrong("query", "is not a JSON object as the query editor stores it")
	}
	want := "text"
	if mismatch.Field != "format" && mismatch.Field != "period" && mismatch.Field != "legend" {
		want = "a list of texts"
	}
	return wrong(mismatch.Field, "must be %s, not a %s", want, mismatch.Value)
}

func readMetrics(q *Query, s stored) error {
	if s.Metrics == nil {
		q.Metrics = slices.Clone(defaultMetrics)
		return nil
	}
	for _, name := range *s.Metrics {
		m := cost.Metric(name)
		if !slices.Contains(cost.Metrics, m) {
			return wrong("metrics", "%q is not a metric; choose from %s", name, list(cost.Metrics))
		}
		if !q.Asks(m) {
			q.Metrics = append(q.Metrics, m)
		}
	}
	if len(q.Metrics) == 0 {
		return wrong("metrics", "no metric selected; choose from %s", list(cost.Metrics))
	}
	return nil
}

func readGroupBy(q *Query, s stored) error {
	if s.GroupBy == nil {
		q.GroupBy = slices.Clone(defaultGroupBy)
		return nil
	}
	for _, name := range *s.GroupBy {
		d := cost.Dimension(name)
		switch {
		case slices.Contains(unbuilt, d):
			return wrong("groupBy", "%q is not available in this version; choose from %s", name, list(built))
		case !slices.Contains(built, d):
			return wrong("groupBy", "%q is not something to group by; choose from %s", name, list(built))
		case !q.Groups(d):
			q.GroupBy = append(q.GroupBy, d)
		}
	}
	return nil
}

func readFilters(q *Query, s stored) error {
	for _, f := range []struct {
		field, what string
		from        *[]string
		to          *[]string
	}{
		{"businessUnits", "business unit", s.BusinessUnits, &q.Filters.BusinessUnits},
		{"namespaces", "namespace", s.Namespaces, &q.Filters.Namespaces},
		{"clusters", "cluster", s.Clusters, &q.Filters.Clusters},
		{"gpuModels", "GPU model", s.GPUModels, &q.Filters.GPUModels},
	} {
		names, err := readNames(f.field, f.what, f.from)
		if err != nil {
			return err
		}
		*f.to = names
	}
	return nil
}

// variable finds what is left of a template variable that nobody replaced.
var variable = regexp.MustCompile(`\$\{?[A-Za-z_]\w*|\[\[\w+`)

// readNames reads a filter. Absent and empty mean all, since Grafana's All arrives as an empty list; a list that a
// template variable emptied arrives as one empty text and is refused: it must never be read as all.
func readNames(field, what string, from *[]string) ([]string, error) {
	if from == nil || len(*from) == 0 {
		return nil, nil
	}
	var names []string
	for _, name := range *from {
		if !utf8.ValidString(name) || strings.ContainsRune(name, utf8.RuneError) {
			return nil, wrong(field, "%q is not valid UTF-8", name)
		}
		if left := variable.FindString(name); left != "" {
			return nil, wrong(field, "the template variable in %q was not replaced; alert rules have no variables: choose names, or none for all", name)
		}
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return nil, wrong(field, "no %s selected; choose at least one, or All", what)
	}
	return names, nil
}

func readFormat(q *Query, s stored) error {
	q.Format = Format(s.Format)
	switch q.Format {
	case "":
		q.Format = TimeSeries
	case TimeSeries, Table:
	default:
		return wrong("format", "%q is not a format; choose from %s", s.Format, list([]Format{TimeSeries, Table}))
	}
	return nil
}

func readPeriod(q *Query, s stored) error {
	q.Period = cost.Period(s.Period)
	switch q.Period {
	case "":
		q.Period = cost.PerHour
	case cost.PerHour, cost.PerRange, cost.PerMonth:
	default:
		return wrong("period", "%q is not a period; choose from %s", s.Period,
			list([]cost.Period{cost.PerHour, cost.PerRange, cost.PerMonth}))
	}
	return nil
}

// checkCapacity refuses to share out what belongs to nobody.
func checkCapacity(q *Query, _ stored) error {
	if !q.Asks(cost.Capacity) {
		return nil
	}
	for _, d := range q.GroupBy {
		if d.OfHolder() {
			return wrong("groupBy", "the metric capacity can't be grouped by %q: GPUs belong to nodes, not to their holders; group it by cluster or node, or by nothing", d)
		}
	}
	return nil
}

func list[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return strings.Join(texts, ", ")
}
