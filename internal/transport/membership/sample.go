package membership

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// sampler reads the states of the ranks of a process and reports them to the coordinator: all
// changes once a beat, and a rank at once if it is in the same operation at two looks. So ranks
// that proceed are reported rarely, and ranks that wait, which may disagree, soon.
type sampler struct {
	look  func() []State // nil: nothing to look at
	link  link
	every time.Duration // between states
	asked chan struct{}

	mu    sync.Mutex
	ranks map[int]*track
}

// track has the reported state of one rank.
type track struct {
	seen     State     // at the last look
	reported rankState // last reported to the coordinator, without the begun operations
	begun    uint64    // highest number of a reported begun operation
	texts    texts     // reported texts
}

// texts are the descriptions of operations that a process has sent to the coordinator. Both
// sides keep them, and drop the oldest first, so that they always agree.
type texts struct {
	known [2 * RecentOps]struct {
		hash uint64
		text string
	}
	next int
}

// add adds a text, and reports whether it is new.
func (t *texts) add(hash uint64, text string) bool {
	if _, ok := t.of(hash); ok || hash == 0 {
		return hash == 0 // a text without a hash is always sent
	}
	t.known[t.next].hash, t.known[t.next].text = hash, text
	t.next = (t.next + 1) % len(t.known)
	return true
}

// of returns the text of a hash.
func (t *texts) of(hash uint64) (text string, ok bool) {
	for i := range t.known {
		if t.known[i].hash == hash && hash != 0 {
			return t.known[i].text, true
		}
	}
	return "", false
}

// lookPeriod is the time between looks; a rank that is in the same operation at two looks
// waits.
const lookPeriod = 20 * time.Millisecond

func newSampler(cfg Config, l link, every time.Duration) *sampler {
	s := &sampler{look: cfg.State, link: l, every: every, asked: make(chan struct{}, 1), ranks: make(map[int]*track)}
	for _, r := range cfg.Ranks {
		s.ranks[r] = &track{seen: State{Rank: r}, reported: rankState{rank: r}}
	}
	return s
}

// watch looks until stop is closed.
func (s *sampler) watch(stop <-chan struct{}) {
	t := time.NewTicker(min(lookPeriod, s.every))
	defer t.Stop()
	sent := time.Now()
	for {
		select {
		case <-stop:
			return
		case <-s.asked:
			s.send(true)
		case now := <-t.C:
			if now.Sub(sent) >= s.every {
				sent = now
				s.send(false)
			} else if s.waits() {
				s.send(false)
			}
		}
	}
}

// answer requests a complete state to be sent.
func (s *sampler) answer() {
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// waits looks, and reports whether some rank has left or waits in an operation without the
// coordinator knowing.
func (s *sampler) waits() bool {
	states := s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, now := range states {
		t := s.ranks[now.Rank]
		if t == nil {
			continue
		}
		found = found || now.Left && !t.reported.left || now.Op != nil && t.seen.Op != nil && now.Seq == t.seen.Seq &&
			(!t.reported.inside || t.reported.seq != now.Seq)
		t.seen = now
	}
	return found
}

// maxStates bounds the ranks in one message, so that it is never too long.
const maxStates = maxFrame / ((1 + RecentOps) * (maxDoing + 64))

// send looks, and reports changes to the coordinator; if answering, everything.
func (s *sampler) send(answering bool) {
	if s.look == nil {
		return
	}
	states := s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	var m state
	for _, now := range states {
		t := s.ranks[now.Rank]
		if t == nil {
			continue
		}
		t.seen = now
		n := rankState{rank: now.Rank, seq: now.Seq, left: now.Left, inside: now.Op != nil, progress: now.Progress}
		if n.inside {
			n.hash = now.Op.Hash
		}
		if n == t.reported && !answering {
			continue
		}
		t.reported = n
		t.tell(&n, &now, answering)
		if m.ranks = append(m.ranks, n); len(m.ranks) == maxStates {
			s.link.send(m)
			m.ranks = nil
		}
	}
	m.answer = answering
	s.link.send(m)
}

// tell adds to a message the begun operations and texts that the coordinator does not know; if
// answering, all texts.
func (t *track) tell(n *rankState, now *State, answering bool) {
	text := func(op *Operation) string {
		if t.texts.add(op.Hash, op.Text) || answering {
			return op.Text
		}
		return ""
	}
	begun := now.Begun
	slices.SortFunc(begun[:], func(a, b Begun) int { return cmp.Compare(a.Seq, b.Seq) })
	k := 0
	for _, b := range begun {
		current := n.inside && b.Seq == n.seq
		if b.Op == nil || b.Op.Hash == 0 || current || b.Seq <= t.begun && !answering {
			continue
		}
		n.begun[k].seq, n.begun[k].hash, n.begun[k].text = b.Seq, b.Op.Hash, text(b.Op)
		t.begun = max(t.begun, b.Seq)
		k++
	}
	if n.inside {
		n.text = text(now.Op)
		t.begun = max(t.begun, n.seq)
	}
}

// during returns the operation of a rank in words, or "".
func (s *sampler) during(rank int) string {
	if s.look == nil {
		return ""
	}
	for _, now := range s.look() {
		if now.Rank == rank && now.Op != nil {
			return Describe(now.Seq, now.Op)
		}
	}
	return ""
}
