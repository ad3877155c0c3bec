package plan

import (
	"slices"
	"time"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
)

// Found is what the probes saw of a workspace in a range of time. Every list is complete for the range: what has ended
// is still in it.
type Found struct {
	// LeftOpen tells whether range windows leave out their left end, as since Prometheus 3, or hold it, as before.
	LeftOpen bool

	// Scrapes tell how each cluster is scraped, by its name in answers.
	Scrapes map[string]Scrapes

	Namespaces []string // that ask for GPUs
	Clusters   []string // that ask for GPUs or have nodes or devices, sorted; cost.Unknown for series without the label
	// ClustersWithoutNodes ask for GPUs but never show a kube_node_* series, so that it can't be told which nodes exist.
	ClustersWithoutNodes []string
	// ClustersWithoutCapacity show devices but neither capacity nor allocatable GPUs.
	ClustersWithoutCapacity []string
	// Unlabeled sources have series without the cluster label while others have it.
	Unlabeled map[Source]bool
	// Assumed is the cluster that series without the label are taken to belong to; "" where none has it, or all have.
	Assumed string

	UID        bool            // requests and phases both carry the pod's uid
	Requests   bool            // kube_pod_container_resource_requests for GPUs exists
	Phases     bool            // kube_pod_status_phase exists
	Capacity   bool            // GPU capacity or allocatable exists
	NodeLabels []string        // node labels that tell what a unit is, as far as they exist
	DCGMLabels map[string]bool // labels of the utilization metrics
	// Utilization lists the utilization metrics that exist, of those that could be used.
	Utilization []string
}

// Scrapes are the scrapes of a cluster's sources.
type Scrapes struct{ KSM, DCGM Scrape }

// Scrape is how a source is scraped.
type Scrape struct {
	Interval time.Duration
	// Shift moves the looked-at windows so that scrapes that jitter around their edges fall into their midst.
	Shift    time.Duration
	Measured bool // from the data; else the setting
}

func (s Scrapes) of(source Source) Scrape {
	if source == DCGM {
		return s.DCGM
	}
	return s.KSM
}

// grid is the distance at which a quantity is counted: its source's scrapes; where devices are joined with pods, the
// scrapes of whichever is scraped more often, so that neither's edges are blurred.
func (s Scrapes) grid(q quantity) time.Duration {
	if q == used || q == measured || q == seen {
		return min(s.KSM.Interval, s.DCGM.Interval)
	}
	return s.of(q.source()).Interval
}

// class is a set of clusters that are scraped alike.
type class struct {
	Scrapes
	clusters []string // nil = all
}

// classes sorts the clusters by how they are scraped. A request asks each class in its own terms.
func (f Found) classes() []class {
	var classes []class
	for _, cluster := range f.Clusters {
		scrapes := f.Scrapes[cluster]
		i := slices.IndexFunc(classes, func(c class) bool { return c.Scrapes == scrapes })
		if i < 0 {
			i = len(classes)
			classes = append(classes, class{Scrapes: scrapes})
		}
		classes[i].clusters = append(classes[i].clusters, cluster)
	}
	if len(classes) == 1 {
		classes[0].clusters = nil
	}
	return classes
}

// unlabeledName is the name that series without the cluster label have in answers.
func (f Found) unlabeledName() string {
	if f.Assumed == "" {
		return cost.Unknown
	}
	return f.Assumed
}

// scrapesOf returns how the cluster of an answer's row was read.
func (f Found) scrapesOf(cluster string) Scrapes {
	if classes := f.classes(); len(classes) == 1 {
		return classes[0].Scrapes // also of a cluster that came after the probe
	}
	return f.Scrapes[cluster]
}

// interval is the shortest scrape interval of a source.
func (f Found) interval(source Source) time.Duration {
	shortest := time.Duration(0)
	for _, s := range f.Scrapes {
		if d := s.of(source).Interval; shortest == 0 || d < shortest {
			shortest = d
		}
	}
	return shortest
}

// window returns the range that a selector must have to hold exactly d, (t-d, t].
func (f Found) window(d time.Duration) time.Duration {
	if f.LeftOpen {
		return d
	}
	return d - time.Millisecond
}

// deviceLabels tell GPUs apart; with labelInstance they tell devices apart.
func (f Found) deviceLabels() []string {
	if f.DCGMLabels[labelUUID] || f.DCGMLabels["uuid"] {
		return []string{labelUUID}
	}
	return []string{labelHostname, labelGPU}
}
