package objective

import "github.com/superstep-ml/superstep/algorithms/internal/rows"

// alikeWork has, of each class, what a row comes to where the margins of all are the same.
type alikeWork struct{ Batch }

// alike says that all rows that a pass takes have one margin, which is the same, and labels
// that are classes, as where training begins, and finds what a row of each class comes to.
func (e *evaluator) alike(s *shardRows, from source) bool {
	if from != atStart && from != atPoint || !e.zero || e.k > 1 || e.classes == 0 || s.Offset != nil || s.prox != nil || s.mu != 0 {
		return false
	}
	w, n := &e.alikes, e.classes
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

// lossAlike writes losses and slopes of rows that are alike to the batch.
func (e *evaluator) lossAlike(b *rows.Block) {
	loss, slope := e.batch.Loss[:b.N], e.batch.Slope[:b.N]
	for i, class := range b.Label {
		loss[i], slope[i] = e.alikes.Loss[int(class)], e.alikes.Slope[int(class)]
	}
}
