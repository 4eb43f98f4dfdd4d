package gbdt

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// start returns the rows d with the margins that training starts from, and the names of the
// margin columns. The columns are MarginCols, or new columns with the margins of Start, the
// model that training continues.
func (p *Params) start(d *engine.Dataset) (*engine.Dataset, []string, error) {
	if p.Start == nil {
		return d, p.MarginCols, nil
	}
	m, b := p.Start, model.BuilderOf("gbdt.Train", d)
	var names []string
	var outputs []arrow.Field
	for k := range m.Ensemble.Outputs {
		name := fmt.Sprintf("margin %d of the model to continue", k)
		names = append(names, name)
		outputs = append(outputs, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float64})
	}
	o := PredictOptions{VectorCol: p.VectorCol, FeatureCols: p.FeatureCols}
	rows := model.ApplyRows("gbdt.Train", d, m.Dataset(b), model.RowApplication{
		Op: "GBDTMargins", Outputs: arrowrows.Columns(outputs), Replace: true,
		Decode: func(file []byte) (model.Binder, error) {
			m, err := Decode(file)
			return starter{m, o, names}, err
		},
	})
	return rows, names, nil
}

// starter is a model whose step writes its margins to columns.
type starter struct {
	*Model
	options PredictOptions
	names   []string
}

// Bind implements model.Binder.
func (s starter) Bind(l *model.Layout) (model.Step, error) {
	in, err := s.reader(l, s.options)
	if err != nil {
		return nil, err
	}
	cells := make([]int, len(s.names))
	for k, name := range s.names {
		cells[k] = l.Add(name)
	}
	return func(row []model.Cell) error {
		x, ok, err := in.Read(row)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("column %q is null", in.Name())
		}
		r := s.take()
		defer s.give(r)
		s.fill(x, r.x)
		s.scorer.Scores(r.x, r.margins)
		for k, cell := range cells {
			row[cell].SetFloat(r.margins[k])
		}
		return nil
	}, nil
}

// checkStart adds to e the reasons why the model in Start cannot be continued.
func (p *Params) checkStart(e *problems) {
	m := p.Start
	if m == nil {
		return
	}
	if err := m.check(); err != nil {
		e.add("Start: %w", err)
		return
	}
	switch {
	case m.Objective != p.Objective:
		e.add("Start is of the objective %v, and Objective is %v", m.Objective, p.Objective)
	case p.Objective == Custom && p.CustomObjective != nil && p.outputs(0) != m.Ensemble.Outputs:
		e.add("Start has %d outputs, and the custom objective %d", m.Ensemble.Outputs, p.outputs(0))
	}
	if m.AbsentIsZero != p.AbsentIsZero {
		e.add("Start was trained with AbsentIsZero %v, and AbsentIsZero is %v: set it to %[1]v, as a model reads what sparse rows leave out in one way", m.AbsentIsZero, p.AbsentIsZero)
	}
	if p.DART {
		e.add("Start and DART are both set: DART drops only trees of its own training, so it cannot continue a model: leave one of them")
	}
	if p.Base != nil || p.MarginCols != nil {
		e.add("Start gives the margins to start from: leave Base and MarginCols")
	}
}

// checkKinds returns an error if a feature is categorical in the model that is continued and a
// number in the rows, or vice versa, because a split of one kind cannot be applied to values of
// the other.
func (p *Params) checkKinds(layout *bins.Layout) error {
	if p.Start == nil {
		return nil
	}
	categorical := map[int]bool{} // the features on which the model splits
	e := p.Start.Ensemble
	for i := range e.Trees {
		for n := range e.Trees[i].Nodes {
			node := &e.Trees[i].Nodes[n]
			if node.Leaf() {
				continue
			}
			j := int(node.Feature)
			if p.Start.Columns != nil {
				j = int(p.Start.Columns[j])
			}
			categorical[j] = node.Flags&tree.Categorical != 0
		}
	}
	for i := range layout.Features {
		f := &layout.Features[i]
		before, ok := categorical[f.Number]
		switch {
		case !ok || before == f.Categorical:
		case before:
			return fmt.Errorf("feature %q is a number, and a category in the model to continue: name it in CategoricalCols or CategoricalAt", f.Name)
		default:
			return fmt.Errorf("feature %q is a category, and a number in the model to continue: leave it out of CategoricalCols and CategoricalAt", f.Name)
		}
	}
	return nil
}
