package amptest

import (
	"fmt"
	"math"
)

// Seconds.
const (
	minute = 60
	hour   = 60 * minute
	daily  = 24 * hour

	// finishedShown is how long a finished job's pod is kept.
	finishedShown = 10 * minute
)

// workload is a kind of work that fills a lane, one pod a period.
type workload struct {
	namespaces []string // the pod's namespace is one of these
	app        string
	ownerKind  string
	period     int64 // seconds
	byCalendar bool  // periods begin at midnight UTC, not at a time of the lane's own
	// lifetime of the pod of the period that starts at start, within it but for
	// the time in the queue and as a finished pod; false if it has none.
	lifetime func(start int64, r random) (lifetime, bool)
	load     load
}

// Keys of the random numbers that a pod's properties are drawn from.
const (
	keyNamespace = iota + 100
	keyName
	keyUID
	keyExists
	keyQueue
	keyStart
	keyPull
	keyLength
	keyNoise
	keyBurst
)

func (w workload) identity(turn int64, r random) podIdentity {
	owner := fmt.Sprintf("%s-%s", w.app, r.with(keyName).suffix(10))
	name := owner + "-" + r.with(keyUID).suffix(5)
	if w.ownerKind == "StatefulSet" {
		owner, name = w.app, w.app+"-0"
	}
	if w.ownerKind == "Job" {
		owner = fmt.Sprintf("%s-%d", w.app, turn)
		name = owner + "-" + r.with(keyUID).suffix(5)
	}
	return podIdentity{
		namespace: w.namespaces[uint64(r.with(keyNamespace))%uint64(len(w.namespaces))],
		name:      name, uid: r.with(keyUID).uuid(), container: "main",
		ownerKind: w.ownerKind, ownerName: owner,
	}
}

// pull is how long a placed pod waits for its image: one to three minutes.
func pull(r random) int64 { return r.with(keyPull).between(1*minute, 3*minute) }

// service runs without end; a new version replaces it every period.
func service(app, namespace string, period int64) workload {
	return workload{
		namespaces: []string{namespace}, app: app, ownerKind: "ReplicaSet", period: period,
		load: load{night: 0.15, day: 0.75, noise: 0.08, active: 1},
		lifetime: func(start int64, r random) (lifetime, bool) {
			end := start + period
			return lifetime{start, start, start + pull(r), end, end}, true
		},
	}
}

// training is a long job that waits for its devices first.
func training(app string, period int64, namespaces ...string) workload {
	return workload{
		namespaces: namespaces, app: app, ownerKind: "Job", period: period,
		load: load{night: 0.9, day: 0.9, noise: 0.07, active: 0.97},
		lifetime: func(start int64, r random) (lifetime, bool) {
			bound := start + r.with(keyStart).between(0, period/10)
			created := bound - r.with(keyQueue).between(5*minute, 40*minute)
			started := bound + pull(r)
			ended := started + r.with(keyLength).between(period/2, period*4/5)
			return lifetime{created, bound, started, ended, ended + finishedShown}, true
		},
	}
}

// notebook is open on most working days and works now and then.
func notebook(user, namespace string) workload {
	return workload{
		namespaces: []string{namespace}, app: "jupyter-" + user, ownerKind: "StatefulSet", period: daily, byCalendar: true,
		load: load{night: 0.6, day: 0.6, noise: 0.3, active: 0.2},
		lifetime: func(start int64, r random) (lifetime, bool) {
			weekday := (floorDiv(start, daily) + 4) % 7 // Unix time began on a Thursday; 0 is Sunday
			if weekday == 0 || weekday == 6 || r.with(keyExists).unit() < 0.1 {
				return lifetime{}, false
			}
			bound := start + r.with(keyStart).between(7*hour, 10*hour)
			ended := start + r.with(keyLength).between(15*hour, 20*hour)
			return lifetime{bound, bound, bound + pull(r), ended, ended}, true
		},
	}
}

// batch is a stream of jobs of 5 to 15 minutes, day and night.
func batch(app string, namespaces ...string) workload {
	return workload{
		namespaces: namespaces, app: app, ownerKind: "Job", period: 20 * minute,
		load: load{night: 0.65, day: 0.65, noise: 0.25, active: 1},
		lifetime: func(start int64, r random) (lifetime, bool) {
			bound := start + r.with(keyStart).between(0, 1*minute)
			started := bound
			if r.with(keyExists).unit() < 0.3 { // the image is on the node already, most times
				started += pull(r)
			}
			ended := started + r.with(keyLength).between(5*minute, 15*minute)
			return lifetime{bound, bound, started, ended, ended + finishedShown}, true
		},
	}
}

// load is how much of a device a pod uses.
type load struct {
	night, day float64 // the mean at 3 and at 15 o'clock UTC
	noise      float64 // the most that it varies, up or down
	active     float64 // the share of the 5-minute intervals in which it works at all
}

// at is the utilization at t, 0 to 1.
func (l load) at(t int64, r random) float64 {
	if r.with(keyBurst).with(uint64(floorDiv(t, 5*minute))).unit() >= l.active {
		return 0
	}
	const coldest = 3 * hour
	wave := (1 - math.Cos(2*math.Pi*float64((t-coldest)%daily)/daily)) / 2
	noise := l.noise * (2*r.with(keyNoise).with(uint64(t)).unit() - 1)
	return min(max(l.night+(l.day-l.night)*wave+noise, 0), 1)
}
