package membership

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// observation is an operation in which some rank was seen.
type observation struct {
	seq, hash uint64
	rank      int
	text      string
}

// recentOps is how many operations ranks may be apart and still be compared. A rank further
// ahead is found by the messages that it sends.
const recentOps = 256

// question is what the coordinator asks while it decides about a mismatch.
type question struct {
	mismatch MismatchError
	seq      uint64 // number of the other rank's operation; 0 if not known
	process  int    // the process that hosts the other rank
	until    time.Duration
}

// answerWait bounds the wait for the answer about a rank in another operation.
const answerWait = 200 * time.Millisecond

// learn processes the states of a process's ranks, and looks for ranks that disagree and for
// ranks that wait for one that has left.
func (c *core) learn(now time.Duration, p int, s state) {
	c.members[p].sampled = now
	for _, n := range s.ranks {
		if n.rank >= c.size || c.ranks[n.rank].process != p {
			continue // no correct process reports the ranks of another
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

// compare compares a rank's operation with those in which others were seen, and with those that
// ranks had begun before they left. Operations without a hash are those of only some ranks,
// which number them independently, and are not compared.
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

// hold compares an operation of a rank, present or past, with the operation seen elsewhere
// under the same number.
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

// missed ends the group because rank i is in an operation that the leaver did not begin.
func (c *core) missed(i int) {
	gone := &c.members[c.ranks[c.leaver].process]
	c.abort(&PeerError{
		Rank: c.leaver, Address: gone.hello.address,
		Reporter: i, During: describe(c.ranks[i].seq, c.ranks[i].text),
		Reason: ErrLeft.Error(), Kind: ErrLeft,
	})
}

// doing returns the operation of the other rank of a mismatch in words, "" if it is not known.
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

// knows reports whether it is known how the two ranks differ.
func (c *core) knows() bool {
	text := c.doing()
	return text != "" && text != c.asked.mismatch.Doing
}

// earlier finds the first operation in which two ranks differed, for a mismatch of ranks that
// are in the same operation now.
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

// decide ends the group because of the mismatch, with what is known by now.
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

// progress ends a group that stands still: all ranks are in operations and wait for each other.
// A process whose state is not recent may have made progress.
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
	var texts []string       // operations of the ranks, in the order of their first ranks
	in := map[string][]int{} // ranks by operation
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

// stalled says which ranks are in which operation.
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

// leave handles a good-bye. The coordinator's own process stays until all others
// have left, unless it cannot wait.
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
	c.moved = now // waiting does not count as a standstill, as the group has changed
	c.without(m.hello.ranks)
}

// alone reports whether all processes but the coordinator's own have left.
func (c *core) alone() bool {
	for i := range c.members[1:] {
		if c.members[1+i].presence == present {
			return false
		}
	}
	return true
}

// without looks for ranks that need ranks that have left.
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
