package gmm

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Train fits a mixture to the rows of points and returns the model as a dataset of one row. The
// column model.Column has the bytes that Model.Encode returns.
//
// The training queue is named "gmm", and the queues of further restarts are named "gmm 2", "gmm
// 3" and so on. Each queue reports "log-likelihood", the mean over rows, for every superstep.
// Errors in the parameters, or in the columns that they name, are reported when the job is
// built, with the caller's line.
func Train(points *engine.Dataset, p Params) *engine.Dataset {
	const op = "gmm.Train"
	b, refused := model.Begin(op, points, p.Validate())
	if refused != nil {
		return refused
	}
	p = p.withDefaults(b.Seed())
	label := rows.NoLabel
	if p.ComponentCol != "" {
		label = rows.NumberLabel
	}
	t, err := rows.Check(op, points, p.columns(), label)
	if err == nil {
		err = p.suits(t)
	}
	if err != nil {
		return model.Refuse(b, op, err)
	}
	queue := em{params: p, table: t, schema: arrowrows.Arrow(points.Schema())}
	made := queue.addQueue(b, "gmm", p.Seed)
	for again := 2; again <= p.Restarts; again++ {
		seed := sharding.NewRandom(p.Seed, "gmm restarts", -1, again)
		next := queue.addQueue(b, fmt.Sprintf("gmm %d", again), seed.At(0)|1)
		made = operators.Reduce(operators.Union(made, next), likelier)
	}
	return made
}

// suits returns an error if the columns do not suit the parameters, as far as that is known
// when the job is built.
func (p Params) suits(t rows.Table) error {
	d := t.Dim()
	switch {
	case t.Sparse:
		return fmt.Errorf("column %q is sparse: a mixture is of dense vectors, which operators.Vectorize makes of number columns", t.Vector())
	case d == 0:
		return nil
	case p.Means != nil && d != len(p.Means[0]):
		return fmt.Errorf("the points have %d components, the given means have %d", d, len(p.Means[0]))
	}
	return p.affordable(d)
}

// maxStatistics bounds the bytes of one buffer of moments.
const maxStatistics = 1 << 30

// affordable returns an error if the moments take too much memory, or if Start does not have d
// dimensions.
func (p Params) affordable(d int) error {
	if p.Start != nil && d != p.Start.Dim {
		return fmt.Errorf("the points have %d components, Start has %d", d, p.Start.Dim)
	}
	if bytes := 8 * float64(p.K) * float64(1+d+p.Covariance.size(d)); bytes > maxStatistics {
		return fmt.Errorf("the moments of %d %v components in %d dimensions take %.0f MB, at most %d MB are allowed: use diagonal covariances, or fewer features",
			p.K, p.Covariance, d, bytes/(1<<20), maxStatistics>>20)
	}
	return nil
}

// likelier returns the row with the more likely model. If both are equally likely, it returns
// left, the row of the earlier restart.
func likelier(left, right model.EncodedRow) model.EncodedRow {
	a, err := Decode([]byte(left.Model))
	if err != nil {
		panic(err) // a queue of this package wrote it
	}
	b, err := Decode([]byte(right.Model))
	if err != nil {
		panic(err)
	}
	if b.LogLikelihood > a.LogLikelihood {
		return right
	}
	return left
}

// addQueue adds a training queue, and the queues of k-means if training begins with it.
func (q em) addQueue(b *engine.Builder, name string, seed uint64) *engine.Dataset {
	queue := q.table.Init(comqueue.New(b, name))
	if q.fromKMeans() {
		points := q.table.Named()
		p := kmeans.Params{VectorCol: arrowrows.Arrow(points.Schema()).Field(0).Name, WeightCol: q.params.WeightCol, K: q.params.K, Seed: seed}
		queue = queue.InitWithBroadcastData(clusters, kmeans.Train(points, p))
	}
	return queue.
		Add(comqueue.Named("preallocate", comqueue.Do(q.preallocate))).
		Add(comqueue.Named("expect", comqueue.ForEachShard(moments, q.expect))).
		Add(comqueue.AllReduce(moments)).
		Add(comqueue.Named("maximise", comqueue.Do(q.maximise))).
		SetCompareCriterionOfNode0(q.done).
		SetMaxIter(q.params.MaxIter + 2).
		CloseOnNode0(signature.ModelCloser(nil, q.output)).
		Exec()
}

// fromKMeans reports whether training begins with k-means.
func (q em) fromKMeans() bool {
	return q.params.Means == nil && q.params.ComponentCol == "" && q.params.Start == nil
}
