package membership

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// observation is an operation in which a rank was, according to the rank's process.
type observation struct {
	seq, hash uint64
	rank      int
	text      string
}

// recentOps is the number of latest operations that are compared between ranks. If one rank is
// more than recentOps operations ahead of another, a disagreement is detected only by their
// messages.
const recentOps = 256

// question is a mismatch about which the coordinator has asked a process. It is used in phase
// deciding.
type question struct {
	mismatch MismatchError
	seq      uint64 // number of the other rank's operation; 0 if it is not known
	process  int    // the process that hosts the other rank
	until    time.Duration
}

// answerWait bounds the wait for the answer to a question.
const answerWait = 200 * time.Millisecond

// learn handles a state message of process p. It looks for ranks that disagree and for ranks
// that wait for a rank that has left.
func (c *core) learn(now time.Duration, p int, s state) {
	c.members[p].sampled = now
	for _, n := range s.ranks {
		if n.rank >= c.size || c.ranks[n.rank].process != p {
			continue // ignored: a correct process reports only its own ranks
		}
		r := &c.ranks[n.rank]
		if n.seq != r.seq || n.progress != r.progress || n.inside != r.inside || n.left && !r.left {
			c.moved = now
		}
		r.seq, r.progress, r.inside = n.seq, n.progress, n.inside
		for _, b := range n.begun {
			if b.seq == 0 {
				break
			}
			r.note(b.seq, b.hash)
			c.hold(observation{b.seq, b.hash, n.rank, r.heard(b.hash, b.text)})
		}
		if n.inside {
			r.note(n.seq, n.hash)
			r.hash, r.text = n.hash, r.heard(n.hash, n.text)
			if !r.left {
				c.compare(n.rank)
			}
		}
		if n.left && !r.left {
			c.without([]int{n.rank})
		}
	}
	if c.phase == deciding && p == c.asked.process && (s.answer || c.knows()) {
		c.decide()
	}
}

// compare compares the operation of rank i with the operations of other ranks, and checks that
// no rank has left without having begun this operation. An operation without a hash is not
// compared: only some ranks take part in it, and they number it independently.
func (c *core) compare(i int) {
	r := &c.ranks[i]
	if c.phase != running || r.hash == 0 {
		return
	}
	if c.leaver >= 0 && r.seq > c.ranks[c.leaver].seq {
		c.missed(i)
		return
	}
	c.hold(observation{r.seq, r.hash, i, r.text})
}

// hold compares a, a current or earlier operation of a rank, with the operation of the same
// number that was reported first. If the hashes differ, it ends the group.
func (c *core) hold(a observation) {
	b := &c.recent[a.seq%recentOps]
	switch {
	case c.phase != running:
	case a.seq > b.seq || b.hash == 0:
		*b = a
	case a.seq == b.seq && a.hash != b.hash:
		b := *b
		if a.rank > b.rank {
			a, b = b, a
		}
		c.abort(&MismatchError{
			Rank: a.rank, Doing: describe(a.seq, a.text),
			Other: b.rank, OtherDoing: describe(b.seq, b.text),
		})
	}
}

// missed ends the group because rank i is in an operation that rank c.leaver did not begin
// before it left.
func (c *core) missed(i int) {
	gone := &c.members[c.ranks[c.leaver].process]
	c.abort(&PeerError{
		Rank: c.leaver, Address: gone.hello.address,
		Reporter: i, During: describe(c.ranks[i].seq, c.ranks[i].text),
		Reason: ErrLeft.Error(), Kind: ErrLeft,
	})
}

// doing returns a text that describes the operation of the mismatch's other rank, or "" if that
// operation is not known.
func (c *core) doing() string {
	q := &c.asked
	r := &c.ranks[q.mismatch.Other]
	if q.seq == 0 {
		if r.inside {
			return describe(r.seq, r.text)
		}
		return ""
	}
	text := r.did(q.seq)
	if text == "" && r.inside && r.seq == q.seq {
		text = r.text
	}
	if text == "" {
		return ""
	}
	return describe(q.seq, text)
}

// knows reports whether the coordinator knows the operation of the mismatch's other rank, and
// whether this operation differs from that of the mismatch's first rank.
func (c *core) knows() bool {
	text := c.doing()
	return text != "" && text != c.asked.mismatch.Doing
}

// earlier is called for a mismatch of two ranks that are now in the same operation. It sets the
// operations in m to the first pair of operations with the same number that differ.
func (c *core) earlier(m *MismatchError) {
	mine, other := &c.ranks[m.Rank], &c.ranks[m.Other]
	first := uint64(math.MaxUint64)
	for _, b := range mine.begun {
		o := other.begun[b.seq%RecentOps]
		if b.seq != o.seq || b.hash == o.hash || b.seq >= first {
			continue
		}
		if text := mine.did(b.seq); text != "" && other.did(b.seq) != "" {
			first, m.Doing, m.OtherDoing = b.seq, describe(b.seq, text), describe(b.seq, other.did(b.seq))
		}
	}
	if first == math.MaxUint64 {
		m.OtherDoing += ", by another program or after other operations"
	}
}

// decide ends the group because of the mismatch in c.asked. It adds to the mismatch what is
// known about the other rank's operation.
func (c *core) decide() {
	q := &c.asked
	q.mismatch.OtherDoing = c.doing()
	switch seq := max(q.seq, c.ranks[q.mismatch.Other].seq); {
	case q.mismatch.OtherDoing != "":
	case q.seq != 0:
		q.mismatch.OtherDoing = describe(q.seq, "")
	case seq != 0:
		q.mismatch.OtherDoing = "no operation after " + describe(seq, "")
	default:
		q.mismatch.OtherDoing = "no operation"
	}
	if q.mismatch.OtherDoing == q.mismatch.Doing && c.known(q.mismatch.Rank) {
		c.earlier(&q.mismatch)
	}
	c.abort(&q.mismatch)
}

// progress ends the group if all ranks are in operations and no rank has made progress for the
// stall timeout. If the last state of any process is not recent, the ranks of this process may
// have made progress, so progress does nothing.
func (c *core) progress(now time.Duration) {
	if c.stall == 0 || now-c.moved < c.stall {
		return
	}
	for p := range c.members {
		m := &c.members[p]
		if m.presence == present && now-m.sampled > 3*c.watch.Beat {
			return
		}
	}
	var texts []string       // texts of the operations; they are in the order of the lowest rank in each operation
	in := map[string][]int{} // text of an operation -> the ranks in it
	for i := range c.ranks {
		r := &c.ranks[i]
		switch {
		case r.left:
			continue
		case !r.inside:
			return
		}
		what := describe(r.seq, r.text)
		if in[what] == nil {
			texts = append(texts, what)
		}
		in[what] = append(in[what], i)
	}
	if texts == nil {
		return
	}
	c.abort(&textError{stalled(now-c.moved, texts, in), ErrTimeout})
}

// stalled returns the error text, which says which ranks are in which operation.
func stalled(d time.Duration, texts []string, in map[string][]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "no rank has made progress for %v: ", d.Truncate(100*time.Millisecond))
	for i, what := range texts {
		if i == 8 {
			fmt.Fprintf(&b, ", and %d more", len(texts)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		verb := "are"
		if len(in[what]) == 1 {
			verb = "is"
		}
		fmt.Fprintf(&b, "%s %s in %s", list("rank", "ranks", in[what]), verb, what)
	}
	b.WriteString(" (a message was lost, or they wait for one another)")
	return b.String()
}

// leave handles a good-bye of process p. The coordinator's own process gets no answer until all
// other processes have left, unless its good-bye is final.
func (c *core) leave(now time.Duration, p int, final bool) {
	m := &c.members[p]
	m.presence = left
	for _, r := range m.hello.ranks {
		c.ranks[r].left = true
	}
	if p == 0 {
		if final && !c.alone() {
			if c.phase == deciding {
				c.decide()
			} else {
				c.abort(&PeerError{
					Rank: m.hello.ranks[0], Address: m.hello.address, Reporter: m.hello.ranks[0],
					Reason: ErrLeft.Error() + " that it coordinates", Kind: ErrLeft,
				})
			}
			c.send(local, bye{})
			return
		}
	} else {
		delete(c.conns, m.conn)
		c.send(m.conn, bye{})
	}
	if c.phase == deciding {
		if p == c.asked.process {
			c.decide()
		}
		return
	}
	if c.alone() {
		if c.members[0].presence == left {
			c.enter(ended)
			c.send(local, bye{})
		}
		return
	}
	c.moved = now // the group has changed, so the stall timeout begins again
	c.without(m.hello.ranks)
}

// alone reports whether all processes except the coordinator's own have left.
func (c *core) alone() bool {
	for i := range c.members[1:] {
		if c.members[1+i].presence == present {
			return false
		}
	}
	return true
}

// without records that ranks have left, and looks for ranks that wait for a rank that has left.
func (c *core) without(ranks []int) {
	least := uint64(math.MaxUint64)
	if c.leaver >= 0 {
		least = c.ranks[c.leaver].seq
	}
	for _, i := range ranks {
		r := &c.ranks[i]
		r.left = true
		if r.seq < least {
			c.leaver, least = i, r.seq
		}
	}
	for i := range c.ranks {
		if r := &c.ranks[i]; r.inside && !r.left && c.phase == running {
			c.compare(i)
		}
	}
}
