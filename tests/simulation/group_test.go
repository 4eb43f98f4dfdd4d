package simulation

import (
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// group is the workers of an attempt, which are connected with each other.
type group struct {
	w       *world
	job     jobID
	attempt int
	members []*worker // by number; nil before a worker has begun to run
	left    []bool    // by number
	routes  map[[2]int]*route
	silent  map[[2]int]time.Duration // receiver, sender -> for how long nothing has come
}

// groupOf returns the group of an attempt.
func (w *world) groupOf(ref wire.WorkerRef, size int) *group {
	for _, g := range w.groups {
		if g.job == ref.Job && g.attempt == ref.Attempt {
			return g
		}
	}
	g := &group{w: w, job: ref.Job, attempt: ref.Attempt, members: make([]*worker, size), left: make([]bool, size), routes: make(map[[2]int]*route), silent: make(map[[2]int]time.Duration)}
	w.groups = append(w.groups, g)
	return g
}

// join adds a worker.
func (g *group) join(k *worker) {
	g.members[k.d.Worker] = k
	k.group = g
	for _, o := range g.members {
		if o != nil && o.work != nil {
			o.work.wake()
		}
	}
	g.w.watch()
}

// complete reports whether all workers have joined.
func (g *group) complete() bool {
	for i, k := range g.members {
		if k == nil && !g.left[i] {
			return false
		}
	}
	return true
}

// send sends a message to another worker.
func (g *group) send(from, to int, deliver func(to *worker)) {
	a, b := g.members[from], g.members[to]
	if b == nil || a == nil {
		return
	}
	r := g.routes[[2]int{from, to}]
	if r == nil {
		r = &route{w: g.w, from: a.c.machine, to: b.c.machine}
		g.routes[[2]int{from, to}] = r
	}
	r.send(func() {
		b.c.do(func() {
			if !b.closed {
				deliver(b)
			}
		})
	})
}

// reset ends the connections of a worker. The others notice that, unless its machine is off.
func (g *group) reset(k *worker) {
	me := k.d.Worker
	if g.left[me] {
		return
	}
	g.left[me] = true
	if !k.c.machine.off {
		for i := range g.members {
			if i != me {
				g.send(me, i, func(o *worker) { o.lostPeer(me, "its connection was closed") })
			}
		}
	}
	for _, left := range g.left {
		if !left {
			return
		}
	}
	g.w.forget(g)
}

func (w *world) forget(g *group) {
	for i, o := range w.groups {
		if o == g {
			w.groups = append(w.groups[:i], w.groups[i+1:]...)
			return
		}
	}
}

// lostPeer is called when the worker has lost contact with another one.
func (k *worker) lostPeer(peer int, how string) {
	if k.leftGang || k.work == nil || k.group == nil {
		return
	}
	k.work.cancel(peerFailed("worker %d is gone: %s", peer, how))
}

const (
	watchEvery    = 250 * time.Millisecond
	peerDetection = 1500 * time.Millisecond
)

// watch watches the silence of workers as long as something could make them silent.
func (w *world) watch() {
	if !w.watching {
		w.watching = true
		w.after(watchEvery, w.watchOnce)
	}
}

func (w *world) watchOnce() {
	w.watching = false
	some := len(w.net.cuts) > 0
	for _, g := range append([]*group(nil), w.groups...) {
		for i, k := range g.members {
			for j, o := range g.members {
				if i == j || k == nil || o == nil || g.left[i] || k.c.dead {
					continue
				}
				key := [2]int{i, j}
				mute := o.c.stopped || o.c.machine.off || !w.net.reaches(o.c.machine, k.c.machine)
				if !mute {
					delete(g.silent, key)
					continue
				}
				some = true
				if k.c.stopped {
					continue
				}
				if g.silent[key] += watchEvery; g.silent[key] >= peerDetection {
					k.c.do(func() { k.lostPeer(j, "it was silent") })
				}
			}
		}
	}
	if some {
		w.watch()
	}
}

// gangKey says what a message between the subtasks of a queue is about.
type gangKey struct {
	kind  gangKind
	queue string
	step  int
}

type gangKind int

const (
	contribution gangKind = iota
	combined
	verdictWord
	arrived
	released
)

// gangMessage is a message between the subtasks of a queue.
type gangMessage struct {
	from, lo int
	values   []uint64
	word     int64
}

// tell sends a message about a superstep to another worker.
func (k *worker) tell(to int, key gangKey, m gangMessage) {
	m.from = k.d.Worker
	k.group.send(m.from, to, func(o *worker) {
		o.inbox[key] = append(o.inbox[key], m)
		if o.work != nil {
			o.work.wake()
		}
	})
}

// tellAll sends a message to all other workers.
func (k *worker) tellAll(key gangKey, m gangMessage) {
	for i := range k.sharing() {
		if i != k.d.Worker {
			k.tell(i, key, m)
		}
	}
}

// await waits for n messages about a superstep.
func (k *worker) await(f *fiber, key gangKey, n int) ([]gangMessage, error) {
	err := f.until(func() bool { return len(k.inbox[key]) >= n })
	all := k.inbox[key]
	delete(k.inbox, key)
	return all, err
}

// barrier waits until all workers have come to the same place.
func (k *worker) barrier(f *fiber, queue string, step int) error {
	if k.sharing() == 1 {
		return nil
	}
	come, go_ := gangKey{arrived, queue, step}, gangKey{released, queue, step}
	if k.d.Worker != 0 {
		k.tell(0, come, gangMessage{})
		_, err := k.await(f, go_, 1)
		return err
	}
	_, err := k.await(f, come, k.sharing()-1)
	if err == nil {
		k.tellAll(go_, gangMessage{})
	}
	return err
}
