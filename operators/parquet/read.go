package parquet

import (
	"fmt"
	"io"
	"io/fs"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/apache/arrow/go/v15/parquet/schema"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
)

// ReadOptions determines what Read reads. With the zero value it reads all columns.
type ReadOptions struct {
	// Columns names the columns to read, in this order; nil means all. Other columns are not
	// decoded.
	Columns []string
	// LeaveOut, if Columns is nil, is called for each column whose type rows cannot have, with
	// the reason. The column is then left out. Read reports an error for such a column if
	// Columns names it, or if both Columns and LeaveOut are nil.
	LeaveOut func(column, problem string)
	// Index, if set, is called for each column to read that is the index of a pandas data frame
	// according to the files' metadata.
	Index func(column string)
	// FS, if set, is the file system that holds the files, such as one embedded in
	// the program.
	FS fs.FS
}

// Read reads Parquet files: a file, the files of a directory, or the files that match a glob.
// operators.ReadRowFiles describes how files are checked, how rows are divided into shards, and
// how unused columns are left out.
func Read(b *engine.Builder, path string, o ReadOptions) *engine.Dataset {
	return operators.ReadRowFiles(b, o.FS, path, operators.RowFormat{Op: "ReadParquet", Columns: o.Columns, LeaveOut: o.LeaveOut, Index: o.Index, Open: open})
}

// table is an open file.
type table struct {
	r      io.ReaderAt
	size   int64
	rows   int64
	starts []int64 // index of the first row of each row group; the last element is the number of all rows
	schema *arrow.Schema
}

func open(r io.ReaderAt, size int64) (operators.RowFile, error) {
	t := &table{r: r, size: size}
	meta, manifest, err := t.reader()
	if err != nil {
		return nil, err
	}
	stored := make([]arrow.Field, len(manifest.Fields))
	for i, f := range manifest.Fields {
		stored[i] = *f.Field
	}
	t.schema = restore(stored, meta.Schema.Root(), readTypeMetadata(meta))
	t.starts = []int64{0}
	for i := range meta.RowGroups {
		n := meta.RowGroup(i).NumRows()
		if n < 0 || n > 1<<40 {
			return nil, fmt.Errorf("row group %d claims %d rows", i, n)
		}
		t.rows += n
		t.starts = append(t.starts, t.rows)
	}
	if n := meta.NumRows; n != t.rows {
		return nil, fmt.Errorf("it claims %d rows, and its row groups %d", n, t.rows)
	}
	return t, nil
}

// reader decodes the footer. Only one goroutine may use the result. The types of columns follow
// from the Parquet schema alone, not from an Arrow schema in the file, so that dictionaries and
// large text are read as plain values.
func (t *table) reader() (*metadata.FileMetaData, *pqarrow.SchemaManifest, error) {
	meta, err := readFooter(t.r, t.size)
	if err != nil {
		return nil, nil, err
	}
	manifest, err := pqarrow.NewSchemaManifest(meta.Schema, nil, nil)
	if err != nil {
		return nil, nil, wrongColumn(meta.Schema.Root(), err)
	}
	for i, f := range manifest.Fields {
		if _, ok := meta.Schema.Root().Field(i).LogicalType().(schema.JSONLogicalType); ok && f.Field.Type.ID() == arrow.BINARY {
			f.Field.Type = arrow.BinaryTypes.String
		}
	}
	return meta, manifest, nil
}

// wrongColumn returns the error of the first column whose schema is invalid by itself, with the
// column's name. If there is no such column, it returns err, the error of the whole schema.
func wrongColumn(root *schema.GroupNode, err error) error {
	for i := range root.NumFields() {
		one, failed := schema.NewGroupNode(root.Name(), pq.Repetitions.Required, schema.FieldList{root.Field(i)}, -1)
		if failed == nil {
			_, failed = pqarrow.NewSchemaManifest(schema.NewSchema(one), nil, nil)
		}
		if failed != nil {
			return fmt.Errorf("column %q: %w", root.Field(i).Name(), failed)
		}
	}
	return err
}

func (t *table) Schema() engine.Schema { return arrowrows.Schema(t.schema) }

func (t *table) NumRows() int64 { return t.rows }

func (t *table) Close() error { return nil }

// Rows returns a cursor at a row. It decodes the footer again, because Arrow's structures for a
// footer are not safe for concurrent use.
func (t *table) Rows(row int64, columns []int, _ columnar.Allocator) (operators.RowCursor, error) {
	meta, manifest, err := t.reader()
	if err != nil {
		return nil, err
	}
	group := 0
	for group < len(t.starts)-2 && t.starts[group+1] <= row {
		group++
	}
	c := &cursor{left: t.rows - t.starts[group]}
	fields := make([]arrow.Field, len(columns))
	for i, at := range columns {
		fields[i] = t.schema.Field(at)
		made, err := t.newColumn(meta, manifest.Fields[at], fields[i], group)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", fields[i].Name, err)
		}
		c.columns = append(c.columns, made)
	}
	c.schema = arrow.NewSchema(fields, nil)
	for skip := row - t.starts[group]; skip > 0; {
		rows, err := c.read(min(skip, 4*leastRows))
		if err != nil {
			return nil, err
		}
		skip -= rows.NumRows()
		rows.Release()
	}
	return c, nil
}

// leastRows is the smallest number of rows that Next decodes at once, unless fewer are left.
const leastRows = 1024

// cursor reads the same rows of all columns.
type cursor struct {
	schema  *arrow.Schema
	columns []*column
	left    int64 // number of rows that have not been read
}

func (c *cursor) Next(want int) (engine.Batch, error) {
	if c.left == 0 {
		return engine.Batch{}, io.EOF
	}
	rows, err := c.read(min(c.left, int64(max(want, leastRows))))
	return arrowrows.Batch(rows), err
}

// read returns a record of the next rows; the parameter rows is their number. At least that
// many rows must be left.
func (c *cursor) read(rows int64) (arrow.Record, error) {
	cols := make([]arrow.Array, 0, len(c.columns))
	defer func() {
		for _, col := range cols {
			col.Release()
		}
	}()
	for _, column := range c.columns {
		col, err := column.read(rows)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", column.field.Name, err)
		}
		cols = append(cols, col)
	}
	c.left -= rows
	return array.NewRecord(c.schema, cols, rows), nil
}

func (c *cursor) Close() error { return nil }

// column reads one column of rows. Either flat or list is set.
type column struct {
	field arrow.Field
	flat  flatColumn
	list  listColumn
}

// newColumn returns a reader of a column that begins with the given row group.
func (t *table) newColumn(meta *metadata.FileMetaData, node pqarrow.SchemaField, field arrow.Field, group int) (*column, error) {
	c := &column{field: field}
	err := readable(meta, node, group)
	if err != nil {
		return nil, err
	}
	leafOf := func(node pqarrow.SchemaField) leaf {
		return leaf{file: t.r, size: t.size, meta: meta, column: meta.Schema.Column(node.ColIndex), index: node.ColIndex, group: group}
	}
	switch t := field.Type.(type) {
	case *arrow.StructType:
		c.list, err = newSparse(leafOf(node.Children[0].Children[0]), leafOf(node.Children[1].Children[0]))
	case arrow.ListLikeType:
		if t.Elem().ID() == arrow.FLOAT32 {
			c.list, err = newDense[float32](leafOf(node.Children[0]))
		} else {
			c.list, err = newDense[float64](leafOf(node.Children[0]))
		}
	default:
		c.flat, err = newFlat(leafOf(node), node.Field.Type)
	}
	return c, err
}

// readable returns an error if pages of a column in the given row group or a later one are not
// supported.
func readable(meta *metadata.FileMetaData, node pqarrow.SchemaField, group int) error {
	for _, child := range node.Children {
		if err := readable(meta, child, group); err != nil {
			return err
		}
	}
	if len(node.Children) > 0 {
		return nil
	}
	for g := group; g < len(meta.RowGroups); g++ {
		chunk, err := columnChunk(meta, g, node.ColIndex)
		if err != nil {
			return err
		}
		if !unpackable(chunk.Compression()) {
			return fmt.Errorf("its pages are compressed by %v, which is not supported: write the file with snappy, zstd, gzip, brotli, LZ4_RAW or no compression", chunk.Compression())
		}
	}
	return nil
}

func newDense[T float32 | float64](l leaf) (listColumn, error) {
	lists, err := newLists[T](l)
	return &denseColumn[T]{lists: lists}, err
}

func newSparse(indices, values leaf) (listColumn, error) {
	at, err := newLists[int32](indices)
	if err != nil {
		return nil, err
	}
	components, err := newLists[float64](values)
	return &sparseColumn{indices: at, values: components}, err
}

// read reads the next rows of the column. The caller owns the result.
func (c *column) read(rows int64) (arrow.Array, error) {
	if c.list != nil {
		return c.readLists(int(rows))
	}
	col, err := c.flat.read(int(rows))
	if err != nil {
		return nil, err
	}
	return fromStored(memory.NewGoAllocator(), col, c.field.Type)
}

func (c *column) readLists(rows int) (arrow.Array, error) {
	col, err := c.list.read(c.field.Type, rows)
	if err != nil {
		return nil, err
	}
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{c.field}, nil), []arrow.Array{col}, int64(rows))
	defer rec.Release()
	if err := batch.Validate(rec); err != nil { // such as indices beyond the size of a sparse vector
		col.Release()
		return nil, err
	}
	return col, nil
}
