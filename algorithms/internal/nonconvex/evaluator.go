package nonconvex

import (
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// Loss computes the loss of a model over rows, and its gradient. Only one goroutine may use a
// Loss.
type Loss interface {
	// First returns the randomly drawn parameters from which training starts.
	First() []float64
	// Move sets the model's parameters. The Loss may refer to the slice until the next Move.
	Move(parameters []float64)
	// Add adds the sum of the weighted losses of some rows of the block b to out[0], and the
	// gradient of this sum to out[1:]. list has the indices of these rows, at most Chunk. Add
	// returns weight plus the weights of these rows.
	Add(b *rows.Block, list []int32, weight float64, out []float64) float64
	// Penalise adds weight times the penalty to out[0], and weight times the gradient of the
	// penalty to out[1:].
	Penalise(weight float64, out []float64)
}

// Chunk is the largest number of rows in a call of Loss.Add.
const Chunk = 64

// evaluator evaluates a loss over the rows of a subtask.
//
// The optimiser starts from zeros, since the initial parameters of the model are drawn only
// when the numbers of features and classes are known. So the optimiser's parameters are the
// model's parameters minus the initial parameters. A penalty of the optimiser would apply to
// this difference. Therefore the penalty on the model's parameters is a part of the loss of
// every row.
type evaluator struct {
	loss   Loss
	first  []float64
	at     []float64 // the model's parameters
	list   []int32   // indices of the rows of a chunk
	lo     int
	blocks []*rows.Block
}

func newEvaluator(loss Loss) *evaluator {
	first := loss.First()
	return &evaluator{loss: loss, first: first, at: make([]float64, len(first)), list: make([]int32, 0, Chunk)}
}

// Over returns the evaluator with which the optimiser minimises a loss over the rows in blocks.
// blocks[i] is the block of shard lo+i.
func Over(loss Loss, task signature.Task, f *rows.Facts, lo int, blocks []*rows.Block) optim.Evaluator {
	e := newEvaluator(loss)
	e.lo, e.blocks = lo, blocks
	made := optim.Evaluator{
		Dim: len(e.first), Weight: f.Weight, PenaltyFactors: make([]float64, len(e.first)), Evaluate: e.evaluate,
		GradientUnit: 1, Minibatch: optim.Minibatch{Rows: e.count, Evaluate: e.evaluateRows},
	}
	if task == signature.Regression && f.LabelStd > 0 {
		made.GradientUnit = f.LabelStd // gradients of the squared loss are proportional to the unit of the labels
	}
	return made
}

// count implements optim.Minibatch.Rows.
func (e *evaluator) count(shard int) int {
	if b := e.blocks[shard-e.lo]; b != nil {
		return b.N
	}
	return 0
}

// evaluate implements optim.Evaluator.Evaluate.
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

// evaluateRows implements optim.Minibatch.Evaluate.
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

// move sets the model's parameters to the optimiser's parameters v plus the initial parameters.
func (e *evaluator) move(v []float64) {
	for i, first := range e.first {
		e.at[i] = first + v[i]
	}
	e.loss.Move(e.at)
}
