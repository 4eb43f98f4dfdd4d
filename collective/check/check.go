package check

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared"
)

// Programs runs the programs of all ranks of an AllReduce on symbols instead
// of numbers, with messages that are handed over directly (capacity 0), and finds:
//
//   - programs that do not validate, or are not of one group;
//   - a send without its receive, a receive without its send, or a pair of them of
//     different lengths;
//   - a read of something never written;
//   - two accesses to the same chunk, one of them a write, that nothing orders (an
//     instruction's place in its half of the lane, or After), also under the
//     assumption that input and output are the same memory;
//   - a result that does not have every rank's contribution exactly once, that
//     differs between ranks in its expression tree, or is not the canonical tree
//     where CanonicalTree claims so;
//   - a run that does not end: lanes and their halves are sequential processes
//     with fixed partners, so whether they end does not depend on timing, and if
//     they do at capacity 0 they do at any;
//   - costs other than declared.
//
// Its time is proportional to the number of instructions times the number of lanes
// of a rank.
func Programs(programs []*program.Program, want program.Cost) error {
	c, err := newChecker(programs)
	if err != nil {
		return err
	}
	if err := c.run(); err != nil {
		return err
	}
	if err := c.checkResults(); err != nil {
		return err
	}
	return c.checkCost(want)
}

// checker is an abstract run of all ranks' programs.
type checker struct {
	programs []*program.Program
	terms    terms
	ranks    []checkedRank
	offers   map[route]*half // sends waiting for their receive, one a route
	wants    map[route]*half // receives waiting for their send
	steps    int             // longest chain of messages so far
	parts    int             // parts of instructions done
}

// route is what the messages of a channel have in common.
type route struct{ from, to, channel int }

// checkedRank is the state of one rank.
type checkedRank struct {
	cells  map[cell]*content
	halves []*half // 2·lane for the receive half, 2·lane + 1 for the send half
	done   [][]completion
	sent   []int // by chunk
}

// cell is a chunk of a buffer.
type cell struct {
	buffer      program.Buffer
	slot, chunk int
}

// completion is how an instruction ended, for those that come after it.
type completion struct {
	parts int   // parts left to do
	after clock // what is known to be complete once this is
	chain int   // messages in a row that led here
}

// newChecker validates the programs and sets up their input.
func newChecker(programs []*program.Program) (*checker, error) {
	c := &checker{programs: programs, offers: map[route]*half{}, wants: map[route]*half{}}
	c.terms.init()
	for r, p := range programs {
		if err := p.Validate(); err != nil {
			return nil, err
		}
		first := programs[0]
		if p.Rank != r || p.P != len(programs) || p.GroupHash() != first.GroupHash() {
			return nil, fmt.Errorf("the part of rank %d is of another program than rank 0's: rank %d of %d, %s %s with %d chunks",
				r, p.Rank, p.P, p.Collective, p.Algorithm, p.Chunks)
		}
		if p.Collective != program.AllReduce {
			return nil, fmt.Errorf("rank %d: the result of %q is not known to the checker", r, p.Collective)
		}
		c.ranks = append(c.ranks, c.newRank(p))
	}
	return c, nil
}

func (c *checker) newRank(p *program.Program) checkedRank {
	k := checkedRank{cells: map[cell]*content{}, sent: make([]int, p.Chunks)}
	for chunk := range p.Chunks {
		k.cells[cell{program.In, 0, chunk}] = &content{term: c.terms.leaf(p.Rank, chunk), defined: true}
	}
	k.done = make([][]completion, len(p.Lanes))
	for i := range p.Lanes {
		l := &p.Lanes[i]
		recv := &half{rank: p.Rank, lane: i, index: 2 * i}
		send := &half{rank: p.Rank, lane: i, index: 2*i + 1, sends: true}
		k.done[i] = make([]completion, len(l.Steps))
		for j := range l.Steps {
			if op := l.Steps[j].Op; op.Sends() {
				send.steps = append(send.steps, j)
				k.done[i][j].parts++
			}
			if l.Steps[j].Op != program.DoSend {
				recv.steps = append(recv.steps, j)
				k.done[i][j].parts++
			}
		}
		k.halves = append(k.halves, recv, send)
	}
	for _, h := range k.halves {
		h.clock = make(clock, len(k.halves))
	}
	return k
}

// checkResults compares every rank's output with what the collective is.
func (c *checker) checkResults() error {
	p := len(c.programs)
	for chunk := range c.programs[0].Chunks {
		leaves := make([]int, p)
		for r := range leaves {
			leaves[r] = c.terms.leaf(r, chunk)
		}
		canonical := shared.FoldRanks(leaves, c.terms.join)
		for r := range c.ranks {
			out := c.ranks[r].cells[cell{program.Out, 0, chunk}]
			if out == nil || !out.defined {
				return fmt.Errorf("rank %d: out[%d] is never written", r, chunk)
			}
			if err := c.terms.onceEach(out.term, p, chunk); err != nil {
				return fmt.Errorf("rank %d: out[%d]: %w", r, chunk, err)
			}
			if first := c.ranks[0].cells[cell{program.Out, 0, chunk}]; out.term != first.term {
				return fmt.Errorf("out[%d] is %s on rank %d but %s on rank 0", chunk,
					c.terms.text(out.term), r, c.terms.text(first.term))
			}
			if c.programs[r].CanonicalTree && out.term != canonical {
				return fmt.Errorf("rank %d: out[%d] is %s, but the canonical tree is %s", r, chunk,
					c.terms.text(out.term), c.terms.text(canonical))
			}
		}
	}
	return nil
}

func (c *checker) checkCost(want program.Cost) error {
	if c.steps != want.Steps {
		return fmt.Errorf("the longest chain has %d messages, declared are %d", c.steps, want.Steps)
	}
	l := program.Even(len(c.ranks), c.programs[0].Chunks)
	for r := range c.ranks {
		sent := 0
		for chunk, got := range c.ranks[r].sent {
			sent += got * l.Len(program.Chunk(program.Out, 0, chunk))
		}
		declared := 0
		if want.Sent != nil {
			declared = want.Sent(r, l)
		}
		if sent != declared {
			return fmt.Errorf("rank %d sends %d elements, declared are %d", r, sent, declared)
		}
	}
	return nil
}
