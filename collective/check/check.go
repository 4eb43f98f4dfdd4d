package check

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/collective/program"
)

// Layouts has the lengths of the chunks in one run: one layout for all ranks, or one layout for
// each rank, which is needed for an AllToAll of blocks of different lengths.
type Layouts []program.Layout

// forRank returns the layout of a rank.
func (l Layouts) forRank(rank int) program.Layout {
	if len(l) == 1 {
		return l[0]
	}
	return l[rank]
}

// Options has the costs and layouts with which programs are checked.
type Options struct {
	// Cost is the declared cost of the programs; nil means that it is not checked.
	Cost *program.Cost

	// Layouts has the layouts for which the program is checked: sender and receiver of each
	// message must agree on its length, and the costs must equal the declared costs. Nil means
	// the result of EvenLayouts.
	Layouts []Layouts
}

// Report has properties of correct programs.
type Report struct {
	// Steps is the length of the longest chain of messages, as in program.Cost: each message is
	// sent after the previous message of the chain has arrived, either because its send depends
	// on the previous message, or because both messages use the same lane.
	Steps    int
	Messages int // number of messages of all ranks

	// Canonical and RankOrder are set if the properties CanonicalTree and RankOrder of
	// program.Program hold, for collectives that reduce.
	Canonical, RankOrder bool

	// Unused describes the values that instructions compute and that no instruction reads. The
	// programs would be correct without them.
	Unused []string
}

// Programs returns an error unless the programs of all ranks, which are given in rank order,
// are correct together. It finds
//
//   - programs that are invalid, that are not of the same group, or whose input, output and
//     root do not fit the collective;
//   - two lanes of a rank that use the same channel in the same direction with the same peer;
//   - a send without its receive, a receive without its send, and a pair with different chunks
//     or lengths;
//   - a read of a chunk that was never written;
//   - two unordered accesses to a chunk of which at least one is a write. Chunk c of the first
//     input and chunk c of the output count as the same memory. Accesses are ordered by the
//     order within a half of a lane, by the receive before the send of a fused instruction, and
//     by After;
//   - wrong results: a contribution that is missing, occurs twice, or is in the wrong place;
//     trees of operations that differ among ranks; a barrier that a rank can leave before
//     another rank has entered it;
//   - claims (CanonicalTree, RankOrder) that do not hold;
//   - programs that do not end if messages are not buffered, or if one goroutine for each rank
//     runs the parts in the order of program.SerialOrder;
//   - costs that differ from the declared costs.
//
// Time and memory are proportional to the number of instructions, their operands and the chunks
// that they touch.
func Programs(programs []*program.Program, opts Options) error {
	_, err := Inspect(programs, opts)
	return err
}

// Inspect makes the checks of Programs, and also returns a report if the programs are correct.
func Inspect(programs []*program.Program, opts Options) (*Report, error) {
	c, err := newChecker(programs, opts)
	if err != nil {
		return nil, err
	}
	if err := c.run(); err != nil {
		return nil, err
	}
	c.leaveScratch()
	report := &Report{Steps: c.steps, Messages: c.messages, Unused: c.unused}
	if err := c.results(report); err != nil {
		return nil, err
	}
	if err := c.cost(); err != nil {
		return nil, err
	}
	return report, serial(programs, program.SerialOrder)
}

// checker is the state of an abstract run of the programs of all ranks.
type checker struct {
	programs []*program.Program
	layouts  []Layouts
	declared *program.Cost

	collective program.Collective
	sources    []source
	terms      terms
	ranks      []rankState

	offers   map[route]*half // sends that wait for their receive
	wants    map[route]*half // receives that wait for their send
	ready    []*half         // halves that may be able to proceed
	open     int             // number of parts of instructions that are not done yet
	steps    int             // length of the longest chain of messages so far
	messages int
	unused   []string
	operands [][]int // reused memory for lists of values
}

// route identifies a channel and a direction: the messages from rank from to rank to.
type route struct{ from, to, channel int }

// rankState is the state of one rank.
type rankState struct {
	prog    *program.Program
	in      [][]content // in[n][c] is chunk c of node n of the input
	out     []content
	scratch [][]content // scratch[s][c] is chunk c of scratch slot s
	halves  []half      // halves[2·lane] is the receive half of a lane, halves[2·lane+1] the send half
	done    [][]completion
	sent    []program.Ref // sources of the sent messages
}

// newChecker returns a checker in which the inputs of all ranks are set up. It also makes the
// checks that need only one program.
func newChecker(programs []*program.Program, opts Options) (*checker, error) {
	if len(programs) == 0 {
		return nil, errors.New("no programs to check")
	}
	c := &checker{
		programs: programs, layouts: opts.Layouts, declared: opts.Cost,
		collective: programs[0].Collective,
		offers:     map[route]*half{}, wants: map[route]*half{},
		ranks: make([]rankState, len(programs)),
	}
	for r, p := range programs {
		if p == nil {
			return nil, fmt.Errorf("rank %d has no program", r)
		}
		if err := p.Validate(); err != nil {
			return nil, err
		}
		if p.Rank != r || p.P != len(programs) || p.GroupHash() != programs[0].GroupHash() {
			return nil, fmt.Errorf("the part of rank %d is of another program than rank 0's: rank %d of %d, %s %s with %d chunks",
				r, p.Rank, p.P, p.Collective, p.Algorithm, p.Chunks)
		}
		if err := shape(p); err != nil {
			return nil, err
		}
		if err := lanes(p); err != nil {
			return nil, err
		}
	}
	if c.layouts == nil {
		c.layouts = EvenLayouts(programs[0])
	}
	for _, l := range c.layouts {
		if err := c.checkLayouts(l); err != nil {
			return nil, err
		}
	}
	if err := c.enumerate(); err != nil {
		return nil, err
	}
	for r, p := range programs {
		c.setUp(&c.ranks[r], p)
	}
	return c, nil
}

// lanes returns an error if two lanes of a rank share a channel to or from a peer, since the
// order of their messages would depend on timing, or if a lane has a peer that it does not use.
func lanes(p *program.Program) error {
	sends, receives := map[[2]int]int{}, map[[2]int]int{}
	claim := func(used map[[2]int]int, lane, peer int, uses bool, to string) error {
		if peer == program.NoPeer {
			return nil
		}
		if !uses {
			return fmt.Errorf("rank %d: lane %d has rank %d %s, and never does", p.Rank, lane, peer, to)
		}
		at := [2]int{peer, p.Lanes[lane].Channel}
		if other, ok := used[at]; ok {
			return fmt.Errorf("rank %d: lanes %d and %d both use channel %d with rank %d %s", p.Rank, other, lane, at[1], peer, to)
		}
		used[at] = lane
		return nil
	}
	for i := range p.Lanes {
		l := &p.Lanes[i]
		var sending, receiving bool
		for j := range l.Steps {
			sending = sending || l.Steps[j].Op.Sends()
			receiving = receiving || l.Steps[j].Op.Receives()
		}
		if err := claim(sends, i, l.SendPeer, sending, "to send to"); err != nil {
			return err
		}
		if err := claim(receives, i, l.RecvPeer, receiving, "to receive from"); err != nil {
			return err
		}
	}
	return nil
}

// cost returns an error if the cost of the run differs from the declared cost.
func (c *checker) cost() error {
	if c.declared == nil {
		return nil
	}
	if c.steps != c.declared.Steps {
		return fmt.Errorf("the longest chain has %d messages, declared are %d", c.steps, c.declared.Steps)
	}
	for _, layouts := range c.layouts {
		for r := range c.ranks {
			l := layouts.forRank(r)
			sent, declared := 0, 0
			for _, ref := range c.ranks[r].sent {
				sent += l.Len(ref)
			}
			if c.declared.Sent != nil {
				declared = c.declared.Sent(r, l)
			}
			if sent != declared {
				return fmt.Errorf("rank %d sends %d elements, declared are %d, where its chunks are in %v out %v",
					r, sent, declared, clip(l.In), clip(l.Out))
			}
		}
	}
	return nil
}

// clip returns the text of a list of offsets, shortened if it is long.
func clip(offsets []int) string {
	if len(offsets) <= 16 {
		return fmt.Sprint(offsets)
	}
	return fmt.Sprintf("%v…%d", offsets[:16], offsets[len(offsets)-1])
}
