package amptest

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// richInterval is the scrape interval of the rich cluster.
const richInterval = 30 * time.Second

// rich is a cluster of many teams. Each of its lanes is a fixed set of devices of
// one node, used by one pod after the other: so no device is ever held twice, and
// every pod keeps its devices.
type rich struct {
	name     string
	constant []constant
	devices  []richDevice
	lanes    []*lane
}

// richDevice is a GPU with its series while no pod runs on it.
type richDevice struct {
	device
	idle gpuSeries
}

// gpuSeries are the series of one device under one holder.
type gpuSeries struct{ engine, util labels.Labels }

func (d device) gpuSeries(cluster string, holder *podIdentity) gpuSeries {
	return gpuSeries{
		engine: d.series(cluster, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", holder),
		util:   d.series(cluster, "DCGM_FI_DEV_GPU_UTIL", holder),
	}
}

// Name implements Cluster.
func (c *rich) Name() string { return c.name }

// ScrapeInterval implements Cluster.
func (c *rich) ScrapeInterval() time.Duration { return richInterval }

// Scrape implements Cluster.
func (c *rich) Scrape(at time.Time) []Sample {
	s := scrape{at: at, samples: make([]Sample, 0, 1024)}
	for _, k := range c.constant {
		s.add(k.series, k.value)
	}
	busy := make([]bool, len(c.devices))
	for _, l := range c.lanes {
		for _, p := range l.podsAt(c, at.Unix()) {
			s.addPod(p)
			if p.phaseAt(at.Unix()) != running {
				continue
			}
			for i, d := range l.devices {
				busy[d] = true
				s.addUse(p.gpus[i], p.utilization(i, at.Unix()))
			}
		}
	}
	for i, d := range c.devices {
		if !busy[i] {
			s.addUse(d.idle, 0)
		}
	}
	return s.samples
}

// scrape collects the samples of one instant.
type scrape struct {
	at      time.Time
	samples []Sample
}

func (s *scrape) add(series labels.Labels, value float64) {
	s.samples = append(s.samples, Sample{Labels: series, Time: s.at, Value: value})
}

// addPod adds what kube-state-metrics says of the pod.
func (s *scrape) addPod(p *pod) {
	t := s.at.Unix()
	placement := &p.unplaced
	if t >= p.bound {
		placement = &p.placed
	}
	s.add(placement.info, 1)
	if units := len(p.gpus); units > 0 {
		s.add(placement.request, float64(units))
	}
	for phase, series := range p.phases {
		s.add(series, oneIf(phase == p.phaseAt(t)))
	}
}

// addUse adds DCGM's two views of a device: a ratio, and whole percent.
func (s *scrape) addUse(g gpuSeries, utilization float64) {
	s.add(g.engine, utilization)
	s.add(g.util, math.Ceil(utilization*100))
}

// Truth implements Cluster.
func (c *rich) Truth(from, to time.Time) []Truth {
	totals := make(map[string]*Truth)
	for at := range scrapeTimes(from, to, richInterval) {
		for _, l := range c.lanes {
			for _, p := range l.podsAt(c, at.Unix()) {
				if len(p.gpus) > 0 && p.holds(at.Unix()) {
					total, found := totals[p.id.namespace]
					if !found {
						total = &Truth{Cluster: c.name, Namespace: p.id.namespace}
						totals[p.id.namespace] = total
					}
					total.addScrape(p, at.Unix())
				}
			}
		}
	}
	found := make([]Truth, 0, len(totals))
	for _, total := range totals {
		found = append(found, *total)
	}
	sortByNamespace(found)
	return found
}

// addScrape adds what a pod that holds devices held and used at one scrape.
func (t *Truth) addScrape(p *pod, at int64) {
	hours := richInterval.Hours()
	held := float64(len(p.gpus)) * hours
	t.UnitHours += held
	t.GPUHours += held
	if p.phaseAt(at) == pending {
		t.UnmeasuredGPUHours += held
		return
	}
	for i := range p.gpus {
		t.UsedGPUHours += p.utilization(i, at) * hours
	}
}

func sortByNamespace(list []Truth) {
	slices.SortFunc(list, func(a, b Truth) int { return cmp.Compare(a.Namespace, b.Namespace) })
}

// lane is a fixed set of devices of one node and the pods that use it in turn.
type lane struct {
	node     *node
	devices  []int // of the cluster's devices; none for pods without GPUs
	workload workload
	phase    int64  // when its turns begin, in seconds after a multiple of the period
	random   random // the lane's own source

	mu   sync.Mutex
	pods map[int64]*pod // by turn: building a pod's labels costs far more than a scrape
}

// podsAt are the pods that exist at t, the finished ones that still show included.
func (l *lane) podsAt(c *rich, t int64) []*pod {
	turn := floorDiv(t-l.phase, l.workload.period)
	var found []*pod
	// A pod may be queued before its turn, and show after it.
	for i := turn - 1; i <= turn+1; i++ {
		if p := l.pod(c, i); p != nil && t >= p.created && t < p.gone {
			found = append(found, p)
		}
	}
	return found
}

// pod is the pod of a turn, nil if the turn has none.
func (l *lane) pod(c *rich, turn int64) *pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, found := l.pods[turn]; found {
		return p
	}
	const turnsKept = 8
	if len(l.pods) >= turnsKept {
		clear(l.pods)
	}
	p := l.build(c, turn)
	l.pods[turn] = p
	return p
}

func (l *lane) build(c *rich, turn int64) *pod {
	w, r := l.workload, l.random.with(uint64(turn))
	times, exists := w.lifetime(turn*w.period+l.phase, r)
	if !exists {
		return nil
	}
	id := w.identity(turn, r)
	p := &pod{
		lifetime: times, id: id, load: w.load, random: r, phases: id.phases(c.name),
		unplaced: placement{id.info(c.name, ""), id.request(c.name, "")},
		placed:   placement{id.info(c.name, l.node.name), id.request(c.name, l.node.name)},
	}
	for _, d := range l.devices {
		p.gpus = append(p.gpus, c.devices[d].gpuSeries(c.name, &id))
	}
	return p
}

// pod is one pod with its series.
type pod struct {
	lifetime
	id               podIdentity
	load             load
	random           random
	unplaced, placed placement
	phases           [len(phases)]labels.Labels
	gpus             []gpuSeries // one a device held
}

// placement are the series of a pod that name its node.
type placement struct{ info, request labels.Labels }

// utilization of the pod's i-th device, 0 to 1, with as many digits as dcgm-exporter prints.
func (p *pod) utilization(i int, t int64) float64 {
	return math.Round(p.load.at(t, p.random.with(uint64(i)))*1e6) / 1e6
}

// lifetime of a pod in Unix seconds. It exists from created until gone, is placed
// on its node from bound, runs from started until ended.
type lifetime struct{ created, bound, started, ended, gone int64 }

// phaseAt is the pod's phase while it exists.
func (l lifetime) phaseAt(t int64) int {
	switch {
	case t < l.started:
		return pending
	case t < l.ended:
		return running
	}
	return succeeded
}

// holds tells whether the pod's devices are taken.
func (l lifetime) holds(t int64) bool { return t >= l.bound && t < l.ended }

func floorDiv(a, b int64) int64 {
	quotient := a / b
	if a%b < 0 {
		quotient--
	}
	return quotient
}
