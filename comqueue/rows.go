package comqueue

import (
	"reflect"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/batch"
)

// RowReader reads the rows of a frame one by one into structs whose fields are columns, as
// operators.Map does. It is for use by one goroutine.
type RowReader[T any] struct{ reader *batch.Reader[T] }

// NewRowReader returns a reader of a frame's rows. The reader is valid as long as the frame.
func NewRowReader[T any](f *Frame) (*RowReader[T], error) {
	reader, err := bindRows[T](f.record.Schema())
	if err != nil {
		return nil, err
	}
	if err := reader.Reset(f.record); err != nil {
		return nil, err
	}
	return &RowReader[T]{reader}, nil
}

// Len returns the number of rows.
func (r *RowReader[T]) Len() int { return r.reader.Len() }

// Read reads row i into *row. The strings and slices of *row then point to the memory of the
// frame: they must not be modified, and are valid until the queue ends. Read returns an error
// that names the column if a value is null and its field is not a pointer.
func (r *RowReader[T]) Read(i int, row *T) error { return r.reader.Read(i, row) }

// ShardRows gives access to the rows of partitioned data as structs whose fields are columns.
type ShardRows[T any] struct{ data PartitionedData }

// RowsAs returns the ShardRows of a key. Make it where the key is made: when the job is built,
// a queue reports data whose columns do not fit the struct.
func RowsAs[T any](data PartitionedData) ShardRows[T] {
	data.declared.addRows(reflect.TypeFor[T](), func(schema *arrow.Schema) error {
		_, err := bindRows[T](schema)
		return err
	})
	return ShardRows[T]{data}
}

// Reader returns a reader of the rows of a shard that the subtask owns.
func (r ShardRows[T]) Reader(ctx *ComContext, shard int) (*RowReader[T], error) {
	return NewRowReader[T](r.data.Get(ctx, shard))
}

func bindRows[T any](schema *arrow.Schema) (*batch.Reader[T], error) {
	codec, err := batch.NewCodec[T]()
	if err != nil {
		return nil, err
	}
	return codec.Bind(schema)
}

// Decode returns all rows of a frame as structs; see RowReader.
func Decode[T any](f *Frame) ([]T, error) {
	r, err := NewRowReader[T](f)
	if err != nil {
		return nil, err
	}
	rows := make([]T, r.Len())
	for i := range rows {
		if err := r.Read(i, &rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}
