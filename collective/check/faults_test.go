package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/check"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// These are short names for use in programs that are written by hand.
var (
	in0, out0 = program.Chunk(program.In, 0, 0), program.Chunk(program.Out, 0, 0)
	one       = sharding.Range{Lo: 0, Hi: 1}
)

func scratch(slot int) program.Ref { return program.Chunk(program.Scratch, slot, 0) }

func after(in program.Instruction, deps ...program.Dep) program.Instruction {
	in.After = deps
	return in
}

func send(r program.Ref) program.Instruction {
	return program.Instruction{Op: program.DoSend, Src: []program.Ref{r}}
}

func recv(r program.Ref) program.Instruction {
	return program.Instruction{Op: program.DoRecv, Dst: r}
}

func move(dst, src program.Ref) program.Instruction {
	return program.Instruction{Op: program.DoCopy, Dst: dst, Src: []program.Ref{src}}
}

func lane(sendTo, recvFrom int, steps ...program.Instruction) program.Lane {
	return program.Lane{SendPeer: sendTo, RecvPeer: recvFrom, Steps: steps}
}

// exchange returns the programs of recursive doubling for two ranks: each rank sends its data,
// receives into scratch and folds. A rank must not write the output, which may be the memory of
// its input, before the other rank has received that input.
func exchange() []*program.Program {
	programs := make([]*program.Program, 2)
	for rank := range programs {
		programs[rank] = &program.Program{
			Collective: program.AllReduce, Algorithm: "exchange", P: 2, Rank: rank, Root: -1, Chunks: 1, In: one, Out: one,
			CanonicalTree: true, RankOrder: true, Scratch: []sharding.Range{one},
			Lanes: []program.Lane{lane(1-rank, 1-rank,
				send(in0),
				program.Instruction{Op: program.DoRecvReduce, Dst: scratch(0), Src: []program.Ref{in0}, RecvLeft: rank == 1},
				after(move(out0, scratch(0)), program.Dep{Lane: 0, Step: 0}),
			)},
		}
	}
	return programs
}

var exchangeCost = program.Cost{Steps: 1, Sent: func(_ int, l program.Layout) int { return l.Out[1] }}

// chain returns the programs of a broadcast of the given number of chunks along a chain of p
// ranks that begins at rank 0.
func chain(p, chunks int) []*program.Program {
	all := sharding.Range{Lo: 0, Hi: chunks}
	programs := make([]*program.Program, p)
	for rank := range programs {
		l := lane(rank+1, rank-1)
		var local program.Lane
		for c := range chunks {
			ref := program.Chunk(program.Out, 0, c)
			switch rank {
			case 0:
				l.Steps = append(l.Steps, send(program.Chunk(program.In, 0, c)))
				local.Steps = append(local.Steps, after(move(ref, program.Chunk(program.In, 0, c)), program.Dep{Lane: 0, Step: c}))
			case p - 1:
				l.Steps = append(l.Steps, recv(ref))
			default:
				l.Steps = append(l.Steps, program.Instruction{Op: program.DoRecvCopySend, Dst: ref})
			}
		}
		if rank == p-1 {
			l.SendPeer = program.NoPeer
		}
		programs[rank] = &program.Program{Collective: program.Broadcast, Algorithm: "chain", P: p, Rank: rank, Chunks: chunks,
			Out: all, Lanes: []program.Lane{l}}
		if rank == 0 {
			local.SendPeer, local.RecvPeer = program.NoPeer, program.NoPeer
			programs[0].Lanes[0].RecvPeer = program.NoPeer
			programs[0].In, programs[0].Lanes = all, append(programs[0].Lanes, local)
		}
	}
	return programs
}

func direct(t *testing.T, p int) ([]*program.Program, check.Options) {
	t.Helper()
	a, err := algorithm.Find(program.AllReduce, "direct")
	require.NoError(t, err)
	pr := algorithm.Params{P: p}
	programs, err := check.Generate(a, pr)
	require.NoError(t, err)
	cost := a.Cost(pr)
	return programs, check.Options{Cost: &cost}
}

func TestProgramsByHandAreSound(t *testing.T) {
	report, err := check.Inspect(exchange(), check.Options{Cost: &exchangeCost})
	require.NoError(t, err)
	require.Equal(t, &check.Report{Steps: 1, Messages: 2, Canonical: true, RankOrder: true}, report)
	// The longest chain of messages: rank 0 sends 3 chunks one after another, and the last
	// chunk then travels along all ranks.
	report, err = check.Inspect(chain(5, 3), check.Options{})
	require.NoError(t, err)
	require.Equal(t, &check.Report{Steps: 5 - 2 + 3, Messages: 12, Canonical: true, RankOrder: true}, report)
}

// TestFaultsOfForm requires errors for faults that the checker finds before it runs the
// programs.
func TestFaultsOfForm(t *testing.T) {
	for want, spoil := range map[string]func(all []*program.Program) []*program.Program{
		"no programs":                  func(all []*program.Program) []*program.Program { return nil },
		"rank 1 has no program":        func(all []*program.Program) []*program.Program { all[1] = nil; return all },
		"rank 1 is of another program": func(all []*program.Program) []*program.Program { all[1].Chunks = 2; return all },
		"rank 0 is of another program": func(all []*program.Program) []*program.Program { all[0], all[1] = all[1], all[0]; return all },
		"writes the input":             func(all []*program.Program) []*program.Program { all[0].Lanes[0].Steps[1].Dst = in0; return all },
		"a allreduce with root 1": func(all []*program.Program) []*program.Program {
			return each(all, func(p *program.Program) { p.Root = 1 })
		},
		"a reduce with root -1": func(all []*program.Program) []*program.Program {
			return each(all, func(p *program.Program) { p.Collective = program.Reduce })
		},
		"there is no collective(11)": func(all []*program.Program) []*program.Program {
			return each(all, func(p *program.Program) { p.Collective = program.NumCollectives })
		},
		"not 1 chunks for 2 ranks": func(all []*program.Program) []*program.Program {
			return each(all, func(p *program.Program) { p.Collective = program.AllGather })
		},
		"rank 0 of a exscan has input": func(all []*program.Program) []*program.Program {
			return each(all, func(p *program.Program) { p.Collective = program.Exscan })
		},
		"lanes 0 and 1 both use channel": func(all []*program.Program) []*program.Program {
			return each(all, func(p *program.Program) { p.Lanes = append(p.Lanes, p.Lanes[0]) })
		},
		"lane 0 has rank 1 to send to, and never": func(all []*program.Program) []*program.Program {
			all[0].Lanes[0].Steps = all[0].Lanes[0].Steps[1:]
			all[0].Lanes[0].Steps[1].After = nil
			return all
		},
		"to receive from, and never": func(all []*program.Program) []*program.Program {
			all[0].Lanes[0].Steps = all[0].Lanes[0].Steps[:1]
			return all
		},
		"either all ranks bring forests or none": func(all []*program.Program) []*program.Program {
			all[1].Nodes = []sharding.Node{{Level: 0, Index: 1}}
			return all
		},
		"want them disjoint": func(all []*program.Program) []*program.Program {
			return each(all, func(p *program.Program) { p.Nodes, p.Forest = []sharding.Node{{Level: 1, Index: 0}}, 7 })
		},
		"no rank brings anything": func(all []*program.Program) []*program.Program {
			return each(all, func(p *program.Program) { p.Nodes, p.Forest, p.Lanes = []sharding.Node{}, 7, nil })
		},
		"brings a forest to a scan": func(all []*program.Program) []*program.Program {
			return each(all, func(p *program.Program) {
				p.Collective, p.Nodes, p.Forest = program.Scan, []sharding.Node{{Level: 0, Index: p.Rank}}, 7
			})
		},
	} {
		require.ErrorContains(t, check.Programs(spoil(exchange()), check.Options{}), want)
	}
}

func each(all []*program.Program, spoil func(p *program.Program)) []*program.Program {
	for _, p := range all {
		spoil(p)
	}
	return all
}

// TestRacesAreFound removes dependencies that order accesses to the same memory. It requires
// that the checker finds the resulting races.
func TestRacesAreFound(t *testing.T) {
	all := exchange()
	all[0].Lanes[0].Steps[2].After = nil
	require.ErrorContains(t, check.Programs(all, check.Options{}),
		"race: rank 0 lane 0 step 2 (copy out[0] = scratch0[0]) writes out[0], and lane 0 step 0 (send in[0]) reads in[0], which may be the same memory")

	// If both ranks fold into the output, each rank must wait until the other rank has
	// received, so the run does not end.
	all = exchange()
	for _, p := range all {
		s := p.Lanes[0].Steps
		s[1].Dst, s[1].After = out0, s[2].After
		p.Lanes[0].Steps = s[:2]
	}
	require.ErrorContains(t, check.Programs(all, check.Options{}), "; rank 0 lane 0 step 0 (send in[0]) for rank 1 to receive;")
	require.ErrorContains(t, check.Programs(all, check.Options{}), "the run does not end: waiting are rank 0 lane 0 step 1 (recv-reduce out[0] = (in[0] received) after 0.0) for step 0.0;")

	// In the checker's run, the write comes before the read here because of the order of lanes.
	// But no dependency orders the write and the read, so there is a race.
	all = chain(3, 1)
	local, sending := all[0].Lanes[1], all[0].Lanes[0]
	local.Steps[0].After, sending.Steps[0].Src[0] = nil, out0
	all[0].Lanes = []program.Lane{local, sending}
	require.ErrorContains(t, check.Programs(all, check.Options{}), "race: rank 0 lane 1 step 0 (send out[0]) reads out[0], which lane 0 step 0 (copy out[0] = in[0]) writes")
	sending.Steps[0].After = []program.Dep{{Lane: 0, Step: 0}}
	require.NoError(t, check.Programs(all, check.Options{}))

	all = chain(3, 2)
	all[0].Lanes[0].Steps[1] = after(send(program.Chunk(program.In, 0, 1)), program.Dep{Lane: 1, Step: 1})
	all[0].Lanes[1].Steps[1].After = nil
	require.ErrorContains(t, check.Programs(all, check.Options{}), "rank 0 lane 0 step 1 (send in[1] after 1.1) reads in[1] after lane 1 step 1 (copy out[1] = in[1]) has written out[1]")

	all = exchange()
	all[0].Lanes = append(all[0].Lanes, lane(program.NoPeer, program.NoPeer, move(scratch(0), in0)))
	require.ErrorContains(t, check.Programs(all, check.Options{}), "writes too")

	// Data that a rank passes on must be sent before the rank overwrites it with other data.
	all = chain(3, 2)
	each(all, func(p *program.Program) { p.Scratch = []sharding.Range{{Lo: 0, Hi: 2}} })
	through := &all[1].Lanes[0]
	through.Steps[0].Dst = scratch(0)
	through.Steps = append(through.Steps, move(program.Chunk(program.Out, 0, 0), scratch(0)), recv(scratch(0)))
	all[0].Lanes[0].Steps = append(all[0].Lanes[0].Steps, send(in0))
	all[0].Lanes[1].Steps[0].After = []program.Dep{{Lane: 0, Step: 2}}
	require.ErrorContains(t, check.Programs(all, check.Options{}), "race: rank 1 lane 0 step 3 (recv scratch0[0]) writes scratch0[0], which lane 0 step 0 (recv-copy-send scratch0[0]) reads")
	through.Steps[3].After = []program.Dep{{Lane: 0, Step: 0}}
	require.NoError(t, check.Programs(all, check.Options{}))
}

func TestUnwrittenIsFound(t *testing.T) {
	all := exchange()
	all[0].Lanes[0].Steps[0].Src[0] = scratch(0)
	require.ErrorContains(t, check.Programs(all, check.Options{}), "reads scratch0[0], which is not written yet")

	all = exchange()
	all[1].Lanes[0].Steps = all[1].Lanes[0].Steps[:2]
	require.ErrorContains(t, check.Programs(all, check.Options{}), "rank 1: out[0] is never written")
}

func TestMessagesThatDoNotFitAreFound(t *testing.T) {
	all := chain(2, 3)
	s := all[1].Lanes[0].Steps
	s[1], s[2] = s[2], s[1]
	require.ErrorContains(t, check.Programs(all, check.Options{}), "rank 0 sends in[1] (rank 0 lane 0 step 1 (send in[1])) where rank 1 receives out[2]")

	all = chain(2, 3)
	all[1].Lanes[0].Steps = all[1].Lanes[0].Steps[:2]
	require.ErrorContains(t, check.Programs(all, check.Options{}), "(send in[2]) for rank 1 to receive")

	all = chain(2, 3)
	all[0].Lanes[0].Steps = all[0].Lanes[0].Steps[:2]
	all[0].Lanes[1].Steps[2].After = nil
	require.ErrorContains(t, check.Programs(all, check.Options{}), "(recv out[2]) for rank 0 to send")
}

func TestWrongResultsAreFound(t *testing.T) {
	all := exchange()
	all[0].Lanes[0].Steps[1].Src[0], all[0].Lanes[0].Steps[0] = in0, send(in0)
	all[1].Lanes[0].Steps[1] = recv(scratch(0))
	require.ErrorContains(t, check.Programs(all, check.Options{}), "rank 1: out[0]: 0[0]: has 1 0 times")

	all = exchange()
	all[1].Lanes[0].Steps[2] = program.Instruction{Op: program.DoReduce, Dst: out0, Src: []program.Ref{scratch(0), in0},
		Fold: []sharding.FoldStep{{Left: 0, Right: 1}}, After: []program.Dep{{Lane: 0, Step: 0}}}
	require.ErrorContains(t, check.Programs(all, check.Options{}), "rank 1: out[0]: ((0[0] 1[0]) 1[0]): has 1 2 times")

	all = exchange()
	each(all, func(p *program.Program) { p.CanonicalTree, p.RankOrder = false, false })
	all[0].Lanes[0].Steps[1].RecvLeft = true
	require.ErrorContains(t, check.Programs(all, check.Options{}), "out[0] is (0[0] 1[0]) on rank 1 but (1[0] 0[0]) on rank 0")
	all[1].Lanes[0].Steps[1].RecvLeft = false
	report, err := check.Inspect(all, check.Options{})
	require.NoError(t, err)
	require.False(t, report.Canonical || report.RankOrder)
	each(all, func(p *program.Program) { p.RankOrder = true })
	require.ErrorContains(t, check.Programs(all, check.Options{}), "out[0] is (1[0] 0[0]), which does not keep the order of ranks")
	each(all, func(p *program.Program) { p.CanonicalTree = true })
	require.ErrorContains(t, check.Programs(all, check.Options{}), "out[0] is (1[0] 0[0]), which is not the canonical tree (0[0] 1[0])")

	all = chain(3, 2)
	all[0].Lanes[1].Steps[1].Src[0] = program.Chunk(program.In, 0, 1)
	all[0].Lanes[0].Steps[0].Src[0], all[0].Lanes[0].Steps[1].Src[0] = program.Chunk(program.In, 0, 1), program.Chunk(program.In, 0, 0)
	require.ErrorContains(t, check.Programs(all, check.Options{}), "rank 0 sends in[1]")
}

// swap returns the programs of an AllToAll of two ranks.
func swap() []*program.Program {
	two := sharding.Range{Lo: 0, Hi: 2}
	programs := make([]*program.Program, 2)
	for r := range programs {
		other := 1 - r
		programs[r] = &program.Program{Collective: program.AllToAll, Algorithm: "swap", P: 2, Rank: r, Root: -1, Chunks: 2, In: two, Out: two,
			Scratch: []sharding.Range{{Lo: other, Hi: other + 1}},
			Lanes: []program.Lane{lane(other, other,
				send(program.Chunk(program.In, 0, other)),
				recv(program.Chunk(program.Scratch, 0, other)),
				move(program.Chunk(program.Out, 0, r), program.Chunk(program.In, 0, r)),
				after(move(program.Chunk(program.Out, 0, other), program.Chunk(program.Scratch, 0, other)), program.Dep{Lane: 0, Step: 0}))}}
	}
	return programs
}

func TestExchangesOfBlocksOfAnyLength(t *testing.T) {
	uneven := check.Layouts{program.Exchange([]int{1, 2}, []int{1, 3}), program.Exchange([]int{3, 4}, []int{2, 4})}
	opts := check.Options{Layouts: []check.Layouts{uneven}}
	require.NoError(t, check.Programs(swap(), opts))
	require.NoError(t, check.Programs(swap(), check.Options{}))

	bad := check.Options{Layouts: []check.Layouts{{uneven[0], program.Exchange([]int{3, 4}, []int{5, 4})}}}
	require.ErrorContains(t, check.Programs(swap(), bad), "rank 0 has 2 elements for rank 1, which expects 5")

	all := swap()
	all[0].Lanes[0].Steps[2].Src[0] = program.Chunk(program.In, 0, 1)
	require.ErrorContains(t, check.Programs(all, check.Options{}), "rank 0: out[0] is 0[1] instead of 0[0]")
	require.ErrorContains(t, check.Programs(all, opts), "in[1] and out[0] differ in length")

	all = swap()
	all[0].Lanes[0].Steps[0].Src[0] = program.Chunk(program.In, 0, 0)
	require.ErrorContains(t, check.Programs(all, opts), "rank 0 sends in[0] (rank 0 lane 0 step 0 (send in[0])) where rank 1 receives scratch0[0]")

	// The source and the destination of an instruction that copies several blocks must not
	// overlap, since it might overwrite blocks that it still has to read.
	all = three()
	all[0].Lanes[0].Steps[0] = move(program.Span(program.Out, 0, 0, 2), program.Span(program.In, 0, 1, 3))
	require.ErrorContains(t, check.Programs(all, check.Options{}), "in[1:3] and out[0:2] may overlap in memory")
	all[0].Lanes[0].Steps[0] = move(program.Span(program.Scratch, 0, 0, 2), program.Span(program.Scratch, 0, 1, 3))
	require.ErrorContains(t, check.Programs(all, check.Options{}), "scratch0[1:3] and scratch0[0:2] may overlap in memory")
}

// three returns the programs of an AllToAll of three ranks in which no rank sends messages.
func three() []*program.Program {
	all := sharding.Range{Lo: 0, Hi: 3}
	programs := make([]*program.Program, 3)
	for r := range programs {
		own := program.Chunk(program.Out, 0, r)
		programs[r] = &program.Program{Collective: program.AllToAll, Algorithm: "none", P: 3, Rank: r, Root: -1, Chunks: 3, In: all, Out: all,
			Scratch: []sharding.Range{all},
			Lanes:   []program.Lane{lane(program.NoPeer, program.NoPeer, move(own, program.Chunk(program.In, 0, r)))}}
	}
	return programs
}

// TestForestsFoldByShard checks an exchange between two ranks whose shards are in the reverse
// order of the ranks. It requires that the contributions are folded in the order of shards.
func TestForestsFoldByShard(t *testing.T) {
	forest := func() []*program.Program {
		return each(exchange(), func(p *program.Program) {
			p.Nodes, p.Forest = []sharding.Node{{Level: 0, Index: 1 - p.Rank}}, 7
		})
	}
	require.ErrorContains(t, check.Programs(forest(), check.Options{}), "out[0] is (node0:1[0] node0:0[0]), which is not the canonical tree (node0:0[0] node0:1[0])")
	all := forest()
	each(all, func(p *program.Program) { p.Lanes[0].Steps[1].RecvLeft = p.Rank == 0 })
	require.NoError(t, check.Programs(all, check.Options{}))
}

func TestBarriersThatLeakAreFound(t *testing.T) {
	// In a dissemination barrier of four ranks, rank x sends to rank x+1 and, after it has
	// received, to rank x+2. Without the second round, a rank knows only that one other rank
	// has begun.
	barrier := func(p int, distances ...int) []*program.Program {
		programs := make([]*program.Program, p)
		for rank := range programs {
			programs[rank] = &program.Program{Collective: program.Barrier, Algorithm: "dissemination", P: p, Rank: rank, Root: -1, Chunks: 1,
				Scratch: []sharding.Range{one}}
			for k, d := range distances {
				s := send(scratch(0))
				if k > 0 {
					s.After = []program.Dep{{Lane: k - 1, Step: 1}}
				}
				programs[rank].Lanes = append(programs[rank].Lanes, lane((rank+d)%p, (rank+p-d)%p, s, recv(scratch(0))))
			}
		}
		return programs
	}
	cost := program.Cost{Steps: 2}
	require.NoError(t, check.Programs(barrier(4, 1, 2), check.Options{Cost: &cost}))
	require.ErrorContains(t, check.Programs(barrier(4, 1), check.Options{}), "rank 0 can leave the barrier before rank 1 enters it (it knows of 2 ranks of 4)")
	require.ErrorContains(t, check.Programs(barrier(5, 1, 2), check.Options{}), "can leave the barrier")
	hasty := barrier(4, 1, 2)
	hasty[2].Lanes[1].Steps[0].After = nil
	require.ErrorContains(t, check.Programs(hasty, check.Options{}), "rank 0 can leave the barrier before rank 1 enters it")
}

// TestSerialExecutionThatStopsIsFound checks programs that end only if rank 0 waits for
// messages from rank 1 and from rank 2 at the same time. In serial execution, rank 0 first
// waits for the message from rank 1, since a longer chain of its own messages depends on that
// message. But rank 1 waits for a message from rank 2 that rank 0 has to pass on. The test
// requires that the checker reports that serial execution does not end.
func TestSerialExecutionThatStopsIsFound(t *testing.T) {
	s := scratch(0)
	on := func(channel int, l program.Lane) program.Lane { l.Channel = channel; return l }
	wait := func(lane, step int) program.Dep { return program.Dep{Lane: lane, Step: step} }
	programs := []*program.Program{
		{Lanes: []program.Lane{
			lane(1, 1, recv(s), after(send(s), wait(0, 0)), after(recv(s), wait(0, 1))),
			lane(2, 2, recv(s), after(send(s), wait(0, 2))),
			on(1, lane(1, program.NoPeer, after(send(s), wait(1, 0)))),
		}},
		{Lanes: []program.Lane{
			on(1, lane(program.NoPeer, 0, recv(s))),
			lane(0, 0, after(send(s), wait(0, 0)), after(recv(s), wait(1, 0)), after(send(s), wait(1, 1))),
		}},
		{Lanes: []program.Lane{lane(0, 0, send(s), recv(s))}},
	}
	for r, p := range programs {
		p.Collective, p.Algorithm, p.P, p.Rank, p.Root, p.Chunks, p.Scratch = program.Barrier, "relay", 3, r, -1, 1, []sharding.Range{one}
	}
	err := check.Programs(programs, check.Options{})
	require.ErrorContains(t, err, "serial execution does not end: rank 0 waits at lane 0 step 0 (recv scratch0[0])")

	// If rank 0 must pass the message of rank 2 on before it waits for rank 1, the execution
	// ends.
	programs[0].Lanes[0].Steps[0].After = []program.Dep{wait(2, 0)}
	require.NoError(t, check.Programs(programs, check.Options{}))
}

func TestWrongCostsAreFound(t *testing.T) {
	programs, opts := direct(t, 4)
	require.NoError(t, check.Programs(programs, opts))
	require.ErrorContains(t, check.Programs(programs, check.Options{Cost: &program.Cost{Steps: 3, Sent: opts.Cost.Sent}}), "has 2 messages, declared are 3")
	require.ErrorContains(t, check.Programs(programs, check.Options{Cost: &program.Cost{Steps: 2}}), "rank 0 sends 3 elements, declared are 0")
	// This formula holds only if the number of ranks divides the number of elements.
	even := program.Cost{Steps: 2, Sent: func(_ int, l program.Layout) int { return 2 * l.Out[4] / 4 * 3 }}
	err := check.Programs(programs, check.Options{Cost: &even, Layouts: []check.Layouts{{program.Even(8, 4)}, {program.Even(9, 4)}}})
	require.ErrorContains(t, err, "where its chunks are in [0 3 5 7 9]")
}

func TestLayoutsThatDoNotFitAreFound(t *testing.T) {
	programs, _ := direct(t, 3)
	with := func(l ...program.Layout) error {
		return check.Programs(programs, check.Options{Layouts: []check.Layouts{l}})
	}
	require.ErrorContains(t, with(program.Even(5, 3), program.Even(5, 3)), "2 layouts for 3 ranks")
	require.ErrorContains(t, with(program.Even(5, 2)), "layout of rank 0")
	require.ErrorContains(t, with(program.Even(5, 3), program.Even(5, 3), program.Even(6, 3)), "rank 2 has another layout")
	require.NoError(t, with(program.Even(5, 3), program.Even(5, 3), program.Even(5, 3)))
}
