package collective

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/shared"
)

// ring is a ring AllReduce, here to hold the checker and the interpreter against
// the fused instructions, which the direct algorithm has no use for.
var ring = Generator{
	Name: "ring",
	Generate: func(p, rank int) Program {
		if p == 1 {
			return GenerateDirect(1, 0)
		}
		mod := func(x int) int { return (x + 2*p) % p }
		l := Lane{SendPeer: mod(rank + 1), RecvPeer: mod(rank - 1), Channel: 3}
		l.Steps = append(l.Steps, Instruction{Op: DoSend, Src: []Ref{chunk(BufferIn, 0, rank)}})
		held := map[int]int{rank: 0} // chunk → step that last sent it
		for k := 1; k < p; k++ {
			c := mod(rank - k)
			held[c] = len(l.Steps)
			l.Steps = append(l.Steps, Instruction{Op: DoRecvReduceSend, Dst: chunk(BufferOut, 0, c),
				Src: []Ref{chunk(BufferIn, 0, c)}, RecvLeft: true})
		}
		for k := 0; k < p-1; k++ {
			c := mod(rank - k)
			in := Instruction{Op: DoRecvCopySend, Dst: chunk(BufferOut, 0, c), After: []Dep{{0, held[c]}}}
			if k == p-2 {
				in.Op = DoRecv
			}
			l.Steps = append(l.Steps, in)
		}
		return Program{Collective: "allreduce", Algorithm: "ring", P: p, Rank: rank, Root: -1, Chunks: p, Lanes: []Lane{l}}
	},
	Cost: func(p int) Cost {
		return Cost{Steps: 2 * (p - 1), Sent: func(rank, chunk int) int {
			n := 2 // once on the way to its sum, once on the way back
			if chunk == (rank+1)%p {
				n-- // arrives here complete
			}
			if chunk == (rank+2)%p {
				n-- // has been everywhere
			}
			return n
		}}
	},
}

// exchange is recursive doubling for two ranks: each sends all it has and folds
// what comes, the lower rank's on the left, beside its input: folding into it would
// have each wait until the other has received.
var exchange = Generator{
	Name: "exchange",
	Generate: func(p, rank int) Program {
		return Program{Collective: "allreduce", Algorithm: "exchange", P: p, Rank: rank, Root: -1, Chunks: 1, CanonicalTree: true,
			Scratch: []shared.Range{{Lo: 0, Hi: 1}},
			Lanes: []Lane{{SendPeer: 1 - rank, RecvPeer: 1 - rank, Steps: []Instruction{
				{Op: DoSend, Src: []Ref{chunk(BufferIn, 0, 0)}},
				{Op: DoRecvReduce, Dst: chunk(BufferScratch, 0, 0), Src: []Ref{chunk(BufferIn, 0, 0)}, RecvLeft: rank == 1},
				{Op: DoCopy, Dst: chunk(BufferOut, 0, 0), Src: []Ref{chunk(BufferScratch, 0, 0)}, After: []Dep{{0, 0}}},
			}}}}
	},
	Cost: func(p int) Cost { return Cost{Steps: 1, Sent: func(rank, chunk int) int { return 1 }} },
}

func TestDirectIsRightForEveryP(t *testing.T) {
	for p := 1; p <= 33; p++ {
		require.NoError(t, Check(Direct, p))
	}
}

func TestDirectSendsWhatIsDeclared(t *testing.T) {
	for p := 2; p <= 9; p++ {
		for _, n := range []int{0, 1, p - 1, p, p + 1, 97} {
			for r := range p {
				sent := 0
				for c := range p {
					sent += directCost(p).Sent(r, c) * shared.Split(n, p, c).Len()
				}
				own := shared.Split(n, p, r).Len()
				require.Equal(t, (n-own)+(p-1)*own, sent)
			}
		}
	}
}

func TestRingIsRight(t *testing.T) {
	require.NoError(t, Check(Generator{"ring", ring.Generate, directCost}, 1))
	require.NoError(t, Check(ring, 2))
	for p := 3; p <= 17; p++ {
		require.NoError(t, Check(ring, p))
	}
}

// programsOf generates anew, so that each mutant starts from a sound program.
func programsOf(g Generator, p int) []*Program {
	var programs []*Program
	for r := range p {
		prog := g.Generate(p, r)
		programs = append(programs, &prog)
	}
	return programs
}

// remap moves the dependencies of a program along with its steps: to[old] is the
// new place of a step of the lane, or −1.
func remap(p *Program, lane int, to []int) {
	for i := range p.Lanes {
		for j := range p.Lanes[i].Steps {
			in := &p.Lanes[i].Steps[j]
			var after []Dep
			for _, d := range in.After {
				if d.Lane == lane {
					d.Step = to[d.Step]
				}
				if d.Step >= 0 {
					after = append(after, d)
				}
			}
			in.After = after
		}
	}
}

// mutants are the ways in which one step of a lane can be wrong. Each returns
// false where it does not apply.
var mutants = map[string]func(p *Program, lane, step int) bool{
	"drop": func(p *Program, lane, step int) bool {
		s := p.Lanes[lane].Steps
		to := make([]int, len(s))
		for j := range to {
			to[j] = j
			if j == step {
				to[j] = -1
			} else if j > step {
				to[j]--
			}
		}
		p.Lanes[lane].Steps = append(append([]Instruction{}, s[:step]...), s[step+1:]...)
		remap(p, lane, to)
		return true
	},
	"duplicate": func(p *Program, lane, step int) bool {
		s := p.Lanes[lane].Steps
		if !s[step].Op.Sends() && !s[step].Op.Receives() {
			return false // folding or copying the same twice is only slow
		}
		to := make([]int, len(s))
		for j := range to {
			to[j] = j
			if j > step {
				to[j]++
			}
		}
		remap(p, lane, to)
		s = p.Lanes[lane].Steps
		p.Lanes[lane].Steps = append(append(append([]Instruction{}, s[:step+1]...), s[step]), s[step+1:]...)
		return true
	},
	"reorder": func(p *Program, lane, step int) bool {
		// The order of steps of different halves means nothing, so a step changes
		// places with the next of its half.
		s := p.Lanes[lane].Steps
		for j := step + 1; j < len(s); j++ {
			if s[j].Op.Sends() == s[step].Op.Sends() {
				to := make([]int, len(s))
				for k := range to {
					to[k] = k
				}
				to[step], to[j] = j, step
				remap(p, lane, to)
				s[step], s[j] = s[j], s[step]
				return true
			}
		}
		return false
	},
	"redirect send": func(p *Program, lane, step int) bool {
		return redirect(p, &p.Lanes[lane].SendPeer)
	},
	"redirect receive": func(p *Program, lane, step int) bool {
		return redirect(p, &p.Lanes[lane].RecvPeer)
	},
	"other channel": func(p *Program, lane, step int) bool {
		l := &p.Lanes[lane]
		l.Channel++
		return l.SendPeer != NoPeer
	},
	"other chunk to read": func(p *Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if len(in.Src) == 0 || p.Chunks == 1 {
			return false
		}
		shift(p, &in.Src[0])
		return true
	},
	"other chunk to write": func(p *Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if in.Op == DoSend || p.Chunks == 1 {
			return false
		}
		shift(p, &in.Dst)
		return true
	},
	"other buffer to read": func(p *Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if len(in.Src) == 0 {
			return false
		}
		in.Src[0] = swapBuffer(in.Src[0])
		return true
	},
	"no dependency": func(p *Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if len(in.After) == 0 {
			return false
		}
		in.After = in.After[1:]
		return true
	},
	"operands exchanged": func(p *Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if in.Op == DoReduce && len(in.Src) > 1 {
			in.Src[0], in.Src[1] = in.Src[1], in.Src[0]
			return true
		}
		return false
	},
	"folded as a chain": func(p *Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if in.Op != DoReduce || len(in.Src) < 4 {
			return false // with three it is the canonical tree
		}
		for k := range in.Fold {
			in.Fold[k] = shared.FoldStep{Left: 0, Right: k + 1}
		}
		return true
	},
	"folded from the right": func(p *Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if in.Op != DoReduce || len(in.Src) < 3 {
			return false
		}
		m := len(in.Src)
		for k := range in.Fold {
			in.Fold[k] = shared.FoldStep{Left: m - 2 - k, Right: m - 1 - k}
		}
		return true
	},
	"received on the other side": func(p *Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if in.Op != DoRecvReduce && in.Op != DoRecvReduceSend {
			return false
		}
		in.RecvLeft = !in.RecvLeft
		return true
	},
}

func redirect(p *Program, peer *int) bool {
	if *peer == NoPeer || p.P < 3 {
		return false
	}
	for *peer = (*peer + 1) % p.P; *peer == p.Rank; {
		*peer = (*peer + 1) % p.P
	}
	return true
}

func shift(p *Program, r *Ref) {
	c := (r.Chunks.Lo + 1) % p.Chunks
	r.Chunks = shared.Range{Lo: c, Hi: c + 1}
}

func swapBuffer(r Ref) Ref {
	if r.Buffer == BufferIn {
		r.Buffer = BufferOut
	} else {
		r.Buffer = BufferIn
	}
	r.Slot = 0
	return r
}

// TestEveryMutantIsFound applies each mutation to each step of each rank.
func TestEveryMutantIsFound(t *testing.T) {
	applied := map[string]int{}
	try := func(g Generator, p int) {
		sound := programsOf(g, p)
		require.NoError(t, CheckPrograms(sound, g.Cost(p)))
		for name, mutate := range mutants {
			for r := range sound {
				for i := range sound[r].Lanes {
					for j := range sound[r].Lanes[i].Steps {
						if g.Name == ring.Name && name == "received on the other side" {
							continue // another tree, and the ring claims none
						}
						programs := programsOf(g, p)
						if !mutate(programs[r], i, j) {
							continue
						}
						applied[name]++
						require.Error(t, CheckPrograms(programs, g.Cost(p)),
							"%s p=%d: %s at rank %d lane %d step %d (%s)", g.Name, p, name, r, i, j, &sound[r].Lanes[i].Steps[j])
					}
				}
			}
		}
	}
	for p := 1; p <= 6; p++ {
		try(Direct, p)
	}
	for p := 3; p <= 5; p++ {
		try(ring, p)
	}
	try(exchange, 2)
	for name := range mutants {
		require.NotZero(t, applied[name], name)
	}
	t.Logf("mutants found: %v", applied)
}

func TestGroupsThatDoNotFitTogetherAreFound(t *testing.T) {
	programs := programsOf(Direct, 3)
	other := GenerateDirect(4, 2)
	programs[2] = &other
	require.ErrorContains(t, CheckPrograms(programs, directCost(3)), "another program")

	programs = programsOf(Direct, 3)
	programs[0], programs[1] = programs[1], programs[0]
	require.ErrorContains(t, CheckPrograms(programs, directCost(3)), "another program")

	programs = programsOf(Direct, 2)
	for _, p := range programs {
		p.Collective = "dance"
	}
	require.ErrorContains(t, CheckPrograms(programs, directCost(2)), "dance")
}

func TestFalseClaimsAreFound(t *testing.T) {
	claimed := ring
	claimed.Generate = func(p, rank int) Program {
		prog := ring.Generate(p, rank)
		prog.CanonicalTree = true
		return prog
	}
	require.ErrorContains(t, Check(claimed, 4), "the canonical tree is")

	more := Direct
	more.Cost = func(p int) Cost { return Cost{Steps: 3, Sent: directCost(p).Sent} }
	require.ErrorContains(t, Check(more, 4), "has 2 messages, declared are 3")
	more.Cost = func(p int) Cost { return Cost{Steps: 2} }
	require.ErrorContains(t, Check(more, 4), "rank 0 sends chunk 0's length 3 times, declared are 0")

	// Ranks that agree with each other on a tree of their own, unless one differs.
	odd := Direct
	odd.Generate = func(p, rank int) Program {
		prog := GenerateDirect(p, rank)
		prog.CanonicalTree = false
		if in := &prog.Lanes[0].Steps[0]; rank == 2 {
			in.Fold = []shared.FoldStep{{Left: 2, Right: 3}, {Left: 1, Right: 2}, {Left: 0, Right: 1}}
		}
		return prog
	}
	require.NoError(t, Check(odd, 4), "an owner may choose its tree")
}

func TestAWaitInACircleIsFound(t *testing.T) {
	// Both ranks receive before they send, in one half after the other.
	programs := programsOf(Direct, 2)
	for _, p := range programs {
		p.Lanes[1].Steps[0].After = []Dep{{1, 1}}
	}
	err := CheckPrograms(programs, directCost(2))
	require.ErrorContains(t, err, "does not end")
	require.ErrorContains(t, err, "rank 0 lane 1 step 1 (recv scratch0[0])")
}

func TestTwoLanesOnOneChannelAreFound(t *testing.T) {
	programs := programsOf(Direct, 2)
	for _, p := range programs {
		p.Lanes = append(p.Lanes, p.Lanes[1])
	}
	require.ErrorContains(t, CheckPrograms(programs, directCost(2)), "both use channel 0")
}

func ExampleCheck() {
	fmt.Println(Check(Direct, 7))

	// The same exchange that forgets to wait for its pieces.
	hasty := Direct
	hasty.Generate = func(p, rank int) Program {
		prog := GenerateDirect(p, rank)
		if p > 1 {
			prog.Lanes[0].Steps[0].After = prog.Lanes[0].Steps[0].After[1:]
		}
		return prog
	}
	fmt.Println(Check(hasty, 2) != nil)
	// Output:
	// <nil>
	// true
}
