package amptest

import (
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// The series of the two exporters, with the labels they carry in a cluster whose
// Prometheus keeps the exporters' own labels.

const gpuResource = "nvidia_com_gpu"

// phases of a pod; kube-state-metrics has a series for each, 1 for the one it is in.
var phases = [...]string{"Pending", "Running", "Succeeded", "Failed", "Unknown"}

const (
	pending = iota
	running
	succeeded
)

// constant is a series that always has the same value.
type constant struct {
	series labels.Labels
	value  float64
}

// kubeSeries is a series of kube-state-metrics; pairs are names and values of labels.
func kubeSeries(cluster, name string, pairs ...string) labels.Labels {
	return labels.FromStrings(append(pairs, model.MetricNameLabel, name,
		"cluster", cluster, "job", "kube-state-metrics", "instance", "10.0.64.12:8080")...)
}

// node is a machine, with GPUs or without.
type node struct {
	name         string
	address      string
	instanceType string
	zone         string
	model        string // of its GPUs, as DCGM names it
	units        int    // devices or slices that it advertises; 0: no GPUs
}

// series of the node itself; extra are further label_... of kube_node_labels.
func (n node) series(cluster string, extra ...string) []constant {
	kube := func(name string, pairs ...string) labels.Labels {
		return kubeSeries(cluster, name, append(pairs, "node", n.name)...)
	}
	found := []constant{
		{kube("kube_node_info", "internal_ip", n.address, "kubelet_version", "v1.33.5-eks-113cf36", "provider_id", "aws:///"+n.zone+"/"+n.name), 1},
		{kube("kube_node_labels", append(extra,
			"label_kubernetes_io_hostname", n.name,
			"label_node_kubernetes_io_instance_type", n.instanceType,
			"label_topology_kubernetes_io_region", defaultRegion,
			"label_topology_kubernetes_io_zone", n.zone)...), 1},
	}
	if n.units == 0 {
		return found
	}
	units := float64(n.units)
	return append(found,
		constant{kube("kube_node_status_capacity", "resource", gpuResource, "unit", "integer"), units},
		constant{kube("kube_node_status_allocatable", "resource", gpuResource, "unit", "integer"), units},
	)
}

// podIdentity is what kube-state-metrics knows of a pod from the start.
type podIdentity struct {
	namespace, name, uid string
	container            string
	ownerKind, ownerName string
}

func (p podIdentity) kube(cluster, name string, pairs ...string) labels.Labels {
	return kubeSeries(cluster, name, append(pairs, "namespace", p.namespace, "pod", p.name, "uid", p.uid)...)
}

// info is kube_pod_info; nodeName is "" until the pod is placed.
func (p podIdentity) info(cluster, nodeName string) labels.Labels {
	return p.kube(cluster, "kube_pod_info", "node", nodeName, "created_by_kind", p.ownerKind, "created_by_name", p.ownerName, "host_network", "false")
}

func (p podIdentity) request(cluster, nodeName string) labels.Labels {
	return p.kube(cluster, "kube_pod_container_resource_requests",
		"container", p.container, "node", nodeName, "resource", gpuResource, "unit", "integer")
}

// phases are the pod's five series of kube_pod_status_phase, in that order.
func (p podIdentity) phases(cluster string) (found [len(phases)]labels.Labels) {
	for i, phase := range phases {
		found[i] = p.kube(cluster, "kube_pod_status_phase", "phase", phase)
	}
	return found
}

// device is a GPU, or a slice of one.
type device struct {
	node  *node
	index int    // of the GPU on its node
	uuid  string // of the GPU
	slice string // the GPU instance's number; "" for a whole GPU
}

// series is a DCGM series of the device; holder is nil when no pod holds it.
func (d device) series(cluster, name string, holder *podIdentity) labels.Labels {
	number := strconv.Itoa(d.index)
	pairs := []string{
		model.MetricNameLabel, name, "cluster", cluster, "job", "dcgm-exporter", "instance", d.node.address + ":9400",
		"gpu", number, "UUID", d.uuid, "device", "nvidia" + number, "modelName", d.node.model, "Hostname", d.node.name,
	}
	if d.slice != "" {
		pairs = append(pairs, "GPU_I_ID", d.slice, "GPU_I_PROFILE", migProfile)
	}
	if holder != nil {
		pairs = append(pairs, "container", holder.container, "namespace", holder.namespace, "pod", holder.name)
	}
	return labels.FromStrings(pairs...)
}
