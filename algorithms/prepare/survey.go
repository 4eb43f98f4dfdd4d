package prepare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// A survey is the queue that learns a preparation. Each superstep is a pass over the rows. A
// pass sums numbers, takes maxima, or counts categories. The first pass is always shapes. Sums
// are computed per shard and then added up the tree over the shards.
//
// The columns together make a list of features: a scalar column is one feature, and each
// component of a vector column is one feature. Null and NaN are missing values; an infinity is
// an error unless survey.lax is set.

// Objects of the queue.
var (
	surveyRows   = comqueue.PartitionedRows("rows")
	surveyFacts  = shared.Replicated("facts", shared.Msgpack[*facts]())
	surveySums   = shared.Scratch[[]float64]("sums")
	surveyMaxima = shared.Scratch[[]float64]("maxima")
	surveyWork   = shared.Scratch[*work]("work")
	shardCounts  = shared.PerShard("counts", shared.Msgpack[*categories]())
	totalCounts  = shared.Replicated("categories", shared.Msgpack[*categories]())
)

// facts are the results of the passes of a survey done so far. They are equal on all subtasks.
type facts struct {
	Pass          int       // number of passes done so far
	Rows          int64     // number of rows in all shards, without rows of weight 0
	Weight        float64   // total weight of these rows; without weights, their number
	Present       []int64   // for each column: number of rows that are not null
	PresentWeight []float64 // for each column: weight of the rows that are not null
	Size          []int     // for each column: number of components; 1 for a scalar
	Offset        []int     // for each column: index of its first feature
	Dim           int       // number of features

	Count     []float64 // for each feature: number of values that are not missing
	Total     []float64 // for each feature: weight of the values that are not missing
	Zeros     []float64 // for each feature: weight of the entries that sparse vectors do not list
	Mean      []float64
	Unit      []float64 // for each feature: the number by which distances to the mean are divided before they are squared
	Deviation []float64 // for each feature: standard deviation
	Least     []float64
	Most      []float64

	Targets    []target  // order statistics wanted
	Groups     []group   // distinct prefixes of the targets
	Covariance []float64 // upper triangle by rows: weighted sums of products of distances to the means

	Categories *categories
}

// pass is one superstep of a survey. All subtasks call the functions of a pass at the same
// time, so the functions must not keep state.
type pass struct {
	name string
	// size returns the number of sums and the number of maxima that the pass computes.
	size func(f *facts) (sums, maxima int)
	// sum adds the values of a shard's rows to the sums, and most updates the maxima with these
	// values; both write to out. sum is nil if the pass computes no sums, and most is nil if
	// the pass computes no maxima.
	sum, most func(w *work, out []float64) error
	// finish stores the results in the facts.
	finish func(f *facts, sums, most []float64) error
	// count[c] is true if the pass counts the categories of column c. A nil count means that it
	// counts none.
	count []bool
}

// work is the state with which a subtask reads its rows.
type work struct {
	facts    *facts
	names    []string
	reader   *model.Reader
	row      []model.Cell // cells of the columns, followed by the weight if there is one
	weightAt int          // index of the weight in row; -1 if there are no weights, so that every row has weight 1
	weights  rows.Checker // checks the column of weights
	weight   float64      // weight of the current row
	frame    arrow.Record
	scratch  []float64
}

// survey describes a queue that learns a preparation.
type survey struct {
	name    string // name of the queue
	lax     bool   // whether infinities are permitted
	columns []string
	weight  string // name of the column of row weights; "" means that every row has weight 1
	passes  []pass // the passes that follow shapes
	finish  func(ctx context.Context, f *facts, inputs []model.Input) (model.Model, error)
}

// add adds the queue and returns the dataset of the model.
func (s survey) add(d *engine.Dataset) *engine.Dataset {
	b := d.Builder()
	read := s.columns
	if s.weight != "" {
		weight := s.weights()
		if err := weight.Bind(arrowrows.Arrow(d.Schema())); err != nil {
			return model.Refuse(b, s.name, err)
		}
		if !slices.Contains(read, s.weight) {
			read = append(slices.Clone(read), s.weight)
		}
	}
	d = operators.Select(d, read...)
	if d.Poisoned() {
		return d
	}
	whole := d.Schema()
	schema := arrow.NewSchema(arrowrows.Arrow(whole).Fields()[:len(s.columns)], nil)
	s.passes = append([]pass{shapes(schema, s.lax)}, s.passes...)
	return comqueue.New(b, s.name).
		InitWithPartitionedData(surveyRows, d).
		Add(comqueue.Named("plan", comqueue.Do(func(ctx *comqueue.ComContext) error { return s.plan(ctx, arrowrows.Arrow(whole)) }))).
		Add(comqueue.Named("sum", comqueue.ForEachShard(surveySums, s.sum))).
		Add(comqueue.AllReduce(surveySums)).
		Add(comqueue.Named("extremes", comqueue.ForEachShard(surveyMaxima, s.most))).
		Add(comqueue.AllReduce(surveyMaxima, comqueue.Max)).
		Add(comqueue.Named("count", comqueue.Do(s.count))).
		Add(comqueue.AllReduceShardObjects(shardCounts, totalCounts, mergeCategories)).
		Add(comqueue.Named("finish pass", comqueue.Do(s.finishPass))).
		SetMaxIter(len(s.passes)).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]model.EncodedRow, error) {
			m, err := s.finish(ctx.Context(), surveyFacts.Get(ctx), inputsOf(schema))
			if err != nil {
				return nil, err
			}
			text, err := m.Encode()
			return []model.EncodedRow{{Model: string(text)}}, err
		})).
		Exec()
}

// weights returns the column of row weights for a rows.Checker.
func (s survey) weights() rows.Column {
	c := rows.Weights(s.weight)
	c.Option = "WeightCol"
	return c
}

// inputsOf returns the columns of a schema as they are described in a model's file.
func inputsOf(schema *arrow.Schema) []model.Input {
	var inputs []model.Input
	for _, c := range batch.Columns(schema) {
		inputs = append(inputs, model.Input{Column: c.Name, Type: c.Type})
	}
	return inputs
}

// plan allocates the sums and maxima of the current superstep.
func (s survey) plan(ctx *comqueue.ComContext, schema *arrow.Schema) error {
	if !surveyFacts.Has(ctx) {
		surveyFacts.Put(ctx, &facts{Size: make([]int, len(s.columns)), Present: make([]int64, len(s.columns)), PresentWeight: make([]float64, len(s.columns))})
	}
	if !surveyWork.Has(ctx) {
		var read []string
		for _, field := range schema.Fields() {
			read = append(read, field.Name)
		}
		layout := model.NewLayout(read...)
		for _, name := range read {
			if _, err := layout.Find(name); err != nil {
				return err
			}
		}
		reader, err := model.NewReader(arrowrows.Schema(schema), layout)
		if err != nil {
			return err
		}
		w := &work{names: s.columns, reader: reader, row: layout.NewRow(), weightAt: slices.Index(read, s.weight), weight: 1}
		if w.weightAt >= 0 {
			weight := s.weights()
			weight.At = w.weightAt
			w.weights = rows.Checker{Columns: []rows.Column{weight}, Advice: "leave such rows out"}
		}
		surveyWork.Put(ctx, w)
	}
	f := surveyFacts.Get(ctx)
	surveyWork.Get(ctx).facts = f
	sums, maxima := s.passes[f.Pass].size(f)
	surveySums.Put(ctx, make([]float64, sums))
	surveyMaxima.Put(ctx, make([]float64, maxima))
	return nil
}

func (s survey) sum(ctx *comqueue.ComContext, shard int, out []float64) error {
	w := surveyWork.Get(ctx)
	p := s.passes[w.facts.Pass]
	if p.sum == nil {
		return nil
	}
	w.open(ctx, shard)
	if w.facts.Pass == 0 && w.weightAt >= 0 {
		column := w.frame.Column(w.weightAt)
		w.weights.Begin(0, column.Len())
		w.weights.Check(0, column, column)
		if err := w.weights.Err(); err != nil {
			return err
		}
	}
	return p.sum(w, out)
}

func (s survey) most(ctx *comqueue.ComContext, shard int, out []float64) error {
	w := surveyWork.Get(ctx)
	if p := s.passes[w.facts.Pass]; p.most != nil {
		return p.most(w.open(ctx, shard), out)
	}
	return nil
}

func (s survey) count(ctx *comqueue.ComContext) error {
	w := surveyWork.Get(ctx)
	wanted := s.passes[w.facts.Pass].count
	return ctx.ForShards(func(shard int) error {
		if wanted == nil {
			shardCounts.Remove(ctx, shard)
			return nil
		}
		c, err := countCategories(w.open(ctx, shard), wanted)
		if err != nil {
			return err
		}
		shardCounts.Put(ctx, shard, c)
		return nil
	})
}

func (s survey) finishPass(ctx *comqueue.ComContext) error {
	f := surveyFacts.Get(ctx)
	p := s.passes[f.Pass]
	if p.count != nil {
		f.Categories, _ = totalCounts.Lookup(ctx)
	}
	if p.finish != nil {
		if err := p.finish(f, surveySums.Get(ctx), surveyMaxima.Get(ctx)); err != nil {
			return err
		}
	}
	f.Pass++
	switch {
	case f.Rows == 0 && s.weight != "":
		return fmt.Errorf("there are no rows to learn from, or every row weighs 0 in column %q", s.weight)
	case f.Rows == 0:
		return errors.New("there are no rows to learn from")
	case math.IsInf(f.Weight, 0):
		return fmt.Errorf("the sum over column %q, the weights, exceeds the range of float64: scale it down", s.weight)
	}
	return nil
}

// open prepares w to read the rows of a shard, and returns w.
func (w *work) open(ctx *comqueue.ComContext, shard int) *work {
	w.frame = arrowrows.Record(surveyRows.Get(ctx, shard).Batch())
	w.reader.Reset(arrowrows.Batch(w.frame))
	return w
}

// each calls visit with the cells of every row of the shard whose weight is above 0. During the
// call, w.weight is the weight of that row.
func (w *work) each(visit func(row []model.Cell) error) error {
	for i := range int(w.frame.NumRows()) {
		w.reader.Read(i, w.row)
		if w.weightAt >= 0 {
			w.weight, _ = w.row[w.weightAt].Number()
			if w.weight == 0 {
				continue
			}
		}
		if err := visit(w.row[:len(w.names)]); err != nil {
			return model.RowError(i, err)
		}
	}
	return nil
}

// values calls visit for every value in the shard that is not missing, with the index of its
// feature. Entries that sparse vectors do not list are not visited.
func (w *work) values(visit func(feature int, v float64)) error {
	return w.each(func(row []model.Cell) error {
		for c := range row {
			at := w.facts.Offset[c]
			switch cell := &row[c]; cell.Kind {
			case model.NullCell:
			case model.DenseCell:
				for j, v := range cell.Values {
					if v == v {
						visit(at+j, v)
					}
				}
			case model.SparseCell:
				for k, v := range cell.Values {
					if v == v {
						visit(at+int(cell.Indices[k]), v)
					}
				}
			default:
				if v, ok := cell.Number(); ok && v == v {
					visit(at, v)
				}
			}
		}
		return nil
	})
}

// shapes is the first pass. It checks the values and learns the numbers of rows and
// components.
func shapes(schema *arrow.Schema, lax bool) pass {
	n := schema.NumFields()
	ragged := make([]bool, n)
	for c, field := range schema.Fields() {
		_, ragged[c] = field.Type.(*arrow.ListType)
	}
	return pass{
		name: "shapes",
		size: func(*facts) (int, int) { return 2 + 2*n, 2 * n },
		sum: func(w *work, out []float64) error {
			return w.each(func(row []model.Cell) error {
				out[0]++
				out[1+n] += w.weight
				for c := range row {
					if row[c].Kind == model.NullCell {
						continue
					}
					out[1+c]++
					out[2+n+c] += w.weight
					if err := checkFinite(&row[c]); err != nil && !lax {
						return fmt.Errorf("column %q: %w", w.names[c], err)
					}
				}
				return nil
			})
		},
		most: func(w *work, out []float64) error {
			return w.each(func(row []model.Cell) error {
				for c := range row {
					if size := sizeOf(&row[c]); size >= 0 {
						out[2*c] = max(out[2*c], float64(size))
						out[2*c+1] = max(out[2*c+1], -float64(size))
					}
				}
				return nil
			})
		},
		finish: func(f *facts, sums, most []float64) error {
			f.Rows, f.Weight = int64(sums[0]), sums[1+n]
			f.Offset = make([]int, n)
			for c, field := range schema.Fields() {
				f.Present[c], f.PresentWeight[c], f.Size[c], f.Offset[c] = int64(sums[1+c]), sums[2+n+c], 1, f.Dim
				if batch.IsVector(field.Type) {
					f.Size[c] = batch.VectorDim(field.Type)
					if f.Present[c] > 0 && f.Size[c] == 0 {
						f.Size[c] = int(most[2*c])
					}
					if least := int(-most[2*c+1]); f.Present[c] > 0 && ragged[c] && least != f.Size[c] {
						return fmt.Errorf("column %q has vectors of %d to %d components: want the same number in every row", field.Name, least, f.Size[c])
					}
				}
				f.Dim += f.Size[c]
			}
			return nil
		},
	}
}

// checkFinite returns an error if a cell has an infinity.
func checkFinite(c *model.Cell) error {
	switch c.Kind {
	case model.FloatCell:
		if math.IsInf(c.Float, 0) {
			return fmt.Errorf("it is %v: want a finite number", c.Float)
		}
	case model.DenseCell, model.SparseCell:
		for k, v := range c.Values {
			if math.IsInf(v, 0) {
				j := k
				if c.Kind == model.SparseCell {
					j = int(c.Indices[k])
				}
				return fmt.Errorf("component %d is %v: want a finite number", j, v)
			}
		}
	}
	return nil
}

// sizeOf returns the number of components of a cell, or -1 for null. For a sparse vector whose
// type has no size, it returns the largest index plus 1.
func sizeOf(c *model.Cell) int {
	switch c.Kind {
	case model.NullCell:
		return -1
	case model.DenseCell:
		return len(c.Values)
	case model.SparseCell:
		if c.Size == 0 && len(c.Indices) > 0 {
			return int(c.Indices[len(c.Indices)-1]) + 1
		}
		return c.Size
	}
	return 1
}
