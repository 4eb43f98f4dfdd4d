package check

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/collective/program"
)

// Layouts are the lengths of the chunks in one run: of all ranks at once, or one
// layout for each, which is what an AllToAll of blocks of different lengths needs.
type Layouts []program.Layout

// of is the layout of a rank.
func (l Layouts) of(rank int) program.Layout {
	if len(l) == 1 {
		return l[0]
	}
	return l[rank]
}

// Options say what else there is to compare programs with.
type Options struct {
	// Cost is what the programs are declared to cost; nil leaves it open.
	Cost *program.Cost

	// Layouts are the lengths for which messages must match and costs be as
	// declared. Nil stands for even chunks of each of Counts(p) elements.
	Layouts []Layouts
}

// Report is what a run of programs shows beyond their being right.
type Report struct {
	// Steps is the length of the longest chain of messages, as in program.Cost:
	// each goes after the one before it has come, either because what its sender
	// does hangs on that, or because both go through one lane.
	Steps    int
	Messages int // of all ranks

	// Canonical and RankOrder say whether the programs could make the claims of
	// these names, for collectives that reduce. See program.Program.
	Canonical, RankOrder bool

	// Unused lists what instructions make and nobody reads: the programs are right
	// without it.
	Unused []string
}

// Programs returns an error unless the parts of all ranks, in rank order, are one
// sound program. It finds
//
//   - parts that do not validate, are not of one group, or whose input, output and
//     root are not what the collective has;
//   - two lanes of a rank that use one channel in one direction with one peer;
//   - a send without its receive or a receive without its send, and a pair of them
//     of different chunks or lengths;
//   - a read of something never written;
//   - two accesses to a chunk, one of them a write, that nothing orders (the order
//     of a half, a fused instruction's receiving before sending, or After), also if
//     chunk c of the first input and of the output are the same memory;
//   - results other than the collective's: a contribution missing, there twice, or
//     in a foreign place; trees of operations that differ among ranks; a barrier
//     that a rank can leave before another has entered it;
//   - claims (CanonicalTree, RankOrder) that do not hold;
//   - runs that do not end, with no buffering at all and with one goroutine a rank
//     that follows program.SerialOrder;
//   - costs other than declared.
//
// Time and memory are proportional to the number of instructions, their operands
// and the chunks that they touch.
func Programs(programs []*program.Program, opts Options) error {
	_, err := Inspect(programs, opts)
	return err
}

// Inspect is Programs for who wants to know more about sound programs.
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

// checker is an abstract run of all ranks' programs.
type checker struct {
	programs []*program.Program
	layouts  []Layouts
	declared *program.Cost

	collective program.Collective
	sources    []source
	terms      terms
	ranks      []rankState

	offers   map[route]*half // sends waiting for their receive
	wants    map[route]*half // receives waiting for their send
	ready    []*half         // halves that may be able to go on
	open     int             // parts of instructions left
	steps    int             // longest chain of messages so far
	messages int
	unused   []string
	operands [][]int // room for values on their way
}

// route is what the messages of a channel have in common.
type route struct{ from, to, channel int }

// rankState is the state of one rank.
type rankState struct {
	prog    *program.Program
	in      [][]content // by node, then chunk
	out     []content
	scratch [][]content // by slot, then chunk
	halves  []half      // 2·lane for the receive half, 2·lane + 1 for the send half
	done    [][]completion
	sent    []program.Ref // what messages were made of
}

// newChecker looks at the programs by themselves and sets up their input.
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

// lanes checks that no two lanes of a rank share a channel to or from a peer,
// which would leave the order of their messages to timing, and that a lane has
// only peers that it needs.
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

// cost compares what the run took with what is declared.
func (c *checker) cost() error {
	if c.declared == nil {
		return nil
	}
	if c.steps != c.declared.Steps {
		return fmt.Errorf("the longest chain has %d messages, declared are %d", c.steps, c.declared.Steps)
	}
	for _, layouts := range c.layouts {
		for r := range c.ranks {
			l := layouts.of(r)
			sent, declared := 0, 0
			for _, ref := range c.ranks[r].sent {
				sent += l.Len(ref)
			}
			if c.declared.Sent != nil {
				declared = c.declared.Sent(r, l)
			}
			if sent != declared {
				return fmt.Errorf("rank %d sends %d elements, declared are %d, where its chunks lie at in %v out %v",
					r, sent, declared, clip(l.In), clip(l.Out))
			}
		}
	}
	return nil
}

// clip shortens what would fill the screen.
func clip(offsets []int) string {
	if len(offsets) <= 16 {
		return fmt.Sprint(offsets)
	}
	return fmt.Sprintf("%v…%d", offsets[:16], offsets[len(offsets)-1])
}
