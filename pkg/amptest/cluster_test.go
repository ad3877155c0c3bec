package amptest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// monday is a working day; the rich cluster's notebooks are open.
var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > relative*math.Abs(want) {
		t.Errorf("%s: got %.17g, want %.17g", what, got, want)
	}
}

// number is the value of a query that answers one.
func number(t *testing.T, s *Server, query string, at time.Time) float64 {
	t.Helper()
	got, _, _, err := prometheusClient(t, s.URL()).Query(context.Background(), query, at)
	if err != nil {
		t.Fatal(err)
	}
	vector, ok := got.(model.Vector)
	if !ok || len(vector) != 1 {
		t.Fatalf("%s: got %v, want one value", query, got)
	}
	return float64(vector[0].Value)
}

// filled serves a workspace that holds the cluster's scrapes of (from, to].
func filled(t testing.TB, c Cluster, from, to time.Time) *Server {
	t.Helper()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Backfill(context.Background(), c, from, to, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestThePublishedClusterGivesThePublishedNumbers(t *testing.T) {
	c := PublishedCluster()
	now := monday.Add(time.Hour)
	s := filled(t, c, monday, now)
	const average = `avg(DCGM_FI_PROF_GR_ENGINE_ACTIVE{cluster="poc"})`
	const requested = `sum by (namespace) (kube_pod_container_resource_requests{namespace="%s",resource="nvidia_com_gpu",unit="integer"} * on (namespace, pod) group_left () (kube_pod_status_phase{phase="Running"} == 1)) / 7`

	t.Run("read as the proof of concept reads them", func(t *testing.T) {
		for namespace, want := range map[string][2]float64{ // allocated and effective, USD per hour
			"bu-a": {5.142857142857143, 0.002325599081632653},
			"bu-b": {3.4285714285714284, 0.0015503993877551022},
			"bu-c": {3.4285714285714284, 0.0015503993877551022},
		} {
			gpus := fmt.Sprintf(requested, namespace)
			near(t, namespace+" allocated", number(t, s, gpus+" * 12", now), want[0], 1e-12)
			near(t, namespace+" effective", number(t, s, gpus+" * 12 * scalar("+average+") / 100", now), want[1], 1e-12)
		}
		near(t, "mean over all slices", number(t, s, average, now), 0.04521998214285714, 1e-12)
	})

	t.Run("and as they are right", func(t *testing.T) {
		truth := c.Truth(monday, now)
		expect(t, "namespaces", len(truth), 3)
		for i, want := range []Truth{
			{"poc", "bu-a", 3, 3. / 7, 1.860479265306122 / 12, 0},
			{"poc", "bu-b", 2, 2. / 7, 1.240319510204081 / 12, 0},
			{"poc", "bu-c", 2, 2. / 7, 1.240319510204081 / 12, 0},
		} {
			expect(t, "namespace", truth[i].Namespace, want.Namespace)
			near(t, "units", truth[i].UnitHours, want.UnitHours, 1e-9)
			near(t, "GPUs", truth[i].GPUHours, want.GPUHours, 1e-9)
			near(t, "used", truth[i].UsedGPUHours, want.UsedGPUHours, 1e-9)
		}
	})

	t.Run("from 56 slices of 8 GPUs, 7 of them held, on a node without labels of NVIDIA's", func(t *testing.T) {
		near(t, "capacity", number(t, s, `sum(kube_node_status_capacity{resource="nvidia_com_gpu"})`, now), 56, 0)
		near(t, "slices", number(t, s, `count(count by (UUID, GPU_I_ID) (DCGM_FI_PROF_GR_ENGINE_ACTIVE{GPU_I_PROFILE="1g.5gb"}))`, now), 56, 0)
		near(t, "GPUs", number(t, s, `count(count by (UUID) (DCGM_FI_PROF_GR_ENGINE_ACTIVE))`, now), 8, 0)
		near(t, "held", number(t, s, `count(DCGM_FI_PROF_GR_ENGINE_ACTIVE{pod!=""} > 0)`, now), 7, 0)
		near(t, "busy", number(t, s, `count(DCGM_FI_PROF_GR_ENGINE_ACTIVE != 0)`, now), 7, 0)
		for _, sample := range c.Scrape(now) {
			sample.Labels.Range(func(l labels.Label) {
				if strings.Contains(l.Name, "nvidia") {
					t.Error(sample.Labels)
				}
			})
		}
	})

	t.Run("and nothing is held in an empty range", func(t *testing.T) {
		expect(t, "rows", len(c.Truth(now, now)), 0)
	})
}

// podState is what the samples of one scrape say of one pod.
type podState struct {
	node, phase string
	gpus        float64
	devices     []string // the DCGM devices that carry its name
	used        float64
}

// readPods reads one scrape as a stranger would, from its labels alone.
func readPods(t *testing.T, samples []Sample) map[string]*podState {
	t.Helper()
	pods := make(map[string]*podState)
	for _, s := range samples {
		l := s.Labels
		if l.Get("pod") == "" {
			continue
		}
		key := l.Get("namespace") + "/" + l.Get("pod")
		if pods[key] == nil {
			pods[key] = &podState{}
		}
		p := pods[key]
		switch l.Get("__name__") {
		case "kube_pod_container_resource_requests":
			p.gpus += s.Value
			p.node = l.Get("node")
		case "kube_pod_status_phase":
			if s.Value == 1 {
				p.phase += l.Get("phase")
			}
		case "DCGM_FI_PROF_GR_ENGINE_ACTIVE":
			p.devices = append(p.devices, l.Get("UUID"))
			p.used += s.Value
		}
	}
	return pods
}

func (p podState) holds() bool {
	return p.gpus > 0 && (p.phase == "Running" || p.phase == "Pending" && p.node != "")
}

func TestTheTruthIsWhatTheScrapesSay(t *testing.T) {
	c := RichCluster(1)
	for name, to := range map[string]time.Time{"over an hour": monday.Add(11 * time.Hour), "over a day": monday.Add(34 * time.Hour)} {
		t.Run(name, func(t *testing.T) {
			from := monday.Add(10 * time.Hour)
			counted := make(map[string]*Truth)
			for at := from.Add(30 * time.Second); !at.After(to); at = at.Add(30 * time.Second) {
				for key, p := range readPods(t, c.Scrape(at)) {
					if !p.holds() {
						continue
					}
					namespace, _, _ := strings.Cut(key, "/")
					if counted[namespace] == nil {
						counted[namespace] = &Truth{}
					}
					sum := counted[namespace]
					sum.GPUHours += p.gpus / 120
					sum.UsedGPUHours += p.used / 120
					if p.phase == "Pending" {
						sum.UnmeasuredGPUHours += p.gpus / 120
					}
				}
			}
			truth := c.Truth(from, to)
			expect(t, "business units", len(truth), 6)
			expect(t, "business units counted", len(counted), 6)
			for _, got := range truth {
				want := counted[got.Namespace]
				near(t, got.Namespace+" units", got.UnitHours, want.GPUHours, 1e-9)
				near(t, got.Namespace+" GPUs", got.GPUHours, want.GPUHours, 1e-9)
				near(t, got.Namespace+" used", got.UsedGPUHours, want.UsedGPUHours, 1e-9)
				near(t, got.Namespace+" unmeasured", got.UnmeasuredGPUHours, want.UnmeasuredGPUHours, 1e-9)
			}
		})
	}
}

func TestTheRichClusterIsConsistent(t *testing.T) {
	c := RichCluster(7)
	devicesOf := make(map[string]string) // of a running pod
	var pendingOnNode, pendingUnplaced, finished, cpuOnly, mixedDevices int
	freeNode := make(map[bool]int) // scrapes by whether any node of 4 L4 was all free, at 3 o'clock
	for at := monday; at.Before(monday.Add(3 * day)); at = at.Add(90 * time.Second) {
		samples := c.Scrape(at)
		held, capacity := make(map[string]float64), make(map[string]float64)
		series := make(map[labels.Labels]bool)
		devices := make(map[string]bool)
		for _, s := range samples {
			if series[s.Labels] {
				t.Fatalf("%s twice at %s", s.Labels, at)
			}
			series[s.Labels] = true
			switch s.Labels.Get("__name__") {
			case "kube_node_status_capacity":
				capacity[s.Labels.Get("node")] = s.Value
			case "DCGM_FI_PROF_GR_ENGINE_ACTIVE":
				if uuid := s.Labels.Get("UUID"); devices[uuid] {
					t.Fatalf("device %s has two holders at %s", uuid, at)
				} else {
					devices[uuid] = true
				}
				if s.Value < 0 || s.Value > 1 {
					t.Fatalf("utilization %v", s.Value)
				}
			case "DCGM_FI_DEV_GPU_UTIL":
				if s.Value < 0 || s.Value > 100 || s.Value != math.Trunc(s.Value) {
					t.Fatalf("utilization %v percent", s.Value)
				}
			}
		}
		if len(devices) != 52 {
			t.Fatalf("%d devices at %s", len(devices), at)
		}
		for key, p := range readPods(t, samples) {
			switch {
			case p.gpus == 0:
				cpuOnly++
				if !strings.HasPrefix(key, "web/") {
					t.Fatalf("%s requests nothing", key)
				}
				continue
			case p.phase == "Pending" && p.node == "":
				pendingUnplaced++
			case p.phase == "Pending":
				pendingOnNode++
			case p.phase == "Succeeded":
				finished++
			case p.phase != "Running":
				t.Fatalf("%s is in phase %q", key, p.phase)
			}
			if p.holds() {
				held[p.node] += p.gpus
			}
			if p.phase != "Running" {
				if len(p.devices) > 0 {
					t.Fatalf("%s carries devices while %s", key, p.phase)
				}
				continue
			}
			if float64(len(p.devices)) != p.gpus {
				t.Fatalf("%s runs on %d devices, requests %v", key, len(p.devices), p.gpus)
			}
			slices.Sort(p.devices)
			now := strings.Join(p.devices, " ")
			if before, seen := devicesOf[key]; seen && before != now {
				mixedDevices++
			}
			devicesOf[key] = now
		}
		for node, gpus := range held {
			if gpus > capacity[node] {
				t.Fatalf("%v GPUs held of %v on %s at %s", gpus, capacity[node], node, at)
			}
		}
		if at.Hour() == 3 {
			free := false
			for node, gpus := range capacity {
				free = free || gpus == 4 && held[node] == 0
			}
			freeNode[free]++
		}
	}
	// A notebook's pod comes back under its name, on the lane's own device.
	expect(t, "pods whose devices changed", mixedDevices, 0)
	expect(t, "nights without a free node", freeNode[false], 0)
	for what, count := range map[string]int{
		"pods pending on a node": pendingOnNode, "pods pending without a node": pendingUnplaced,
		"finished pods": finished, "pods without GPUs": cpuOnly, "nights": freeNode[true],
	} {
		if count == 0 {
			t.Error("no", what)
		}
	}
}

func TestShortJobsRunFiveToFifteenMinutesRoundTheClock(t *testing.T) {
	c := RichCluster(3).(*rich)
	hours := make(map[int]bool)
	jobs := 0
	for _, l := range c.lanes {
		if l.workload.period != 20*minute {
			continue
		}
		for turn := range int64(72) {
			p := l.pod(c, turn)
			if length := p.ended - p.started; length < 5*minute || length > 15*minute {
				t.Errorf("a job of %d s", length)
			}
			if next := l.pod(c, turn+1); p.ended > next.bound {
				t.Errorf("a job ends at %d, the next is placed at %d", p.ended, next.bound)
			}
			if wait := p.started - p.bound; wait != 0 && (wait < 1*minute || wait > 3*minute) {
				t.Errorf("a job waits %d s for its image", wait)
			}
			if p.gone-p.ended != 10*minute {
				t.Errorf("a finished job shows for %d s", p.gone-p.ended)
			}
			hours[time.Unix(p.started, 0).UTC().Hour()] = true
			jobs++
		}
	}
	expect(t, "hours of the day with jobs", len(hours), 24)
	expect(t, "jobs", jobs, 6*72)
}

func TestAPodIsSeenFromItsCreationUntilItIsGone(t *testing.T) {
	c := RichCluster(3).(*rich)
	for _, l := range c.lanes {
		for turn := floorDiv(monday.Unix(), l.workload.period); turn < floorDiv(monday.Unix(), l.workload.period)+30; turn++ {
			p := l.pod(c, turn)
			if p == nil {
				continue
			}
			for moment, want := range map[int64]bool{p.created - 1: false, p.created: true, p.ended - 1: true, p.gone - 1: true, p.gone: false} {
				seen := slices.ContainsFunc(l.podsAt(c, moment), func(other *pod) bool { return other.id.uid == p.id.uid })
				expect(t, fmt.Sprintf("%s seen at %d of %+v", p.id.name, moment, p.lifetime), seen, want)
			}
		}
	}
}

func TestEqualSeedsGiveEqualClusters(t *testing.T) {
	one, two, other := RichCluster(5), RichCluster(5), RichCluster(6)
	later := one.Scrape(monday.Add(9 * day)) // what was asked before must not matter
	expect(t, "scrapes of equal seeds", fmt.Sprint(one.Scrape(monday)), fmt.Sprint(two.Scrape(monday)))
	expect(t, "later scrapes", fmt.Sprint(two.Scrape(monday.Add(9*day))), fmt.Sprint(later))
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() { two.Scrape(monday.Add(time.Duration(i) * time.Hour)) }) // for the race detector
	}
	readers.Wait()
	if fmt.Sprint(other.Truth(monday, monday.Add(time.Hour))) == fmt.Sprint(one.Truth(monday, monday.Add(time.Hour))) {
		t.Error("another seed gives the same cluster")
	}
}

func TestTotalsByPromQLMeetTheTruth(t *testing.T) {
	c := RichCluster(2)
	from, to := monday.Add(8*time.Hour), monday.Add(14*time.Hour)
	s := filled(t, c, from, to)
	for _, truth := range c.Truth(from, to) {
		scope := fmt.Sprintf(`{namespace=%q,pod!=""}`, truth.Namespace)
		near(t, truth.Namespace+" used", number(t, s, "sum(sum_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE"+scope+"[6h])) / 120", to), truth.UsedGPUHours, 1e-9)
		near(t, truth.Namespace+" measured", number(t, s, "sum(count_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE"+scope+"[6h])) / 120", to),
			truth.GPUHours-truth.UnmeasuredGPUHours, 1e-9)
	}
	var gpus float64
	for _, at := range []time.Time{from.Add(time.Hour), to} {
		gpus = number(t, s, `sum(kube_node_status_capacity)`, at)
		expect(t, "capacity", gpus, 52)
	}
	last := c.Truth(to.Add(-30*time.Second), to)
	var held float64
	for _, truth := range last {
		held += truth.UnitHours * 120
	}
	// A pod that ended leaves no series behind for the look-back time.
	near(t, "held at the end", number(t, s, `sum(kube_pod_container_resource_requests{node!=""} * on (namespace, pod) group_left () sum by (namespace, pod) (kube_pod_status_phase{phase=~"Running|Pending"} == 1))`, to), held, 1e-9)
}

// brief is a cluster of one series that comes and goes, scraped every 20 ms.
type brief struct{ Cluster }

func (brief) ScrapeInterval() time.Duration { return 20 * time.Millisecond }

func (brief) Scrape(at time.Time) []Sample {
	samples := []Sample{{labels.FromStrings("__name__", "always"), at, 1}}
	if at.UnixMilli()/20%2 == 0 {
		samples = append(samples, Sample{labels.FromStrings("__name__", "even"), at, 1})
	}
	return samples
}

func TestASeriesThatAScrapeNoLongerHasIsStale(t *testing.T) {
	s := filled(t, brief{}, at(0), time.UnixMilli(60))
	expect(t, "while it is there", number(t, s, "count(even)", time.UnixMilli(40)), 1)
	expect(t, "once it is gone", number(t, s, "absent(even)", time.UnixMilli(60)), 1)
	expect(t, "scrapes", number(t, s, "count_over_time(always[1m])", time.UnixMilli(60)), 3)
}

func TestFollowBackfillsAndThenKeepsUpUntilItIsCanceled(t *testing.T) {
	s := start(t, Options{}, "")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begun := time.Now()
	complete, ended := make(chan struct{}), make(chan error)
	var reported []float64
	go func() {
		ended <- s.Follow(ctx, brief{}, begun.Add(-time.Second), func(done float64) {
			reported = append(reported, done)
			if done == 1 {
				close(complete)
			}
		})
	}()
	<-complete
	if !slices.IsSorted(reported) || len(reported) < 50 {
		t.Errorf("progress of %d scrapes: %v", len(reported), reported)
	}
	for number(t, s, "timestamp(always)", time.Now()) < float64(begun.UnixMilli()+200)/1000 {
		time.Sleep(10 * time.Millisecond)
	}
	got := number(t, s, "count_over_time(always[200ms])", time.UnixMilli(begun.UnixMilli()+200))
	expect(t, "scrapes in 200 ms", got, 10)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestACanceledBackfillSaysSo(t *testing.T) {
	s := start(t, Options{}, "")
	ctx, cancel := context.WithCancel(context.Background())
	err := s.Backfill(ctx, RichCluster(1), monday, monday.Add(day), func(float64) { cancel() })
	expect(t, "error", err, context.Canceled)
	if err := s.Follow(ctx, RichCluster(1), monday, nil); err != nil {
		t.Error("a canceled Follow is no error:", err)
	}
}

func BenchmarkBackfillOfAWeek(b *testing.B) {
	for b.Loop() {
		filled(b, RichCluster(1), monday, monday.Add(7*day))
	}
}
