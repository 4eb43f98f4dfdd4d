package comqueue

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// opening is a function that is called before a superstep rather than in one.
type opening struct {
	begins   bool // before the first superstep alone, and makes state
	name     string
	f        ComputeFunc
	identity any
}

// String returns the name of the method that adds it.
func (o opening) String() string {
	if o.begins {
		return "Begin"
	}
	return "Init"
}

// refuses says which objects the function must not put.
func (o opening) refuses(kind shared.Kind) string {
	switch kept := kind != shared.KindScratch; {
	case o.begins && !kept:
		return "Begin runs once, and scratch is made by whoever joins: put it in Init"
	case !o.begins && kept:
		return "Init runs whenever a subtask joins, at any superstep, and would put what the queue began with: put it in Begin"
	}
	return ""
}

// Begin adds a function that is called on every subtask once, before the first superstep. It
// makes state: it puts replicated objects, the same on all subtasks, and those of shards; to
// put scratch fails. StepNo is 0 in it.
//
// The functions of Begin and Init are called in the order in which they were added, so that
// one may use what another has put.
func (q *IterativeComQueue) Begin(f func(ctx *ComContext) error) *IterativeComQueue {
	return q.addOpening(opening{begins: true, name: openingName(f), f: f, identity: f})
}

// Init adds a function that is called on every subtask before its first superstep, which is
// not that of the queue where a subtask joins later. It makes scratch: room to work in, and
// what follows from rows and from the objects that are kept; to put an object that is kept
// fails. StepNo is 0 in it, as what it makes does not depend on when.
func (q *IterativeComQueue) Init(f func(ctx *ComContext) error) *IterativeComQueue {
	return q.addOpening(opening{name: openingName(f), f: f, identity: f})
}

// openingName is the name of a function for plan and errors: of a method its own, as its type
// says nothing to who reads them.
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

// describeOpening is what the plan shows of the functions of Begin and Init.
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

// open calls the functions of Init, with those of Begin between them where the queue begins.
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
