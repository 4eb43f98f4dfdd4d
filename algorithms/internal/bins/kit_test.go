package bins_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

// seen has the facts, the layout and the rows of all shards, in order, that a queue opened.
type seen struct {
	Facts  bins.Facts
	Layout bins.Layout
	Rows   []seenRow
}

// seenRow is a row with the bins of all features.
type seenRow struct {
	Shard, Row    int
	Bins          []int
	Label, Weight float64
	Upper         string
	Margins       []float64
	Group         int // the number of the group within the shard; −1 if there are no groups
}

// shardView is what the queue of open outputs for a shard, as JSON.
type shardView struct {
	Facts  *bins.Facts  `json:",omitempty"`
	Layout *bins.Layout `json:",omitempty"`
	Rows   []seenRow
}

// viewShard returns the shardView of one shard of a subtask.
func viewShard(d *bins.Data, shard int) shardView {
	var v shardView
	if shard == 0 {
		v.Facts, v.Layout = d.Facts, d.Layout
	}
	for _, span := range d.Shards {
		if span.Shard != shard {
			continue
		}
		group := -1
		for i := range span.Rows {
			row := span.First + i
			r := seenRow{Shard: shard, Row: i, Weight: 1, Group: -1}
			for f := range d.Layout.Features {
				r.Bins = append(r.Bins, d.Bin(row, f))
			}
			if d.Label != nil {
				r.Label = d.Label[row]
			}
			if d.Upper != nil {
				r.Upper = fmt.Sprint(d.Upper[row])
			}
			if d.Weight != nil {
				r.Weight = d.Weight[row]
			}
			if d.Margins != nil {
				r.Margins = d.Margins[row*d.Outputs : (row+1)*d.Outputs]
			}
			for _, first := range d.Groups {
				if int(first) == row {
					group++
				}
			}
			if d.Groups != nil {
				r.Group = group
			}
			v.Rows = append(v.Rows, r)
		}
	}
	return v
}

// open adds a queue that opens the last of the tables and outputs a shardView for each shard.
func open(b *engine.Builder, tables ...bins.Table) *engine.Dataset {
	q := comqueue.New(b, "open")
	for _, t := range tables {
		q = t.Init(q)
	}
	last := tables[len(tables)-1]
	return q.
		Do(func(ctx *comqueue.ComContext) error { _, err := last.Open(ctx); return err }).
		SetMaxIter(1).
		CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]string, error) {
			d, err := last.Open(ctx)
			if err != nil {
				return nil, err
			}
			text, err := json.Marshal(viewShard(d, shard))
			return []string{string(text)}, err
		})).
		Exec()
}

// check calls Check and open. It reports an error of Check as algorithms do.
func check(b *engine.Builder, d *engine.Dataset, c bins.Columns, label bins.LabelKind, o bins.Options) *engine.Dataset {
	t, err := bins.Check("bins.Test", d, c, label, o)
	if err != nil {
		b.Errorf("bins.Test: %w", err)
		return b.Poisoned("bins.Test")
	}
	return open(b, t)
}

// collect returns the joined views of all shards of a result.
func collect(t testing.TB, r *engine.Result) seen {
	texts, err := engine.Rows[string](r, "seen")
	require.NoError(t, err)
	var all seen
	for _, text := range texts {
		var v shardView
		require.NoError(t, json.Unmarshal([]byte(text), &v))
		if v.Facts != nil {
			all.Facts, all.Layout = *v.Facts, *v.Layout
		}
		all.Rows = append(all.Rows, v.Rows...)
	}
	return all
}

// look runs a job with check and returns what its queue opened.
func look(t testing.TB, data func(b *engine.Builder) *engine.Dataset, c bins.Columns, label bins.LabelKind, o bins.Options, options ...engine.Option) seen {
	t.Helper()
	return collect(t, trial.Run(t, func(b *engine.Builder) {
		engine.Collect(check(b, data(b), c, label, o), "seen")
	}, options...))
}
