package amptest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Load stores the series of a script in the notation of Prometheus' own rule
// tests:
//
//	load 1m
//	  up{job="a"} 1x60
//	  requests_total{job="a"} 0+10x30 _ _ 5 stale
//
// The samples of a block stand one interval apart, the first at Unix time 0. A
// script may have several blocks, blank lines and lines that start with #. A
// series may come again in a later block, for later times. An error names the
// line, and nothing of the script is stored then.
func (s *Server) Load(script string) error {
	reader := scriptReader{parser: s.parser, ends: make(map[labels.Labels]time.Time)}
	number := 0
	for line := range strings.Lines(script) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := reader.add(line); err != nil {
			return fmt.Errorf("line %d, %q: %w", number, line, err)
		}
	}
	return s.Append(reader.samples)
}

// scriptReader collects the samples of a script, line by line.
type scriptReader struct {
	parser   parser.Parser
	interval time.Duration // of the block being read; 0 before the first
	samples  []Sample
	ends     map[labels.Labels]time.Time // a series' latest sample
}

func (r *scriptReader) add(line string) error {
	if keyword, argument, _ := strings.Cut(line, " "); keyword == "load" {
		return r.startBlock(argument)
	}
	if r.interval == 0 {
		return errors.New(`a series must follow a line "load <interval>"`)
	}
	return r.addSeries(line)
}

func (r *scriptReader) startBlock(interval string) error {
	d, err := model.ParseDuration(strings.TrimSpace(interval))
	if err != nil {
		return err
	}
	if d == 0 {
		return errors.New("the interval must be above 0")
	}
	r.interval = time.Duration(d)
	return nil
}

func (r *scriptReader) addSeries(line string) error {
	series, values, err := r.parser.ParseSeriesDesc(line)
	if err != nil {
		return err
	}
	if series.Get(model.MetricNameLabel) == "" {
		return errors.New("the series has no name")
	}
	if len(values) == 0 {
		return errors.New("the series has no values")
	}
	for i, v := range values {
		if v.Omitted {
			continue
		}
		if v.Histogram != nil {
			return errors.New("native histograms are not supported")
		}
		at := time.Unix(0, 0).Add(time.Duration(i) * r.interval)
		if end, seen := r.ends[series]; seen && !at.After(end) {
			return fmt.Errorf("the series already has a sample at %s", end.Sub(time.Unix(0, 0)))
		}
		r.ends[series] = at
		r.samples = append(r.samples, Sample{Labels: series, Time: at, Value: v.Value})
	}
	return nil
}
