package amptest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

const (
	migProfile   = "1g.5gb"
	slicesPerGPU = 7

	// publishedUse of a held slice makes the mean over all 56 slices the published
	// 0.04521998...: 0.36175985... x 7 / 56.
	publishedUse = 0.361759857142857
)

// published is the cluster of the proof of concept.
type published struct {
	samples []constant
	held    map[string]int // slices by namespace
}

// PublishedCluster is the cluster of the published proof of concept, "poc": one
// node with 8 A100 of 7 slices each, of which three namespaces hold 3, 2 and 2.
// It never changes. Its node carries no label that says what a slice is.
func PublishedCluster() Cluster {
	c := &published{held: map[string]int{"bu-a": 3, "bu-b": 2, "bu-c": 2}}
	host := &node{
		name: "ip-10-0-1-10.ec2.internal", address: "10.0.1.10", zone: "us-east-1a",
		instanceType: "p4d.24xlarge", model: "NVIDIA A100-SXM4-40GB", units: 8 * slicesPerGPU,
	}
	c.samples = host.series(c.Name())
	pods := c.addPods(host)
	for i := range host.units {
		slice := device{host, i / slicesPerGPU, fmt.Sprintf("GPU-00000000-0000-4000-8000-%012d", i/slicesPerGPU), strconv.Itoa(i % slicesPerGPU)}
		var (
			holder *podIdentity
			use    float64
		)
		if i < len(pods) {
			holder, use = &pods[i], publishedUse
		}
		c.add(slice.series(c.Name(), "DCGM_FI_PROF_GR_ENGINE_ACTIVE", holder), use)
	}
	return c
}

// addPods adds the pods, of one slice each, and returns them by namespace.
func (c *published) addPods(host *node) []podIdentity {
	var pods []podIdentity
	for _, namespace := range []string{"bu-a", "bu-b", "bu-c"} {
		c.add(kubeSeries(c.Name(), "kube_namespace_labels", "namespace", namespace, "label_kubernetes_io_metadata_name", namespace), 1)
		for i := range c.held[namespace] {
			p := podIdentity{
				namespace: namespace, name: fmt.Sprintf("inference-%d", i), container: "server",
				uid:       fmt.Sprintf("00000000-0000-4000-9000-%012d", len(pods)),
				ownerKind: "StatefulSet", ownerName: "inference",
			}
			c.add(p.request(c.Name(), host.name), 1)
			c.add(p.info(c.Name(), host.name), 1)
			for phase, series := range p.phases(c.Name()) {
				c.add(series, oneIf(phase == running))
			}
			pods = append(pods, p)
		}
	}
	return pods
}

func (c *published) add(series labels.Labels, value float64) {
	c.samples = append(c.samples, constant{series, value})
}

// Name implements Cluster.
func (c *published) Name() string { return "poc" }

// ScrapeInterval implements Cluster.
func (c *published) ScrapeInterval() time.Duration { return 30 * time.Second }

// Scrape implements Cluster.
func (c *published) Scrape(at time.Time) []Sample {
	found := make([]Sample, len(c.samples))
	for i, s := range c.samples {
		found[i] = Sample{Labels: s.series, Time: at, Value: s.value}
	}
	return found
}

// Truth implements Cluster.
func (c *published) Truth(from, to time.Time) []Truth {
	var hours float64
	for range scrapeTimes(from, to, c.ScrapeInterval()) {
		hours += c.ScrapeInterval().Hours()
	}
	if hours == 0 {
		return nil
	}
	var found []Truth
	for namespace, units := range c.held {
		gpuHours := float64(units) / slicesPerGPU * hours
		found = append(found, Truth{
			Cluster: c.Name(), Namespace: namespace,
			UnitHours: float64(units) * hours, GPUHours: gpuHours, UsedGPUHours: gpuHours * publishedUse,
		})
	}
	sortByNamespace(found)
	return found
}

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}
