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

// handleState handles a state message of process p. It looks for ranks that disagree and for
// ranks that wait for a rank that has left.
func (c *core) handleState(now time.Duration, p int, s state) {
	c.members[p].lastState = now
	for _, n := range s.ranks {
		if n.rank >= c.size || c.ranks[n.rank].process != p {
			continue // ignored: a correct process reports only its own ranks
		}
		r := &c.ranks[n.rank]
		if n.seq != r.seq || n.progress != r.progress || n.inside != r.inside || n.left && !r.left {
			c.lastProgress = now
		}
		r.seq, r.progress, r.inside = n.seq, n.progress, n.inside
		for _, b := range n.begun {
			if b.seq == 0 {
				break
			}
			r.noteBegun(b.seq, b.hash)
			c.compareWithRecent(observation{b.seq, b.hash, n.rank, r.resolveText(b.hash, b.text)})
		}
		if n.inside {
			r.noteBegun(n.seq, n.hash)
			r.hash, r.text = n.hash, r.resolveText(n.hash, n.text)
			if !r.left {
				c.compare(n.rank)
			}
		}
		if n.left && !r.left {
			c.markLeft([]int{n.rank})
		}
	}
	if c.phase == deciding && p == c.asked.process && (s.answer || c.knowsOther()) {
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
		c.abortMissed(i)
		return
	}
	c.compareWithRecent(observation{r.seq, r.hash, i, r.text})
}

// compareWithRecent compares a, a current or earlier operation of a rank, with the operation of
// the same number that was reported first. If the hashes differ, it ends the group.
func (c *core) compareWithRecent(a observation) {
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

// abortMissed ends the group because rank i is in an operation that rank c.leaver did not begin
// before it left.
func (c *core) abortMissed(i int) {
	gone := &c.members[c.ranks[c.leaver].process]
	c.abort(&PeerError{
		Rank: c.leaver, Address: gone.hello.address,
		Reporter: i, During: describe(c.ranks[i].seq, c.ranks[i].text),
		Reason: ErrLeft.Error(), Kind: ErrLeft,
	})
}

// otherOperation returns a text that describes the operation of the mismatch's other rank, or
// "" if that operation is not known.
func (c *core) otherOperation() string {
	q := &c.asked
	r := &c.ranks[q.mismatch.Other]
	if q.seq == 0 {
		if r.inside {
			return describe(r.seq, r.text)
		}
		return ""
	}
	text := r.begunText(q.seq)
	if text == "" && r.inside && r.seq == q.seq {
		text = r.text
	}
	if text == "" {
		return ""
	}
	return describe(q.seq, text)
}

// knowsOther reports whether the coordinator knows the operation of the mismatch's other rank,
// and whether this operation differs from that of the mismatch's first rank.
func (c *core) knowsOther() bool {
	text := c.otherOperation()
	return text != "" && text != c.asked.mismatch.Doing
}

// findFirstDifference is called for a mismatch of two ranks that are now in the same operation.
// It sets the operations in m to the first pair of operations with the same number that differ.
func (c *core) findFirstDifference(m *MismatchError) {
	mine, other := &c.ranks[m.Rank], &c.ranks[m.Other]
	first := uint64(math.MaxUint64)
	for _, b := range mine.begun {
		o := other.begun[b.seq%RecentOps]
		if b.seq != o.seq || b.hash == o.hash || b.seq >= first {
			continue
		}
		if text := mine.begunText(b.seq); text != "" && other.begunText(b.seq) != "" {
			first, m.Doing, m.OtherDoing = b.seq, describe(b.seq, text), describe(b.seq, other.begunText(b.seq))
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
	q.mismatch.OtherDoing = c.otherOperation()
	switch seq := max(q.seq, c.ranks[q.mismatch.Other].seq); {
	case q.mismatch.OtherDoing != "":
	case q.seq != 0:
		q.mismatch.OtherDoing = describe(q.seq, "")
	case seq != 0:
		q.mismatch.OtherDoing = "no operation after " + describe(seq, "")
	default:
		q.mismatch.OtherDoing = "no operation"
	}
	if q.mismatch.OtherDoing == q.mismatch.Doing && c.validRank(q.mismatch.Rank) {
		c.findFirstDifference(&q.mismatch)
	}
	c.abort(&q.mismatch)
}

// checkStall ends the group if all ranks are in operations and no rank has made progress for the
// stall timeout. If the last state of any process is not recent, the ranks of this process may
// have made progress, so checkStall does nothing.
func (c *core) checkStall(now time.Duration) {
	if c.stall == 0 || now-c.lastProgress < c.stall {
		return
	}
	for p := range c.members {
		m := &c.members[p]
		if m.presence == present && now-m.lastState > 3*c.watch.Beat {
			return
		}
	}
	var texts []string            // texts of the operations; they are in the order of the lowest rank in each operation
	ranksIn := map[string][]int{} // text of an operation -> the ranks in it
	for i := range c.ranks {
		r := &c.ranks[i]
		switch {
		case r.left:
			continue
		case !r.inside:
			return
		}
		what := describe(r.seq, r.text)
		if ranksIn[what] == nil {
			texts = append(texts, what)
		}
		ranksIn[what] = append(ranksIn[what], i)
	}
	if texts == nil {
		return
	}
	c.abort(&textError{stalled(now-c.lastProgress, texts, ranksIn), ErrTimeout})
}

// stalled returns the error text, which says which ranks are in which operation.
func stalled(d time.Duration, texts []string, ranksIn map[string][]int) string {
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
		if len(ranksIn[what]) == 1 {
			verb = "is"
		}
		fmt.Fprintf(&b, "%s %s in %s", list("rank", "ranks", ranksIn[what]), verb, what)
	}
	b.WriteString(" (a message was lost, or they wait for one another)")
	return b.String()
}

// handleGoodbye handles a good-bye of process p. The coordinator's own process gets no answer
// until all other processes have left, unless its good-bye is final.
func (c *core) handleGoodbye(now time.Duration, p int, final bool) {
	m := &c.members[p]
	m.presence = left
	for _, r := range m.hello.ranks {
		c.ranks[r].left = true
	}
	if p == 0 {
		if final && !c.othersLeft() {
			if c.phase == deciding {
				c.decide()
			} else {
				c.abort(&PeerError{
					Rank: m.hello.ranks[0], Address: m.hello.address, Reporter: m.hello.ranks[0],
					Reason: ErrLeft.Error() + " that it coordinates", Kind: ErrLeft,
				})
			}
			c.send(localConn, bye{})
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
	if c.othersLeft() {
		if c.members[0].presence == left {
			c.enter(ended)
			c.send(localConn, bye{})
		}
		return
	}
	c.lastProgress = now // the group has changed, so the stall timeout begins again
	c.markLeft(m.hello.ranks)
}

// othersLeft reports whether all processes except the coordinator's own have left.
func (c *core) othersLeft() bool {
	for i := range c.members[1:] {
		if c.members[1+i].presence == present {
			return false
		}
	}
	return true
}

// markLeft records that ranks have left, and looks for ranks that wait for a rank that has left.
func (c *core) markLeft(ranks []int) {
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
