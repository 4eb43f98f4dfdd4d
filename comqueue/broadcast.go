package comqueue

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// Broadcast gives every subtask a copy of the buffer of subtask 0, or of the subtask given by
// Root, under the same key. Only that subtask needs to have put a buffer. Its length may change
// from superstep to superstep. The other subtasks' buffers are overwritten, and grown if they
// are too short.
func Broadcast[T Element](key shared.Key[[]T], options ...MoveOption) Stage {
	s := &broadcastStage[T]{key: key}
	s.config, s.err = newMoveConfig(program.Broadcast, false, options)
	return s
}

type broadcastStage[T Element] struct {
	key    shared.Key[[]T]
	config moveConfig
	err    error
}

func (s *broadcastStage[T]) misuse() error {
	if err := usable(s.key); err != nil {
		return err
	}
	if s.err != nil {
		return fmt.Errorf("Broadcast(%q): %w", s.key.Name(), s.err)
	}
	return nil
}

func (s *broadcastStage[T]) describe(*layout, int) []engine.StageSpec {
	return []engine.StageSpec{{Kind: engine.StageCommunicate, Op: "Broadcast", Name: s.key.Name(), Attrs: s.config.attrs()}}
}

func (s *broadcastStage[T]) bind(b *body, _ int) ([]engine.Stage, error) {
	c := &b.context
	if err := s.config.fits(program.Broadcast, c.NumTask()); err != nil {
		return nil, fmt.Errorf("Broadcast(%q): %w", s.key.Name(), err)
	}
	ahead, options := b.options(s.key.Name(), nil), b.options(s.key.Name(), s.config.algorithm)
	length := make([]int64, 1)
	return b.communicate(func() error {
		var buffer []T
		if c.TaskID() == s.config.root {
			buffer = s.key.Get(c)
			length[0] = int64(len(buffer))
		} else {
			buffer, _ = s.key.Lookup(c)
		}
		if err := collective.Broadcast(b.comm, s.config.root, length, ahead...); err != nil {
			return err
		}
		if c.TaskID() != s.config.root {
			buffer = sized(buffer, int(length[0]))
		}
		if err := collective.Broadcast(b.comm, s.config.root, buffer, options...); err != nil {
			return err
		}
		s.key.Put(c, buffer)
		return nil
	}, nil), nil
}

// BroadcastObject gives every subtask a copy of the object of subtask 0, or of the subtask
// given by Root, under the same key. The key's codec encodes the object. A scratch key is an
// error, as it has no codec. The other subtasks' objects under the key are replaced, and
// released if they have a Release method.
func BroadcastObject[V any](key shared.Key[V], options ...MoveOption) Stage {
	s := &broadcastObject[V]{key: key}
	s.config, s.err = newMoveConfig(program.Broadcast, false, options)
	return s
}

type broadcastObject[V any] struct {
	key    shared.Key[V]
	config moveConfig
	err    error
}

func (s *broadcastObject[V]) misuse() error {
	if err := usable(s.key); err != nil {
		return err
	}
	if s.err != nil {
		return fmt.Errorf("BroadcastObject(%q): %w", s.key.Name(), s.err)
	}
	return hasCodec("BroadcastObject", s.key, s.key.Codec())
}

// hasCodec returns an error if codec, which is the codec of key, is nil.
func hasCodec[V any](function string, key shared.AnyKey, codec shared.Codec[V]) error {
	if codec == nil {
		return fmt.Errorf("%s(%q): a scratch key has no codec to carry its objects: make the key with shared.Replicated", function, key.Name())
	}
	return nil
}

func (s *broadcastObject[V]) describe(*layout, int) []engine.StageSpec {
	return []engine.StageSpec{{Kind: engine.StageCommunicate, Op: "BroadcastObject", Name: s.key.Name(), Attrs: s.config.attrs()}}
}

func (s *broadcastObject[V]) bind(b *body, _ int) ([]engine.Stage, error) {
	c := &b.context
	if err := s.config.fits(program.Broadcast, c.NumTask()); err != nil {
		return nil, fmt.Errorf("BroadcastObject(%q): %w", s.key.Name(), err)
	}
	ahead, options := b.options(s.key.Name(), nil), b.options(s.key.Name(), s.config.algorithm)
	length := make([]int64, 1)
	var encoded []byte
	return b.communicate(func() error {
		root := c.TaskID() == s.config.root
		if root {
			var err error
			if encoded, err = s.key.Codec().Append(encoded[:0], s.key.Get(c)); err != nil {
				return fmt.Errorf("object %q: %w", s.key.Name(), err)
			}
			length[0] = int64(len(encoded))
		}
		if err := collective.Broadcast(b.comm, s.config.root, length, ahead...); err != nil {
			return err
		}
		if !root {
			encoded = sized(encoded, int(length[0]))
		}
		if err := collective.Broadcast(b.comm, s.config.root, encoded, options...); err != nil || root {
			return err
		}
		v, err := s.key.Codec().Decode(encoded)
		if err != nil {
			return fmt.Errorf("object %q: %w", s.key.Name(), err)
		}
		replace(c, s.key, v)
		return nil
	}, nil), nil
}

// replace puts an object and releases the previous one.
func replace[V any](c *ComContext, key shared.Key[V], v V) {
	old, had := key.Lookup(c)
	key.Put(c, v)
	if had {
		release(old)
	}
}

// release releases v, which is no longer in a session, if it has a Release method.
func release(v any) {
	if r, ok := v.(interface{ Release() }); ok {
		r.Release()
	}
}
