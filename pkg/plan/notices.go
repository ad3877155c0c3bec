package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
)

// Notices are the remarks that go with the answer, in the order of the steps that made them.
func (p *Plan) Notices() []Notice { return p.notices }

func (p *Plan) note(format string, args ...any) {
	p.notices = append(p.notices, Notice{Text: fmt.Sprintf(format, args...)})
}

func (p *Plan) warn(format string, args ...any) {
	p.notices = append(p.notices, Notice{Warning: true, Text: fmt.Sprintf(format, args...)})
}

// noteFound tells what the probes missed.
func (p *Plan) noteFound() {
	f := p.found
	switch {
	case !f.Requests:
		p.warn("%s shows no GPU requests in this time range: nothing can be allocated to anyone. Check that kube-state-metrics is scraped and that the range is right.", seriesRequests)
	case !f.Phases:
		p.warn("%s is missing: it can't be told which pods run, so nothing is counted as held. Let kube-state-metrics collect pods' phases.", seriesPhase)
	}
	if f.Requests && len(f.ClustersWithoutNodes) > 0 {
		p.note("No kube_node_* series in %s: it can't be told whether a pod's node still exists, so every running pod counts.", clusterList(f.ClustersWithoutNodes))
	}
	if f.Assumed == cost.Unknown {
		p.warn("Some series lack the label %q while several clusters have it: they stand under cluster %s. Add the label to every source.", p.options.ClusterLabel, cost.Unknown)
	}
	p.noteUtilization()
	if p.needsCapacity() && len(f.ClustersWithoutCapacity) > 0 && !f.Capacity {
		p.note("%s shows no GPU capacity in this time range: what dcgm-exporter sees is taken for it, if anything.", seriesCapacity)
	}
}

func (p *Plan) noteUtilization() {
	if !p.query.AsksAny(cost.Metric.NeedsUtilization) {
		return
	}
	switch {
	case len(p.composer.main) == 0:
		p.warn("No utilization metric in this time range (looked for %s): what is used is unknown. Check that dcgm-exporter is scraped and exports it.", strings.Join(p.options.WantedMetrics(), " and "))
	case p.options.Metric == MetricAuto && blindUnderMIG(p.composer.main[0]):
		p.note("Utilization comes from %s, since %s is missing; it says whether any kernel ran, not how much of the GPU did.", gpuUtil.Name, engineActive.Name)
	}
}

// WantedMetrics are the utilization metrics that the settings look for, best first.
func (o Options) WantedMetrics() []string {
	if o.Metric != MetricAuto {
		return []string{o.Metric}
	}
	return []string{engineActive.Name, gpuUtil.Name}
}

func clusterList(names []string) string {
	known := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "" || n == cost.Unknown })
	switch len(known) {
	case 0:
		return "this workspace"
	case 1:
		return "cluster " + known[0]
	default:
		return "clusters " + few(known)
	}
}

// noteAnswers tells what the answers showed besides the figures.
func (p *Plan) noteAnswers(a Answers, account cost.Account) {
	for _, w := range a.Warnings {
		p.warn("AMP: %s", w)
	}
	p.noteSpare(a.table)
	p.noteSignals(a)
	p.noteCoverage(account)
	p.noteStock(a.table, account)
	p.noteShares(account)
}

// noteShares tells which units are in no figure but units, because nobody knows what they are worth.
func (p *Plan) noteShares(account cost.Account) {
	hours := 0.0
	for _, point := range account.Axis.Points {
		hours += point.Hours
	}
	held, had := map[string]float64{}, map[string]float64{}
	for _, u := range account.Usage {
		if u.ShareErr != nil && !u.Filtered {
			held[u.ShareErr.Error()] += sum(u.Held) / hours
		}
	}
	for _, st := range slices.Concat(account.Stock, account.Seen) {
		if st.ShareErr != nil {
			had[st.ShareErr.Error()] += sum(st.Units) / hours
		}
	}
	for _, why := range slices.Sorted(maps.Keys(held)) {
		p.warn("%s units held are in no figure but units: %s.", number(held[why]), why)
	}
	for _, why := range slices.Sorted(maps.Keys(had)) {
		p.warn("%s units of the nodes' are neither in capacity nor in idle: %s.", number(had[why]), why)
	}
}

// noteStock tells where capacity comes from dcgm-exporter, and where it is not known at all.
func (p *Plan) noteStock(t *table, account cost.Account) {
	if !p.needsCapacity() {
		return
	}
	known, counted := map[string]bool{}, map[string]bool{}
	for key, columns := range t.rows {
		if columns[seen] != nil {
			counted[key.cluster] = true
		}
		known[key.cluster] = known[key.cluster] || columns[seen] != nil || columns[capacity] != nil
	}
	if len(counted) > 0 {
		p.warn("%s lacks nodes of %s: the GPUs that dcgm-exporter sees there are taken for their capacity.", seriesCapacity, clusterList(slices.Sorted(maps.Keys(counted))))
	}
	unknown := map[string]bool{}
	for _, u := range account.Usage {
		if !known[u.Group.Cluster] {
			unknown[u.Group.Cluster] = true
		}
	}
	if len(unknown) > 0 {
		p.warn("%s shows no GPU capacity in %s: what is idle there is unknown, and in no figure. Let kube-state-metrics collect nodes.", seriesCapacity, clusterList(slices.Sorted(maps.Keys(unknown))))
	}
}

// noteSpare tells how much of what was measured came from the stand-in metric.
func (p *Plan) noteSpare(t *table) {
	var bySpare, byAny float64
	for _, columns := range t.rows {
		bySpare += sum(columns[spared])
		byAny += sum(columns[measured])
	}
	if bySpare > 0 {
		p.note("%s of the measured GPU time comes from %s, where devices lack %s.", inPercent(bySpare/byAny), p.composer.spare[0], p.composer.main[0])
	}
}

func (p *Plan) noteSignals(a Answers) {
	waiting, unasked, standing := 0.0, 0.0, 0.0
	lost, over := map[string]float64{}, map[string]float64{}
	for _, s := range a.signal {
		switch quantity(s.Labels[labelQuantity]) {
		case demand:
			waiting += slices.Max(s.Values)
		case unrequested:
			unasked += sum(s.Values) / float64(len(s.Values))
		case stuck:
			if len(s.Values) > 1 {
				standing += slices.Min(s.Values)
			}
		case gone:
			lost[p.nodeName(s.Labels)] = slices.Max(s.Values)
		case overfull:
			over[p.nodeName(s.Labels)] = slices.Max(s.Values)
		}
	}
	if waiting > 0 {
		p.note("pending demand of %s GPUs or slices: pods that wait for a node cost nothing yet.", number(waiting))
	}
	if unasked >= 0.005 {
		p.warn("unrequested use %s GPUs: devices are busy that no running pod asked for. It costs no business unit; it is idle capacity in use.", number(unasked))
	}
	if standing > 0 {
		p.warn("%s stands still at 0 on %s GPUs while %s says that they are busy: the figures keep the 0. Restart dcgm-exporter there, or choose the other metric.",
			p.composer.main[0], number(standing), p.composer.spare[0])
	}
	if len(lost) > 0 {
		p.warn("Pods that ask for GPUs seem to run on nodes that do not exist: %s. They cost nothing.", quantities(lost))
	}
	if len(over) > 0 {
		p.warn("Pods hold more GPUs or slices than their nodes have: %s too many. All of them are in allocated; the nodes have no idle.", quantities(over))
	}
}

// nodeName names a node so that equal names of several clusters are told apart.
func (p *Plan) nodeName(labels map[string]string) string {
	if cluster := labels[p.options.ClusterLabel]; cluster != "" && len(p.found.Clusters) > 1 {
		return labels[labelNode] + " of cluster " + cluster
	}
	return labels[labelNode]
}

// quantities lists some of the names with their numbers.
func quantities(of map[string]float64) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		texts = append(texts, name+" ("+number(of[name])+")")
	}
	return few(texts)
}

// noteCoverage tells where kube-state-metrics was not seen all the time.
func (p *Plan) noteCoverage(account cost.Account) {
	hours := 0.0
	for _, point := range account.Axis.Points {
		hours += point.Hours
	}
	for _, cluster := range slices.Sorted(maps.Keys(account.Observed)) {
		if seen := sum(account.Observed[cluster]); seen < hours*(1-nothing) {
			where := ""
			if cluster != cost.Unknown {
				where = " of cluster " + cluster
			}
			p.warn("coverage %s%s: kube-state-metrics was not seen in the rest of the time range, which costs nothing here. The figures are too low by as much.", inPercent(seen/hours), where)
		}
	}
}

// maxNamed bounds how many names a notice lists.
const maxNamed = 5

func few(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

func sum(column []float64) float64 {
	total := 0.0
	for _, v := range column {
		total += v
	}
	return total
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func inPercent(ratio float64) string { return strconv.FormatFloat(ratio*100, 'f', 1, 64) + "%" }
