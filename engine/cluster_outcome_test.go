package engine

import (
	"context"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// outcomes returns the outcomes of the workers that compute the squares of 0..3.
func outcomes(p *plan.Plan) ([][]byte, error) { return outcomesOf(p, squares, squaresArgs{N: 4}) }

// outcomesOf runs a job as its only worker would, and returns the outcomes that the worker
// would send to the client.
func outcomesOf[A any](p *plan.Plan, job *Job[A], args A) ([][]byte, error) {
	c, err := newConfig([]Option{Shards(p.Shards), Seed(p.Seed), Parallelism(p.Parallelism)})
	if err != nil {
		return nil, err
	}
	made, err := prepare(job, args, c)
	if err != nil {
		return nil, err
	}
	defer made.store.release()
	made.store.stream = nowhere{}
	w, err := task.NewWorker(p, nil, made.bind, newEnv(c, made, nil), task.Part{Slots: []sharding.Range{{Lo: 0, Hi: p.Slots}}})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if err := w.Prepare(); err != nil {
		return nil, err
	}
	outcome, err := w.Run(context.Background())
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return [][]byte{outcome}, w.Commit([][]byte{outcome})
}

// nowhere is a stream that drops rows.
type nowhere struct{}

func (nowhere) send(context.Context, plan.NodeID, int, arrow.Record) error { return nil }
