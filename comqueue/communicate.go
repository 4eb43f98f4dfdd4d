package comqueue

import (
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// Element lists the element types of the buffers of Broadcast, AllGather and Gather.
type Element interface {
	float64 | float32 | int64 | int32 | uint8
}

// MoveOption changes a Broadcast, an AllGather or a Gather.
type MoveOption interface{ applyMove(*moveConfig) }

// Root makes a subtask other than 0 the source of a Broadcast, or the destination of a Gather.
// If the subtask does not exist at the job's parallelism, the queue fails before the first
// superstep.
func Root(subtask int) MoveOption { return rootOption(subtask) }

type rootOption int

func (r rootOption) applyMove(c *moveConfig) { c.root, c.rooted = int(r), true }

// moveConfig has the options of a collective that moves data without a reduction.
type moveConfig struct {
	root      int
	rooted    bool // the option Root is given
	algorithm *AlgorithmOption
}

// newMoveConfig applies options, or returns what is wrong with them. If uneven is true, the
// subtasks may contribute blocks of different lengths.
func newMoveConfig(c program.Collective, uneven bool, options []MoveOption) (moveConfig, error) {
	var m moveConfig
	for _, o := range options {
		if o == nil {
			return m, fmt.Errorf("an option is nil")
		}
		o.applyMove(&m)
	}
	if m.rooted && !c.Rooted() {
		return m, fmt.Errorf("Root is given, but every subtask gets the result")
	}
	if m.root < 0 {
		return m, fmt.Errorf("the root is subtask %d; subtasks count from 0", m.root)
	}
	a, _, err := m.algorithm.find(c)
	if err == nil && a != nil && a.EvenOnly && uneven {
		err = fmt.Errorf("%s %s takes buffers of one length only", a.Name, a.Collective)
	}
	return m, err
}

// attrs returns the options as the plan shows them.
func (m moveConfig) attrs() (attrs []engine.Attr) {
	if m.rooted {
		attrs = append(attrs, engine.Attr{Key: "root", Value: fmt.Sprint(m.root)})
	}
	if m.algorithm != nil {
		attrs = append(attrs, engine.Attr{Key: "algorithm", Value: m.algorithm.name})
	}
	return attrs
}

// fits returns an error if the options do not fit p subtasks.
func (m moveConfig) fits(c program.Collective, p int) error {
	if m.root >= p {
		return fmt.Errorf("the root is subtask %d, and there are %d", m.root, p)
	}
	return m.algorithm.checkSupports(c, p, m.root, "", true)
}

// usable returns the first reason why keys are unusable, or nil.
func usable(keys ...shared.AnyKey) error {
	for _, k := range keys {
		if err := k.Err(); err != nil {
			return err
		}
	}
	return nil
}

// distinct returns an error if a stage would read and write the same key.
func distinct(from, into shared.AnyKey) error {
	if err := usable(from, into); err != nil {
		return err
	}
	if from.Name() == into.Name() {
		return fmt.Errorf("the result would overwrite what it is made of: it needs a key of its own")
	}
	return nil
}

// checkOwnResult returns an error if into is replicated. It is for results that are not the same
// on every subtask.
func checkOwnResult(into shared.AnyKey) error {
	if into.Kind() == shared.KindReplicated {
		return fmt.Errorf("the result is not the same on every subtask, so that the key %q cannot be replicated: make it with shared.Scratch", into.Name())
	}
	return nil
}

// sized returns a buffer of n elements with undefined contents. It reuses the given buffer if
// its capacity suffices.
func sized[T any](buffer []T, n int) []T { return slices.Grow(buffer[:0], n)[:n] }

// apart returns buffer, or nil if it shares memory with other.
func apart[T any](buffer, other []T) []T {
	if cap(buffer) > 0 && cap(other) > 0 && &buffer[:cap(buffer)][cap(buffer)-1] == &other[:cap(other)][cap(other)-1] {
		return nil
	}
	return buffer
}

// communication counts the collective calls of a communicate stage on one subtask.
type communication struct {
	comm   *collective.Comm
	bytes  int64
	waited time.Duration
	latest collective.Description // description of the latest call
	runs   int64
	dense  int64 // number of runs with a dense AllReduce
}

// count runs f, which calls collectives, and adds the statistics of these calls.
func (c *communication) count(f func() error) error {
	before := c.comm.Stats()
	err := f()
	after := c.comm.Stats()
	c.bytes += after.Bytes - before.Bytes
	c.waited += after.Recv - before.Recv
	c.runs++
	if after.Calls > before.Calls {
		c.dense++
	}
	c.latest = c.comm.Describe()
	return err
}

// program names the algorithm and executor of the stage.
func (c *communication) program() string {
	if c.runs == 0 {
		return ""
	}
	return c.latest.String()
}

// communicate returns a stage that calls collectives. program names their algorithm and
// executor; if it is nil, the description of the latest call names them.
func (b *body) communicate(run func() error, program func(*communication) string) []engine.Stage {
	c := &communication{comm: b.comm}
	s := engine.Stage{
		Node:    b.takeNode(),
		Run:     func() error { return c.count(run) },
		Bytes:   func() int64 { return c.bytes },
		Waited:  func() time.Duration { return c.waited },
		Program: c.program,
		Shard:   b.context.currentShard,
	}
	if program != nil {
		s.Program = func() string {
			if c.runs == 0 {
				return ""
			}
			return program(c)
		}
	}
	return []engine.Stage{s}
}

// options returns the options of every collective call on an object.
func (b *body) options(name string, algorithm *AlgorithmOption) []collective.Option {
	options := []collective.Option{collective.WithContext(b.context.Context()), collective.WithName(name)}
	if algorithm != nil {
		options = append(options, collective.WithAlgorithm(algorithm.name))
	}
	return options
}

// Barrier lets no subtask pass before all have arrived. It is meant to order effects outside
// the queue, such as writes to files. Stages that exchange data by communicate functions need
// no Barrier.
func Barrier() Stage { return barrier{} }

type barrier struct{}

func (barrier) misuse() error { return nil }

func (barrier) describe(*layout, int) []engine.StageSpec {
	return []engine.StageSpec{{Kind: engine.StageCommunicate, Op: "Barrier"}}
}

func (barrier) bind(b *body, _ int) ([]engine.Stage, error) {
	var waited time.Duration
	return []engine.Stage{{
		Node: b.takeNode(),
		Run: func() error {
			start := time.Now()
			err := b.comm.Barrier(b.context.Context())
			waited += time.Since(start)
			return err
		},
		Waited: func() time.Duration { return waited },
		Program: func() string {
			d := b.comm.Describe()
			d.Algorithm = "meeting"
			if d.Executor == "messages" { // this describes another stage; a barrier within one process uses memory
				d.Executor = "shared memory"
			}
			return d.String()
		},
	}}, nil
}
