package comqueue

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// opening is a function that was given to Begin or Init.
type opening struct {
	begins   bool // added by Begin, otherwise by Init
	name     string
	f        ComputeFunc
	identity any
}

// String returns the name of the method that added the function.
func (o opening) String() string {
	if o.begins {
		return "Begin"
	}
	return "Init"
}

// refuses returns why the function must not put objects of a kind, or "" if it may put them.
func (o opening) refuses(kind shared.Kind) string {
	switch kept := kind != shared.KindScratch; {
	case o.begins && !kept:
		return "Begin runs once, and scratch is made by whoever joins: put it in Init"
	case !o.begins && kept:
		return "Init runs whenever a subtask joins, at any superstep, and would put what the queue began with: put it in Begin"
	}
	return ""
}

// Begin adds a function that is called on every subtask once, before the first superstep. The
// function makes state: it puts replicated objects, the same on all subtasks, and objects of
// shards. It must not put scratch. StepNo returns 0 in the function.
//
// The functions of Begin and Init are called in the order in which they were added, so a
// function may use what an earlier function has put.
func (q *IterativeComQueue) Begin(f func(ctx *ComContext) error) *IterativeComQueue {
	return q.addOpening(opening{begins: true, name: openingName(f), f: f, identity: f})
}

// Init adds a function that is called on every subtask before its first superstep. If the
// subtask joins later, that is not the first superstep of the queue. The function makes
// scratch: buffers, and data computed from rows and from kept objects. It must not put a kept
// object. StepNo returns 0 in the function, as scratch must not depend on the superstep.
func (q *IterativeComQueue) Init(f func(ctx *ComContext) error) *IterativeComQueue {
	return q.addOpening(opening{name: openingName(f), f: f, identity: f})
}

// openingName returns the name that plan and errors show for a function. The name of a method
// does not include its type.
func openingName(f any) string {
	name := functionName(f)
	return name[strings.LastIndexByte(name, '.')+1:]
}

func (q *IterativeComQueue) addOpening(o opening) *IterativeComQueue {
	if o.f == nil {
		q.misuse("%v: the function is nil", o)
		return q
	}
	q.opening = append(q.opening, o)
	return q
}

// describeOpening returns the description of the functions of Begin and Init for the plan.
func describeOpening(functions []opening) (s engine.StageSpec) {
	for _, o := range functions {
		key := "init"
		if o.begins {
			key = "begin"
		}
		s.Attrs = append(s.Attrs, engine.Attr{Key: key, Value: o.name})
		s.Funcs = append(s.Funcs, o.identity)
	}
	return s
}

// open calls the functions of Init, and also those of Begin if begins is true, in the order in
// which they were added.
func (b *body) open(begins bool) error {
	c := &b.context
	c.step = 0
	defer c.objects.Refuse(nil)
	for _, o := range b.queue.opening {
		if o.begins && !begins {
			continue
		}
		c.shard.Store(-1)
		c.objects.Refuse(o.refuses)
		if err := c.takeMisuse(o.f(c)); err != nil {
			return fmt.Errorf("%v: %s: %w", o, o.name, err)
		}
	}
	c.shard.Store(-1)
	return nil
}
