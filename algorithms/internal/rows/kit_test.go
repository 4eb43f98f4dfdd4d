package rows_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

// seen has the facts and the rows that a queue read from a Table.
type seen struct {
	Facts rows.Facts
	Rows  []seenRow
}

type seenRow struct {
	X                             map[int]float64
	Label, Weight, Offset, Censor float64
}

// open adds a queue that opens the rows of a Table and outputs one seen per shard, as JSON.
func open(b *engine.Builder, d *engine.Dataset, c rows.Columns, label rows.LabelKind) *engine.Dataset {
	t, err := rows.Check("rows.Test", d, c, label)
	if err != nil {
		b.Errorf("%w", err)
		return b.Poisoned("rows.Test")
	}
	return t.Init(comqueue.New(b, "open")).
		Do(func(ctx *comqueue.ComContext) error { _, err := t.Open(ctx); return err }).
		SetMaxIter(1).
		CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]string, error) {
			d, err := t.Open(ctx)
			if err != nil {
				return nil, err
			}
			var s seen
			if shard == 0 {
				s.Facts = *d.Facts
			}
			block := d.Block(shard)
			for i := range block.N {
				one := block.Rows(i, i+1)
				r := seenRow{X: map[int]float64{}, Weight: 1, Censor: 1}
				if one.Dense != nil {
					for j, v := range one.Dense {
						r.X[j] = v
					}
				} else {
					col, val := one.Sparse.Row(0)
					for p, j := range col {
						r.X[int(j)] = val[p]
					}
				}
				for _, f := range []struct {
					to   *float64
					from []float64
				}{{&r.Label, one.Label}, {&r.Weight, one.Weight}, {&r.Offset, one.Offset}, {&r.Censor, one.Censor}} {
					if f.from != nil {
						*f.to = f.from[0]
					}
				}
				s.Rows = append(s.Rows, r)
			}
			text, err := json.Marshal(s)
			return []string{string(text)}, err
		})).
		Exec()
}

// look runs a job with open and returns the facts and all rows that its queue read.
func look(t *testing.T, data func(b *engine.Builder) *engine.Dataset, c rows.Columns, label rows.LabelKind, options ...engine.Option) (rows.Facts, []seenRow) {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(open(b, data(b), c, label), "seen")
	}, options...)
	texts, err := engine.Rows[string](r, "seen")
	require.NoError(t, err)
	var all seen
	for _, text := range texts {
		var s seen
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		if s.Facts.Rows > 0 {
			all.Facts = s.Facts
		}
		all.Rows = append(all.Rows, s.Rows...)
	}
	return all.Facts, all.Rows
}
