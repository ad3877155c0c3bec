package plan

import "fmt"

// skeletons are readable PromQL, one question each, by the name under which others use them. Names in capitals are
// placeholders, replaced by name:
//
//   - a selector named as a skeleton is replaced by it;
//   - GROUP, CLASS, FALLBACK and HOST in label lists are replaced by the labels that the query groups by, that tell what
//     a node's unit is, that mark a stand-in metric, and that place a device on a node;
//   - MAIN and SPARE are the utilization metrics found, under their usual labels;
//   - resource=~"GPU" is the list of GPU resources.
//
// Every other selector reads the newest sample of its source's scrape interval, no more: a sample at t stands for the
// interval that ends at t, so nothing is bridged and nothing outlives its end. A subquery without a step, as in [1h:],
// looks at every scrape of dcgm-exporter in the hour.
var skeletons = map[string]string{
	// Units that pods ask for, one row per pod, node and resource. Replicas, scrape jobs and restarts of
	// kube-state-metrics repeat a container's row: max; containers add up: sum. A pod without a node holds nothing.
	"REQUESTED": `
sum by (cluster, namespace, pod, uid, node, resource) (
  max by (cluster, namespace, pod, uid, container, node, resource) (
    kube_pod_container_resource_requests{resource=~"GPU", node!=""}
  )
)`,

	// Pods that run, value 1. Phase Unknown is a lost kubelet: the devices stay reserved.
	"RUNNING": `max by (cluster, namespace, pod, uid) (kube_pod_status_phase{phase=~"Running|Unknown"} == 1)`,

	// Pods that wait for images or their node's kubelet, value 1. With a node they already hold their devices.
	"PENDING": `max by (cluster, namespace, pod, uid) (kube_pod_status_phase{phase="Pending"} == 1)`,

	// Nodes that exist, exactly one row each whatever happens to their labels, value 1.
	"NODE_TOLD": `
topk by (cluster, node) (1,
  kube_node_labels
  or on (cluster, node)
  group by (cluster, node) ({__name__=~"kube_node_info|kube_node_status_capacity|kube_node_status_allocatable"})
)`,

	// The same, where some clusters report no nodes at all: there the pods' word is taken.
	"NODE_ASSUMED": `NODE_TOLD or on (cluster, node) group by (cluster, node) (REQUESTS_WITHOUT_NODES)`,

	// The same with the GPU model that dcgm-exporter tells, for nodes whose labels name none.
	"NODE_MODELED": `
(
  PLAIN_NODE * on (cluster, node) group_left (modelName)
  topk by (cluster, node) (1, group by (cluster, node, modelName) (PLACED_MAIN))
)
or on (cluster, node) PLAIN_NODE`,

	// Units of pods that run, or that are Pending on a node.
	"HOLDING": `
REQUESTED
* on (cluster, namespace, pod, uid) group_left (phase) (
  label_replace(RUNNING, "phase", "Running", "", "")
  or on (cluster, namespace, pod, uid)
  label_replace(PENDING, "phase", "Pending", "", "")
)`,

	// Units held, on nodes that exist.
	"HELD": `
sum by (cluster, namespace, resource, phase, CLASS, GROUP) (
  HOLDING * on (cluster, node) group_left (CLASS) NODE
)`,

	// Running pods that ask for GPUs, one row per name, value 1.
	"HOLDERS": `
topk by (cluster, namespace, pod) (1,
  group by (cluster, namespace, pod, node, resource, CLASS) (
    ((REQUESTED > 0) and on (cluster, namespace, pod, uid) RUNNING)
    * on (cluster, node) group_left (CLASS) NODE
  )
)`,

	// How busy each device is, 0 to 1, by the pod in its label. Not a number, negative and absurd values are unknown;
	// values just above the maximum clamp to it. Exporters that see the same device repeat it: max.
	"DEVICES_RATIO":   `clamp_max(max by (cluster, UUID, GPU_I_ID, HOST, namespace, pod) (MAIN >= 0 <= 1.5), 1)`,
	"DEVICES_PERCENT": `clamp_max(max by (cluster, UUID, GPU_I_ID, HOST, namespace, pod) (MAIN >= 0 <= 150), 100) / 100`,

	// The same from a metric that is blind to MIG instances: GPUs that have any are left out.
	"DEVICES_WHOLE": `
clamp_max(max by (cluster, UUID, GPU_I_ID, HOST, namespace, pod) (
  (MAIN{GPU_I_ID=""} >= 0 <= 150) unless on (cluster, UUID) MAIN{GPU_I_ID!=""}
), 100) / 100`,

	// The same where some devices lack the better metric: they are read from a spare one, and marked.
	"DEVICES_SPARED": `
DEVICES_MAIN
or on (cluster, UUID, GPU_I_ID)
label_replace(
  clamp_max(max by (cluster, UUID, GPU_I_ID, HOST, namespace, pod) (
    (SPARE{GPU_I_ID=""} >= 0 <= 150) unless on (cluster, UUID) (MAIN or SPARE{GPU_I_ID!=""})
  ), 100) / 100,
  "fallback", "SPARE_NAME", "", "")`,

	// Devices under the label of a running pod that asks for GPUs. Labels of other pods count for nobody.
	"OWNED": `DEVICES * on (cluster, namespace, pod) group_left (node, resource, CLASS) HOLDERS`,

	// The same where some pods' labels are on more devices than they ask for: these count by their mean.
	"OWNED_CAPPED": `OWNED * on (cluster, namespace, pod) group_left () CAP`,
	"CAP": `
clamp_max(
  POD_HELD / on (cluster, namespace, pod) count by (cluster, namespace, pod) (OWNED),
1)`,
	"POD_HELD": `sum by (cluster, namespace, pod) ((REQUESTED > 0) and on (cluster, namespace, pod, uid) RUNNING)`,

	"USED_CAPPED": `sum by (cluster, namespace, resource, CLASS, FALLBACK, GROUP) (OWNED_CAPPED)`,
	"MEASURED_CAPPED": `
sum by (cluster, namespace, resource, CLASS, FALLBACK, GROUP) (
  (OWNED * 0 + 1) * on (cluster, namespace, pod) group_left () CAP
)`,

	// Pods whose label is on more devices than they ask for.
	"CROWDED": `count by (cluster) (count by (cluster, namespace, pod) (OWNED) > on (cluster, namespace, pod) POD_HELD)`,

	// Units used, and units whose use is known, from the pods' own devices.
	"USED":     `sum by (cluster, namespace, resource, CLASS, FALLBACK, GROUP) (OWNED)`,
	"MEASURED": `count by (cluster, namespace, resource, CLASS, FALLBACK, GROUP) (OWNED)`,

	// Units that the nodes have.
	"CAPACITY": `sum by (cluster, resource, CLASS, GROUP) (NODE_CAPACITY * on (cluster, node) group_left (CLASS) NODE)`,

	"NODE_CAPACITY": `
max by (cluster, node, resource) (kube_node_status_capacity{resource=~"GPU"})
or on (cluster, node)
max by (cluster, node, resource) (kube_node_status_allocatable{resource=~"GPU"})`,

	// Units that the nodes have and nobody holds, node by node: what is held too much on one is nobody else's.
	"IDLE": `
sum by (cluster, resource, CLASS, GROUP) (
  clamp_min(
    NODE_CAPACITY - on (cluster, node, resource) (
      sum by (cluster, node, resource) (HOLDING)
      or on (cluster, node, resource)
      NODE_CAPACITY * 0
    ),
  0)
  * on (cluster, node) group_left (CLASS) NODE
)`,

	// Units held on nodes of which Kubernetes tells no capacity.
	"UNTOLD": `
sum by (cluster, resource, CLASS, GROUP) (
  (HOLDING unless on (cluster, node) NODE_CAPACITY) * on (cluster, node) group_left (CLASS) NODE
)`,

	// Nodes on which more is held than they have: by how much.
	"OVERFULL": `
(sum by (cluster, node, resource) (HOLDING) - on (cluster, node, resource) NODE_CAPACITY) > 0`,

	// GPUs that dcgm-exporter sees in nodes of which Kubernetes tells no capacity. Where it tells some nodes' of a cluster,
	// only GPUs that are surely in another node count.
	"SEEN": `
count by (cluster, GROUP) (
  group by (cluster, UUID, node) (PLACED_MAIN)
  unless on (cluster)
  {__name__=~"kube_node_status_capacity|kube_node_status_allocatable", resource=~"GPU"}
)
or
count by (cluster, GROUP) (
  group by (cluster, UUID, node) (PLACED_MAIN)
  unless on (cluster, node)
  {__name__=~"kube_node_status_capacity|kube_node_status_allocatable", resource=~"GPU"}
  and on (cluster, node) NODE_TOLD
)`,

	// 1 while kube-state-metrics is seen in a cluster.
	"OBSERVED_TOLD":    `group by (cluster) ({__name__=~"kube_node_info|kube_node_labels|kube_node_status_capacity|kube_node_status_allocatable"})`,
	"OBSERVED_ASSUMED": `OBSERVED_TOLD or on (cluster) group by (cluster) (REQUESTS_WITHOUT_NODES or PHASES_WITHOUT_NODES)`,

	// Pods with any sample of their own devices in the clock hour. The offset makes every time of an hour look at the
	// hour's end, so the whole hour decides, however a range cuts it.
	"MEASURED_IN_HOUR": `
last_over_time((
  count by (cluster, namespace, pod) (count_over_time((DEVICES)[1h:]))
)[1h:1h] offset -59m59s999ms)`,

	// Units held by running pods without any sample of their own in the clock hour.
	"DARK": `
((REQUESTED > 0) and on (cluster, namespace, pod, uid) RUNNING unless on (cluster, namespace, pod) MEASURED_IN_HOUR)
* on (cluster, node) group_left (CLASS) NODE`,

	"DARK_HELD": `sum by (cluster, namespace, resource, CLASS, GROUP) (DARK)`,

	// The part of them on nodes whose held devices have a mean in that hour, and what they use by that mean.
	"NODE_KNOWN": `sum by (cluster, namespace, resource, CLASS, GROUP) (DARK and on (cluster, node) NODE_MEAN)`,
	"NODE_USED":  `sum by (cluster, namespace, resource, CLASS, GROUP) (DARK * on (cluster, node) group_left () NODE_MEAN)`,

	// Mean use of the held units of a node in the clock hour, 0 to 1: of the devices that running pods hold; on nodes
	// whose exporter labels no pods, what all devices do over what is held, for free devices do nothing.
	"NODE_MEAN": `
last_over_time((
  sum_over_time((sum by (cluster, node) (OWNED))[1h:]) / sum_over_time((count by (cluster, node) (OWNED))[1h:])
  or
  clamp_max(
    sum_over_time((NODE_BUSY and on (cluster, node) NODE_HELD)[1h:])
    / sum_over_time((NODE_HELD and on (cluster, node) NODE_BUSY)[1h:]),
  1)
  unless on (cluster, node) sum_over_time((NODE_LABELED)[1h:])
)[1h:1h] offset -59m59s999ms)`,

	"NODE_BUSY": `sum by (cluster, node) (PLACED_DEVICES)`,
	"NODE_HELD": `sum by (cluster, node) ((REQUESTED > 0) and on (cluster, namespace, pod, uid) RUNNING)`,
	"NODE_LABELED": `
count by (cluster, node) (
  group by (cluster, namespace, pod) (MAIN)
  * on (cluster, namespace, pod) group_left (node)
  topk by (cluster, namespace, pod) (1, group by (cluster, namespace, pod, node) (REQUESTED))
)`,

	// What all devices do, held or not, and how many there are: the mean that attribution "cluster" takes.
	"ALL_BUSY":    `sum by (cluster) (max by (cluster, UUID, GPU_I_ID) (DEVICES))`,
	"ALL_DEVICES": `count by (cluster) (max by (cluster, UUID, GPU_I_ID) (DEVICES))`,

	// Units that pods without a node ask for: demand, not cost. A pod that is being bound shows both; it isn't demand.
	"DEMAND": `
sum by (cluster) (
  max by (cluster, namespace, pod, uid, container, resource) (kube_pod_container_resource_requests{resource=~"GPU", node=""})
  * on (cluster, namespace, pod, uid) group_left () PENDING
  unless on (cluster, namespace, pod, uid) REQUESTED
)`,

	// Units of running pods whose node no longer exists.
	"GONE": `
sum by (cluster, node) (
  ((REQUESTED > 0) and on (cluster, namespace, pod, uid) (RUNNING or PENDING)) unless on (cluster, node) NODE
)`,

	// GPUs whose better metric stands still at 0 while the other says that they are busy.
	"STUCK": `
count by (cluster) (
  (max by (cluster, UUID) (DEVICES_MAIN) == 0) and on (cluster, UUID) (max by (cluster, UUID) (SPARE) > 50)
)`,

	// Use of devices that no pod with a request holds, in GPUs. Where a running pod shows no device of its own, a device
	// without a label may be its: such clusters are left out.
	"UNREQUESTED": `
sum by (cluster) (
  max by (cluster, UUID, GPU_I_ID) (DEVICES) unless on (cluster, UUID, GPU_I_ID) OWNED
)
unless on (cluster) (
  HOLDERS unless on (cluster, namespace, pod) OWNED
)`,
}

func init() {
	for name, text := range skeletons {
		if _, err := promQL.ParseExpr(text); err != nil {
			panic(fmt.Sprintf("skeleton %s: %v", name, err))
		}
	}
}
