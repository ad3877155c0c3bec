package plan

import (
	"strings"
)

// Source is an exporter whose series we read. Each has a scrape interval of its own.
type Source int

// The sources.
const (
	KubeStateMetrics Source = iota
	DCGM
)

// Series of kube-state-metrics.
const (
	seriesRequests    = "kube_pod_container_resource_requests" // units; by namespace, pod, uid, container, node, resource
	seriesPhase       = "kube_pod_status_phase"                // 0 or 1; by namespace, pod, uid, phase
	seriesNodeInfo    = "kube_node_info"                       // 1; by node
	seriesNodeLabels  = "kube_node_labels"                     // 1; by node, with the labels that are allow-listed
	seriesCapacity    = "kube_node_status_capacity"            // units; by node, resource
	seriesAllocatable = "kube_node_status_allocatable"         // units; by node, resource
)

// nodeSeries prove that a node exists.
var nodeSeries = []string{seriesNodeInfo, seriesNodeLabels, seriesCapacity, seriesAllocatable}

// Labels that we read. The label that names the cluster is a setting; skeletons call it cluster.
const (
	labelCluster   = "cluster"
	labelNamespace = "namespace"
	labelPod       = "pod"
	labelUID       = "uid"
	labelNode      = "node"
	labelResource  = "resource"
	labelPhase     = "phase"

	labelUUID      = "UUID"
	labelInstance  = "GPU_I_ID"
	labelHostname  = "Hostname"
	labelGPU       = "gpu"
	labelModelName = "modelName"
	labelName      = "__name__"

	// Node labels as kube-state-metrics sanitizes them.
	labelGPUProduct  = "label_nvidia_com_gpu_product"
	labelGPUReplicas = "label_nvidia_com_gpu_replicas"
)

// Labels that our own PromQL adds to rows.
const (
	labelQuantity = "quantity"
	labelPart     = "part"     // of a quantity's time
	labelSeries   = "series"   // the metric that a probe found
	labelFallback = "fallback" // the metric that stood in where a device lacks the chosen one
)

// gpuResources is the exact list of resources that mean GPUs or parts of them. A broader pattern would also catch the
// memory and core counts of GPU-sharing schedulers.
const gpuResources = `nvidia_com_gpu(_shared)?|nvidia_com_mig_[0-9]+g_[0-9]+gb(_me_all|_me|_gfx)?(_shared)?|k8s_amazonaws_com_vgpu`

// namespacedSeries are the series of kube-state-metrics that carry a namespace, so that a query can be kept to the namespaces
// that use GPUs.
var namespacedSeries = map[string]bool{seriesRequests: true, seriesPhase: true}

// spellings are labels of dcgm-exporter that come under other names too: of older versions, of relabelling to lower
// case, and exported_*, the pod's own labels where the scrape keeps pod for the exporter. A later one beats an earlier.
var spellings = []struct{ label, alias string }{
	{labelPod, "pod_name"},
	{labelPod, "exported_pod"},
	{labelNamespace, "pod_namespace"},
	{labelNamespace, "exported_namespace"},
	{labelUUID, "uuid"},
	{labelInstance, "gpu_i_id"},
	{labelHostname, "hostname"},
	{labelModelName, "modelname"},
}

// The metrics that automatic choice knows, best first, each with its spellings.
var (
	engineActive = Utilization{
		Name:    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
		aliases: []string{"dcgm_fi_prof_gr_engine_active", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"},
	}
	gpuUtil = Utilization{Name: "DCGM_FI_DEV_GPU_UTIL", aliases: []string{"dcgm_fi_dev_gpu_util"}}
)

// Utilization is a metric that says how busy a device is.
type Utilization struct {
	Name    string
	aliases []string
}

// UtilizationUnit is what a utilization metric's values mean.
type UtilizationUnit string

// The units: 0 to 1, and 0 to 100. UnitAuto takes what the metric's name tells.
const (
	UnitAuto UtilizationUnit = "auto"
	Ratio    UtilizationUnit = "ratio"
	Percent  UtilizationUnit = "percent"
)

// names are all the spellings of the metric.
func (u Utilization) names() []string { return append([]string{u.Name}, u.aliases...) }

// blindUnderMIG tells of metrics that show a parent GPU at 0, or nothing, while its MIG instances work.
func blindUnderMIG(metric string) bool {
	return strings.HasSuffix(strings.ToUpper(metric), "_GPU_UTIL")
}

// UnitOf tells the unit that a DCGM metric's name implies; false if it implies none.
func UnitOf(metric string) (UtilizationUnit, bool) {
	name := strings.ToUpper(metric)
	switch {
	case strings.HasSuffix(name, "_BYTES"): // per second, among the profiling metrics
		return "", false
	case strings.HasPrefix(name, "DCGM_FI_PROF_"), strings.HasSuffix(name, "_RATIO"):
		return Ratio, true
	case strings.HasPrefix(name, "DCGM_FI_DEV_") && strings.HasSuffix(name, "_UTIL"):
		return Percent, true
	default:
		return "", false
	}
}
