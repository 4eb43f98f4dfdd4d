package operators

import (
	"errors"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
)

// spilledJoin joins the rows of a shard whose right rows do not fit in memory: it sorts both
// sides by key and merges them, and sorts the result into the order of the left rows.
type spilledJoin[L, R, Out any] struct {
	context     *engine.Context
	spec        *joinSpec
	pairs       *pairWriter[L, R, Out]
	keys        [2]joinKeyReader // indexed by port
	left, right *keySorter
	done        *placedRows
}

func newSpilledJoin[L, R, Out any](c *engine.Context, spec *joinSpec, pairs *pairWriter[L, R, Out]) *spilledJoin[L, R, Out] {
	j := &spilledJoin[L, R, Out]{
		context: c, spec: spec, pairs: pairs,
		left: newKeySorter(c, spec.left), right: newKeySorter(c, spec.right),
		done: newPlacedRows(c, pairs.out.codec.Schema()),
	}
	j.keys[joinLeft].columns, j.keys[joinRight].columns = spec.columns.left, spec.columns.right
	// The readers must be bound again, as rows from the sorters have additional columns.
	pairs.left, pairs.right = rowReader[L]{codec: pairs.left.codec}, rowReader[R]{codec: pairs.right.codec}
	return j
}

// addLeft adds borrowed rows of the left side. first is the index of the first row within the
// shard.
func (j *spilledJoin[L, R, Out]) addLeft(rows arrow.Record, first int64) error {
	if err := j.keys[joinLeft].reset(rows); err != nil {
		return err
	}
	return j.left.add(&j.keys[joinLeft], rows, j.keys[joinLeft].indices(j.spec.kind.keepsLeft()), first)
}

// addRight adds borrowed rows of the right side. first is the index of the first row within the
// shard.
func (j *spilledJoin[L, R, Out]) addRight(rows arrow.Record, first int64) error {
	if err := j.keys[joinRight].reset(rows); err != nil {
		return err
	}
	return j.right.add(&j.keys[joinRight], rows, j.keys[joinRight].indices(j.spec.kind.keepsRight()), first)
}

// emit joins the rows and emits the result.
func (j *spilledJoin[L, R, Out]) emit(shard int, out engine.Output) error {
	j.pairs.begin(shard, out, j.done)
	err := mergeKeys(j.left, j.right, j.spec.most, func(key []byte, left, right *rowSpool) error {
		if err := j.join(len(key) == 0, left, right); err != nil {
			return err
		}
		return j.unchanged(left, right)
	})
	if err != nil {
		return err
	}
	if err := j.pairs.out.flush(shard, j.done); err != nil {
		return err
	}
	return j.done.emit(shard, out)
}

// join pairs the left and right rows of one key. If null is true, the rows have no key and
// therefore no partners.
func (j *spilledJoin[L, R, Out]) join(null bool, left, right *rowSpool) error {
	if null || right.count == 0 {
		if j.spec.kind.keepsLeft() {
			if err := j.alone(left, j.left.columns+1, j.pairs.readLeft, true); err != nil {
				return err
			}
		}
	}
	if null || left.count == 0 {
		if j.spec.kind.keepsRight() {
			return j.alone(right, j.right.columns+1, j.pairs.readRight, false)
		}
	}
	if null || left.count == 0 || right.count == 0 {
		return nil
	}
	return eachRow(left, j.left.columns+1, func(rows arrow.Record, i int, index int64) error {
		if err := j.pairs.readLeft(rows, i, index); err != nil {
			return err
		}
		return eachRow(right, j.right.columns+1, func(rows arrow.Record, i int, index int64) error {
			if err := j.pairs.readRight(rows, i, index); err != nil {
				return err
			}
			return j.pairs.pair(true, true)
		})
	})
}

// alone calls the user's function with each row of the spool of, whose rows have no partners.
func (j *spilledJoin[L, R, Out]) alone(of *rowSpool, numbers int, read func(arrow.Record, int, int64) error, isLeft bool) error {
	return eachRow(of, numbers, func(rows arrow.Record, i int, index int64) error {
		if err := read(rows, i, index); err != nil {
			return err
		}
		return j.pairs.pair(isLeft, !isLeft)
	})
}

// eachRow calls f with each row of a spool and its index within the shard, which is in column
// numbers.
func eachRow(s *rowSpool, numbers int, f func(rows arrow.Record, i int, index int64) error) error {
	return s.each(func(rows arrow.Record, from, to int) (bool, error) {
		indices := rows.Column(numbers).(*array.Int64).Int64Values()
		for i := from; i < to; i++ {
			if err := f(rows, i, indices[i]); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// unchanged returns an error if rows in memory have changed. Only runs that check this detect
// changes.
func (j *spilledJoin[L, R, Out]) unchanged(sides ...*rowSpool) error {
	for _, s := range sides {
		if ok, err := s.unchanged(); err != nil {
			return err
		} else if !ok {
			return errLentChanged
		}
	}
	return nil
}

// close releases everything, and prepares the readers to be bound to rows of the inputs again.
func (j *spilledJoin[L, R, Out]) close() error {
	p := j.pairs
	p.left, p.right = rowReader[L]{codec: p.left.codec}, rowReader[R]{codec: p.right.codec}
	return errors.Join(j.left.close(), j.right.close(), j.done.close())
}
