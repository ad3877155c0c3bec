package amptest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	promstorage "github.com/prometheus/prometheus/storage"
)

// selection is what the parameters match[], start, end and limit ask for.
type selection struct {
	start, end int64               // milliseconds
	matchers   [][]*labels.Matcher // sets of which any may match; none: all series
	limit      int                 // 0: no limit
}

func (s *Server) selection(r *http.Request) (selection, error) {
	start, err := timeParam(r, "start", time.UnixMilli(math.MinInt64))
	if err != nil {
		return selection{}, err
	}
	end, err := timeParam(r, "end", time.UnixMilli(math.MaxInt64))
	if err != nil {
		return selection{}, err
	}
	limit, err := countParam(r, "limit")
	if err != nil {
		return selection{}, err
	}
	matchers, err := s.parser.ParseMetricSelectors(r.Form["match[]"])
	if err != nil {
		return selection{}, invalidParam("match[]", err)
	}
	return selection{start.UnixMilli(), end.UnixMilli(), matchers, int(limit)}, nil
}

// selected calls visit with the labels of each selected series, once a series.
func (s *Server) selected(ctx context.Context, sel selection, visit func(labels.Labels)) error {
	q, err := s.storage.Querier(sel.start, sel.end)
	if err != nil {
		return engineError(err)
	}
	defer func() { _ = q.Close() }()
	sets := sel.matchers
	if len(sets) == 0 {
		sets = [][]*labels.Matcher{{labels.MustNewMatcher(labels.MatchNotEqual, model.MetricNameLabel, "")}}
	}
	hints := &promstorage.SelectHints{Start: sel.start, End: sel.end, Func: "series"} // no samples are read
	seen := make(map[labels.Labels]bool)
	for _, set := range sets {
		found := q.Select(ctx, true, hints, set...)
		for found.Next() {
			if series := found.At().Labels(); !seen[series] {
				seen[series] = true
				visit(series)
			}
		}
		if err := found.Err(); err != nil {
			return engineError(err)
		}
	}
	return nil
}

// labelNames answers the names of the labels of the selected series, sorted.
func (s *Server) labelNames(r *http.Request) (answer, error) {
	return s.distinct(r, func(series labels.Labels, add func(string)) {
		series.Range(func(l labels.Label) { add(l.Name) })
	})
}

// labelValues answers one label's values among the selected series, sorted.
func (s *Server) labelValues(r *http.Request, name string) (answer, error) {
	if !model.UTF8Validation.IsValidLabelName(name) {
		return answer{}, badData(fmt.Errorf("invalid label name: %q", name))
	}
	return s.distinct(r, func(series labels.Labels, add func(string)) {
		if series.Has(name) {
			add(series.Get(name))
		}
	})
}

// distinct answers the sorted set of what collect adds for each selected series.
func (s *Server) distinct(r *http.Request, collect func(series labels.Labels, add func(string))) (answer, error) {
	sel, err := s.selection(r)
	if err != nil {
		return answer{}, err
	}
	found := make(map[string]bool)
	add := func(text string) { found[text] = true }
	if err := s.selected(r.Context(), sel, func(series labels.Labels) { collect(series, add) }); err != nil {
		return answer{}, err
	}
	list, warnings := truncate(slices.Sorted(maps.Keys(found)), sel.limit)
	return answer{
		data: appendList(nil, list, func(b []byte, text string) []byte {
			return append(b, mustJSON(text)...)
		}),
		warnings: warnings,
	}, nil
}

// series answers the label sets of the selected series.
func (s *Server) series(r *http.Request) (answer, error) {
	sel, err := s.selection(r)
	if err != nil {
		return answer{}, err
	}
	if len(sel.matchers) == 0 {
		return answer{}, badData(errors.New("no match[] parameter provided"))
	}
	var found []labels.Labels
	if err := s.selected(r.Context(), sel, func(series labels.Labels) { found = append(found, series) }); err != nil {
		return answer{}, err
	}
	found, warnings := truncate(found, sel.limit)
	return answer{data: appendList(nil, found, appendLabels), warnings: warnings}, nil
}

// metadata answers as a workspace whose collector sends no metadata.
func metadata(*http.Request) (answer, error) {
	return answer{data: []byte("{}")}, nil
}

func truncate[T any](list []T, limit int) ([]T, []string) {
	if limit == 0 || len(list) <= limit {
		return list, nil
	}
	return list[:limit], []string{"results truncated due to limit"}
}
