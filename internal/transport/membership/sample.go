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
	sample   func() []State // returns the states; nil if they are not available
	link     link
	period   time.Duration // time between regular state messages
	requests chan struct{}

	mu    sync.Mutex
	ranks map[int]*track
}

// track has the state of one rank that was last sampled, and what was reported about the rank.
type track struct {
	latest   State     // state in the last sample
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
	if _, ok := t.lookup(hash); ok || hash == 0 {
		return hash == 0 // the text of hash 0 is always sent
	}
	t.known[t.next].hash, t.known[t.next].text = hash, text
	t.next = (t.next + 1) % len(t.known)
	return true
}

// lookup returns the text of a hash, and whether there is one.
func (t *texts) lookup(hash uint64) (text string, ok bool) {
	for i := range t.known {
		if t.known[i].hash == hash && hash != 0 {
			return t.known[i].text, true
		}
	}
	return "", false
}

// samplePeriod is the time between two samples of the states. A rank that is in the same
// operation in two consecutive samples is assumed to wait.
const samplePeriod = 20 * time.Millisecond

func newSampler(cfg Config, l link, period time.Duration) *sampler {
	s := &sampler{sample: cfg.State, link: l, period: period, requests: make(chan struct{}, 1), ranks: make(map[int]*track)}
	for _, r := range cfg.Ranks {
		s.ranks[r] = &track{latest: State{Rank: r}, reported: rankState{rank: r}}
	}
	return s
}

// watch samples the states and reports them, until stop is closed.
func (s *sampler) watch(stop <-chan struct{}) {
	t := time.NewTicker(min(samplePeriod, s.period))
	defer t.Stop()
	sent := time.Now()
	for {
		select {
		case <-stop:
			return
		case <-s.requests:
			s.send(true)
		case now := <-t.C:
			if now.Sub(sent) >= s.period {
				sent = now
				s.send(false)
			} else if s.hasUnreported() {
				s.send(false)
			}
		}
	}
}

// requestAll makes watch send the complete states.
func (s *sampler) requestAll() {
	select {
	case s.requests <- struct{}{}:
	default:
	}
}

// hasUnreported samples the states. It returns true if a rank has left, or waits in an
// operation, and this has not been reported to the coordinator yet.
func (s *sampler) hasUnreported() bool {
	states := s.sample()
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, now := range states {
		t := s.ranks[now.Rank]
		if t == nil {
			continue
		}
		found = found || now.Left && !t.reported.left || now.Op != nil && t.latest.Op != nil && now.Seq == t.latest.Seq &&
			(!t.reported.inside || t.reported.seq != now.Seq)
		t.latest = now
	}
	return found
}

// maxStates is the maximum number of ranks in one state message. It ensures that a message
// never exceeds maxFrame.
const maxStates = maxFrame / ((1 + RecentOps) * (maxDoing + 64))

// send samples the states and reports changes to the coordinator. If answering is set, it
// reports the states of all ranks.
func (s *sampler) send(answering bool) {
	if s.sample == nil {
		return
	}
	states := s.sample()
	s.mu.Lock()
	defer s.mu.Unlock()
	var m state
	for _, now := range states {
		t := s.ranks[now.Rank]
		if t == nil {
			continue
		}
		t.latest = now
		n := rankState{rank: now.Rank, seq: now.Seq, left: now.Left, inside: now.Op != nil, progress: now.Progress}
		if n.inside {
			n.hash = now.Op.Hash
		}
		if n == t.reported && !answering {
			continue
		}
		t.reported = n
		t.addUnknown(&n, &now, answering)
		if m.ranks = append(m.ranks, n); len(m.ranks) == maxStates {
			s.link.send(m)
			m.ranks = nil
		}
	}
	m.answer = answering
	s.link.send(m)
}

// addUnknown adds to n those begun operations and texts of the state now that the coordinator
// does not know. If answering is set, it adds all begun operations and texts.
func (t *track) addUnknown(n *rankState, now *State, answering bool) {
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
	if s.sample == nil {
		return ""
	}
	for _, now := range s.sample() {
		if now.Rank == rank && now.Op != nil {
			return Describe(now.Seq, now.Op)
		}
	}
	return ""
}
