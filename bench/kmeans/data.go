package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared"
)

// shape is the size of a problem.
type shape struct {
	Rows     int
	Features int
	Clusters int
	// Components is the number of normal distributions that the rows come from. With 0 they are
	// uniform in the unit cube, without clusters.
	Components int
	// Moves is the number of times that the centres are moved. There is one more pass.
	Moves int
}

// bytes is the size of the rows.
func (s shape) bytes() int64 { return int64(s.Rows) * int64(s.Features) * 8 }

// passes is the number of times that all rows are assigned.
func (s shape) passes() int { return s.Moves + 1 }

// generateRows writes rows of a mixture, or uniform ones, as little-endian float64, row by row.
// A row depends only on the seed and its index.
func generateRows(w io.Writer, s shape, noise float64, seed uint64) error {
	out := bufio.NewWriterSize(w, 1<<20)
	draw := shared.NewRandom(seed, "bench/kmeans components", 0, 0)
	means := make([]float64, s.Components*s.Features)
	for i := range means {
		means[i] = draw.NormFloat64()
	}
	buf := make([]byte, 0, 8*s.Features)
	for i := range s.Rows {
		draw := shared.NewRandom(seed, "bench/kmeans rows", 0, i)
		if s.Components == 0 {
			buf = buf[:0]
			for range s.Features {
				buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(draw.Float64()))
			}
			if _, err := out.Write(buf); err != nil {
				return err
			}
			continue
		}
		own := means[draw.IntN(s.Components)*s.Features:][:s.Features]
		buf = buf[:0]
		for _, mean := range own {
			buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(mean+float64(noise*draw.NormFloat64())))
		}
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
	return out.Flush()
}

// readRows reads rows [lo, hi) of a file into dst. Rows in the file have the layout of the
// memory of a little-endian machine.
func readRows(f *os.File, s shape, lo, hi int, dst []float64) error {
	dst = dst[:(hi-lo)*s.Features]
	if _, err := f.ReadAt(arrow.Float64Traits.CastToBytes(dst), int64(lo)*int64(s.Features)*8); err != nil {
		return fmt.Errorf("read rows %d to %d of %s: %w", lo, hi, f.Name(), err)
	}
	return nil
}

// firstRows returns the first k rows, which are the first centres of all contestants.
func firstRows(f *os.File, s shape) ([]float64, error) {
	first := make([]float64, s.Clusters*s.Features)
	return first, readRows(f, s, 0, s.Clusters, first)
}

// vectorColumn is the column of the source.
const vectorColumn = "features"

// fileRows adds a source of the rows of a file as a vector column.
func fileRows(b *engine.Builder, path string, s shape) (*engine.Dataset, error) {
	vector, err := batch.VectorType(s.Features)
	if err != nil {
		return nil, err
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: vectorColumn, Type: vector}}, nil)
	return b.Add(engine.Spec{Op: "ReadRaw", Schema: arrowrows.Schema(schema), Source: func() engine.Source {
		return &rawSource{path: path, shape: s, schema: schema}
	}}), nil
}

// rawSource reads a subtask's shards of a file, a batch at a time.
type rawSource struct {
	path   string
	shape  shape
	schema *arrow.Schema
	file   *os.File
	buffer []float64 // one batch
}

func (r *rawSource) Open(c *engine.Context) (err error) {
	r.buffer = make([]float64, c.BatchRows*r.shape.Features)
	r.file, err = os.Open(r.path)
	return err
}

func (r *rawSource) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

func (r *rawSource) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	part := shared.Split(r.shape.Rows, c.Shards, shard)
	for lo := part.Lo; lo < part.Hi; lo += c.BatchRows {
		if err := r.emit(c, shard, lo, min(lo+c.BatchRows, part.Hi), out); err != nil {
			return err
		}
	}
	return nil
}

func (r *rawSource) emit(c *engine.Context, shard, lo, hi int, out engine.Output) error {
	values := r.buffer[:(hi-lo)*r.shape.Features]
	if err := readRows(r.file, r.shape, lo, hi, values); err != nil {
		return err
	}
	column := batch.NewVectorArray(c.Allocator, values, r.shape.Features)
	defer column.Release()
	rows := array.NewRecord(r.schema, []arrow.Array{column}, int64(hi-lo))
	defer rows.Release()
	return out.Emit(shard, arrowrows.Batch(rows))
}
