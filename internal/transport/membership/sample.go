package membership

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// sampler reads the states of the ranks of a process and reports them to the coordinator. It
// reports all changes with every heartbeat. It also reports at once if a rank was in the same
// operation at two consecutive samples. So ranks that proceed are reported rarely, and ranks
// that wait, which may disagree, are reported soon.
type sampler struct {
	look  func() []State // returns the states; nil if they are not available
	link  link
	every time.Duration // time between regular state messages
	asked chan struct{}

	mu    sync.Mutex
	ranks map[int]*track
}

// track has the state of one rank that was last sampled, and what was reported about the rank.
type track struct {
	seen     State     // state in the last sample
	reported rankState // state last reported to the coordinator, without the begun operations
	begun    uint64    // highest number of an operation that was reported as begun
	texts    texts     // texts that were sent to the coordinator
}

// texts maps hashes of operations to the texts that a process has sent to the coordinator. Both
// sides have such a table, and drop the oldest text first, so that the two tables always agree.
type texts struct {
	known [2 * RecentOps]struct {
		hash uint64
		text string
	}
	next int
}

// add adds the text of a hash, and reports whether the text has to be sent.
func (t *texts) add(hash uint64, text string) bool {
	if _, ok := t.of(hash); ok || hash == 0 {
		return hash == 0 // the text of hash 0 is always sent
	}
	t.known[t.next].hash, t.known[t.next].text = hash, text
	t.next = (t.next + 1) % len(t.known)
	return true
}

// of returns the text of a hash, and whether there is one.
func (t *texts) of(hash uint64) (text string, ok bool) {
	for i := range t.known {
		if t.known[i].hash == hash && hash != 0 {
			return t.known[i].text, true
		}
	}
	return "", false
}

// lookPeriod is the time between two samples of the states. A rank that is in the same
// operation in two consecutive samples is assumed to wait.
const lookPeriod = 20 * time.Millisecond

func newSampler(cfg Config, l link, every time.Duration) *sampler {
	s := &sampler{look: cfg.State, link: l, every: every, asked: make(chan struct{}, 1), ranks: make(map[int]*track)}
	for _, r := range cfg.Ranks {
		s.ranks[r] = &track{seen: State{Rank: r}, reported: rankState{rank: r}}
	}
	return s
}

// watch samples the states and reports them, until stop is closed.
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

// answer makes watch send the complete states.
func (s *sampler) answer() {
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// waits samples the states. It returns true if a rank has left, or waits in an operation, and
// this has not been reported to the coordinator yet.
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

// maxStates is the maximum number of ranks in one state message. It ensures that a message
// never exceeds maxFrame.
const maxStates = maxFrame / ((1 + RecentOps) * (maxDoing + 64))

// send samples the states and reports changes to the coordinator. If answering is set, it
// reports the states of all ranks.
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

// tell adds to n those begun operations and texts of the state now that the coordinator does
// not know. If answering is set, it adds all begun operations and texts.
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

// during returns a text that describes the operation in which a rank is, or "" if the rank is
// in no operation.
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
