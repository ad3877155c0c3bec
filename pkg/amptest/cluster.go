package amptest

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// Cluster is a synthetic Kubernetes cluster with GPUs. It is a pure function of
// time: the same instant always gives the same samples.
type Cluster interface {
	// Name is the value of the label "cluster".
	Name() string
	ScrapeInterval() time.Duration
	// Scrape returns what one scrape of kube-state-metrics and dcgm-exporter
	// finds at a multiple of the interval. The labels are sorted, the samples aren't.
	Scrape(at time.Time) []Sample
	// Truth tells what each namespace held and used over the scrapes with
	// from < t <= to, counted without any PromQL, sorted by namespace. A
	// namespace that held nothing has no row.
	Truth(from, to time.Time) []Truth
}

// Truth is what one namespace, the business unit, held and used. A scrape stands
// for the interval before it; a pod holds its devices from being placed on a
// node until it ends.
type Truth struct {
	Cluster, Namespace string
	UnitHours          float64 // devices or slices held x hours, as Kubernetes counts them
	GPUHours           float64 // the same in whole GPUs
	UsedGPUHours       float64 // GPU-hours x utilization, where it was measured
	UnmeasuredGPUHours float64 // GPU-hours held by pods that don't run yet
}

// Backfill stores the cluster's scrapes with from < t <= to. It reports its
// progress, from 0 to 1, to progress (which may be nil), and stops with ctx' error.
func (s *Server) Backfill(ctx context.Context, c Cluster, from, to time.Time, progress func(done float64)) error {
	return newScraper(s, c).backfill(ctx, from, to, progress)
}

// Follow backfills the cluster up to the present, then stores each scrape as its
// time comes, until ctx ends. It reports the progress of the backfill as
// Backfill does: 1 means that it is complete. The end of ctx is no error.
func (s *Server) Follow(ctx context.Context, c Cluster, from time.Time, progress func(done float64)) error {
	scrapes := newScraper(s, c)
	for {
		now := s.now()
		err := scrapes.backfill(ctx, from, now, progress)
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		from, progress = now, nil
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(firstScrape(now, c.ScrapeInterval()).Sub(now)):
		}
	}
}

// scraper stores a cluster's scrapes, one after the other, and ends the series
// that a scrape no longer has, as Prometheus does.
type scraper struct {
	server   *Server
	cluster  Cluster
	previous []Sample
	count    int
	seen     map[labels.Labels]int // the count of the latest scrape that had the series
}

func newScraper(s *Server, c Cluster) *scraper {
	return &scraper{server: s, cluster: c, seen: make(map[labels.Labels]int)}
}

func (s *scraper) backfill(ctx context.Context, from, to time.Time, progress func(done float64)) error {
	if progress == nil {
		progress = func(float64) {}
	}
	for at := range scrapeTimes(from, to, s.cluster.ScrapeInterval()) {
		if err := ctx.Err(); err != nil {
			return err
		}
		progress(float64(at.Sub(from)) / float64(to.Sub(from)+1)) // below 1 until the last is stored
		if err := s.scrape(at); err != nil {
			return err
		}
	}
	progress(1)
	return nil
}

func (s *scraper) scrape(at time.Time) error {
	s.count++
	found := s.cluster.Scrape(at)
	for _, sample := range found {
		s.seen[sample.Labels] = s.count
	}
	stored := found
	for _, sample := range s.previous {
		if s.seen[sample.Labels] != s.count {
			delete(s.seen, sample.Labels)
			stored = append(stored, staleMarker(sample.Labels, at))
		}
	}
	s.previous = found
	return s.server.Append(stored)
}

// firstScrape is the first multiple of interval after t.
func firstScrape(t time.Time, interval time.Duration) time.Time {
	return alignDown(t, interval).Add(interval)
}

// scrapeTimes are the multiples of interval with from < t <= to.
func scrapeTimes(from, to time.Time, interval time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for at := firstScrape(from, interval); !at.After(to); at = at.Add(interval) {
			if !yield(at) {
				return
			}
		}
	}
}
