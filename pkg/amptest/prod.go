package amptest

import (
	"fmt"
	"strconv"
)

// machine is an instance type of the rich cluster.
type machine struct {
	instanceType, capacityType, product, model string
	gpus                                       int
}

var (
	p4d = machine{"p4d.24xlarge", "on-demand", "NVIDIA-A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", 8}
	p5  = machine{"p5.48xlarge", "on-demand", "NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3", 8}
	g5  = machine{"g5.xlarge", "spot", "NVIDIA-A10G", "NVIDIA A10G", 1}
	g6  = machine{"g6.12xlarge", "on-demand", "NVIDIA-L4", "NVIDIA L4", 4}
	m6i = machine{"m6i.2xlarge", "on-demand", "", "", 0}
)

// teams are the namespaces and their business units; "web" has pods but no GPUs.
var teams = [...]struct{ namespace, businessUnit string }{
	{"research", "Research"},
	{"search-ranking", "Search"},
	{"speech", "Speech"},
	{"vision", "Vision"},
	{"recommendations", "Recommendations"},
	{"platform", "Platform"},
	{"web", "Web"},
}

// RichCluster is a cluster of six teams, "prod": services, training, notebooks by
// day and short jobs round the clock, on 52 whole GPUs of four models. Equal
// seeds give equal clusters.
func RichCluster(seed uint64) Cluster {
	b := richBuilder{rich: &rich{name: "prod"}, random: random(seed)}
	for _, team := range teams {
		b.constant = append(b.constant, constant{kubeSeries(b.name, "kube_namespace_labels", "namespace", team.namespace,
			"label_business_unit", team.businessUnit, "label_kubernetes_io_metadata_name", team.namespace), 1})
	}
	b.addNode(p4d).
		lane(4, service("ranker", "search-ranking", 3*daily)).
		lane(4, training("pretrain", 20*hour, "research"))
	b.addNode(p4d).
		lane(8, training("finetune", 30*hour, "research", "vision"))
	b.addNode(p4d).
		lane(2, service("asr", "speech", 4*daily)).
		lane(1, service("embedder", "search-ranking", 2*daily)).
		lane(1, service("scorer", "recommendations", 5*daily)).
		lane(4, training("two-tower", 14*hour, "recommendations"))
	b.addNode(p5).
		lane(8, training("llm", 36*hour, "research"))
	b.addNode(p5).
		lane(4, service("llm-gateway", "platform", 6*daily)).
		lane(4, training("diffusion", 16*hour, "vision", "speech"))
	b.addNode(g5).lane(1, service("detector", "vision", 3*daily))
	b.addNode(g5).lane(1, service("tts", "speech", 7*daily))
	b.addNode(g5).lane(1, batch("transcribe", "speech", "vision"))
	b.addNode(g5).lane(1, batch("backtest", "recommendations"))
	b.addNode(g6).
		lane(1, batch("embed", "search-ranking")).
		lane(1, batch("evaluate", "platform", "research")).
		lane(1, batch("caption", "vision")).
		lane(1, batch("score", "recommendations", "platform"))
	// Free at night.
	b.addNode(g6).
		lane(1, notebook("ada", "research")).
		lane(1, notebook("grace", "research")).
		lane(1, notebook("edsger", "vision")).
		lane(1, notebook("barbara", "speech"))
	b.addNode(m6i).
		lane(0, service("frontend", "web", 2*daily)).
		lane(0, service("checkout", "web", 3*daily))
	return b.rich
}

// richBuilder adds nodes and their lanes, in order.
type richBuilder struct {
	*rich
	random random
	node   *node
	free   int // the first of the cluster's devices that no lane has yet
	nodes  int
}

func (b *richBuilder) addNode(m machine) *richBuilder {
	b.nodes++
	address := fmt.Sprintf("10.0.%d.%d", b.nodes/8, 10+b.nodes)
	b.node = &node{
		name: fmt.Sprintf("ip-10-0-%d-%d.ec2.internal", b.nodes/8, 10+b.nodes), address: address,
		zone: "us-east-1" + string(rune('a'+b.nodes%3)), instanceType: m.instanceType, model: m.model, units: m.gpus,
	}
	extra := []string{"label_karpenter_sh_capacity_type", m.capacityType}
	if m.gpus > 0 {
		extra = append(extra, "label_nvidia_com_gpu_product", m.product, "label_nvidia_com_gpu_count", strconv.Itoa(m.gpus))
	}
	b.constant = append(b.constant, b.node.series(b.name, extra...)...)
	for i := range m.gpus {
		d := device{node: b.node, index: i, uuid: "GPU-" + b.random.with(uint64(len(b.devices))).uuid()}
		b.devices = append(b.devices, richDevice{d, d.gpuSeries(b.name, nil)})
	}
	return b
}

// lane gives the node's next devices to a workload.
func (b *richBuilder) lane(gpus int, w workload) *richBuilder {
	l := &lane{node: b.node, workload: w, random: b.random.with(uint64(1000 + len(b.lanes))), pods: make(map[int64]*pod)}
	if !w.byCalendar {
		l.phase = l.random.between(0, w.period-1)
	}
	for range gpus {
		l.devices = append(l.devices, b.free)
		b.free++
	}
	b.lanes = append(b.lanes, l)
	return b
}
