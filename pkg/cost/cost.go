// Package cost is the domain: what business units hold of GPUs, what they use of it, and what that costs. It is plain
// arithmetic on the standard library; where the quantities come from and how they are shown is for others.
package cost

import "time"

// GPUHours is an amount of physical GPU time; a slice counts as its share of the GPU.
type GPUHours float64

// USD is an amount of money.
type USD float64

// USDPerGPUHour is the price of one physical GPU for one hour.
type USDPerGPUHour float64

// HoursPerMonth turns an hourly rate into a monthly run-rate, as cloud bills do.
const HoursPerMonth = 730

// Metric names a figure that a query can ask for.
type Metric string

// The metrics. Unit tells how each is measured; docs/cost-model.md defines them.
const (
	Units       Metric = "units"
	Requested   Metric = "requested"
	Utilization Metric = "utilization"
	Allocated   Metric = "allocated"
	Effective   Metric = "effective"
	Waste       Metric = "waste"
	Unmeasured  Metric = "unmeasured"
	Estimated   Metric = "estimated"
	Idle        Metric = "idle"
	Efficiency  Metric = "efficiency"
	Capacity    Metric = "capacity"
	Coverage    Metric = "coverage"
)

// Metrics lists every metric in the order in which users meet them.
var Metrics = []Metric{
	Units, Requested, Utilization, Allocated, Effective, Waste, Unmeasured, Estimated, Idle, Efficiency, Capacity, Coverage,
}

// Unit is how a metric is measured.
type Unit int

// The units of the metrics.
const (
	UnitUnits Unit = iota // devices or slices, as Kubernetes counts them
	UnitGPUs              // physical GPUs
	UnitUSD               // dollars per hour, per range or per month
	UnitRatio             // 0 to 1
)

// Unit tells how the metric is measured.
func (m Metric) Unit() Unit {
	switch m {
	case Units:
		return UnitUnits
	case Requested, Capacity:
		return UnitGPUs
	case Utilization, Efficiency, Coverage:
		return UnitRatio
	default:
		return UnitUSD
	}
}

// InUSD tells whether the metric is an amount of money.
func (m Metric) InUSD() bool { return m.Unit() == UnitUSD }

// NeedsUtilization tells whether the metric can't be known without reading what the devices do.
func (m Metric) NeedsUtilization() bool {
	switch m {
	case Utilization, Effective, Waste, Unmeasured, Estimated, Efficiency:
		return true
	default:
		return false
	}
}

// NeedsCapacity tells whether the metric can't be known without reading what the nodes have.
func (m Metric) NeedsCapacity() bool { return m == Idle || m == Capacity }

// Dimension is something to group by.
type Dimension string

// The dimensions.
const (
	ByBusinessUnit Dimension = "bu"
	ByNamespace    Dimension = "namespace"
	ByCluster      Dimension = "cluster"
	ByWorkload     Dimension = "workload"
	ByPod          Dimension = "pod"
	ByNode         Dimension = "node"
	ByInstanceType Dimension = "instance_type"
	ByGPUModel     Dimension = "gpu_model"
)

// Dimensions lists every dimension.
var Dimensions = []Dimension{
	ByBusinessUnit, ByNamespace, ByCluster, ByWorkload, ByPod, ByNode, ByInstanceType, ByGPUModel,
}

// OfHolder tells whether the dimension says who holds a GPU. Idle capacity has no holder: it stands in IdleRow there.
func (d Dimension) OfHolder() bool {
	switch d {
	case ByBusinessUnit, ByNamespace, ByWorkload, ByPod:
		return true
	default:
		return false
	}
}

// The rows that stand for something other than a name of the cluster's.
const (
	UnallocatedRow       = "__unallocated__"        // held, but no business unit found
	SharedReservationRow = "__shared_reservation__" // held by a reservation pod of a GPU-sharing scheduler
	OtherRow             = "__other__"              // the sum of what is too small to be shown by itself
	IdleRow              = "__idle__"               // capacity that nobody holds
	Unknown              = "__unknown__"            // the value of a dimension that the data doesn't tell
)

// SpecialRows lists the special rows in the order in which they close a table.
var SpecialRows = []string{UnallocatedRow, SharedReservationRow, OtherRow, IdleRow}

// Group says whose GPUs are meant. Empty fields are not told apart.
type Group struct {
	BusinessUnit, Namespace, Cluster, Workload, Pod, Node, InstanceType, GPUModel string
}

// Of returns the group's value of the dimension.
func (g Group) Of(d Dimension) string { return *g.field(d) }

// Keep returns the group with only these dimensions told apart.
func (g Group) Keep(dims []Dimension) Group {
	var kept Group
	for _, d := range dims {
		*kept.field(d) = g.Of(d)
	}
	return kept
}

// With returns the group with one dimension set.
func (g Group) With(d Dimension, value string) Group {
	*g.field(d) = value
	return g
}

func (g *Group) field(d Dimension) *string {
	switch d {
	case ByBusinessUnit:
		return &g.BusinessUnit
	case ByNamespace:
		return &g.Namespace
	case ByCluster:
		return &g.Cluster
	case ByWorkload:
		return &g.Workload
	case ByPod:
		return &g.Pod
	case ByNode:
		return &g.Node
	case ByInstanceType:
		return &g.InstanceType
	default:
		return &g.GPUModel
	}
}

// Axis is the time that an answer covers: intervals in which quantities are read, and points at which they are shown. A
// table has one point; a curve has one interval per point; a curve of sums may read several intervals for one point.
type Axis struct {
	Intervals []Interval
	Points    []Point
}

// Interval is a piece of time, (From, To], whose quantities are read together, in unit-hours or GPU-hours. An instant of
// a curve is read as a rate: it stands for one hour.
type Interval struct {
	From, To time.Time
	Point    int // index of the point that shows it
}

// Point is one time at which an answer shows values.
type Point struct {
	At    time.Time
	Hours float64 // hours that the point's amounts stand for; 1 for an instant of a curve
}

// Node is what is known of a node that decides what its GPUs are worth.
type Node struct {
	Cluster    string
	GPUProduct string // label nvidia.com/gpu.product
	Replicas   string // label nvidia.com/gpu.replicas
}

// PriceBook says what a GPU costs.
type PriceBook interface {
	// Price returns what one physical GPU of the node costs at that time; false if that is not known.
	Price(node Node, at time.Time) (USDPerGPUHour, bool)
	// Source names where the prices come from, as in the settings, e.g. "flat".
	Source() string
	// Split names how a node's price becomes a GPU's price; empty where prices are per GPU.
	Split() string
}
