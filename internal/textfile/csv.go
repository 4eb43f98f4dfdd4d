package textfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/humanize"
)

// OnError says what to do with a record that cannot be read.
type OnError uint8

const (
	// Fail stops reading with an error that names file, line and column.
	Fail OnError = iota
	// Skip skips the record and counts it. A cell larger than Dialect.MaxCell still stops
	// reading with an error, because the end of its record is not known.
	Skip
)

// String returns the name of the policy.
func (o OnError) String() string {
	if o == Skip {
		return "skip"
	}
	return "fail"
}

// Config has the options of reading that do not depend on the format.
type Config struct {
	// Shards is S, the number of ranges into which the text is cut.
	Shards int
	// OnError says what to do with a bad record; the zero value is Fail.
	OnError OnError
	// ReplaceInvalidUTF8 says that bytes in utf8 columns that are not UTF-8 are replaced by
	// U+FFFD. Otherwise they are an error.
	ReplaceInvalidUTF8 bool
	// FS is the file system in which the files were resolved; nil means the file system of the
	// operating system.
	FS fs.FS
	// SpoolDir is the directory in which compressed files are unpacked; empty means the
	// system's directory for temporary files. After Close no files remain in it.
	SpoolDir string
	// Disk is the disk on which files are unpacked; nil means the disk of the operating system.
	Disk disk.FS
	// Workers bounds the number of goroutines that unpack and scan; 0 means the number of
	// processors. Results do not depend on it.
	Workers int
	// Allocator allocates the batches; nil means the Go heap.
	Allocator memory.Allocator
}

func (c Config) normal() Config {
	if c.Workers <= 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Disk == nil {
		c.Disk = disk.OS()
	}
	if c.Allocator == nil {
		c.Allocator = memory.NewGoAllocator()
	}
	return c
}

// CSV reads delimited text shard by shard. Its methods are safe for concurrent use, except
// Close, which must be the last call.
type CSV struct {
	dialect Dialect
	layout  Layout
	schema  *arrow.Schema
	// keep says which columns of the file are read. slots[i] is the index of delivered column i
	// among the columns that are read.
	keep   []bool
	slots  []int
	tokens *nullTokens
	// idle is a pool of *csvReader, whose buffers are reused. Their builders are empty.
	idle sync.Pool
	base
}

// OpenCSV verifies the files, unpacks compressed ones, checks every header and plans the cut.
// The layout comes from InferCSV, possibly with Select applied to it. The caller must close the
// reader.
func OpenCSV(ctx context.Context, files []File, d Dialect, l Layout, cfg Config) (_ *CSV, err error) {
	c := &CSV{layout: l}
	if c.dialect, err = d.normal(); err != nil {
		return nil, err
	}
	if (l.Header != nil) != d.Header {
		return nil, errors.New("layout and dialect disagree on whether files have a header")
	}
	if err := c.project(); err != nil {
		return nil, err
	}
	c.tokens = newNullTokens(c.dialect)
	auto := newAutomaton(c.dialect)
	prepare := func(t *text) error {
		if !d.Header {
			return nil
		}
		return t.takeHeaders(ctx, &scanner{tok: newTokenizer(c.dialect, auto)}, l.Header)
	}
	if err := c.base.open(ctx, files, cfg, form{c.dialect.Encoding, c.dialect.SkipLines}, auto, prepare); err != nil {
		return nil, err
	}
	return c, nil
}

// project sets c.schema, c.keep and c.slots from the layout.
func (c *CSV) project() (err error) {
	if c.schema, err = batch.Schema(c.layout.Columns); err != nil {
		return err
	}
	at := make([]int, len(c.layout.Columns))
	c.keep = make([]bool, len(c.layout.Names))
	for i, col := range c.layout.Columns {
		if at[i] = slices.Index(c.layout.Names, col.Name); at[i] < 0 {
			return noColumn(col.Name, c.layout.Names)
		}
		c.keep[at[i]] = true
	}
	rank := make([]int, len(c.keep))
	n := 0
	for i, kept := range c.keep {
		rank[i] = n
		if kept {
			n++
		}
	}
	c.slots = make([]int, len(at))
	for i, p := range at {
		c.slots[i] = rank[p]
	}
	return nil
}

// Schema returns the schema of the batches.
func (c *CSV) Schema() *arrow.Schema { return c.schema }

// ReadShard passes the records of a shard to emit in file order, in batches of at most
// batchRows rows, which emit borrows. Batches may be shorter at the ends of files and if rows
// are long. ReadShard returns at the first error. An error of emit is returned unchanged.
func (c *CSV) ReadShard(ctx context.Context, shard, batchRows int, emit func(arrow.Record) error) error {
	r, ok := c.idle.Get().(*csvReader)
	if !ok {
		var err error
		if r, err = c.newReader(); err != nil {
			return err
		}
	}
	r.emit = emit
	r.counts = shardCounts{shard: shard}
	if err := c.base.readShard(ctx, shard, batchRows, r.sc, r, &r.counts); err != nil {
		r.builder.Release()
		return err
	}
	r.emit = nil
	r.sc.idle()
	c.idle.Put(r)
	return nil
}

func (c *CSV) newReader() (*csvReader, error) {
	builder, err := batch.NewRecordBuilder(c.cfg.Allocator, c.schema)
	if err != nil {
		return nil, err
	}
	tok := newTokenizer(c.dialect, c.auto)
	tok.fields, tok.keep = len(c.keep), c.keep
	r := &csvReader{c: c, sc: &scanner{tok: tok}, builder: builder}
	r.in.quote = c.dialect.Quote
	for _, k := range c.keep {
		if k {
			r.in.width++
		}
	}
	for i, f := range c.schema.Fields() {
		r.columns = append(r.columns, newColumn(builder.Field(i), f, c.slots[i], c.tokens, c.cfg.ReplaceInvalidUTF8))
	}
	return r, nil
}

// csvReader reads one shard at a time.
type csvReader struct {
	c       *CSV
	sc      *scanner
	emit    func(arrow.Record) error
	part    *part
	in      cells
	columns []*column
	builder *batch.RecordBuilder
	counts  shardCounts
	faults  []fault
}

// begin sets the part to which the next records belong.
func (r *csvReader) begin(p *part) { r.part = p }

// malformed returns the complaint about a malformed record that begins at offset at of the
// part.
func (r *csvReader) malformed(what outcome, at int64) complaint {
	bad := complaint{part: r.part, offset: r.sc.place(r.sc.tok.at), text: r.sc.tok.problem(what, r.c.dialect.Header)}
	if what == badFields {
		bad.offset = at
	}
	return bad
}

// flush delivers the records since the last flush.
func (r *csvReader) flush(rows int) error {
	r.in.rows, r.in.text, r.in.all = rows, r.sc.batch(), r.sc.tok.cells
	if !r.read(r.zeros()) {
		if r.c.cfg.OnError == Fail {
			return r.complain(r.faults[0]).error()
		}
		r.dropFaulty()
		if r.in.rows == 0 {
			return nil
		}
		if !r.read(nil) {
			return fmt.Errorf("%s: a cell that was readable is not when read again", r.part.path)
		}
	}
	r.count()
	rec, err := r.record()
	if err != nil {
		return err
	}
	defer rec.Release()
	return r.emit(rec)
}

// count adds the missing cells and the rounded numbers of the current records to the counts of
// the shard.
func (r *csvReader) count() {
	for _, c := range r.columns {
		r.countRounded(c)
		for word, n := range c.spelled {
			if r.counts.spelled == nil {
				r.counts.spelled = map[Spelled]int64{}
			}
			r.counts.spelled[Spelled{c.name, word}] += n
		}
		clear(c.spelled)
	}
}

// record returns the contents of the builders as a batch. A batch without columns has only a
// number of rows.
func (r *csvReader) record() (arrow.Record, error) {
	if len(r.columns) == 0 {
		return array.NewRecord(r.c.schema, nil, int64(r.in.rows)), nil
	}
	return r.builder.NewRecord()
}

// read reads the cells of every column. It returns false if a cell could not be read, or if the
// given faults are not empty. In that case r.faults has these and all new faults, sorted by row
// and column, and the builders are empty. With the policy Fail, r.faults has only the first
// fault of each column.
func (r *csvReader) read(faults []fault) bool {
	r.faults = append(r.faults[:0], faults...)
	goOn := r.c.cfg.OnError == Skip
	for _, c := range r.columns {
		c.read(&r.in, func(f fault) bool {
			r.faults = append(r.faults, f)
			return goOn
		})
	}
	if len(r.faults) == 0 {
		return true
	}
	slices.SortFunc(r.faults, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.slot, b.slot))
	})
	for _, c := range r.columns {
		c.builder.NewArray().Release()
		clear(c.spelled)
	}
	return false
}

// dropFaulty counts the rows with faults as skipped, and removes them from r.in.
func (r *csvReader) dropFaulty() {
	width, rows := r.in.width, r.in.rows
	kept, next := 0, 0
	for row := range rows {
		if next < len(r.faults) && r.faults[next].row == row {
			r.counts.add(r.complain(r.faults[next]))
			for next < len(r.faults) && r.faults[next].row == row {
				next++
			}
			continue
		}
		copy(r.in.all[kept*width:(kept+1)*width], r.in.all[row*width:])
		kept++
	}
	r.in.rows = kept
}

// complain returns the complaint for a fault.
func (r *csvReader) complain(f fault) complaint {
	if f.complaint.part != nil {
		return f.complaint
	}
	k := r.in.all[f.row*r.in.width+f.slot]
	i := slices.Index(r.c.slots, f.slot)
	c := r.columns[i]
	bad := complaint{part: r.part, offset: r.sc.place(int(k.off))}
	value := k.text(&r.in, c)
	if errors.Is(f.err, errMissing) {
		bad.text = fmt.Sprintf("column %q: the value is missing (%s), but the column is not nullable", c.name, shorten(value))
	} else {
		bad.text = fmt.Sprintf("column %q: cannot read %s as %s: %v", c.name, shorten(value), batch.TypeName(c.typ), f.err)
	}
	switch {
	case errors.Is(f.err, errUTF8):
		raw := r.in.text[k.off:][:k.size()]
		bad.text = fmt.Sprintf("column %q: cannot read %s: %v; or set ReplaceInvalidUTF8 to read U+FFFD in place of such bytes", c.name, shorten(value), notUTF8(raw, bad.offset))
	case slices.Contains(r.c.layout.Inferred, c.name):
		rows, ok := r.c.layout.Later[c.name]
		if !ok {
			rows = r.c.layout.SampleRows
		}
		bad.text += fmt.Sprintf("; the type was inferred from the first %s: give column %q a type with Types, or infer from more rows with SampleRows",
			humanize.Count(rows, "row"), c.name)
	}
	return bad
}
