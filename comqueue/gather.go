package comqueue

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// AllGather concatenates, on every subtask, the buffers of all subtasks under from, in the
// order of subtasks, and puts the result under into. The buffers may have any lengths,
// including 0, and the lengths may change from superstep to superstep; the buffers are not
// changed. The buffer under into is overwritten, and grown if it is too short. Copy data that
// is needed after the next run of the stage.
//
// The result is the same on every subtask, so into may be replicated. If each subtask
// contributes elements for each of its shards, in shard order, the result is the same at any
// parallelism.
func AllGather[T Element](from, into shared.Key[[]T], options ...MoveOption) Stage {
	return newGathering(program.AllGather, "AllGather", from, into, options)
}

// Gather does the same as AllGather, but only subtask 0, or the subtask given by Root, gets the
// result. The other subtasks get nothing under into, so the key cannot be replicated.
func Gather[T Element](from, into shared.Key[[]T], options ...MoveOption) Stage {
	return newGathering(program.Gather, "Gather", from, into, options)
}

func newGathering[T Element](c program.Collective, name string, from, into shared.Key[[]T], options []MoveOption) Stage {
	s := &gathering[T]{collective: c, name: name, from: from, into: into}
	s.config, s.err = newMoveConfig(c, true, options)
	return s
}

// gathering is an AllGather or a Gather.
type gathering[T Element] struct {
	collective program.Collective
	name       string
	from, into shared.Key[[]T]
	config     moveConfig
	err        error
}

func (s *gathering[T]) misuse() error {
	err := distinct(s.from, s.into)
	if err == nil {
		err = s.err
	}
	if err == nil && s.collective.Rooted() {
		err = checkOwnResult(s.into)
	}
	if err != nil {
		return fmt.Errorf("%s(%q, %q): %w", s.name, s.from.Name(), s.into.Name(), err)
	}
	return nil
}

func (s *gathering[T]) describe(*layout, int) []engine.StageSpec {
	attrs := append([]engine.Attr{{Key: "into", Value: s.into.Name()}}, s.config.attrs()...)
	return []engine.StageSpec{{Kind: engine.StageCommunicate, Op: s.name, Name: s.from.Name(), Attrs: attrs}}
}

func (s *gathering[T]) bind(b *body, _ int) ([]engine.Stage, error) {
	c := &b.context
	p := c.NumTask()
	if err := s.config.fits(s.collective, p); err != nil {
		return nil, fmt.Errorf("%s(%q, %q): %w", s.name, s.from.Name(), s.into.Name(), err)
	}
	ahead, options := b.options(s.from.Name(), nil), b.options(s.from.Name(), s.config.algorithm)
	length, lengths, counts := make([]int64, 1), make([]int64, p), make([]int, p)
	receives := s.collective == program.AllGather || c.TaskID() == s.config.root
	return b.communicate(func() error {
		mine := s.from.Get(c)
		length[0] = int64(len(mine))
		if err := collective.AllGather(b.comm, length, lengths, ahead...); err != nil {
			return err
		}
		total := 0
		for i, n := range lengths {
			counts[i] = int(n)
			total += counts[i]
		}
		var all []T
		if receives {
			all, _ = s.into.Lookup(c)
			all = sized(apart(all, mine), total)
		}
		var err error
		if s.collective == program.AllGather {
			err = collective.AllGatherV(b.comm, mine, all, counts, options...)
		} else {
			err = collective.GatherV(b.comm, s.config.root, mine, all, counts, options...)
		}
		if err == nil && receives {
			s.into.Put(c, all)
		}
		return err
	}, nil), nil
}
