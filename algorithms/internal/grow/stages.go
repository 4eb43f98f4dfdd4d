package grow

import (
	"fmt"

	"github.com/superstep-ml/superstep/comqueue"
)

// Stages returns the stages that grow the batch of a superstep. The caller adds them to a queue
// after the stage that calls Begin and sets the targets, and before the stages that use the
// trees.
func (g *Grower) Stages() []comqueue.Stage {
	named := func(name string, f func(s *State, ctx *comqueue.ComContext) error) comqueue.Stage {
		return comqueue.Named(name, comqueue.Do(func(ctx *comqueue.ComContext) error { return f(states.Get(ctx), ctx) }))
	}
	return []comqueue.Stage{
		named("largest gradients", (*State).putMaxima),
		comqueue.AllReduce(maxima, comqueue.Max, comqueue.Exact()),
		named("quantise", (*State).putSpreads),
		comqueue.AllReduce(spreads, comqueue.Exact()),
		named("spread", (*State).takeSpreads),
		comqueue.Repeat(maxPasses, func(ctx *comqueue.ComContext) (bool, error) {
			return states.Get(ctx).phase == grownUp, nil
		},
			named("histograms", (*State).histogramStage),
			comqueue.ReduceScatter(sums, ownSums, comqueue.Blocks(blocks), comqueue.Exact()),
			named("best splits", (*State).searchStage),
			comqueue.AllGather(found, allFound),
			named("split", (*State).splitStage),
			comqueue.AllReduce(counts, comqueue.Exact()),
			named("children", (*State).countedStage),
		),
		named("leaves", (*State).leavesStage),
		comqueue.AllReduce(leafSums, comqueue.Exact()),
		named("trees", (*State).finishStage),
	}
}

// maxPasses is larger than the number of passes of any growth, as every pass except the last
// splits a node or computes histograms.
const maxPasses = 1 << 30

// put stores the buffers as the objects that the communicating stages use.
func (s *State) put(ctx *comqueue.ComContext) {
	sums.Put(ctx, s.buffers.sums)
	blocks.Put(ctx, s.buffers.blocks)
	found.Put(ctx, s.buffers.found)
	counts.Put(ctx, s.buffers.counts)
	ownSums.Put(ctx, s.buffers.own)
}

func (s *State) putMaxima(ctx *comqueue.ComContext) error {
	s.maxima = s.maxima[:0]
	for _, j := range s.active() {
		s.maxima = append(s.maxima, j.target.max[:]...)
	}
	maxima.Put(ctx, s.maxima)
	return nil
}

func (s *State) putSpreads(ctx *comqueue.ComContext) error {
	all := maxima.Get(ctx)
	s.spreads = s.spreads[:0]
	for i, j := range s.active() {
		if err := j.target.quantise([2]float64(all[2*i:]), s.all); err != nil {
			return fmt.Errorf("grow: the target of tree %d: %w", j.number, err)
		}
		s.spreads = append(s.spreads, j.target.spread[:]...)
	}
	spreads.Put(ctx, s.spreads)
	return nil
}

func (s *State) takeSpreads(ctx *comqueue.ComContext) error {
	s.spreads = spreads.Get(ctx)
	return nil
}

// histogramStage computes the histograms of a pass. If there is only one subtask, it runs all
// steps of all passes, and the other stages of a pass do nothing.
func (s *State) histogramStage(ctx *comqueue.ComContext) error {
	if !s.alone() {
		s.makeHistograms()
		sums.Put(ctx, s.buffers.sums)
		blocks.Put(ctx, s.buffers.blocks)
		return nil
	}
	for s.phase != grownUp {
		if err := ctx.Context().Err(); err != nil {
			return err
		}
		s.makeHistograms()
		s.lookFor()
		s.choose(s.buffers.found)
		if err := s.splitNodes(); err != nil {
			return err
		}
		if err := s.counted(s.buffers.counts); err != nil {
			return err
		}
	}
	s.buffers.blocks, s.buffers.found, s.buffers.counts = append(s.buffers.blocks[:0], 0), s.buffers.found[:0], s.buffers.counts[:0]
	s.put(ctx)
	return nil
}

func (s *State) searchStage(ctx *comqueue.ComContext) error {
	if s.alone() {
		return nil
	}
	s.takeSums(ownSums.Get(ctx))
	s.lookFor()
	found.Put(ctx, s.buffers.found)
	return nil
}

func (s *State) splitStage(ctx *comqueue.ComContext) error {
	if s.alone() {
		return nil
	}
	s.choose(allFound.Get(ctx))
	if err := s.splitNodes(); err != nil {
		return err
	}
	counts.Put(ctx, s.buffers.counts)
	return nil
}

func (s *State) countedStage(ctx *comqueue.ComContext) error {
	if s.alone() {
		return nil
	}
	return s.counted(counts.Get(ctx))
}

func (s *State) leavesStage(ctx *comqueue.ComContext) error {
	s.sumLeaves()
	leafSums.Put(ctx, s.buffers.leaves)
	return nil
}

func (s *State) finishStage(ctx *comqueue.ComContext) error {
	s.finish(leafSums.Get(ctx))
	return nil
}
