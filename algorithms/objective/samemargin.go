package objective

import "github.com/superstep-ml/superstep/algorithms/internal/rows"

// classWork has the loss and the slope of one row of each class. It is used in passes in which
// all rows have the same margin.
type classWork struct{ Batch }

// sameMargin reports whether all rows of a pass have the same single margin, as at the start of
// training, and labels that are classes. If so, it computes the loss and the slope of a row of
// each class.
func (e *evaluator) sameMargin(s *shardRows, from source) bool {
	if from != atStart && from != atPoint || !e.zero || e.k > 1 || e.classes == 0 || s.Offset != nil || s.prox != nil || s.mu != 0 {
		return false
	}
	w, n := &e.perClass, e.classes
	if w.Label == nil {
		w.N, w.K, w.Label, w.Margin = n, 1, make([]float64, n), make([]float64, n)
		w.Loss, w.Slope, w.Work = make([]float64, n), make([]float64, n), make([]float64, n)
	}
	for class := range n {
		w.Label[class], w.Margin[class] = float64(class), e.add[0]
	}
	e.loss.At(&w.Batch)
	return true
}

// lossByClass sets the loss and the slope of each row in the batch to the loss and the slope of
// the row's class.
func (e *evaluator) lossByClass(b *rows.Block) {
	loss, slope := e.batch.Loss[:b.N], e.batch.Slope[:b.N]
	for i, class := range b.Label {
		loss[i], slope[i] = e.perClass.Loss[int(class)], e.perClass.Slope[int(class)]
	}
}
