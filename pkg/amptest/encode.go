package amptest

import (
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/stats"
)

// The answers of queries are the one thing here that gets large: they are
// written straight into one buffer, in Prometheus' JSON.

func appendEnvelope(b []byte, a answer) []byte {
	b = append(b, `{"status":"success","data":`...)
	b = append(b, a.data...)
	b = appendStrings(b, `,"warnings":`, a.warnings)
	b = appendStrings(b, `,"infos":`, a.infos)
	return append(b, '}')
}

func appendStrings(b []byte, field string, list []string) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(b, field...)
	return append(b, mustJSON(list)...)
}

// appendResult writes a query's result; statistics may be nil.
func appendResult(b []byte, v parser.Value, statistics stats.QueryStats) []byte {
	b = append(b, `{"resultType":"`...)
	b = append(b, v.Type()...)
	b = append(b, `","result":`...)
	b = appendValue(b, v)
	if statistics != nil {
		b = append(b, `,"stats":`...)
		b = append(b, mustJSON(statistics.Builtin())...)
	}
	return append(b, '}')
}

func appendValue(b []byte, v parser.Value) []byte {
	switch v := v.(type) {
	case promql.Vector:
		return appendList(b, v, func(b []byte, s promql.Sample) []byte {
			b = append(b, `{"metric":`...)
			b = appendLabels(b, s.Metric)
			b = append(b, `,"value":`...)
			b = appendPoint(b, s.T, s.F)
			return append(b, '}')
		})
	case promql.Matrix:
		return appendList(b, v, func(b []byte, s promql.Series) []byte {
			b = append(b, `{"metric":`...)
			b = appendLabels(b, s.Metric)
			b = append(b, `,"values":`...)
			b = appendList(b, s.Floats, func(b []byte, p promql.FPoint) []byte { return appendPoint(b, p.T, p.F) })
			return append(b, '}')
		})
	case promql.Scalar:
		return appendPoint(b, v.T, v.V)
	case promql.String:
		b = append(appendTime(append(b, '['), v.T), ',')
		return append(append(b, mustJSON(v.V)...), ']')
	}
	return append(b, "null"...)
}

func appendList[T any](b []byte, list []T, appendItem func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, item := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendItem(b, item)
	}
	return append(b, ']')
}

func appendLabels(b []byte, series labels.Labels) []byte {
	b = append(b, '{')
	first := true
	series.Range(func(l labels.Label) {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, mustJSON(l.Name)...)
		b = append(b, ':')
		b = append(b, mustJSON(l.Value)...)
	})
	return append(b, '}')
}

// appendPoint writes [seconds, "value"].
func appendPoint(b []byte, t int64, value float64) []byte {
	b = append(appendTime(append(b, '['), t), `,"`...)
	b = strconv.AppendFloat(b, value, 'f', -1, 64)
	return append(b, `"]`...)
}

// appendTime writes milliseconds as seconds with the decimals they need.
func appendTime(b []byte, t int64) []byte {
	return strconv.AppendFloat(b, float64(t)/1000, 'f', -1, 64)
}
