package amptest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	promstorage "github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// Sample is one value of one series. Time counts in milliseconds, as in Prometheus.
type Sample struct {
	Labels labels.Labels
	Time   time.Time
	Value  float64
}

// storage is Prometheus' own database in a temporary directory.
type storage struct {
	*tsdb.DB
	dir string

	mu   sync.Mutex // one writer at a time
	refs map[labels.Labels]promstorage.SeriesRef
}

// century, in milliseconds: long enough that no block is ever cut, and short
// enough that no arithmetic on it overflows.
const century = 100 * 365 * int64(day/time.Millisecond)

func openStorage() (*storage, error) {
	dir, err := os.MkdirTemp("", "amptest-")
	if err != nil {
		return nil, err
	}
	opts := tsdb.DefaultOptions()
	opts.WALSegmentSize = -1 // nothing outlives the process
	opts.RetentionDuration = 0
	// Everything stays in the head: no compaction gets in a query's way, and
	// samples may come in any order.
	opts.MinBlockDuration, opts.MaxBlockDuration = century, century
	opts.OutOfOrderTimeWindow = century
	db, err := tsdb.Open(dir, nil, nil, opts, nil)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &storage{DB: db, dir: dir, refs: make(map[labels.Labels]promstorage.SeriesRef)}, nil
}

// Close closes the database and deletes its directory.
func (s *storage) Close() error {
	return errors.Join(s.DB.Close(), os.RemoveAll(s.dir))
}

// Append stores samples, whose times may be in any order: all of them, or none
// and an error that names the series. The first value of a series at a time
// stands; a second one is refused or dropped, as Prometheus does.
func (s *Server) Append(samples []Sample) error {
	return s.storage.append(samples)
}

func (s *storage) append(samples []Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	appender := s.Appender(context.Background())
	for _, sample := range samples {
		ref, err := appender.Append(s.refs[sample.Labels], sample.Labels, sample.Time.UnixMilli(), sample.Value)
		if err != nil {
			return errors.Join(fmt.Errorf("append %s at %s: %w", sample.Labels, sample.Time.UTC(), err), appender.Rollback())
		}
		s.refs[sample.Labels] = ref
	}
	return appender.Commit()
}

// staleMarker ends a series, as Prometheus does when a scrape no longer has it.
func staleMarker(series labels.Labels, at time.Time) Sample {
	return Sample{Labels: series, Time: at, Value: math.Float64frombits(value.StaleNaN)}
}
