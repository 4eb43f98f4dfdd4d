package signature

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Coded says how trees read features: null and NaN are missing values, and a text is replaced
// by the code of its category.
type Coded struct {
	Codes  []map[string]int32 // Codes[j] has the codes of the categories of feature j; nil for a numeric feature
	Unseen float64            // the code of a text that is not a category
	// Strict makes numbers and bools an error in a categorical feature. Otherwise they are
	// formatted as text.
	Strict bool
}

// CodesOf returns the codes of the categories of each feature. The code of a category is its
// index in the feature's element of categories.
func CodesOf(categories [][]string) []map[string]int32 {
	codes := make([]map[string]int32, len(categories))
	for j, names := range categories {
		if names == nil {
			continue
		}
		codes[j] = make(map[string]int32, len(names))
		for code, name := range names {
			codes[j][name] = int32(code)
		}
	}
	return codes
}

// CheckCoded does what Check does, for inputs that BindCoded reads: one vector, or columns with
// one feature each. categories has the categories of each feature; it must not be empty for a
// column of text.
func (in Inputs) CheckCoded(dim int, categories [][]string) error {
	return in.check(dim, func(dt arrow.DataType, j int) string {
		switch {
		case batch.IsVector(dt) && len(in) == 1, batch.IsNumber(dt):
			return ""
		case dt.ID() != arrow.STRING:
			return ": want a vector, or numbers, bools and text"
		case j >= len(categories) || categories[j] == nil:
			return ", and the model has no categories of it"
		}
		return ""
	})
}

// BindCoded does what Bind does, for one vector, or for columns with one feature each. c says
// how features are read. For a vector that is null, Read returns false.
func (in Inputs) BindCoded(l *model.Layout, o model.PredictOptions, dim int, c *Coded) (*Reader, error) {
	r, err := in.Bind(l, o, dim)
	if err == nil && r.joined >= 0 && len(r.names) != dim {
		return nil, fmt.Errorf("FeatureCols has %d columns, the model was trained on %d features", len(r.names), dim)
	}
	if err == nil {
		r.coded = c
	}
	return r, err
}

// joinCoded reads columns with one feature each, as Coded says.
func (r *Reader) joinCoded(row []model.Cell) (p Point, ok bool, err error) {
	x := row[r.joined].MakeDense(r.dim)
	for j, cell := range r.cells {
		c := &row[cell]
		if j < len(r.coded.Codes) && r.coded.Codes[j] != nil {
			text, ok := c.Category()
			if c.Kind != model.NullCell && (!ok || r.coded.Strict && c.Kind != model.TextCell) {
				return Point{}, false, fmt.Errorf("column %q is %s, the model reads text", r.names[j], c.Kind)
			}
			x[j] = math.NaN()
			if code, known := r.coded.Codes[j][string(text)]; known && ok {
				x[j] = float64(code)
			} else if ok {
				x[j] = r.coded.Unseen
			}
			continue
		}
		if x[j], ok = c.Number(); c.Kind == model.NullCell {
			x[j] = math.NaN()
		} else if !ok {
			return Point{}, false, fmt.Errorf("column %q is %s, the model reads a number", r.names[j], c.Kind)
		}
	}
	return Dense(x), true, nil
}
