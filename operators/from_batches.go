package operators

import (
	"fmt"
	"sort"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// FromBatches makes a dataset of the rows of batches in memory. The columns of all batches must
// be equal. For an empty dataset, pass one batch without rows. If the batches have n rows in
// total, shard i of S holds the rows from i·n/S up to (i+1)·n/S, in order.
//
// The batches are borrowed and not copied: they must not be changed or released until the run
// ends. A hash of the rows is recorded in the graph; see FromSlice.
func FromBatches(b *engine.Builder, batches []engine.Batch) *engine.Dataset {
	const op = "FromBatches"
	needBuilder(op, b)
	recs := arrowrows.Records(batches)
	schema, err := checkRecords(recs)
	var content string
	if err == nil {
		content, err = hashRecords(recs)
	}
	if err != nil {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	starts := make([]int64, len(recs)+1)
	for i, r := range recs {
		starts[i+1] = starts[i] + r.NumRows()
	}
	return b.Add(engine.Spec{
		Op: op,
		Attrs: []engine.Attr{
			{Key: "rows", Value: strconv.FormatInt(starts[len(recs)], 10)},
			{Key: "content", Value: content},
		},
		Schema: arrowrows.Schema(schema),
		Source: func() engine.Source {
			return &recordSource{recs: recs, starts: starts, normal: make([]arrow.Record, len(recs))}
		},
	})
}

// checkRecords returns the schema that all batches have, or an error if they differ.
func checkRecords(recs []arrow.Record) (*arrow.Schema, error) {
	if len(recs) == 0 {
		return nil, fmt.Errorf("no batch is given, so that no columns are known; give one without rows")
	}
	var first *arrow.Schema
	for i, r := range recs {
		if r == nil {
			return nil, fmt.Errorf("batch %d is the zero value", i)
		}
		if err := batch.Validate(r); err != nil {
			return nil, fmt.Errorf("batch %d: %w", i, err)
		}
		schema, err := batch.NormalizeSchema(r.Schema())
		if err != nil {
			return nil, fmt.Errorf("batch %d: %w", i, err)
		}
		if first == nil {
			first = schema
		}
		if !schema.Equal(first) {
			return nil, fmt.Errorf("batch %d has other columns than batch 0: %s", i, columnDifference(first, schema))
		}
	}
	return first, nil
}

// hashRecords returns a hash of the rows.
func hashRecords(recs []arrow.Record) (string, error) {
	var h contentHash
	for i, r := range recs {
		if r.NumRows() == 0 {
			continue
		}
		if err := h.add(r); err != nil {
			return "", fmt.Errorf("batch %d: %w", i, err)
		}
	}
	return h.String(), nil
}

// recordSource is the source behind FromBatches.
type recordSource struct {
	engine.BaseOperator
	recs   []arrow.Record // the batches; borrowed
	starts []int64        // index of the first row of each batch, followed by the number of all rows
	normal []arrow.Record // recs in normal form, each made when it is first read; owned
}

func (s *recordSource) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	lo, hi := cut(s.starts[len(s.recs)], c.Shards, shard)
	// i is the index of the batch that has row lo.
	i := sort.Search(len(s.recs), func(i int) bool { return s.starts[i+1] > lo })
	for lo < hi {
		rows, err := s.batch(i)
		if err != nil {
			return err
		}
		end := min(hi, s.starts[i+1], lo+int64(c.BatchRows))
		if err := emitSlice(shard, rows, int(lo-s.starts[i]), int(end-s.starts[i]), out); err != nil {
			return err
		}
		if lo = end; lo == s.starts[i+1] {
			i++
			for lo < hi && s.starts[i+1] == lo {
				i++ // skip a batch without rows
			}
		}
	}
	return nil
}

// batch returns batch i in normal form, borrowed.
func (s *recordSource) batch(i int) (arrow.Record, error) {
	if s.normal[i] == nil {
		var err error
		if s.normal[i], err = batch.Normalize(s.recs[i]); err != nil {
			return nil, fmt.Errorf("batch %d: %w", i, err)
		}
	}
	return s.normal[i], nil
}

func (s *recordSource) Close() error {
	for _, r := range s.normal {
		if r != nil {
			r.Release()
		}
	}
	s.normal = nil
	return nil
}
