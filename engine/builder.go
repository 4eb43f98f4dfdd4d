package engine

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Builder collects the operators that a job's function adds. It must be used only
// from the goroutine of that function, and not after the function has returned.
//
// Nothing is computed while the job is built. A mistake does not stop the
// function: it is recorded with the user's source line, and the operator returns
// a poisoned dataset, on which further operators do nothing. Run returns all
// mistakes together.
type Builder struct {
	config  *config
	graph   *plan.Graph
	bind    task.Bindings
	facts   facts
	origins origins
	misuses []Misuse
	within  string            // the part that Within is building, or ""
	refused string            // the first operator that returned a poisoned dataset
	sealed  bool              // the job's function has returned
	results map[string]string // name of a Collect → its site
	store   *resultStore
	outputs []*clientSink // outputs that the program that called Run writes
	claims  []outputClaim
	uses    map[plan.NodeID][]ColumnUse // column uses, by node and then by port
	// neededColumns returns, for each node, which of its columns are read. It is called after
	// the job's function has returned.
	neededColumns func() [][]bool
	advise        func(e *RowError) string
}

// newBuilder returns a builder for one call of a job's function.
func newBuilder(name string, c *config, f facts) *Builder {
	b := &Builder{
		config: c,
		graph:  &plan.Graph{Job: name, Shards: c.shards, Seed: c.seed},
		bind: task.Bindings{
			Sources:    map[plan.NodeID]func() task.Source{},
			Operators:  map[plan.NodeID]func() task.Operator{},
			Partitions: map[task.Port]task.Partition{},
			Sinks:      map[plan.NodeID]task.Sink{},
			Loops:      map[string]task.OpenLoops{},
			RowByRow:   map[plan.NodeID]bool{},
		},
		facts:   f,
		results: map[string]string{},
		store:   newResultStore(c.memory),
		uses:    map[plan.NodeID][]ColumnUse{},
	}
	b.neededColumns = sync.OnceValue(func() [][]bool { return columnsNeeded(b.graph.Nodes, b.uses) })
	return b
}

// Shards returns the number of shards into which the job's data are divided.
func (b *Builder) Shards() int { return b.config.shards }

// Seed returns the seed of the job's random draws.
func (b *Builder) Seed() uint64 { return b.config.seed }

// IfExists returns what sinks do if their output exists.
func (b *Builder) IfExists() Existing { return b.config.ifExists }

// Allocator returns the allocator for record batches that are made while the job is
// built, such as constants. Operators use the allocator of their Context.
func (b *Builder) Allocator() columnar.Allocator { return b.config.allocator }

// Stdout returns the writer for output that people read. It keeps that output apart from the
// progress line of a terminal.
func (b *Builder) Stdout() io.Writer { return b.config.stdout }

// CheckBroadcasts reports whether queues verify that the rows and objects that their subtasks
// share do not change.
func (b *Builder) CheckBroadcasts() bool { return b.config.checkBroadcasts }

// CheckState reports whether queues drop, between supersteps, everything that their keys do not
// keep; see the option CheckState.
func (b *Builder) CheckState() bool { return b.config.checkState }

// TracesReplicas reports whether queues find the stage that made replicated objects differ.
// Only queues that verify shared objects can find this stage.
func (b *Builder) TracesReplicas() bool { return b.config.traceReplicas }

// Advise sets a function that returns the advice to show with a failure about a row, or "" for
// no advice. It replaces the error's own Advice. Advise is for programs whose users know flags
// and not the fields of a package. advise is called in the process that failed.
func (b *Builder) Advise(advise func(e *RowError) string) { b.advise = advise }

// Port is one input of an operator.
type Port struct {
	From *Dataset
	// Partitioner says to which shards the rows go; the zero value is Forward. A side
	// input is always Broadcast.
	Partitioner Partitioner
	// Keys are the columns by which Hash and Range choose the shard of a row.
	Keys []string
	// Side makes the input a broadcast variable. It is complete before the operator
	// opens, and is read with Context.Side.
	Side bool
	// Partition computes the destination shards for Custom and Range. For Hash it is optional
	// and replaces the documented hash.
	Partition Partition
	// Func is the user's function that Partition calls, if any. Its symbol and line become part
	// of the fingerprint.
	Func any
	// Use says which columns of From the operator reads; the zero value means all.
	Use ColumnUse
}

// Spec describes an operator to add.
type Spec struct {
	Op    string // kind of operator, such as "Map"; it begins every message about it
	Name  string // the user's label, if any
	Attrs []Attr // printable parameters, in a fixed order
	// Schema is the schema of the rows that the operator emits; the zero Schema for sinks.
	Schema Schema
	Inputs []Port // in port order, including side inputs
	// Func is the user's function that the operator calls, if any. Its symbol and
	// line become part of the fingerprint. If Func is not a function but an object
	// with methods, its type becomes part of the fingerprint.
	Func  any
	Funcs []any // further user functions
	// Single makes the operator run in one subtask, which owns every shard.
	Single bool
	// RowByRow says that row i of a shard of the output comes from row i of the same shard of
	// the input. The operator must have exactly one input that is not a side input. Failures
	// can then say where a row is in the files that were read; see RowError.
	RowByRow bool
	// Order says how the operator reduces floating-point values.
	Order Reduction
	// Source or Operator makes the source or the operator of one subtask; exactly one
	// of them must be set. It is called once per subtask, possibly concurrently.
	Source   func() Source
	Operator func() Operator
	// Sink commits what the subtasks wrote. If Sink is set, Operator must be set too.
	Sink Sink
	// AtClient makes Operator and Sink run in the program that called Run, even if the job runs
	// on a cluster. The operator must have one input, whose rows are then held in memory until
	// the job has finished. See ClientPath.
	AtClient bool
}

// Add adds an operator and returns the rows that it emits, or nil for a sink. If the
// specification is wrong, it records the misuse and returns a poisoned dataset. If an input is
// poisoned, it returns a poisoned dataset and records nothing, as the cause has been recorded
// already.
func (b *Builder) Add(spec Spec) *Dataset {
	given := aDataset
	if spec.Source != nil {
		given = aBuilder
	}
	b.MustBuild(spec.Op, given)
	if b.unusable() || poisonedInput(spec.Inputs) {
		return b.Poisoned(spec.Op)
	}
	schema, err := b.checkSpec(&spec)
	if err != nil {
		b.Errorf("%s: %w", opTitle(spec.Op), err)
		return b.Poisoned(spec.Op)
	}
	id := b.addNode(plan.Node{
		Op:     spec.Op,
		Name:   spec.Name,
		Attrs:  append([]Attr(nil), spec.Attrs...),
		Func:   funcIdentities(append([]any{spec.Func}, spec.Funcs...)...),
		Single: spec.Single,
		Sink:   spec.Schema.IsZero(),
		Order:  spec.Order,
	}, schema, spec.Inputs)
	for _, p := range spec.Inputs {
		b.uses[id] = append(b.uses[id], p.Use)
	}
	if spec.Source != nil {
		b.bind.Sources[id] = spec.Source
	} else {
		b.bind.Operators[id] = spec.Operator
		if spec.RowByRow {
			b.bind.RowByRow[id] = true
			b.origins.passOn(id, spec.Inputs)
		}
	}
	if !spec.Schema.IsZero() {
		return &Dataset{builder: b, node: id, schema: schema}
	}
	if spec.AtClient {
		b.addClientSink(id, &spec)
	} else if spec.Sink != nil {
		b.bind.Sinks[id] = spec.Sink
	}
	return nil
}

// addNode numbers a checked node, gives it its columns, edges and source line,
// and binds the placement functions of its ports.
func (b *Builder) addNode(n plan.Node, schema *arrow.Schema, ports []Port) plan.NodeID {
	n.ID = plan.NodeID(len(b.graph.Nodes))
	n.Site, n.Within = userSite(), b.within
	n.Schema = columns(schema)
	for i, p := range ports {
		in := plan.Input{
			From:        p.From.node,
			Partitioner: p.Partitioner,
			Keys:        append([]string(nil), p.Keys...),
			Func:        funcIdentity(p.Func),
		}
		if p.Side {
			in.Partitioner, in.Role = plan.Broadcast, plan.Side
		}
		n.Inputs = append(n.Inputs, in)
		if p.Partition != nil {
			b.bind.Partitions[task.Port{Node: n.ID, Port: i}] = p.Partition
		}
	}
	b.origins.add(&n, ports)
	b.graph.Nodes = append(b.graph.Nodes, n)
	return n.ID
}

// columns returns the columns of a schema for the graph.
func columns(schema *arrow.Schema) []plan.Column {
	if schema == nil {
		return nil
	}
	cols := make([]plan.Column, 0, schema.NumFields())
	for _, c := range batch.Columns(schema) {
		cols = append(cols, plan.Column{Name: c.Name, Type: c.Type, Nullable: c.Nullable})
	}
	return cols
}

// checkSpec returns the schema that the operator emits, normalized, or an error if the
// specification is wrong.
func (b *Builder) checkSpec(spec *Spec) (*arrow.Schema, error) {
	switch {
	case spec.Op == "":
		return nil, errors.New("the kind of operator is not named")
	case (spec.Source == nil) == (spec.Operator == nil):
		return nil, errors.New("want either a source or an operator")
	case spec.Source != nil && len(spec.Inputs) > 0:
		return nil, errors.New("a source has no inputs")
	case spec.Operator != nil && len(spec.Inputs) == 0:
		return nil, errors.New("want at least one input")
	case spec.Sink != nil && (spec.Operator == nil || !spec.Schema.IsZero()):
		return nil, errors.New("a sink is an operator that emits no rows")
	case spec.Source != nil && spec.Schema.IsZero():
		return nil, errors.New("a source needs a schema")
	case spec.AtClient && (spec.Sink == nil || len(spec.Inputs) != 1 || spec.Inputs[0].Side):
		return nil, errors.New("what runs at the client is a sink with one input")
	}
	if err := b.checkPorts(spec.Inputs); err != nil {
		return nil, err
	}
	if spec.Schema.IsZero() {
		return nil, nil
	}
	return checkSchema(arrowrows.Arrow(spec.Schema))
}

// checkSchema returns the schema, normalized. Its columns must have distinct names and types
// that can be processed.
func checkSchema(schema *arrow.Schema) (*arrow.Schema, error) {
	seen := map[string]bool{}
	for _, f := range schema.Fields() {
		if f.Name == "" {
			return nil, errors.New("a column has no name")
		}
		if seen[f.Name] {
			return nil, fmt.Errorf("two columns are named %q", f.Name)
		}
		seen[f.Name] = true
	}
	return batch.NormalizeSchema(schema)
}

// checkPorts checks the datasets and the partitioners of inputs. The caller has made sure that
// no input is poisoned.
func (b *Builder) checkPorts(ports []Port) error {
	for i, p := range ports {
		if err := b.checkPort(p); err != nil {
			if len(ports) > 1 {
				return fmt.Errorf("input %d: %w", i+1, err)
			}
			return err
		}
	}
	return nil
}

func (b *Builder) checkPort(p Port) error {
	switch {
	case p.From == nil:
		return errors.New("the dataset is nil")
	case p.From.builder != b:
		return fmt.Errorf("the dataset %s", ofAnotherBuild(aDataset))
	case p.Side && p.Partitioner != Forward && p.Partitioner != Broadcast:
		return errors.New("a side input is broadcast and takes no other partitioner")
	}
	keyed := p.Partitioner == Hash || p.Partitioner == Range
	switch {
	case p.Partitioner == Broadcast && !p.Side:
		return errors.New("broadcast rows would be processed by every subtask: make it a side input")
	case keyed && len(p.Keys) == 0:
		return errors.New("hash and range partitioning need key columns")
	case !keyed && len(p.Keys) > 0:
		return errors.New("only hash and range partitioning take key columns")
	case (p.Partitioner == Custom || p.Partitioner == Range) && p.Partition == nil:
		return errors.New("custom and range partitioning need a function that places rows")
	case p.Partition != nil && !keyed && p.Partitioner != Custom:
		return errors.New("a function that places rows needs hash, range or custom partitioning")
	}
	return checkKeys(p.From.schema, p.Keys)
}

// checkKeys checks that key columns exist and have an order and an equality.
func checkKeys(schema *arrow.Schema, keys []string) error {
	for _, key := range keys {
		i, err := batch.FindColumn(schema, key)
		if err != nil {
			return err
		}
		if kind := batch.TypeName(schema.Field(i).Type); !plan.Keyable(kind) {
			return fmt.Errorf("column %q of type %s cannot be a key: only numbers, text, bytes and times can", key, kind)
		}
	}
	return nil
}

func poisonedInput(ports []Port) bool {
	for _, p := range ports {
		if p.From != nil && p.From.poisoned {
			return true
		}
	}
	return false
}

// Poisoned returns a poisoned dataset, on which every operator does nothing. An operator of
// kind op returns it after it has recorded a misuse. If no misuse is recorded, the job is
// refused nevertheless, as it would run without the operator. The message then names the op of
// the first such call.
func (b *Builder) Poisoned(op string) *Dataset {
	b.MustBuild(op, aDataset)
	if !b.unusable() && b.refused == "" {
		b.refused = opTitle(op)
	}
	return &Dataset{builder: b, node: -1, schema: arrow.NewSchema(nil, nil), poisoned: true}
}

// Site returns the user's source line that is being run, such as "main.go:31", which is the line of the
// innermost caller outside this module's libraries; "" if there is none.
func (b *Builder) Site() string { return userSite() }

// Errorf records a misuse with the user's source line, which is the line of the
// innermost caller outside this module's libraries. The message must begin with
// the operator, such as "Map: column …", and say what to do.
func (b *Builder) Errorf(format string, a ...any) {
	b.MustBuild("an operator", aDataset)
	if b.unusable() {
		return
	}
	err := fmt.Errorf(format, a...)
	if b.within != "" {
		err = fmt.Errorf("%s: %w", b.within, err)
	}
	b.misuses = append(b.misuses, Misuse{Site: userSite(), Err: err})
}

// longestPart is the maximum length of a part's name in bytes. Within cuts longer names.
const longestPart = 200

// Within calls build. Messages about mistakes and failures in the operators that build adds
// begin with part, a name such as "stage 2 (kmeans)". In nested calls of Within the outer name
// comes first. Within has no other effect.
func (b *Builder) Within(part string, build func()) {
	if b.unusable() {
		build()
		return
	}
	if len(part) > longestPart {
		part = strings.ToValidUTF8(part[:longestPart], "") + "…"
	}
	part = strings.ToValidUTF8(part, "\uFFFD")
	outside := b.within
	defer func() { b.within = outside }()
	if b.within != "" {
		part = b.within + ", " + part
	}
	b.within = part
	build()
}

// unusable reports whether b is nil or the job's function has returned. Operators and mistakes
// that are added to an unusable builder are lost.
func (b *Builder) unusable() bool { return b == nil || b.sealed }

// opTitle returns the name of an operator for the start of a message.
func opTitle(op string) string {
	if op = strings.TrimSpace(op); op == "" {
		return "operator"
	}
	return op
}
