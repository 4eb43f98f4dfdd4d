package gbdt

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// start returns the rows with the margins that training starts from, and the names of their
// columns: those of MarginCols, or, where a model is continued, what it gives.
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
		Op: "GBDTMargins", Outputs: outputs, Replace: true,
		Decode: func(file []byte) (model.Binder, error) {
			m, err := Decode(file)
			return starter{m, o, names}, err
		},
	})
	return rows, names, nil
}

// starter is a model that gives its margins as columns.
type starter struct {
	*Model
	options PredictOptions
	names   []string
}

// Bind implements model.Binder.
func (s starter) Bind(l *model.Layout) (model.Step, error) {
	in, err := s.reader(l, s.options.features())
	if err != nil {
		return nil, err
	}
	cells := make([]int, len(s.names))
	for k, name := range s.names {
		cells[k] = l.Add(name)
	}
	return func(row []model.Cell) error {
		r := s.take()
		defer s.give(r)
		ok, err := in.read(row, r.x)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("column %q is null", in.names[0])
		}
		s.scorer.Scores(r.x, r.margins)
		for k, cell := range cells {
			row[cell].SetFloat(r.margins[k])
		}
		return nil
	}, nil
}

// checkStart tells why a model cannot be continued.
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
	if p.Base != nil || p.MarginCols != nil {
		e.add("Start gives the margins to start from: leave Base and MarginCols")
	}
}
