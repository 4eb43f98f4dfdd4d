package copies

// Core decides which messages a worker sends. It does no input or output: its caller tells it what
// has happened, and passes on what it gives to send. The pieces themselves go from Store to Store
// beside it.
//
// Every worker shares its pieces of a state: it sends a copy of each to the next workers. When all
// copies are acknowledged, the worker reports that to worker 0. In worker 0, a state that is under
// way has these phases:
//
//	             all workers have reported             all workers know
//	collecting ─────────────────────────────► telling ──────────────────► settled
//
// What worker 0 tells is that the state is complete, or that it is void, because a worker could not
// share its pieces. In the first case all Stores drop the older states of the queue, in the second
// they drop the void one. Since a new state of a queue begins only when the one before is settled, a
// Store holds one complete state of the queue and one that is under way. The last state begins without that,
// but its pieces wait in each worker until the worker knows what has become of the state before (Waits).
type Core struct {
	worker, workers, copies int
	store                   *Store
	send                    func(to int, m Message)
	settled                 func() // called when a state is settled

	wide   bool                // later states are sent to all workers (gather.go)
	own    map[State]debt      // states whose pieces this worker shares
	begun  map[string]State    // newest state of each queue that this worker shares
	open   map[string]State    // the oldest of them of which this worker does not know what has become of it
	rounds map[string][]*round // of worker 0: the states of each queue that are under way
	told   map[string]State    // of worker 0: newest state of each queue that has left the phase collecting
	voided map[string]bool     // of worker 0: whether that state was void
	free   []*round            // for reuse

	gathers map[State]*gathering // of worker 0: states that all workers are to hold
}

// debt is what a worker still has to do for a state before it reports.
type debt struct {
	unacknowledged int
	sent           bool // all copies are sent
	void           bool // some could not be
	wide           bool // the copies are sent to all workers
	gathers        bool // the state is complete, and now goes to all workers
}

// round is a state that is under way, in worker 0.
type round struct {
	State
	reported []bool // by worker
	missing  int    // workers that have not reported
	untold   int    // workers that do not know yet what has become of the state
	void     bool
	narrow   bool // some worker has not sent its copies to all others
}

// Message is what a worker says to another. Each is acknowledged.
type Message struct {
	kind kind
	State
	piece int  // of kindPiece
	void  bool // of kindReport and kindOutcome
	wide  bool // of kindReport: the copies were sent to all workers
}

// Number returns the number of the piece that the message carries; ok is false if it carries none.
func (m Message) Number() (piece int, ok bool) { return m.piece, m.kind == kindPiece }

// NewCore returns the core of a worker. It passes messages for other workers to send, and calls settled
// in worker 0 when a state is settled.
func NewCore(worker, workers, copies int, store *Store, send func(int, Message), settled func()) *Core {
	return &Core{
		worker: worker, workers: workers, copies: min(copies, workers-1), store: store, send: send, settled: settled,
		own: make(map[State]debt), begun: make(map[string]State), open: make(map[string]State), voided: make(map[string]bool), rounds: make(map[string][]*round), told: make(map[string]State),
		gathers: make(map[State]*gathering),
	}
}

// Begin begins to share a state. It returns false if the state is not newer than the one before.
func (c *Core) Begin(s State) bool {
	if before, ok := c.begun[s.Queue]; ok && s.compare(before) <= 0 {
		return false
	}
	c.begun[s.Queue], c.own[s] = s, debt{wide: c.isWide()}
	if _, ok := c.open[s.Queue]; !ok {
		c.open[s.Queue] = s
	}
	if c.worker == 0 {
		c.roundOf(s)
	}
	return true
}

// Waits reports whether no piece of a state that has begun may be put into the Store or sent yet, because
// this worker does not know what has become of the state before. Otherwise Stores would hold three states.
func (c *Core) Waits(s State) bool {
	before, ok := c.open[s.Queue]
	return ok && before.compare(s) < 0
}

// close notes that this worker knows what has become of a state.
func (c *Core) close(s State) {
	if before, ok := c.open[s.Queue]; !ok || s.compare(before) < 0 {
		return
	}
	delete(c.open, s.Queue)
	if newest := c.begun[s.Queue]; newest.compare(s) > 0 {
		c.open[s.Queue] = newest
	}
}

// Voided reports, in worker 0, whether the newest state of a queue that is not collected any more was void.
func (c *Core) Voided(queue string) bool { return c.voided[queue] }

// Expect says that copies of the states from which an attempt continues may be missing. They are under way
// until every worker has called Repair for them.
func (c *Core) Expect(from []Choice) {
	for _, choice := range from {
		if c.worker < c.workers {
			c.Begin(choice.State)
		}
	}
}

// Repair makes the missing copies of states from which an attempt continues. The Store holds all pieces that
// the worker is to send.
func (c *Core) Repair(from []Choice) {
	if c.worker >= c.workers { // it only gives
		return
	}
	for _, choice := range heldBelow(from, c.workers) {
		c.Begin(choice.State)
		for _, l := range choice.lacks(c.worker, c.workers, c.copies) {
			c.copyTo(l.to, choice.State, l.piece)
		}
		c.End(choice.State, false)
	}
}

// Share sends the copies of a piece that the Store holds.
func (c *Core) Share(s State, piece int) {
	copies := c.copies
	if c.own[s].wide {
		copies = c.workers - 1
	}
	for i := range copies {
		c.copyTo((c.worker+1+i)%c.workers, s, piece)
	}
}

// copyTo sends one copy of a piece that the Store holds.
func (c *Core) copyTo(to int, s State, piece int) {
	d, ok := c.own[s]
	if !ok {
		return
	}
	d.unacknowledged++
	c.own[s] = d
	c.send(to, Message{kind: kindPiece, State: s, piece: piece})
}

// End says that no further pieces of a state are shared. If void is set, some could not be.
func (c *Core) End(s State, void bool) {
	d, ok := c.own[s]
	if !ok {
		return
	}
	d.sent, d.void = true, void
	c.own[s] = d
	c.reportIfDone(s, d)
}

// Acknowledged says that a worker has received a message.
func (c *Core) Acknowledged(m Message) {
	switch m.kind {
	case kindPiece:
		if d, ok := c.own[m.State]; ok {
			d.unacknowledged--
			c.own[m.State] = d
			c.reportIfDone(m.State, d)
		}
	case kindOutcome:
		for _, r := range c.rounds[m.Queue] {
			if r.State == m.State {
				r.untold--
				c.settle(r)
				return
			}
		}
	}
}

// Received says that a message other than a piece has come from another worker. A message may come
// several times.
func (c *Core) Received(from int, m Message) {
	switch {
	case m.kind == kindReport && c.worker == 0:
		c.reported(from, m)
	case m.kind == kindGather:
		c.gatherOwn(m.State)
	case m.kind == kindGathered && c.worker == 0:
		c.gathered(from, m.State)
	case m.kind == kindNarrow:
		c.wide = false
	case m.kind == kindOutcome && m.void:
		c.store.dropState(m.State)
		c.close(m.State)
	case m.kind == kindOutcome:
		c.store.Complete(m.State)
		c.close(m.State)
	}
}

// UnderWay reports, in worker 0, whether a state of a queue is not settled.
func (c *Core) UnderWay(queue string) bool { return len(c.rounds[queue]) > 0 }

// reportIfDone reports that this worker has shared its pieces of a state, if nothing is left to do.
// A void state is reported no earlier than others, so that no piece of it comes after its end.
func (c *Core) reportIfDone(s State, d debt) {
	if !d.sent || d.unacknowledged > 0 {
		return
	}
	delete(c.own, s)
	m := Message{kind: kindReport, State: s, void: d.void, wide: d.wide}
	if d.gathers {
		m = Message{kind: kindGathered, State: s}
	}
	if c.worker == 0 {
		c.Received(0, m)
	} else {
		c.send(0, m)
	}
}

// reported notes the report of a worker.
func (c *Core) reported(from int, m Message) {
	r := c.roundOf(m.State)
	if r == nil || r.reported[from] {
		return
	}
	r.reported[from] = true
	r.missing--
	r.void, r.narrow = r.void || m.void, r.narrow || !m.wide
	switch {
	case r.missing > 0:
	case r.narrow && !r.void && c.isWide():
		c.gather(r.State, r)
	default:
		c.tell(r)
	}
}

// roundOf returns the round of a state. It begins one if there is none, unless the state has been
// settled: then it returns nil.
func (c *Core) roundOf(s State) *round {
	for _, r := range c.rounds[s.Queue] {
		if r.State == s {
			return r
		}
	}
	if told, ok := c.told[s.Queue]; ok && s.compare(told) <= 0 {
		return nil
	}
	var r *round
	if n := len(c.free); n > 0 {
		r, c.free = c.free[n-1], c.free[:n-1]
		clear(r.reported)
	} else {
		r = &round{reported: make([]bool, c.workers)}
	}
	r.State, r.missing, r.untold, r.void, r.narrow = s, c.workers, c.workers-1, false, false
	c.rounds[s.Queue] = append(c.rounds[s.Queue], r)
	return r
}

// tell tells all workers what has become of a state.
func (c *Core) tell(r *round) {
	if told, ok := c.told[r.Queue]; !ok || r.compare(told) > 0 {
		c.told[r.Queue], c.voided[r.Queue] = r.State, r.void
	}
	m := Message{kind: kindOutcome, State: r.State, void: r.void}
	c.Received(0, m)
	for to := 1; to < c.workers; to++ {
		c.send(to, m)
	}
	c.settle(r)
}

// settle ends a round if all workers know what has become of the state.
func (c *Core) settle(r *round) {
	if r.untold > 0 {
		return
	}
	under := c.rounds[r.Queue]
	for i := range under {
		if under[i] == r {
			c.rounds[r.Queue] = append(under[:i], under[i+1:]...)
			break
		}
	}
	c.free = append(c.free, r)
	c.settled()
}
