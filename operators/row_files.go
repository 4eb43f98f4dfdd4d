package operators

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// RowFile is an open file that can be read starting at any row. Several goroutines may call its
// methods at the same time, except Close.
type RowFile interface {
	// Schema returns the columns of the rows, and NumRows their number. The schema's metadata
	// may have an entry of pandas, under PandasKey.
	Schema() engine.Schema
	NumRows() int64
	// Rows returns a cursor that begins at the given row and reads the given columns, in the
	// order of columns.
	Rows(row int64, columns []int, mem columnar.Allocator) (RowCursor, error)
	// Close closes the file, but not the reader that it was opened on.
	Close() error
}

// RowCursor reads rows in order. Only one goroutine at a time uses it.
type RowCursor interface {
	// Next returns the next rows: at least one row, and about want rows. The caller owns the
	// batch. After the last row it returns io.EOF.
	Next(want int) (engine.Batch, error)
	Close() error
}

// RowFormat is a file format whose files can be read starting at any row.
type RowFormat struct {
	Op    string        // the operator's name, such as "ReadArrow"
	Attrs []engine.Attr // parameters that the plan shows
	// Columns names the columns to read, in this order; nil means all.
	Columns []string
	// Some types of a file's columns cannot be read. If Columns is nil and LeaveOut is set,
	// columns of these types are left out, and LeaveOut is called for each of them with the
	// reason, while the job is built. If Columns names such a column, or if both Columns and
	// LeaveOut are nil, it is an error.
	LeaveOut func(column, problem string)
	// Index, if set, is called while the job is built, for each column to read that is an index
	// of a pandas data frame, according to the files' metadata.
	Index func(column string)
	// Open opens a file of the given size. A panic in Open, or in the methods of its result, is
	// reported as damage of the file.
	Open func(r io.ReaderAt, size int64) (RowFile, error)
}

// rowFacts has the facts about the files that are determined when the job is built.
type rowFacts struct {
	Columns []batch.Column
	At      []int        `json:",omitempty"` // indices of Columns in the files; nil if all columns are read
	LeftOut []leftColumn `json:",omitempty"` // columns that are left out, as rows cannot have their types
	Index   []string     `json:",omitempty"` // columns that are an index of a pandas data frame in one of the files
	Starts  []int64      // index of each file's first row among the rows of all files, followed by the number of all rows
}

// ReadRowFiles adds a source for a format whose files can be read starting at any row. It is
// for packages that add other formats. Files are found and checked as by ReadCSV. All files
// must have the same columns. If the files have n rows in total, shard i of S holds the rows
// from i·n/S up to (i+1)·n/S.
//
// Columns are not read from the files if the built job shows that no operator reads them. That
// is so if all operators after the source name the columns that they read, such as Select,
// aggregations, and Map and Filter with their typed functions. The job's results do not depend
// on this.
func ReadRowFiles(b *engine.Builder, fsys fs.FS, path string, f RowFormat) *engine.Dataset {
	needBuilder(f.Op, b)
	fail := func(err error) *engine.Dataset {
		b.Errorf("%s: %w", f.Op, err)
		return b.Poisoned(f.Op)
	}
	in, err := ResolveInput(b, fsys, path)
	if err != nil {
		return fail(err)
	}
	var facts rowFacts
	err = factOf(b, fmt.Sprintf("rows of %s read with %s", in.id, f.Op), &facts, func() (any, error) { return f.facts(in) })
	if err != nil {
		return fail(err)
	}
	left, err := f.leftOut(path, facts)
	if err != nil {
		return fail(err)
	}
	schema, err := batch.Schema(facts.Columns)
	if err != nil {
		return fail(err)
	}
	columns, schema, err := pick(schema, f.Columns)
	if err != nil {
		return fail(err)
	}
	for i, c := range columns {
		if facts.At != nil {
			columns[i] = facts.At[c]
		}
	}
	open := &sharedReader[*openFiles]{}
	var d *engine.Dataset
	d = b.Add(engine.Spec{
		Op:     f.Op,
		Attrs:  slices.Concat(in.attrs(path), f.Attrs, left, f.indexed(facts, schema)),
		Schema: arrowrows.Schema(schema),
		Source: func() engine.Source {
			return &rowSource{in: in, format: f, facts: facts, columns: newReadColumns(schema, columns, d.NeededColumns()), sharedFiles: open}
		},
	})
	return d
}

// facts opens all files and reads their schemas and row counts.
func (f RowFormat) facts(in InputFiles) (facts rowFacts, err error) {
	open, err := f.open(in)
	if err != nil {
		return facts, err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	facts.Starts = []int64{0}
	for i, file := range open.files {
		columns := batch.Columns(file.schema)
		if i == 0 {
			facts.Columns, facts.At, facts.LeftOut = columns, file.at, file.left
		} else if !slices.Equal(facts.At, file.at) || !slices.Equal(facts.LeftOut, file.left) {
			return facts, fmt.Errorf("the columns of %s and %s differ in those whose types are not supported", open.files[0].path, file.path)
		} else if err := agree(facts.Columns, columns); err != nil {
			return facts, fmt.Errorf("the columns of %s and %s differ: %w", open.files[0].path, file.path, err)
		}
		facts.Starts = append(facts.Starts, facts.Starts[i]+file.NumRows())
		for _, column := range indexOf(arrowrows.Arrow(file.Schema())) {
			if !slices.Contains(facts.Index, column) {
				facts.Index = append(facts.Index, column)
			}
		}
	}
	return facts, nil
}

// agree returns an error if two files do not have the same columns. agree makes a column of all
// nullable if it is nullable in more.
func agree(all, more []batch.Column) error {
	if len(all) != len(more) {
		return fmt.Errorf("the first has %d, the second %d", len(all), len(more))
	}
	for i, c := range more {
		if all[i].Name != c.Name || all[i].Type != c.Type {
			return fmt.Errorf("column %d is %s in the first and %s in the second", i+1, all[i], c)
		}
		all[i].Nullable = all[i].Nullable || c.Nullable
	}
	return nil
}

// openFiles has the open files of a source, in order.
type openFiles struct {
	files []*openFile
	bytes []fs.File
}

// openFile is an open file of a source.
type openFile struct {
	RowFile
	path   string
	schema *arrow.Schema // normalized schema of the columns whose types rows can have
	at     []int         // indices of these columns in the file; nil if rows can have all its columns
	left   []leftColumn  // the columns whose types rows cannot have
}

// supported determines the columns whose types rows can have.
func (o *openFile) supported() (err error) {
	var fields []arrow.Field
	var at []int
	for i, f := range arrowrows.Arrow(o.Schema()).Fields() {
		normal, err := batch.NormalizeSchema(arrow.NewSchema([]arrow.Field{f}, nil))
		if err == nil {
			fields, at = append(fields, normal.Field(0)), append(at, i)
			continue
		}
		problem := err.Error()
		if reason := errors.Unwrap(err); reason != nil {
			problem = reason.Error() // the caller adds the name of the column
		}
		o.left = append(o.left, leftColumn{f.Name, batch.TypeName(f.Type), problem})
	}
	if o.left != nil {
		o.at = at
	}
	o.schema = arrow.NewSchema(fields, nil)
	_, err = batch.Schema(batch.Columns(o.schema)) // checks that the names of columns are distinct
	return err
}

// open opens all files.
func (f RowFormat) open(in InputFiles) (_ *openFiles, err error) {
	open := &openFiles{}
	defer func() {
		if err != nil {
			err = errors.Join(err, open.Close())
		}
	}()
	for _, file := range in.files {
		r, size, err := open.bytesOf(in.fsys, file.Path)
		if err != nil {
			return nil, err
		}
		o := &openFile{path: file.Path}
		err = o.guarded(func() error {
			if o.RowFile, err = f.Open(r, size); err != nil {
				return err
			}
			open.files = append(open.files, o)
			return o.supported()
		})
		if err != nil {
			return nil, err
		}
	}
	return open, nil
}

// bytesOf opens a file for random access, and returns its size. If the file system does not
// support random access, it reads the file into memory.
func (o *openFiles) bytesOf(fsys fs.FS, path string) (io.ReaderAt, int64, error) {
	var f fs.File
	var err error
	if fsys == nil {
		f, err = os.Open(path)
	} else {
		f, err = fsys.Open(path)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read input: %w", err)
	}
	o.bytes = append(o.bytes, f)
	if at, ok := f.(io.ReaderAt); ok {
		info, err := f.Stat()
		if err != nil {
			return nil, 0, fmt.Errorf("cannot read input: %w", err)
		}
		return at, info.Size(), nil
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read input %s: %w", path, err)
	}
	return bytes.NewReader(content), int64(len(content)), nil
}

// Close closes all files.
func (o *openFiles) Close() error {
	var errs []error
	for _, f := range o.files {
		errs = append(errs, f.guarded(f.RowFile.Close))
	}
	for _, f := range o.bytes {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// guarded calls a function of the format and adds the file's name to its errors. It recovers
// from panics, as decoders may panic on damaged files.
func (o *openFile) guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("input %s is damaged: %v", o.path, v)
		}
	}()
	if err = f(); err != nil {
		err = fmt.Errorf("input %s: %w", o.path, err)
	}
	return err
}

// rowSource is the source behind ReadRowFiles.
type rowSource struct {
	engine.BaseOperator
	in          InputFiles
	format      RowFormat
	facts       rowFacts
	columns     readColumns
	sharedFiles *sharedReader[*openFiles]

	open   *openFiles
	mem    memory.Allocator
	at     int64 // index of the next row among the rows of all files
	file   int   // index of the file that the cursor reads
	cursor RowCursor
	rest   arrow.Record // rows that have been read and not yet emitted; owned

	rounded roundedColumns
}

func (s *rowSource) Open(c *engine.Context) (err error) {
	s.mem = c.Allocator
	s.open, err = s.sharedFiles.acquire(func() (*openFiles, error) {
		if err := s.in.Verify(); err != nil {
			return nil, err
		}
		return s.format.open(s.in)
	})
	if err != nil {
		s.open = nil
		return err
	}
	for i, f := range s.open.files {
		if was := s.facts.Starts[i+1] - s.facts.Starts[i]; f.NumRows() != was {
			return fmt.Errorf("input %s had %d rows when the job was built, and has %d now", f.path, was, f.NumRows())
		}
	}
	return nil
}

func (s *rowSource) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	lo, hi := cut(s.facts.Starts[len(s.facts.Starts)-1], c.Shards, shard)
	if lo == hi {
		return nil
	}
	if s.at != lo {
		if err := s.seek(lo); err != nil {
			return err
		}
	}
	for s.at < hi {
		if err := c.Err(); err != nil {
			return err
		}
		if err := s.emit(c, hi, shard, out); err != nil {
			return err
		}
	}
	return nil
}

// emit emits a batch with at least one row. It emits only rows whose index is less than hi.
func (s *rowSource) emit(c *engine.Context, hi int64, shard int, out engine.Output) error {
	most := c.BatchRows
	if s.rest == nil {
		if err := s.read(int(min(hi-s.at, int64(most)))); err != nil {
			return err
		}
	}
	rows := s.rest
	s.rest = nil
	defer rows.Release()
	n := min(hi-s.at, rows.NumRows(), int64(most))
	if n < rows.NumRows() {
		rest, err := batch.Slice(rows, int(n), int(rows.NumRows()))
		if err != nil {
			return err
		}
		s.rest = rest
	}
	part, err := batch.Slice(rows, 0, int(n))
	if err != nil {
		return err
	}
	defer part.Release()
	s.rounded.count(c, part, s.open.files[s.file].path, s.at-s.facts.Starts[s.file])
	s.at += n
	return out.Emit(shard, arrowrows.Batch(part))
}

// read reads the next rows into rest.
func (s *rowSource) read(want int) error {
	for {
		file := s.open.files[s.file]
		if s.cursor == nil {
			err := file.guarded(func() (err error) {
				s.cursor, err = file.Rows(s.at-s.facts.Starts[s.file], s.columns.at, s.mem)
				return err
			})
			if err != nil {
				return err
			}
		}
		rows, err := s.next(file, want)
		if err != nil {
			return err
		}
		if rows != nil {
			s.rest = rows
			return nil
		}
		if s.at < s.facts.Starts[s.file+1] {
			return fmt.Errorf("input %s ends after %d of %d rows", file.path, s.at-s.facts.Starts[s.file], file.NumRows())
		}
		if err := s.drop(); err != nil {
			return err
		}
		s.file++
	}
}

// next returns further rows of the current file, or nil if there are none.
func (s *rowSource) next(file *openFile, want int) (rows arrow.Record, err error) {
	err = file.guarded(func() error {
		read, err := s.cursor.Next(want)
		if err == io.EOF { // not errors.Is: a wrapped io.EOF means a truncated file
			return nil
		}
		if err != nil {
			return err
		}
		got, err := s.admit(arrowrows.Record(read))
		if err != nil {
			return err
		}
		if n := got.NumRows(); n == 0 || n > s.facts.Starts[s.file+1]-s.at {
			got.Release()
			return fmt.Errorf("it gave %d rows at row %d of %d", n, s.at-s.facts.Starts[s.file], file.NumRows())
		}
		rows = got
		return nil
	})
	return rows, err
}

// admit checks rows that were read and returns them with the source's schema. It takes
// ownership of its argument.
func (s *rowSource) admit(rows arrow.Record) (arrow.Record, error) {
	defer rows.Release()
	normal, err := batch.Normalize(rows)
	if err != nil {
		return nil, err
	}
	defer normal.Release()
	return s.columns.complete(normal)
}

// seek makes the row with the given index the next row to read.
func (s *rowSource) seek(row int64) error {
	if err := s.drop(); err != nil {
		return err
	}
	s.at = row
	s.file = sort.Search(len(s.open.files), func(i int) bool { return s.facts.Starts[i+1] > row })
	return nil
}

// drop closes the cursor and drops the rows that it has read.
func (s *rowSource) drop() error {
	if s.rest != nil {
		s.rest.Release()
		s.rest = nil
	}
	if s.cursor == nil {
		return nil
	}
	c := s.cursor
	s.cursor = nil
	return s.open.files[s.file].guarded(c.Close)
}

// Locate returns the file of a row, and its number within the file, counted from 1.
func (s *rowSource) Locate(c *engine.Context, shard int, row int64) (string, error) {
	starts := s.facts.Starts
	lo, hi := cut(starts[len(starts)-1], c.Shards, shard)
	if row < 0 || row >= hi-lo {
		return "", fmt.Errorf("shard %d has %d rows", shard, hi-lo)
	}
	at := lo + row
	file := sort.Search(len(s.in.files), func(i int) bool { return starts[i+1] > at })
	return fmt.Sprintf("%s, row %d", s.in.files[file].Path, at-starts[file]+1), nil
}

func (s *rowSource) Close() error {
	if s.open == nil {
		return nil
	}
	// If a file was changed while it was read, the rows may be wrong. Verify returns an error
	// then.
	err := errors.Join(s.drop(), s.in.Verify())
	return errors.Join(err, s.sharedFiles.release(nil))
}
