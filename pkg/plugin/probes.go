package plugin

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/gpucost/gpucost-amp-datasource/pkg/plan"
)

const (
	probeGrid = 10 * time.Minute // ranges are widened to it, so that the panels of a dashboard share their probes
	probeLife = time.Minute      // for so long a new namespace may go unseen
	maxProbes = 64               // ranges remembered
)

// probes remembers for a short time what was found in which range.
type probes struct {
	flight singleflight.Group
	mutex  sync.Mutex
	known  map[probeKey]probed
}

type probeKey struct{ from, to int64 }

type probed struct {
	found plan.Found
	until time.Time
}

// probe tells what the workspace has in a range, a little more rather than less. Panels that ask at once share an answer.
func (d *DataSource) probe(ctx context.Context, from, to time.Time) (plan.Found, error) {
	from, to = from.Truncate(probeGrid), to.Add(probeGrid-1).Truncate(probeGrid)
	key := probeKey{from.Unix(), to.Unix()}
	if found, ok := d.found.recall(key, d.now()); ok {
		return found, nil
	}
	// One viewer who leaves must not take the answer from the others; the client's own timeout ends it.
	shared := context.WithoutCancel(ctx)
	result := d.found.flight.DoChan(from.String()+to.String(), func() (any, error) {
		found, err := plan.Probe(shared, d.client, d.options, from, to)
		if err == nil {
			d.found.remember(key, found, d.now())
		}
		return found, err
	})
	select {
	case <-ctx.Done():
		return plan.Found{}, ctx.Err()
	case r := <-result:
		found, _ := r.Val.(plan.Found)
		return found, r.Err
	}
}

func (p *probes) recall(key probeKey, now time.Time) (plan.Found, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	k, ok := p.known[key]
	return k.found, ok && now.Before(k.until)
}

func (p *probes) remember(key probeKey, found plan.Found, now time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.known == nil || len(p.known) >= maxProbes {
		p.known = map[probeKey]probed{}
	}
	p.known[key] = probed{found, now.Add(probeLife)}
}
