package comqueue

import (
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// Number is what buffers hold.
type Number interface{ float64 | float32 | int64 }

// ReduceOption changes an AllReduce.
type ReduceOption interface{ applyReduce(*reduceConfig) }

// Op is one of the element-wise operators.
type Op int

const (
	// Sum adds; it is the default.
	Sum Op = iota
	// Max takes the larger; NaN wins.
	Max
	// Min takes the smaller; NaN wins.
	Min
	// Prod multiplies.
	Prod
)

// String returns the operator's name.
func (o Op) String() string {
	switch o {
	case Sum:
		return "sum"
	case Max:
		return "max"
	case Min:
		return "min"
	case Prod:
		return "prod"
	}
	return fmt.Sprintf("Op(%d)", int(o))
}

func (o Op) applyReduce(c *reduceConfig) { c.op, c.user = o, nil }

// Operator makes an operator of one's own. f combines element by element,
// dst[i] = dst[i] op src[i], where dst holds the left operand; it may be called
// on any piece of the buffers, and must be associative up to rounding. identity
// fills the buffers that ForEachShard hands out. name appears in plan and errors.
func Operator[T Number](name string, identity T, f func(dst, src []T)) ReduceOption {
	return userOperator{name: name, op: operator[T]{collective.UserOp(name, false, f).WithIdentity(identity), f}}
}

type userOperator struct {
	name string
	op   any // operator[T]
}

func (u userOperator) applyReduce(c *reduceConfig) { c.user = &u }

// Length reduces only the first n elements, where n is the value of a key that
// every subtask has put with the same value before the stage runs.
func Length(key shared.Key[int]) ReduceOption { return lengthOption{key} }

type lengthOption struct{ key shared.Key[int] }

func (l lengthOption) applyReduce(c *reduceConfig) { c.length = &l.key }

type reduceConfig struct {
	op     Op
	user   *userOperator
	length *shared.Key[int]
}

// opName names the operator for the plan.
func (c reduceConfig) opName() string {
	if c.user != nil {
		return c.user.name
	}
	return c.op.String()
}

// operator is an operator for one element type.
type operator[T Number] struct {
	op collective.Op[T]
	// apply does dst[i] = dst[i] op src[i].
	apply func(dst, src []T)
}

// resolve returns the operator for element type T.
func resolve[T Number](c reduceConfig) (operator[T], error) {
	if c.user != nil {
		op, ok := c.user.op.(operator[T])
		if !ok {
			var zero T
			return operator[T]{}, fmt.Errorf("operator %q is not one for %T", c.user.name, zero)
		}
		if op.apply == nil {
			return operator[T]{}, fmt.Errorf("the function of operator %q is nil", c.user.name)
		}
		return op, nil
	}
	switch c.op {
	case Sum:
		return operator[T]{collective.Sum[T](), kernel.AddTo[T]}, nil
	case Max:
		return operator[T]{collective.Max[T](), kernel.MaxTo[T]}, nil
	case Min:
		return operator[T]{collective.Min[T](), kernel.MinTo[T]}, nil
	case Prod:
		return operator[T]{collective.Prod[T](), kernel.ProdTo[T]}, nil
	}
	return operator[T]{}, fmt.Errorf("unknown operator %v", c.op)
}

// AllReduce combines a buffer of all subtasks element by element and gives every
// subtask the result, in place, under the same key. It runs as three stages:
// AllReduceSend hands out the subtask's part, AllReduceSum reduces the piece the
// subtask owns, AllReduceRecv gathers the reduced pieces.
//
// A buffer filled by ForEachShard is reduced up the tree over shards, so that the
// result is the same at any parallelism. Any other buffer is taken whole, one per
// subtask, and reduced in the fold tree over ranks; the plan marks it "depends on
// parallelism". Buffers of different lengths are an error that names two subtasks.
func AllReduce[T Number](key shared.Key[[]T], options ...ReduceOption) Stage {
	s := &allReduce[T]{key: key}
	for _, o := range options {
		if o == nil {
			s.err = fmt.Errorf("AllReduce(%q): an option is nil", key.Name())
			continue
		}
		o.applyReduce(&s.config)
	}
	return s
}

type allReduce[T Number] struct {
	key    shared.Key[[]T]
	config reduceConfig
	err    error
}

func (s *allReduce[T]) misuse() error {
	if err := s.key.Err(); err != nil {
		return err
	}
	if s.err != nil {
		return s.err
	}
	if s.config.length != nil {
		if err := s.config.length.Err(); err != nil {
			return err
		}
	}
	_, err := resolve[T](s.config)
	return err
}

// reduces returns the key of the buffer.
func (s *allReduce[T]) reduces() shared.AnyKey { return s.key }

func (s *allReduce[T]) describe(l *layout, position int) []engine.StageSpec {
	order := engine.RankTree
	if _, ok := l.forestOf[position]; ok {
		order = engine.ShardTree
	}
	name, attrs := s.key.Name(), []engine.Attr{{Key: "op", Value: s.config.opName()}}
	if s.config.length != nil {
		attrs = append(attrs, engine.Attr{Key: "length", Value: s.config.length.Name()})
	}
	return []engine.StageSpec{
		{Kind: engine.StageSend, Name: name, Attrs: attrs},
		{Kind: engine.StageSum, Name: name, Attrs: attrs, Order: order},
		{Kind: engine.StageRecv, Name: name, Attrs: attrs},
	}
}

func (s *allReduce[T]) bind(b *body, position int) ([]engine.Stage, error) {
	op, err := resolve[T](s.config)
	if err != nil {
		return nil, err
	}
	r := &reduction[T]{
		ctx:    &b.context,
		key:    s.key,
		length: s.config.length,
		call:   collective.NewAllReduce[T](b.comm),
	}
	if producer, ok := b.layout.forestOf[position]; ok {
		r.forest = b.forests[producer].(*forest[T])
		r.request.Shards = b.context.TotalShards()
	}
	r.request.Name = s.key.Name()
	r.request.Op = op.op
	r.request.Context = b.context.Context()
	program := func() string { return describeRun(b.comm.Describe(), r.call.Stats()) }
	return []engine.Stage{
		{Node: b.takeNode(), Run: r.send, Bytes: r.partialBytes, Program: program},
		{Node: b.takeNode(), Run: r.sum, Waited: func() time.Duration { return r.sumWaited }, Program: program},
		{Node: b.takeNode(), Run: r.recv, Bytes: r.resultBytes, Waited: func() time.Duration { return r.recvWaited }, Program: program},
	}, nil
}

// describeRun names what carried the calls of an AllReduce.
func describeRun(d collective.Description, s collective.Stats) string {
	switch s.Whole {
	case 0:
		return d.String() + ", in parts"
	case s.Calls:
		return d.String() + ", by one rank for all"
	}
	return d.String() + ", in parts or by one rank for all"
}

// reduction is an AllReduce on one subtask.
type reduction[T Number] struct {
	ctx     *ComContext
	key     shared.Key[[]T]
	length  *shared.Key[int]
	call    *collective.AllReducer[T]
	request collective.Reduction[T]
	forest  *forest[T] // nil where the buffer is whole

	sumWaited, recvWaited time.Duration
}

// send posts the subtask's part: its forest if ForEachShard filled one, else the
// buffer itself.
func (r *reduction[T]) send() error {
	buffer := r.key.Get(r.ctx)
	if r.forest != nil && len(buffer) != r.forest.length {
		return fmt.Errorf("buffer %q has %d elements, and had %d when ForEachShard filled its parts", r.key.Name(), len(buffer), r.forest.length)
	}
	n := len(buffer)
	if r.length != nil {
		n = r.length.Get(r.ctx)
		if n < 0 || n > len(buffer) {
			return fmt.Errorf("length %q is %d, buffer %q holds %d elements", r.length.Name(), n, r.key.Name(), len(buffer))
		}
	}
	r.request.Out = buffer[:n]
	if r.forest == nil {
		r.request.Whole = buffer[:n]
	} else {
		r.request.Forest = r.forest.entries(n)
	}
	return r.call.Send(&r.request)
}

// sum reduces what the subtask owns.
func (r *reduction[T]) sum() error {
	before := r.call.Stats().Recv
	err := r.call.Sum()
	r.sumWaited += r.call.Stats().Recv - before
	return err
}

// recv waits for what the others own.
func (r *reduction[T]) recv() error {
	before := r.call.Stats().Recv
	err := r.call.Recv()
	r.recvWaited += r.call.Stats().Recv - before
	return err
}

// partialBytes and resultBytes are what the stages moved away from the subtask.
func (r *reduction[T]) partialBytes() int64 { return r.call.Stats().Bytes - r.call.Stats().Results }
func (r *reduction[T]) resultBytes() int64  { return r.call.Stats().Results }
