package batch

import "github.com/apache/arrow/go/v15/arrow"

// The types of package engine/columnar are defined as Handle, SchemaHandle and ArrayHandle.
// Code of this module converts between handles and Arrow types. Users of columnar cannot do
// that, because they cannot import this internal package. So the public API has no Arrow types.
type (
	// Handle holds a batch.
	Handle struct{ record arrow.Record }
	// SchemaHandle holds a schema.
	SchemaHandle struct{ schema *arrow.Schema }
	// ArrayHandle holds a column.
	ArrayHandle struct{ array arrow.Array }
)

// HandleOf returns a handle of a batch, which may be nil. It does not change the reference
// count of the batch.
func HandleOf(rec arrow.Record) Handle { return Handle{rec} }

// Record returns the batch.
func (h Handle) Record() arrow.Record { return h.record }

// HandleOfSchema returns a handle of a schema, which may be nil.
func HandleOfSchema(schema *arrow.Schema) SchemaHandle { return SchemaHandle{schema} }

// Schema returns the schema.
func (h SchemaHandle) Schema() *arrow.Schema { return h.schema }

// HandleOfArray returns a handle of a column. It does not change the reference count of the
// column.
func HandleOfArray(arr arrow.Array) ArrayHandle { return ArrayHandle{arr} }

// Array returns the column.
func (h ArrayHandle) Array() arrow.Array { return h.array }
