package copies

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// maxStates is the largest number of states of a queue that a Store holds: the newest that is
// complete, one that is under way, and one after which no superstep follows.
const maxStates = 3

// Store is what a process holds of the states of queues. It outlives the attempts of a job. The zero
// value is an empty Store. Its methods may be called from any goroutine.
type Store struct {
	mu     sync.Mutex
	queues map[string]*shelf
}

// shelf is what a Store has of one queue.
type shelf struct {
	complete State     // newest state that is known to be complete; its Of is 0 if there is none
	states   []*heldOf // the oldest first
	emptied  []*heldOf // for reuse
	spare    []*piece  // for reuse, the oldest first
	bytes    int64     // capacity of the pieces of states
	spared   int64     // capacity of spare
}

// heldOf has the held pieces of a state, by number.
type heldOf struct {
	State
	pieces map[int]*piece
	read   bool // from a file, for the attempt that begins
}

// piece is a piece of a state in memory.
type piece struct {
	data  []byte
	sum   checksum.Sum // of data
	users int          // the Store while it holds the piece, and those who read it (guarded by Store.mu)
	own   bool         // this process has shared the piece, and not received a copy (guarded by Store.mu)
	lent  bool         // data was returned by Store.Piece, so it is not reused (guarded by Store.mu)
	shelf *shelf
}

// Put copies a piece of a state into the Store. It ignores a piece that the Store holds already, or
// that is of a state older than one that is known to be complete.
func (s *Store) Put(state State, number int, data []byte) error {
	if err := state.checkPiece(number, len(data)); err != nil {
		return err
	}
	if !s.wants(state, number) {
		return nil
	}
	p := s.take(state.Queue, len(data))
	if cap(p.data) < len(data) {
		p.data = make([]byte, 0, roomFor(len(data)))
	}
	p.sum = 0
	for rest := data; len(rest) > 0; {
		part := rest[:min(len(rest), checksum.PieceBytes)]
		p.data, p.sum, rest = append(p.data, part...), p.sum.Add(part), rest[len(part):]
	}
	p.own = true
	s.put(state, number, p)
	return nil
}

// Piece returns a piece, or nil if the Store does not hold it. The caller must not modify it.
func (s *Store) Piece(state State, number int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.find(state, number)
	if p == nil {
		return nil
	}
	p.lent = true
	return p.data
}

// Held says what the Store holds, sorted by queue. The states of a queue begin with the oldest. What
// it says remains true until New only if no Exchange is open.
func (s *Store) Held() (all []Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range slices.Sorted(maps.Keys(s.queues)) {
		for _, h := range s.queues[queue].states {
			all = append(all, Held{h.State, slices.Sorted(maps.Keys(h.pieces))})
		}
	}
	return all
}

// Read says which of the states that the Store holds were read from files, and not kept since the attempt
// before.
func (s *Store) Read() (all []Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range slices.Sorted(maps.Keys(s.queues)) {
		for _, h := range s.queues[queue].states {
			if h.read {
				all = append(all, Held{h.State, slices.Sorted(maps.Keys(h.pieces))})
			}
		}
	}
	return all
}

// noteRead notes that a state was read from a file.
func (s *Store) noteRead(state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held(s.shelf(state.Queue), state).read = true
}

// Complete says that every piece of a state is held by all workers that should hold it. The Store
// drops the older states of the queue, and refuses their pieces from now on.
func (s *Store) Complete(state State) {
	if state.check() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.shelf(state.Queue)
	if q.complete.Of > 0 && state.compare(q.complete) <= 0 {
		return
	}
	s.known(q, state)
	for i := len(q.states) - 1; i >= 0; i-- {
		if held := q.states[i].State; held != state && held.compare(state) <= 0 {
			s.drop(q, i)
		}
	}
}

// Memory returns the number of bytes of memory that the pieces take, with what is kept for reuse. They are at
// most three times the largest state that it has held lately, as it holds one complete state of a queue and one
// that is under way.
func (s *Store) Memory() (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues {
		bytes += q.bytes + q.spared
	}
	return bytes
}

// Keep drops all states but the given ones, from which an attempt continues. These are complete.
// What was known about others is forgotten, as the attempt may do supersteps again.
// The first holder of a piece counts as the worker that has shared it, among the first workers, of the
// number sharing; if none of these holds the piece, it is the one that inherits it.
func (s *Store) Keep(choices []Choice, worker, sharing int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for queue, q := range s.queues {
		for i := len(q.states) - 1; i >= 0; i-- {
			if !slices.ContainsFunc(choices, func(c Choice) bool { return c.State == q.states[i].State }) {
				s.drop(q, i)
			}
		}
		for _, h := range q.states {
			h.read = false
		}
		if len(q.states) == 0 {
			delete(s.queues, queue)
		}
	}
	for _, c := range heldBelow(choices, sharing) {
		s.known(s.shelf(c.Queue), c.State)
		for number, of := range c.Holders {
			if p := s.find(c.State, number); p != nil {
				p.own = of[0] == worker
			}
		}
	}
}

// own returns the numbers of the pieces of a state that this process has shared, in ascending order.
func (s *Store) own(state State) (numbers []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[state.Queue]; q != nil {
		for _, h := range q.states {
			for number, p := range h.pieces {
				if h.State == state && p.own {
					numbers = append(numbers, number)
				}
			}
		}
	}
	slices.Sort(numbers)
	return numbers
}

// newest returns the newest state of each queue that is known to be complete, sorted by queue.
func (s *Store) newest() (states []State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range slices.Sorted(maps.Keys(s.queues)) {
		if q := s.queues[queue]; q.complete.Of > 0 {
			states = append(states, q.complete)
		}
	}
	return states
}

// dropState drops a state that will never be complete.
func (s *Store) dropState(state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[state.Queue]
	if q == nil || q.complete == state {
		return
	}
	if i := slices.IndexFunc(q.states, func(h *heldOf) bool { return h.State == state }); i >= 0 {
		s.drop(q, i)
	}
}

// wants reports whether the Store would hold a piece of which it is given a copy.
func (s *Store) wants(state State, number int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.shelf(state.Queue).refuses(state) && s.find(state, number) == nil
}

// refuses reports whether the state is older than one that is known to be complete.
func (q *shelf) refuses(state State) bool {
	return q.complete.Of > 0 && state != q.complete && state.compare(q.complete) <= 0
}

// take returns a piece with the memory of a dropped one that has room for n bytes, or else without
// memory. Its data is empty. The caller passes it to put or release.
func (s *Store) take(queue string, n int) *piece {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.shelf(queue)
	best := -1
	for i, p := range q.spare {
		if p.fits(n) && (best < 0 || cap(p.data) < cap(q.spare[best].data)) {
			best = i
		}
	}
	if best < 0 {
		q.letGo(int64(n))
		return &piece{users: 1, shelf: q}
	}
	p := q.spare[best]
	q.spare = slices.Delete(q.spare, best, best+1)
	q.spared -= int64(cap(p.data))
	p.data, p.users, p.own = p.data[:0], 1, false
	return p
}

// growth returns how many bytes of new memory a piece of n bytes takes.
func (s *Store) growth(queue string, n int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.shelf(queue)
	if slices.ContainsFunc(q.spare, func(p *piece) bool { return p.fits(n) }) {
		return 0
	}
	return max(0, int64(roomFor(n))-q.spared)
}

// trim lets go of all memory that is kept for reuse.
func (s *Store) trim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues {
		q.letGo(q.spared)
	}
}

// fits reports whether a piece of n bytes is put into the memory of p.
func (p *piece) fits(n int) bool { return cap(p.data) >= n && cap(p.data) <= roomFor(roomFor(n)) }

// letGo lets go of the oldest memory that is kept for reuse, n bytes or somewhat more.
func (q *shelf) letGo(n int64) {
	k := 0
	for ; n > 0 && k < len(q.spare); k++ {
		q.spared -= int64(cap(q.spare[k].data))
		n -= int64(cap(q.spare[k].data))
	}
	q.spare = slices.Delete(q.spare, 0, k)
}

// roomFor returns the capacity of the memory of a piece of n bytes. It leaves room for the next
// state, whose piece with the same number may be somewhat longer.
func roomFor(n int) int { return n + n/8 + 64 }

// put puts a piece from take into the Store, which it belongs to from then on.
func (s *Store) put(state State, number int, p *piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.shelf(state.Queue)
	if q.refuses(state) || s.find(state, number) != nil {
		s.released(p)
		return
	}
	if p.shelf = q; p.data == nil {
		p.data = []byte{} // nil would say that it is not held
	}
	s.held(q, state).pieces[number] = p
	q.bytes += int64(cap(p.data))
	if len(q.states) > maxStates { // the oldest that is not known to be complete
		s.drop(q, slices.IndexFunc(q.states, func(h *heldOf) bool { return h.State != q.complete }))
	}
}

// acquire returns a piece that the Store does not reuse before it is released, or nil.
func (s *Store) acquire(state State, number int) *piece {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.find(state, number)
	if p != nil {
		p.users++
	}
	return p
}

// release ends the use of a piece from acquire or take.
func (s *Store) release(p *piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released(p)
}

// The following methods are called with mu held.

// shelf returns what the Store has of a queue. It adds an empty shelf if there is none.
func (s *Store) shelf(queue string) *shelf {
	q := s.queues[queue]
	if q == nil {
		if s.queues == nil {
			s.queues = make(map[string]*shelf)
		}
		q = &shelf{}
		s.queues[strings.Clone(queue)] = q
	}
	return q
}

// known notes the newest state of a queue that is complete.
func (s *Store) known(q *shelf, state State) {
	q.complete = state
	if state.Ended { // no further state comes
		q.spare, q.spared, q.emptied = nil, 0, nil
	}
}

// find returns a held piece, or nil.
func (s *Store) find(state State, number int) *piece {
	if q := s.queues[state.Queue]; q != nil {
		for _, h := range q.states {
			if h.State == state {
				return h.pieces[number]
			}
		}
	}
	return nil
}

// held returns the held pieces of a state. It adds the state if there is none.
func (s *Store) held(q *shelf, state State) *heldOf {
	at, found := slices.BinarySearchFunc(q.states, state, func(h *heldOf, t State) int {
		if c := h.compare(t); c != 0 {
			return c
		}
		return h.Of - t.Of
	})
	if found {
		return q.states[at]
	}
	var h *heldOf
	if n := len(q.emptied); n > 0 {
		h, q.emptied = q.emptied[n-1], q.emptied[:n-1]
	} else {
		h = &heldOf{pieces: make(map[int]*piece)}
	}
	h.State, h.read = state, false
	q.states = slices.Insert(q.states, at, h)
	return h
}

// drop drops the state with index i.
func (s *Store) drop(q *shelf, i int) {
	h := q.states[i]
	q.states = slices.Delete(q.states, i, i+1)
	for _, p := range h.pieces {
		q.bytes -= int64(cap(p.data))
	}
	for _, p := range h.pieces {
		s.released(p)
	}
	clear(h.pieces)
	q.emptied = append(q.emptied, h)
}

// released ends a use of a piece. When nobody uses it any more, its memory is kept for reuse. Of a
// queue, at most as much is kept as its states take, and an eighth more, as sizes vary.
func (s *Store) released(p *piece) {
	p.users--
	q := p.shelf
	if p.users > 0 || p.lent || q.complete.Ended || cap(p.data) == 0 {
		return
	}
	q.spare, q.spared = append(q.spare, p), q.spared+int64(cap(p.data))
	q.letGo(q.spared - q.bytes - q.bytes/8)
}
