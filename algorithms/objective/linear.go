package objective

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

// Linear is the weighted sum of a loss over checked rows, with margins that are linear in the
// features. It is an objective for package optim.
//
// # Parameters
//
// The parameters are, for each margin with coefficients, the coefficients of all features,
// followed by the intercept unless NoIntercept is set. The constants of the loss come last. The
// coefficients are those of scaled features: (x−mean)/std for dense rows with an intercept,
// x/std otherwise. The data are neither copied nor changed for scaling. A feature that is
// always 0 has coefficient 0 and no influence. So does a constant feature if there is an
// intercept.
//
// # The penalty
//
// The penalty is computed from the parameters times factors. The factors of the coefficients
// are 1, so that the penalty applies to the coefficients of scaled features. With NoStandardize
// the factors are 1/std, so that the penalty applies to the coefficients of the unscaled
// features. The factors of intercepts and constants are 0.
type Linear struct {
	Table rows.Table
	Loss  Loss
	// NoIntercept omits the intercepts.
	NoIntercept bool
	// NoStandardize applies the penalty to the coefficients of the unscaled features, instead
	// of the coefficients of the scaled features.
	NoStandardize bool
	// ClassWeights has factors for the weights of rows. The key is the text of the class;
	// classes without a key have factor 1. The deviations for scaling features are computed
	// without ClassWeights and Balanced.
	ClassWeights map[string]float64
	// Balanced multiplies the weights of the rows of each class by a factor, such that all
	// classes have the same total weight. The total weight of all rows does not change.
	Balanced bool
}

// BytesPerRow returns roughly how many bytes an evaluator stores for each row: margins at a
// point and along a direction, the multipliers of a smoothed loss, and weights of classes.
func (l Linear) BytesPerRow(f *rows.Facts) int64 {
	n := int64(0)
	if s, err := l.scaling(f); err == nil { // if there is an error, Open returns it
		n += 8 * 2 * int64(s.Total())
	}
	if _, ok := l.Loss.(Smooth); ok {
		n += 8 * 2
	}
	if l.Balanced || len(l.ClassWeights) > 0 {
		n += 8
	}
	return n
}

// Open implements optim.Objective.
func (l Linear) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	data, err := l.Table.OpenNarrow(ctx)
	if err != nil {
		return optim.Evaluator{}, err
	}
	return l.over(ctx, data)
}

// over returns an evaluator over the rows of a subtask.
func (l Linear) over(ctx *comqueue.ComContext, data *rows.Data) (optim.Evaluator, error) {
	e, err := l.evaluator(data.Facts)
	if err != nil {
		return optim.Evaluator{}, err
	}
	own := ctx.Shards()
	e.context = ctx.Context()
	e.lo, e.total, e.shards = own.Lo, ctx.TotalShards(), make([]*shardRows, own.Len())
	classes, err := l.classFactors(data.Facts)
	if err != nil {
		return optim.Evaluator{}, err
	}
	var before *shardRows
	err = ctx.ForShards(func(shard int) error {
		b := data.Block(shard)
		if err := l.labels(data.Facts, b); err != nil {
			return err
		}
		s := &shardRows{Block: b, number: shard, weight: b.Weight}
		s.chunk, s.read = e.chunkRows(b)
		if classes != nil {
			s.weight = make([]float64, b.N)
			for i, y := range b.Label {
				s.weight[i] = classes[int(y)]
				if b.Weight != nil {
					s.weight[i] *= b.Weight[i]
				}
			}
		}
		if before != nil {
			before.Sparse.Before(&s.Sparse)
		}
		before = s
		e.shards[shard-own.Lo] = s
		e.folds = e.folds || b.Columns != nil
		e.longest = max(e.longest, s.chunk)
		e.grow(max(s.chunk, s.read))
		return nil
	})
	if err != nil {
		return optim.Evaluator{}, err
	}
	return e.functions(), nil
}

// labels returns an error for the first label that is not valid for the loss. If labels are
// classes, it checks the classes first, and reads the rows only if a class is not valid.
func (l Linear) labels(f *rows.Facts, b *rows.Block) error {
	if b.Label == nil {
		return fmt.Errorf("the %s loss needs labels", l.Loss)
	}
	if l.Table.Label == rows.ClassLabel {
		refused := false
		for class := range f.Classes {
			refused = refused || l.Loss.Refuses(float64(class)) != ""
		}
		if !refused {
			return nil
		}
	}
	for i, y := range b.Label {
		if problem := l.Loss.Refuses(y); problem != "" {
			return &engine.RowError{Row: int64(i), Err: fmt.Errorf("the label %s", problem)}
		}
	}
	return nil
}

// shape checks the objective against the facts and returns the shape of its margins.
func (l Linear) shape(f *rows.Facts) (Shape, error) {
	if l.Loss == nil {
		return Shape{}, errors.New("the objective has no loss")
	}
	shape, err := l.Loss.Shape(f)
	if err != nil {
		return Shape{}, err
	}
	if l.Table.Shifted && shape.Margins > 1 {
		return Shape{}, fmt.Errorf("the %s loss has %d margins: an offset is for losses of one", l.Loss, shape.Margins)
	}
	if f.Dim() == 0 && l.NoIntercept && shape.Constants == 0 {
		return Shape{}, errors.New("there are no features and no intercept: nothing can be trained")
	}
	return shape, nil
}

// Weight returns the total weight of the rows, including class weights.
func (l Linear) Weight(f *rows.Facts) (float64, error) {
	classes, err := l.classFactors(f)
	if err != nil || classes == nil {
		return f.Weight, err
	}
	var weight float64
	for i, c := range classes {
		weight += float64(c * f.ClassWeights[i])
	}
	return weight, nil
}

// classFactors returns the factors of the weights of rows, by class, or nil if all are 1.
func (l Linear) classFactors(f *rows.Facts) ([]float64, error) {
	if len(l.ClassWeights) == 0 && !l.Balanced {
		return nil, nil
	}
	if l.Table.Label != rows.ClassLabel {
		return nil, errors.New("class weights are for classifiers: the label is a number")
	}
	if len(l.ClassWeights) > 0 && l.Balanced {
		return nil, errors.New("class weights are both given and to be balanced: choose one")
	}
	factors := make([]float64, len(f.Classes))
	for i := range factors {
		factors[i] = 1
		if l.Balanced {
			factors[i] = f.Weight / (float64(len(factors)) * f.ClassWeights[i])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.ClassWeights)) {
		w := l.ClassWeights[name]
		i := slices.Index(f.Classes, name)
		switch {
		case i < 0:
			return nil, fmt.Errorf("class weights name %q, which is no class: there are %s", name, fewOf(f.Classes))
		case !finitePositive(w):
			return nil, fmt.Errorf("ClassWeights of %q is %v: want a number above 0", name, w)
		}
		factors[i] = w
	}
	return factors, nil
}

// Validate returns an error if the objective is invalid for any rows.
func (l Linear) Validate() error {
	if l.Loss == nil {
		return errors.New("the objective has no loss")
	}
	if l.Loss.Label() != l.Table.Label {
		return fmt.Errorf("the %s loss does not take such labels", l.Loss)
	}
	if len(l.ClassWeights) > 0 && l.Table.Label != rows.ClassLabel {
		return errors.New("class weights are for classifiers: the label is a number")
	}
	return nil
}

// String returns the name of the loss followed by "loss".
func (l Linear) String() string { return strings.TrimSpace(l.Loss.String() + " loss") }
