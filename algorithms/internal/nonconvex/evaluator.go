package nonconvex

import (
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// Loss is the loss of a model over rows. A value belongs to one goroutine.
type Loss interface {
	// First returns the drawn parameters from which training begins.
	First() []float64
	// Move sets the model's parameters. The model may use the slice until the next Move.
	Move(parameters []float64)
	// Add adds the loss of listed rows of a block to out[0] and the gradient to out[1:]. It
	// returns weight plus the weights of the rows. There are at most Chunk rows.
	Add(b *rows.Block, list []int32, weight float64, out []float64) float64
	// Penalise adds the penalty and its gradient, times weight, to out.
	Penalise(weight float64, out []float64)
}

// Chunk is the largest number of rows that a Loss takes at once.
const Chunk = 64

// evaluator evaluates a loss over the rows of a subtask.
//
// The optimiser's parameters are the model's parameters less the initial ones, because these
// are drawn only when the numbers of features and classes are known. So the penalty on the
// model's parameters is part of the loss of every row.
type evaluator struct {
	loss   Loss
	first  []float64
	at     []float64 // the model's parameters
	list   []int32   // rows of a chunk
	lo     int
	blocks []*rows.Block
}

func newEvaluator(loss Loss) *evaluator {
	first := loss.First()
	return &evaluator{loss: loss, first: first, at: make([]float64, len(first)), list: make([]int32, 0, Chunk)}
}

// Over returns the optimiser's evaluator of a loss over blocks. lo is the shard of the first
// block.
func Over(loss Loss, task signature.Task, f *rows.Facts, lo int, blocks []*rows.Block) optim.Evaluator {
	e := newEvaluator(loss)
	e.lo, e.blocks = lo, blocks
	made := optim.Evaluator{
		Dim: len(e.first), Weight: f.Weight, PenaltyFactors: make([]float64, len(e.first)), Evaluate: e.evaluate,
		GradientUnit: 1, Minibatch: optim.Minibatch{Rows: e.count, Evaluate: e.evaluateRows},
	}
	if task == signature.Regression && f.LabelStd > 0 {
		made.GradientUnit = f.LabelStd // slopes of the squared loss have the unit of the labels
	}
	return made
}

// count is Rows of optim.Minibatch.
func (e *evaluator) count(shard int) int {
	if b := e.blocks[shard-e.lo]; b != nil {
		return b.N
	}
	return 0
}

// evaluate is Evaluate of optim.Evaluator.
func (e *evaluator) evaluate(shard int, v, out []float64) error {
	b := e.blocks[shard-e.lo]
	e.move(v)
	var weight float64
	for lo := 0; lo < b.N; lo += Chunk {
		list := e.list[:0]
		for i := lo; i < min(lo+Chunk, b.N); i++ {
			list = append(list, int32(i))
		}
		weight = e.loss.Add(b, list, weight, out)
	}
	e.loss.Penalise(weight, out)
	return nil
}

// evaluateRows is Evaluate of optim.Minibatch.
func (e *evaluator) evaluateRows(shard int, list []int32, v, out []float64) error {
	b := e.blocks[shard-e.lo]
	e.move(v)
	var weight float64
	for lo := 0; lo < len(list); lo += Chunk {
		weight = e.loss.Add(b, list[lo:min(lo+Chunk, len(list))], weight, out)
	}
	e.loss.Penalise(weight, out)
	out[1+len(e.first)] += weight
	return nil
}

// move sets the model's parameters to the optimiser's plus the initial ones.
func (e *evaluator) move(v []float64) {
	for i, first := range e.first {
		e.at[i] = first + v[i]
	}
	e.loss.Move(e.at)
}
