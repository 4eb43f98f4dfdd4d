package comqueue

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// Stage is one step of a queue. Do, ForEachShard, Repeat, While and communicate functions such
// as AllReduce return Stages.
type Stage interface {
	// misuse returns what is wrong with the stage independently of other stages.
	misuse() error
	// describe returns the stage's nodes in the plan.
	describe(l *layout, position int) []engine.StageSpec
	// bind returns the stages that one subtask runs: one for each described node, except for
	// nodes that run nothing.
	bind(b *body, position int) ([]engine.Stage, error)
}

// Compute is a compute function that may keep state: AddNew gives every subtask its own
// instance.
type Compute interface {
	// Calc runs once per superstep on every subtask.
	Calc(ctx *ComContext) error
}

// ComputeFunc is a compute function. All subtasks of a process call the same function
// concurrently, so it must keep its state in the objects of the context.
type ComputeFunc func(ctx *ComContext) error

// Calc calls f.
func (f ComputeFunc) Calc(ctx *ComContext) error { return f(ctx) }

// Do makes a stage of a compute function, for use within Repeat, While and Named. Elsewhere the
// queue's method Do is shorter. All subtasks of a process call the same function concurrently,
// so it must keep its state in the objects of the context.
func Do(f func(ctx *ComContext) error) Stage {
	return computeStage{name: functionName(f), identity: f, shared: ComputeFunc(f)}
}

// checkStage returns what is wrong with a stage, which may be nil.
func checkStage(s Stage) error {
	if s == nil {
		return errors.New("a stage is nil")
	}
	return s.misuse()
}

// computeStage runs a compute function. Either all subtasks share the function, or a factory
// makes an instance for each subtask.
type computeStage struct {
	name     string
	named    bool // by Named; otherwise name is that of a function
	identity any  // function whose symbol and line are recorded in the graph
	shared   Compute
	factory  func() Compute
	instance string // type of the instances that factory makes
	site     string // line that added the stage, if it was AddNew
	snapshot bool   // the instances are Snapshotters
	unkept   bool   // the instances have fields and are no Snapshotters
}

func (s computeStage) misuse() error {
	if s.factory == nil && (s.shared == nil || reflect.ValueOf(s.identity).IsNil()) {
		return fmt.Errorf("a compute function is nil")
	}
	return nil
}

func (s computeStage) describe(*layout, int) []engine.StageSpec {
	return []engine.StageSpec{{
		Kind: engine.StageCompute, Name: s.name, NamedAfterFunc: !s.named, Instance: s.instance, Site: s.site, Func: s.identity,
		RankState: s.snapshot, Unkept: s.unkept,
	}}
}

func (s computeStage) bind(b *body, _ int) ([]engine.Stage, error) {
	i := &instance{stage: s, compute: s.shared}
	if s.factory != nil {
		if err := i.renew(); err != nil {
			return nil, err
		}
		b.instances = append(b.instances, i)
	}
	c := &b.context
	return []engine.Stage{{
		Node:  b.takeNode(),
		Run:   func() error { c.shard.Store(-1); return c.takeMisuse(i.compute.Calc(c)) },
		Shard: c.currentShard,
	}}, nil
}

// Named gives a compute function or a ForEachShard the name that plan, progress and errors
// show, instead of the name of its function. A run that continues from a savepoint compares the name:
// see engine.FromSavepoint.
func Named(name string, stage Stage) Stage {
	if labelled, ok := stage.(interface{ label(name string) Stage }); ok {
		return labelled.label(name)
	}
	return invalidStage{fmt.Errorf("Named(%q): only compute functions and ForEachShard take a name", name)}
}

// label returns the stage with another name, for Named.
func (s computeStage) label(name string) Stage {
	s.name, s.named = name, true
	return s
}

// invalidStage stands for a stage that could not be made because of err.
type invalidStage struct{ err error }

func (s invalidStage) misuse() error                            { return s.err }
func (s invalidStage) describe(*layout, int) []engine.StageSpec { return nil }
func (s invalidStage) bind(*body, int) ([]engine.Stage, error)  { return nil, s.err }

// Repeat runs its stages again and again within one superstep, at most max times, until the
// criterion returns true. It is an inner loop, such as a line search. until, the criterion,
// runs on subtask 0 after the last of the stages, and its verdict is broadcast. If until is
// nil, the stages run max times.
func Repeat(max int, until func(ctx *ComContext) (bool, error), stages ...Stage) Stage {
	return newRepeat(&repeat{name: "Repeat", max: max, until: until}, stages)
}

// While runs its stages again and again within one superstep, at most max times, as long as the
// condition holds. holds, the condition, is evaluated before each round, so there may be no
// round at all. Every subtask evaluates it for itself, without communication, so a While
// without rounds costs nothing. The condition must depend only on values that are the same on
// all subtasks, and must not change any object. If subtasks disagree, stages that communicate
// report it. With a max of 1, While makes stages conditional.
func While(max int, holds func(ctx *ComContext) (bool, error), stages ...Stage) Stage {
	if holds == nil {
		return invalidStage{fmt.Errorf("While: the condition is nil")}
	}
	return newRepeat(&repeat{name: "While", max: max, while: holds}, stages)
}

func newRepeat(s *repeat, stages []Stage) Stage {
	s.stages = slices.Clone(stages)
	return s
}

type repeat struct {
	name         string // name of the function that made the loop
	max          int
	until, while func(ctx *ComContext) (bool, error)
	stages       []Stage
}

func (s *repeat) misuse() error {
	if s.max < 1 {
		return fmt.Errorf("%s: the maximum is %d; it must be at least 1", s.name, s.max)
	}
	if len(s.stages) == 0 {
		return fmt.Errorf("%s: there are no stages", s.name)
	}
	for _, stage := range s.stages {
		if err := checkStage(stage); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (s *repeat) describe(l *layout, position int) []engine.StageSpec {
	begin := engine.StageSpec{Kind: engine.StageRepeatBegin, Attrs: []engine.Attr{{Key: "max", Value: fmt.Sprint(s.max)}}}
	if s.until != nil {
		begin.Func = s.until
		begin.Attrs = append(begin.Attrs, engine.Attr{Key: "until", Value: functionName(s.until)})
	}
	if s.while != nil {
		begin.Func = s.while
		begin.Attrs = append(begin.Attrs, engine.Attr{Key: "while", Value: functionName(s.while)})
	}
	specs := []engine.StageSpec{begin}
	for _, stage := range s.stages {
		position++
		specs = append(specs, stage.describe(l, position)...)
		position = l.last(position, stage)
	}
	return append(specs, engine.StageSpec{Kind: engine.StageRepeatEnd})
}

func (s *repeat) bind(b *body, position int) ([]engine.Stage, error) {
	begin := b.takeNode()
	var inner []engine.Stage
	for _, stage := range s.stages {
		position++
		bound, err := stage.bind(b, position)
		if err != nil {
			return nil, err
		}
		inner = append(inner, bound...)
		position = b.layout.last(position, stage)
	}
	b.takeNode() // RepeatEnd runs nothing
	loop := &engine.Repeat{Max: s.max, Stages: inner, Begin: b.context.rounds.loop()}
	if s.until != nil {
		loop.Until = func() (bool, error) { return b.evalCondition(s.until) }
	}
	if s.while != nil {
		loop.While = func() (bool, error) { return b.evalCondition(s.while) }
	}
	return []engine.Stage{{Node: begin, Repeat: loop}}, nil
}

// producer is a stage that fills a forest for a buffer. reducer is a stage that reduces such a
// buffer.
type producer interface{ fills() shared.AnyKey }
type reducer interface {
	reduces() shared.AnyKey
	function() string // AllReduce or ReduceScatter
}

// layout records which ForEachShard feeds which AllReduce or ReduceScatter. The position of a
// stage is its index in the list of the queue's stages, in which each inner loop is followed by
// its stages.
type layout struct {
	stages   []Stage
	forestOf map[int]int // position of a reducer → position of its producer
	feeds    map[int]int // position of a producer → position of its reducer
}

// pendingStage describes a ForEachShard whose reduction newLayout has not found yet, or a
// reduction whose ForEachShard it looks for.
type pendingStage struct {
	position int
	loop     *repeat // innermost loop around the stage, nil for none
	key      shared.AnyKey
	function string // AllReduce or ReduceScatter; "" for a ForEachShard
}

// newLayout returns the layout of a queue's stages, or an error if a ForEachShard has no
// reduction that fits.
func newLayout(stages []Stage) (*layout, error) {
	l := &layout{forestOf: map[int]int{}, feeds: map[int]int{}}
	pending := map[string]pendingStage{}
	var walk func(stages []Stage, loop *repeat) error
	walk = func(stages []Stage, loop *repeat) error {
		for _, s := range stages {
			position := len(l.stages)
			l.stages = append(l.stages, s)
			var err error
			switch s := s.(type) {
			case *repeat:
				err = walk(s.stages, s)
			case producer:
				err = addPending(pending, pendingStage{position: position, loop: loop, key: s.fills()})
			case reducer:
				err = l.link(pending, pendingStage{position, loop, s.reduces(), s.function()})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(stages, nil); err != nil {
		return nil, err
	}
	for i := range l.stages { // in order, for a stable message
		if p, ok := l.stages[i].(producer); ok {
			if _, fed := l.feeds[i]; !fed {
				return nil, fmt.Errorf("ForEachShard(%q) is followed by no AllReduce or ReduceScatter of that buffer", p.fills().Name())
			}
		}
	}
	return l, nil
}

// addPending adds a ForEachShard to pending.
func addPending(pending map[string]pendingStage, p pendingStage) error {
	if _, again := pending[p.key.Name()]; again {
		return fmt.Errorf("ForEachShard(%q) comes twice before an AllReduce or ReduceScatter of that buffer: the second would overwrite the first", p.key.Name())
	}
	pending[p.key.Name()] = p
	return nil
}

// link records which ForEachShard of pending feeds an AllReduce or ReduceScatter, if one does.
func (l *layout) link(pending map[string]pendingStage, r pendingStage) error {
	p, ok := pending[r.key.Name()]
	switch {
	case !ok:
		return nil
	case p.key.Type() != r.key.Type():
		return fmt.Errorf("the key %q is used with two types: ForEachShard has %v, %s %v", r.key.Name(), p.key.Type(), r.function, r.key.Type())
	case p.loop != r.loop:
		return fmt.Errorf("ForEachShard(%q) and its %s are not in the same loop: one would run more often than the other", r.key.Name(), r.function)
	}
	l.forestOf[r.position], l.feeds[p.position] = p.position, r.position
	delete(pending, r.key.Name())
	return nil
}

// last returns the position of the last stage within the stage s, which is at position.
func (l *layout) last(position int, s Stage) int {
	if r, ok := s.(*repeat); ok {
		for _, inner := range r.stages {
			position = l.last(position+1, inner)
		}
	}
	return position
}

// functionName returns the short name of a function, such as "assign" or "trainer.update". For
// a closure it returns the name of the enclosing function.
func functionName(f any) string {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Func || v.IsNil() {
		return "nil"
	}
	name := runtime.FuncForPC(v.Pointer()).Name()
	name = strings.TrimSuffix(name, "-fm")
	for { // type arguments of generic functions may hold dots and slashes
		open := strings.IndexByte(name, '[')
		end := strings.IndexByte(name, ']')
		if open < 0 || end < open {
			break
		}
		name = name[:open] + name[end+1:]
	}
	name = name[strings.LastIndexByte(name, '/')+1:]
	if _, after, ok := strings.Cut(name, "."); ok {
		name = after
	}
	return sourcePart(name)
}

// sourcePart returns the name of the innermost function of the source in a symbol. The compiler
// numbers closures, as in "Train.func1.2", and names closures of inlined functions after both
// functions, as in "Train.func1.stages.3".
func sourcePart(symbol string) string {
	parts := strings.Split(symbol, ".")
	for len(parts) > 0 && isCompilerName(parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	from := len(parts)
	for from > 0 && !isCompilerName(parts[from-1]) {
		from--
	}
	if name := strings.Join(parts[from:], "."); name != "" && name != "glob" && name != "init" {
		return name
	}
	return symbol // a closure in the initializer of a package variable
}

// isCompilerName reports whether the compiler made a part of a symbol, such as "func1", "2" or "".
func isCompilerName(part string) bool {
	for _, prefix := range []string{"func", "gowrap", "deferwrap"} {
		part = strings.TrimPrefix(part, prefix)
	}
	return strings.Trim(part, "0123456789") == ""
}
