package arrowrows

import (
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/batch"
)

// codecOf returns the codec of T. It panics if no codec supports T. T is always a type of this
// module, so such a panic is a bug of this module.
func codecOf[T any]() *batch.Codec[T] {
	codec, err := batch.NewCodec[T]()
	if err != nil {
		panic(err)
	}
	return codec
}

// SchemaOf returns the schema of batches with values of T, a type of this module.
func SchemaOf[T any]() columnar.Schema { return Schema(codecOf[T]().Schema()) }

// Emit emits values, whose type belongs to this module, to a shard of out as one batch.
func Emit[T any](allocator memory.Allocator, out interface {
	Emit(shard int, rows columnar.Batch) error
}, shard int, values []T) error {
	rec, err := codecOf[T]().Record(allocator, values)
	if err != nil {
		return err
	}
	defer rec.Release()
	return out.Emit(shard, Batch(rec))
}

// Rows returns the rows of all batches as values of T, a type of this module. The values share
// no memory with the batches.
func Rows[T any](batches ...columnar.Batch) (all []T, err error) {
	codec := codecOf[T]()
	for _, b := range batches {
		some, err := codec.Rows(Record(b))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
