package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// schedule is what is drawn of a schedule before it begins.
type schedule struct {
	core    core.Config
	faults  []fault
	horizon time.Duration // faults end then
}

// liveness is how long after the last fault every job must have ended.
const liveness = 3 * time.Minute

// newWorld draws a schedule.
func newWorld(seed uint64) *world {
	w := &world{
		seed: seed, draw: rand.New(rand.NewPCG(seed, 19)),
		net:  network{cuts: make(map[[2]int]int), slow: make(map[[2]int]time.Duration)},
		byID: make(map[jobID]*work), addresses: make(map[string]*worker), points: make(map[string]int), marks: make(map[string]int),
	}
	w.manager = &managerHost{w: w, machine: &machine{name: "jm"}, disk: disk{
		jobs: make(map[jobID][]byte), specs: make(map[jobID][]byte), cordons: make(map[string]wire.Cordon),
		states: make(map[jobID]wire.JobState), attempts: make(map[jobID]int),
	}}
	w.plan.core = core.Config{
		Lease: 6 * time.Second, KillAfter: 3 * time.Second, Settle: time.Second, ScaleInterval: 2 * time.Second,
		Policy: core.Policy(w.draw.IntN(2)),
	}
	w.drawHosts()
	w.drawJobs()
	w.plan.horizon = w.between(2*time.Second, 15*time.Second)
	w.drawFaults()
	return w
}

// drawHosts draws the task managers. Most clusters are small, as then more goes on at each of them.
func (w *world) drawHosts() {
	n := 2 + w.draw.IntN(5)
	switch {
	case w.chance(100):
		n = 7 + w.draw.IntN(44)
	case w.chance(12):
		n = 1
	}
	for range n {
		w.addHost()
	}
}

func (w *world) addHost() *host {
	n := len(w.hosts) + 1
	h := &host{w: w, machine: &machine{number: n, name: fmt.Sprintf("tm%02d", n)}, slots: 1 + w.draw.IntN(4)}
	if w.chance(2) { // several workers, also of small jobs
		h.slots = 1
	}
	w.hosts = append(w.hosts, h)
	return h
}

// slots returns the number of slots of the cluster.
func (w *world) slots() (n int) {
	for _, h := range w.hosts {
		n += h.slots
	}
	return n
}

func (w *world) drawJobs() {
	n := 1 + w.draw.IntN(2)
	if w.chance(10) {
		n = 3 + w.draw.IntN(4)
	}
	for i := range n {
		job := w.drawJob(fmt.Sprintf("job%d", i))
		w.clients = append(w.clients, &client{w: w, job: job})
	}
}

// drawJob draws a job.
func (w *world) drawJob(name string) *work {
	k := &work{
		name: name, shards: 4 << w.draw.IntN(3), overlaps: !w.chance(3), resolves: w.chance(8),
		store: w.newStore("store of " + name), places: make(map[string]*store), origins: make(map[int]map[string]int), ends: make(map[jobID]wire.JobInfo),
	}
	k.sinks = &sinks{w: w, staging: make(map[int]map[int]part)}
	for i := range 1 + w.draw.IntN(2) {
		q := &queue{name: fmt.Sprintf("queue%d", i), max: 2 + w.draw.IntN(26), communicate: 1, compute: w.between(2*time.Millisecond, 350*time.Millisecond)}
		if w.chance(2) {
			q.communicate = 2 + w.draw.IntN(4)
		}
		if w.chance(3) {
			q.stopAt = 1 + w.draw.IntN(q.max)
		}
		k.queues = append(k.queues, q)
	}
	p := 1 + w.draw.IntN(min(k.shards, w.slots()))
	if w.chance(2) {
		p = min(k.shards, max(p, w.slots()*2/3))
	}
	k.spec = wire.JobSpec{
		Name: name, Args: []byte{0xc0}, Graph: []byte("{}"), Parallelism: p, Shards: k.shards, Seed: 1, Artifact: executable, Version: wire.Version,
	}
	if w.chance(3) {
		k.spec.MinParallelism = 1 + w.draw.IntN(p)
	}
	k.spec.Run.Copies = []int{0, 0, 1, 2, 3, wire.NoCopies}[w.draw.IntN(6)]
	switch w.draw.IntN(4) {
	case 0, 1:
		k.spec.Run.Checkpoints = &wire.Checkpoints{Dir: "/checkpoints/" + name, Supersteps: 1 + w.draw.IntN(4)}
	case 2:
		k.spec.Run.Checkpoints = &wire.Checkpoints{Dir: "/checkpoints/" + name, Every: w.between(50*time.Millisecond, time.Second)}
	}
	if w.chance(12) {
		q := k.queues[w.draw.IntN(len(k.queues))]
		last := q.max
		if q.stopAt > 0 {
			last = q.stopAt
		}
		k.userError = &userError{q.name, 1 + w.draw.IntN(last), w.draw.IntN(k.shards), w.chance(3)}
	}
	if w.chance(5) {
		k.spec.Restart = wire.Restart{Strategy: wire.RestartStrategy(1 + w.draw.IntN(3))}
	}
	k.compute()
	return k
}

// begin starts everything.
func (w *world) begin() {
	w.manager.start()
	for _, h := range w.hosts {
		w.after(w.between(0, 300*time.Millisecond), h.start)
	}
	for _, c := range w.clients {
		w.after(w.between(0, w.plan.horizon/2), c.submit)
		if w.chance(14) {
			w.after(w.between(0, 8*time.Second), c.cancel)
		}
		for w.chance(4) {
			w.after(w.between(time.Second, 8*time.Second), c.savepoint)
		}
		for w.chance(5) {
			lo := 1 + w.draw.IntN(c.job.shards)
			to := wire.Parallelism{Min: lo, Max: lo + w.draw.IntN(c.job.shards-lo+1)}
			if lo <= w.slots() {
				w.after(w.between(time.Second, 8*time.Second), func() { c.scale(to) })
			}
		}
	}
}
