package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/origin"
	"github.com/superstep-ml/superstep/engine/task"
)

// exchange copies states between the workers of an attempt: the core of package copies, and links that
// send its messages again until they are acknowledged.
type exchange struct {
	k       *worker
	core    *copies.Core
	links   []*link
	waiting []sharing
	busy    bool
	begun   map[string]int // newest superstep of each queue that was to be shared
	settled map[string]int // newest superstep of each queue whose copies are complete, in worker 0
}

// sharing is a state that is to be shared.
type sharing struct {
	copies.State
	next   int
	pieces [][]byte
}

// link sends messages to another worker. Those that are not acknowledged are sent again on the next
// connection.
type link struct {
	x            *exchange
	to           int
	queue        []copies.Message
	acknowledged int
	sent         int
	number       int // of the connection
	broken       bool
}

// startCopies begins to copy states, and fetches those from which queues continue; see
// engine/worker_copies.go.
func (k *worker) startCopies(f *fiber) error {
	choices, err := origin.Choices(k.start.Held)
	if err == nil {
		choices, err = origin.Chosen(choices, k.origin)
	}
	if err != nil {
		return clusterFault(err)
	}
	if !k.copying() {
		return nil
	}
	k.c.store.Keep(choices, k.d.Worker, k.sharing())
	x := &exchange{k: k, begun: make(map[string]int), settled: make(map[string]int)}
	for to := range k.d.Slots {
		x.links = append(x.links, &link{x: x, to: to})
	}
	k.exchange = x
	x.core = copies.NewCore(k.d.Worker, k.sharing(), k.d.Spec.Run.NumberOfCopies(), k.c.store, x.send, x.noteSettled)
	x.core.Expect(choices)
	if err := x.inherit(f, choices); err != nil {
		return err
	}
	for _, choice := range choices {
		parts := k.part().NeededParts(k.planOf(), choice.Queue, choice.Of-1)
		needed := append([]bool{slices.Contains(parts, true)}, parts...)
		if !needed[0] {
			continue
		}
		pieces, err := x.fetch(f, choice, needed)
		if err != nil {
			return err
		}
		cut, err := task.CutOfPieces(pieces)
		if err == nil && cut.Step != choice.Superstep {
			err = fmt.Errorf("its superstep is %d", cut.Step)
		}
		if err != nil {
			return clusterFault(fmt.Errorf("the state of %s that was kept in memory: %w", choice.State, err))
		}
		k.from[choice.Queue] = cut
	}
	return nil
}

// inherit makes the worker hold the pieces that only workers without slots hold, and repairs the states.
func (x *exchange) inherit(f *fiber, choices []copies.Choice) error {
	for _, c := range choices {
		if x.k.gives() {
			return nil
		}
		pieces, err := x.fetch(f, c, c.Inherits(x.k.d.Worker, x.k.sharing()))
		if err != nil {
			return err
		}
		for number, data := range pieces {
			if data != nil {
				if err := x.k.c.store.Put(c.State, number, data); err != nil {
					x.k.c.w.violated("a piece cannot be kept: %v", err)
				}
			}
		}
		x.core.Repair([]copies.Choice{c})
	}
	return nil
}

// fetch returns the pieces of a state that are needed, from the store or from other workers.
func (x *exchange) fetch(f *fiber, c copies.Choice, needed []bool) ([][]byte, error) {
	w, k := x.k.c.w, x.k
	pieces := make([][]byte, c.Of)
	without := make(map[int]bool)
	for i := range pieces {
		if !needed[i] {
			continue
		}
		pieces[i] = k.c.store.Piece(c.State, i)
		for round := 0; pieces[i] == nil; round++ {
			of := slices.DeleteFunc(slices.Clone(c.Holders[i]), func(h int) bool { return without[h] || h == k.d.Worker })
			if len(of) == 0 {
				return nil, peerFailed("nobody holds piece %d of %s", i, c.State)
			}
			holder := k.group.members[of[round%len(of)]]
			w.point("fetch", k.c)
			if err := f.sleep(w.delay(k.c.machine, holder.c.machine) + w.delay(holder.c.machine, k.c.machine)); err != nil {
				return nil, err
			}
			ok := !holder.c.dead && !holder.c.stopped && !holder.closed && w.net.reaches(k.c.machine, holder.c.machine) && w.net.reaches(holder.c.machine, k.c.machine)
			switch {
			case !ok || holder.exchange == nil:
				if err := f.sleep(w.between(20*time.Millisecond, 200*time.Millisecond)); err != nil {
					return nil, err
				}
			default:
				if pieces[i] = holder.c.store.Piece(c.State, i); pieces[i] == nil {
					without[holder.d.Worker] = true
				}
			}
		}
	}
	return pieces, nil
}

// open reports whether the exchange is that of the current attempt.
func (x *exchange) open() bool { return x.k.exchange == x && !x.k.closed }

// share shares what this worker has of a new state.
func (x *exchange) share(s copies.State, first int, pieces [][]byte) {
	if !x.open() || !x.core.Begin(s) {
		return
	}
	x.begun[s.Queue] = s.Superstep
	x.waiting = append(x.waiting, sharing{s, first, pieces})
	x.shareNext()
}

// noteSettled notes which states are complete.
func (x *exchange) noteSettled() {
	for queue, step := range x.begun {
		if !x.core.UnderWay(queue) {
			x.settled[queue] = step
		}
	}
}

// shareNext puts the next piece of the first state that need not wait into the store, and sends it.
func (x *exchange) shareNext() {
	first := slices.IndexFunc(x.waiting, func(s sharing) bool { return !x.core.Waits(s.State) })
	if x.busy || first < 0 {
		return
	}
	s := x.waiting[first]
	x.waiting = slices.Insert(slices.Delete(x.waiting, first, first+1), 0, s)
	x.busy = true
	x.k.c.after(x.k.c.w.between(0, 3*time.Millisecond), func() {
		x.busy = false
		if !x.open() {
			return
		}
		x.k.c.w.point("copy", x.k.c)
		s := &x.waiting[0]
		if len(s.pieces) == 0 {
			state := s.State
			x.waiting = x.waiting[1:]
			x.writeFile(state)
			x.core.End(state, false)
		} else {
			if err := x.k.c.store.Put(s.State, s.next, s.pieces[0]); err != nil {
				x.k.c.w.violated("a piece cannot be kept: %v", err)
			}
			number := s.next
			s.next, s.pieces = s.next+1, s.pieces[1:]
			x.core.Share(s.State, number)
		}
		x.shareNext()
	})
}

// send queues a message for another worker.
func (x *exchange) send(to int, m copies.Message) {
	l := x.links[to]
	l.queue = append(l.queue, m)
	l.pump()
}

// pump sends what was not sent on this connection.
func (l *link) pump() {
	x := l.x
	for l.sent < len(l.queue) && x.open() && !l.broken {
		m := l.queue[l.sent]
		var data []byte
		if number, ok := m.Number(); ok {
			if data = x.k.c.store.Piece(m.State, number); data == nil { // a newer state is complete
				l.queue = slices.Delete(l.queue, l.sent, l.sent+1)
				x.core.Acknowledged(m)
				continue
			}
		}
		l.sent++
		l.transmit(l.number, m, data)
	}
}

// transmit sends a message over the connection of the given number. It is acknowledged, or refused if the
// other worker takes no copies yet.
func (l *link) transmit(number int, m copies.Message, data []byte) {
	x := l.x
	me := x.k.d.Worker
	x.k.group.send(me, l.to, func(o *worker) {
		takes := o.exchange != nil
		if takes {
			if piece, ok := m.Number(); ok {
				if err := o.c.store.Put(m.State, piece, data); err != nil {
					o.c.w.violated("a piece cannot be kept: %v", err)
				}
			} else {
				o.exchange.core.Received(me, m)
				o.exchange.shareNext()
			}
		}
		o.group.send(l.to, me, func(*worker) {
			switch {
			case !x.open() || l.number != number:
			case takes:
				l.acknowledge()
			default:
				l.again()
			}
		})
	})
}

// acknowledge notes that the oldest message that was sent has arrived.
func (l *link) acknowledge() {
	m := l.queue[l.acknowledged]
	l.acknowledged++
	if l.acknowledged == len(l.queue) {
		l.queue, l.acknowledged, l.sent = l.queue[:0], 0, 0
	}
	l.x.core.Acknowledged(m)
	l.x.shareNext()
}

// again makes the connection anew after a while.
func (l *link) again() {
	l.number++
	l.broken = true
	l.x.k.c.after(l.x.k.c.w.between(20*time.Millisecond, 200*time.Millisecond), func() {
		l.broken, l.sent = false, l.acknowledged
		l.pump()
	})
}
