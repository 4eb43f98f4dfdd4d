package check_test

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/check"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// remap adapts the dependencies of a program after steps of a lane were moved. to[j] is the new
// index of step j, or −1 if step j was deleted.
func remap(p *program.Program, lane int, to []int) {
	for i := range p.Lanes {
		for j := range p.Lanes[i].Steps {
			in := &p.Lanes[i].Steps[j]
			var after []program.Dep
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

func places(n int, move func(j int) int) []int {
	to := make([]int, n)
	for j := range to {
		to[j] = move(j)
	}
	return to
}

// mutants has functions that change one step of a lane. Together they cover all ways in which a
// step can be wrong. A mutant returns false if it cannot be applied to the step.
var mutants = map[string]func(p *program.Program, lane, step int) bool{
	"drop": func(p *program.Program, lane, step int) bool {
		s := p.Lanes[lane].Steps
		to := places(len(s), func(j int) int {
			switch {
			case j == step:
				return -1
			case j > step:
				return j - 1
			}
			return j
		})
		p.Lanes[lane].Steps = slices.Delete(s, step, step+1)
		remap(p, lane, to)
		return true
	},
	"duplicate": func(p *program.Program, lane, step int) bool {
		s := p.Lanes[lane].Steps
		remap(p, lane, places(len(s), func(j int) int {
			if j > step {
				return j + 1
			}
			return j
		}))
		p.Lanes[lane].Steps = slices.Insert(s, step, s[step])
		return true
	},
	"reorder": func(p *program.Program, lane, step int) bool {
		// The order of two steps without a common half has no meaning. So the step is swapped
		// with the next step in which the same half takes part.
		s := p.Lanes[lane].Steps
		for j := step + 1; j < len(s); j++ {
			if part01(s[j].Op, 0) && part01(s[step].Op, 0) || part01(s[j].Op, 1) && part01(s[step].Op, 1) {
				to := places(len(s), func(j int) int { return j })
				to[step], to[j] = j, step
				remap(p, lane, to)
				s[step], s[j] = s[j], s[step]
				return true
			}
		}
		return false
	},
	"redirect send": func(p *program.Program, lane, _ int) bool {
		return redirect(p, &p.Lanes[lane].SendPeer)
	},
	"redirect receive": func(p *program.Program, lane, _ int) bool {
		return redirect(p, &p.Lanes[lane].RecvPeer)
	},
	"other channel": func(p *program.Program, lane, _ int) bool {
		l := &p.Lanes[lane]
		l.Channel++
		return l.SendPeer != program.NoPeer || l.RecvPeer != program.NoPeer
	},
	"other chunk to read": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		return len(in.Src) > 0 && shift(p, &in.Src[0])
	},
	"other chunk to write": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		return in.Op != program.DoSend && shift(p, &in.Dst)
	},
	"other chunk throughout": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		shifted := in.Op != program.DoSend && shift(p, &in.Dst)
		for k := range in.Src {
			shifted = shift(p, &in.Src[k]) || shifted
		}
		return shifted
	},
	"fewer chunks": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if in.Op == program.DoSend && in.Src[0].Chunks.Len() > 1 {
			in.Src[0].Chunks.Hi--
			return true
		}
		if in.Op == program.DoSend || in.Dst.Chunks.Len() < 2 {
			return false
		}
		in.Dst.Chunks.Lo++
		for k := range in.Src {
			in.Src[k].Chunks.Lo++
		}
		return true
	},
	"other buffer to read": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		return len(in.Src) > 0 && swapBuffer(&in.Src[len(in.Src)-1])
	},
	"other buffer to write": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if in.Op == program.DoSend || len(p.Scratch) == 0 {
			return false
		}
		if in.Dst.Buffer == program.Scratch {
			in.Dst.Buffer, in.Dst.Slot = program.Out, 0
		} else {
			in.Dst.Buffer, in.Dst.Slot = program.Scratch, 0
		}
		return true
	},
	"other scratch": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if in.Op == program.DoSend || in.Dst.Buffer != program.Scratch || len(p.Scratch) < 2 {
			return false
		}
		in.Dst.Slot = (in.Dst.Slot + 1) % len(p.Scratch)
		return true
	},
	"first dependency gone": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if len(in.After) == 0 {
			return false
		}
		in.After = in.After[1:]
		return true
	},
	"last dependency gone": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if len(in.After) == 0 {
			return false
		}
		in.After = in.After[:len(in.After)-1]
		return true
	},
	"operands exchanged": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		if in.Op == program.DoReduce && len(in.Src) > 1 {
			in.Src[0], in.Src[1] = in.Src[1], in.Src[0]
			return true
		}
		return false
	},
	"folded as a chain": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		chain := make([]sharding.FoldStep, max(0, len(in.Src)-1))
		for k := range chain {
			chain[k] = sharding.FoldStep{Left: 0, Right: k + 1}
		}
		return refold(in, chain)
	},
	"folded from the right": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		m := len(in.Src)
		chain := make([]sharding.FoldStep, max(0, m-1))
		for k := range chain {
			chain[k] = sharding.FoldStep{Left: m - 2 - k, Right: m - 1 - k}
		}
		return refold(in, chain)
	},
	"received on the other side": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		in.RecvLeft = !in.RecvLeft
		return in.Op.Receives() && in.Op.Reduces()
	},
	"stored instead of folded": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		switch in.Op {
		case program.DoRecvReduce:
			in.Op = program.DoRecv
		case program.DoRecvReduceSend:
			in.Op = program.DoRecvCopySend
		default:
			return false
		}
		in.Src = nil
		return true
	},
	"not passed on": func(p *program.Program, lane, step int) bool {
		in := &p.Lanes[lane].Steps[step]
		switch in.Op {
		case program.DoRecvReduceSend:
			in.Op = program.DoRecvReduce
		case program.DoRecvCopySend:
			in.Op = program.DoRecv
		default:
			return false
		}
		return true
	},
}

func redirect(p *program.Program, peer *int) bool {
	if *peer == program.NoPeer || p.P < 3 {
		return false
	}
	for *peer = (*peer + 1) % p.P; *peer == p.Rank; {
		*peer = (*peer + 1) % p.P
	}
	return true
}

// shift moves a reference by one chunk, and returns false if its buffer has no other chunk.
func shift(p *program.Program, r *program.Ref) bool {
	room, n := p.Room(*r), r.Chunks.Len()
	if n >= room.Len() {
		return false
	}
	lo := r.Chunks.Lo + 1
	if lo+n > room.Hi {
		lo = room.Lo
	}
	r.Chunks = sharding.Range{Lo: lo, Hi: lo + n}
	return true
}

func swapBuffer(r *program.Ref) bool {
	if r.Buffer == program.In {
		r.Buffer = program.Out
	} else {
		r.Buffer = program.In
	}
	r.Slot = 0
	return true
}

func refold(in *program.Instruction, fold []sharding.FoldStep) bool {
	if in.Op != program.DoReduce || slices.Equal(in.Fold, fold) {
		return false
	}
	in.Fold = fold
	return true
}

// cloneAll returns copies of programs that mutants can change.
func cloneAll(programs []*program.Program) []*program.Program {
	all := slices.Clone(programs)
	for r, p := range programs {
		c := *p
		c.Lanes = slices.Clone(p.Lanes)
		for i := range c.Lanes {
			c.Lanes[i].Steps = slices.Clone(c.Lanes[i].Steps)
			for j := range c.Lanes[i].Steps {
				in := &c.Lanes[i].Steps[j]
				in.Src, in.After = slices.Clone(in.Src), slices.Clone(in.After)
			}
		}
		all[r] = &c
	}
	return all
}

// TestEveryMutantIsFound applies each mutant to each step of each rank of each algorithm. If
// the checker accepts the changed programs, the test requires that they are correct: the
// machine runs them in many orders, and they must end with right results and true claims.
// Examples of correct mutants are programs that lack a dependency which other dependencies
// imply, programs with two swapped steps whose order does not matter, and programs with swapped
// operands in a fold for which no order is claimed.
func TestEveryMutantIsFound(t *testing.T) {
	sizes, runs, every := []int{2, 3, 4, 5}, 24, 1
	if testsize.Race {
		every = 5
	}
	if testsize.Soak {
		sizes, runs, every = []int{2, 3, 4, 5, 6, 7, 8}, 200, 1
	}
	names := slices.Sorted(maps.Keys(mutants))
	var mutex sync.Mutex
	found, survived := map[string]int{}, map[string]int{}
	t.Run("all", func(t *testing.T) {
		everyAlgorithm(t, func(t *testing.T, a *algorithm.Algorithm) {
			for _, pr := range mutated(a, sizes) {
				sound, err := check.Generate(a, pr)
				require.NoError(t, err)
				cost := a.Cost(pr)
				require.NoError(t, check.Programs(sound, check.Options{Cost: &cost}))
				require.Empty(t, wrong(sound, 4))
				n := 0
				for _, name := range names {
					for r := range sound {
						for i := range sound[r].Lanes {
							for j := range sound[r].Lanes[i].Steps {
								if n++; (n+r)%every != 0 {
									continue
								}
								programs := cloneAll(sound)
								if !mutants[name](programs[r], i, j) {
									continue
								}
								err := check.Programs(programs, check.Options{Cost: &cost})
								if err == nil {
									require.Empty(t, wrong(programs, runs),
										"%s %s p=%d: the checker must find the mutation %s at rank %d lane %d step %d (%s)", a.Name, a.Collective, pr.P, name, r, i, j, &sound[r].Lanes[i].Steps[j])
								}
								mutex.Lock()
								if err == nil {
									survived[name]++
								} else {
									found[name]++
								}
								mutex.Unlock()
							}
						}
					}
				}
			}
		})
	})
	for _, name := range names {
		require.NotZero(t, found[name], name)
	}
	t.Logf("found: %v", found)
	t.Logf("accepted, and correct: %v", survived)
}

// mutated returns the parameters of the programs to mutate.
func mutated(a *algorithm.Algorithm, sizes []int) []algorithm.Params {
	var all []algorithm.Params
	for _, p := range sizes {
		pr := algorithm.Params{P: p, Root: p / 2}
		if a.Supports(pr) == nil {
			all = append(all, pr)
		}
		pr.Forest = forests(p)[0]
		if p == 3 && a.Supports(pr) == nil {
			all = append(all, pr)
		}
	}
	return all
}
