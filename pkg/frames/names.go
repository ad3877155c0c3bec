package frames

import (
	"regexp"
	"strings"

	"github.com/grafana/grafana-plugin-sdk-go/data"

	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

var legendKey = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// displayName fills the legend with a field's labels. Without a legend it is the group, and the metric where there is
// more than one or no group.
func displayName(q query.Query, labels data.Labels) string {
	if q.Legend != "" {
		return legendKey.ReplaceAllStringFunc(q.Legend, func(key string) string {
			return labels[legendKey.FindStringSubmatch(key)[1]]
		})
	}
	var parts []string
	for _, d := range q.GroupBy {
		parts = append(parts, labels[string(d)])
	}
	name := strings.Join(parts, " / ")
	if name == "" {
		return labels["metric"]
	}
	if len(q.Metrics) == 1 {
		return name
	}
	return name + " " + labels["metric"]
}
