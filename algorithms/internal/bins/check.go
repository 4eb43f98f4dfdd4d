package bins

import (
	"fmt"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// Table describes a checked dataset, as far as it is known when the job is built.
type Table struct {
	// Rows is the dataset of the checked rows. Facts is the dataset of the facts about the
	// training rows.
	Rows, Facts *engine.Dataset
	// Sparse, Weighted and Grouped report whether rows are sparse, have weights and have
	// groups.
	Sparse, Weighted, Grouped bool
	Label                     LabelKind
	// State, if set, returns how many bytes training keeps on the heap for each row. They are
	// charged to the memory budget.
	State func(f *Facts) int64

	plan *plan
	name string // name of the evaluation set; "" for the training rows
	rows comqueue.PartitionedData
	data shared.Key[*Data]
}

// Objects of the queues that train.
var (
	factsRows    = comqueue.BroadcastRows("facts of the features")
	decodedFacts = shared.Scratch[*known]("decoded facts of the features")
)

// Check adds to a job the operator that checks the rows and packs the rows of each shard. It
// also adds the queue that computes the facts about all rows, such as the cuts and the layout
// of the binned rows. op is the name of the algorithm, such as "gbdt.Train"; the queue is named
// after it. Check returns an error for mistakes in the columns, without op in its text.
// Mistakes in rows make the run fail.
func Check(op string, d *engine.Dataset, c Columns, label LabelKind, o Options) (Table, error) {
	t := Table{Rows: d, Facts: d, Label: label}
	if d.Poisoned() {
		return t, nil
	}
	p, err := newPlan(arrowrows.Arrow(d.Schema()), c, label, o, false)
	if err != nil {
		return Table{}, err
	}
	t = newTable("", p)
	t.Rows = pack(d, p)
	t.Facts = t.survey(d.Builder(), op)
	return t, nil
}

// Other checks an evaluation set d, whose rows will be binned by the cuts of t. name must be
// unique within a queue. The set must have all the columns of t, with the same names and types,
// except that numeric features may have other number types, and dense vectors another
// precision. Categories that t does not have are missing values, even if their codes are
// invalid. Classes that t does not have are an error. skip leaves out rows with an unusable
// label, weight, margin or group, even if t does not skip rows.
func (t Table) Other(name string, d *engine.Dataset, skip bool) (Table, error) {
	o := Table{Rows: d, Facts: t.Facts, Label: t.Label}
	if d.Poisoned() || t.plan == nil {
		return o, nil
	}
	read := t.plan.columns
	read.Skip = read.Skip || skip
	p, err := newPlan(arrowrows.Arrow(d.Schema()), read, t.Label, t.plan.options, true)
	if err == nil {
		err = t.plan.match(p)
	}
	if err != nil {
		return Table{}, fmt.Errorf("evaluation set %q: %w", name, err)
	}
	o = newTable(name, p)
	o.Facts = t.Facts
	o.Rows = pack(d, p)
	return o, nil
}

func newTable(name string, p *plan) Table {
	label := "packed rows"
	if name != "" {
		label += " of " + name
	}
	return Table{
		Sparse: p.kind == sparseRows, Weighted: p.weightAt >= 0, Grouped: p.groupAt >= 0, Label: p.label,
		plan: p, name: name,
		rows: comqueue.PartitionedRows(label), data: shared.Scratch[*Data]("binned " + label),
	}
}

// match returns an error if the rows of the plan o cannot be binned by the cuts of the rows of
// p.
func (p *plan) match(o *plan) error {
	if p.kind != separate {
		dense := func(k layoutKind) bool { return k == denseRows || k == raggedRows }
		a, b := p.schema.Field(p.vector).Type, o.schema.Field(o.vector).Type
		if p.kind != o.kind && !(dense(p.kind) && dense(o.kind)) || p.dim > 0 && o.dim > 0 && p.dim != o.dim {
			return fmt.Errorf("column %q is %s, and in the training rows it is %s", o.schema.Field(o.vector).Name, batch.TypeName(b), batch.TypeName(a))
		}
	}
	for j, text := range p.text {
		if o.text[j] != text {
			a, b := p.schema.Field(p.features[j]).Type, o.schema.Field(o.features[j]).Type
			return fmt.Errorf("column %q is %s, and in the training rows it is %s", p.columns.Features[j], batch.TypeName(b), batch.TypeName(a))
		}
	}
	if p.label == ClassLabel {
		if a, b := batch.TypeName(p.schema.Field(p.labelAt).Type), batch.TypeName(o.schema.Field(o.labelAt).Type); a != b {
			return fmt.Errorf("label column %q is %s, and in the training rows it is %s", p.columns.Label, b, a)
		}
	}
	return nil
}

// pack adds the operator that checks and packs rows.
func pack(d *engine.Dataset, p *plan) *engine.Dataset {
	if p.groupAt >= 0 {
		d = operators.PartitionByHash(d, p.columns.Group)
	}
	return d.Builder().Add(engine.Spec{
		Op:       "PackRows",
		Attrs:    p.attrs(),
		Schema:   arrowrows.Schema(packedSchema),
		Inputs:   []engine.Port{{From: d}},
		RowByRow: !p.columns.Skip,
		Operator: func() engine.Operator { return newChecker(p) },
	})
}

// Dim returns the number of features if it is known from the columns, else 0.
func (t Table) Dim() int {
	if t.plan == nil { // the dataset of t is poisoned
		return 0
	}
	return t.plan.dim
}

// Vector returns the name of the vector column, or "" if each feature has its own column.
func (t Table) Vector() string {
	if t.plan == nil || t.plan.kind == separate {
		return ""
	}
	return t.plan.schema.Field(t.plan.vector).Name
}

// labelType returns the type of the label column as schemas print it, or "" if the label is not
// a ClassLabel.
func (p *plan) labelType() string {
	if p.label != ClassLabel {
		return ""
	}
	return batch.TypeName(p.schema.Field(p.labelAt).Type)
}

// Init adds the rows of t to the input of queue q, and returns q. If t has the training rows,
// Init also adds the facts. So a queue that reads an evaluation set must also be passed to Init
// of the table whose Other returned the set.
func (t Table) Init(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
	q = q.InitWithPartitionedData(t.rows.WithState(t.state), t.Rows)
	if t.name == "" {
		q = q.InitWithBroadcastData(factsRows, t.Facts)
	}
	return q
}

// FactsOf returns the facts and the layout in a stage of a queue on which Init was called. They
// belong to the queue and must not be modified.
func (t Table) FactsOf(ctx *comqueue.ComContext) (*Facts, *Layout, error) {
	k, err := t.known(ctx)
	if err != nil {
		return nil, nil, err
	}
	return &k.Facts, &k.Layout, nil
}

func (t Table) known(ctx *comqueue.ComContext) (*known, error) {
	if k, ok := decodedFacts.Lookup(ctx); ok {
		return k, nil
	}
	k, err := decodeKnown(factsRows.Get(ctx))
	if err != nil {
		return nil, err
	}
	decodedFacts.Put(ctx, k)
	return k, nil
}
