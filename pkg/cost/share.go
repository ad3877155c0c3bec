package cost

import (
	"fmt"
	"strings"
)

// Share is the fraction of a physical GPU that one unit of a requested resource stands for, 0 to 1.
type Share float64

// Resources as kube-state-metrics spells them.
const (
	WholeGPU = "nvidia_com_gpu"
	// PhysicalGPU is no Kubernetes resource: it counts GPUs seen by dcgm-exporter where Kubernetes tells no capacity.
	PhysicalGPU = "physical_gpu"
)

// Sharing says how units become GPUs where the cluster's own labels don't tell.
type Sharing struct {
	SlicesPerGPU int // units of nvidia.com/gpu that make one physical GPU; 1 = a unit is a whole GPU
}

// Of returns the share that one unit of the resource stands for on the node. It fails where nothing tells: such units
// are shown, but never priced.
func (s Sharing) Of(resource string, node Node) (Share, error) {
	switch {
	case resource == PhysicalGPU:
		return 1, nil
	case resource != WholeGPU:
		return 0, fmt.Errorf("what a unit of %s is worth is not known to this version", resource)
	case strings.Contains(node.GPUProduct, "-MIG-"):
		return 0, fmt.Errorf("what a MIG slice of %s is worth is not known to this version", node.GPUProduct)
	case strings.HasSuffix(node.GPUProduct, "-SHARED") || (node.Replicas != "" && node.Replicas != "0" && node.Replicas != "1"):
		return 0, fmt.Errorf("what a shared unit of %s is worth is not known to this version", node.GPUProduct)
	case node.GPUProduct != "":
		return 1, nil
	default:
		return 1 / Share(max(s.SlicesPerGPU, 1)), nil
	}
}
