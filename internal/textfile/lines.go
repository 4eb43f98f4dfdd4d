package textfile

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// The names of the columns of lines.
const (
	FileColumn = "file"
	LineColumn = "value"
)

// maxLine bounds LinesOptions.MaxLine. A batch with one line of this size does not exceed the 2
// GiB of text that Arrow can address, even if invalid bytes of the line are replaced.
const maxLine = maxRecord / 2

// LinesOptions describes how lines of text are read. A line ends in "\n" or "\r\n", which are
// not part of the line, or at the end of its file. If a file ends with a line end, no further
// line follows. Every line is a row, even an empty line.
type LinesOptions struct {
	// File adds the column file before the text. Its values are the paths of the files of the
	// lines.
	File bool
	// SkipLines is the number of lines to skip at the beginning of every file.
	SkipLines int
	// Encoding is the character encoding; the zero value is UTF-8.
	Encoding Encoding
	// MaxLine is the largest size of a line in bytes. It must be at most 512 MiB; 0 means
	// DefaultMaxCell.
	MaxLine int
}

// Schema returns the columns: file, if o.File is set, and value. Both are utf8 and never null.
func (o LinesOptions) Schema() *arrow.Schema {
	fields := []arrow.Field{{Name: LineColumn, Type: arrow.BinaryTypes.String}}
	if o.File {
		fields = append([]arrow.Field{{Name: FileColumn, Type: arrow.BinaryTypes.String}}, fields...)
	}
	return arrow.NewSchema(fields, nil)
}

// Validate returns an error if the options are not valid.
func (o LinesOptions) Validate() error {
	if o.MaxLine < 0 || o.MaxLine > maxLine {
		return fmt.Errorf("the largest line must be between 1 and %d bytes, not %d", maxLine, o.MaxLine)
	}
	_, err := o.dialect().normal()
	return err
}

// dialect returns the options that lines have in common with delimited text.
func (o LinesOptions) dialect() Dialect {
	return Dialect{SkipLines: o.SkipLines, Encoding: o.Encoding, MaxCell: o.MaxLine}
}

// Lines reads lines of text shard by shard. Its methods are safe for concurrent use, except
// Close, which must be the last call.
type Lines struct {
	schema  *arrow.Schema
	file    bool
	maxLine int
	// idle is a pool of *linesReader, whose buffers are reused.
	idle sync.Pool
	base
}

// OpenLines verifies the files, unpacks compressed ones and plans the cut. The caller must
// close the reader.
func OpenLines(ctx context.Context, files []File, o LinesOptions, cfg Config) (*Lines, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	d, err := o.dialect().normal()
	if err != nil {
		return nil, err
	}
	l := &Lines{schema: o.Schema(), file: o.File, maxLine: d.MaxCell}
	prepare := func(*text) error { return nil }
	if err := l.base.open(ctx, files, cfg, form{d.Encoding, d.SkipLines}, newLineAutomaton(), prepare); err != nil {
		return nil, err
	}
	return l, nil
}

// Schema returns the schema of the batches.
func (l *Lines) Schema() *arrow.Schema { return l.schema }

// tokenizer returns a tokenizer for which every line is a record of one cell, even an empty
// line.
func (l *Lines) tokenizer() *tokenizer {
	t := lineTokenizer(l.auto)
	t.whole, t.maxCell = true, l.maxLine
	return t
}

// Place is CSV.Place for lines.
func (l *Lines) Place(ctx context.Context, shard int, row int64) (string, error) {
	return l.base.place(ctx, shard, row, l.tokenizer(), func([]byte) bool { return true })
}

// ReadShard passes the lines of a shard to emit, like CSV.ReadShard.
func (l *Lines) ReadShard(ctx context.Context, shard, batchRows int, emit func(arrow.Record) error) error {
	r, ok := l.idle.Get().(*linesReader)
	if !ok {
		r = &linesReader{l: l, sc: &scanner{tok: l.tokenizer()}}
	}
	r.counts, r.emit = shardCounts{shard: shard}, emit
	err := l.base.readShard(ctx, shard, batchRows, r.sc, r, &r.counts)
	r.emit = nil
	r.sc.idle()
	l.idle.Put(r)
	return err
}

// linesReader reads one shard at a time.
type linesReader struct {
	l      *Lines
	sc     *scanner
	part   *part
	counts shardCounts
	emit   func(arrow.Record) error
}

func (r *linesReader) begin(p *part) { r.part = p }

func (r *linesReader) malformed(_ outcome, at int64) complaint {
	return complaint{r.part, at, fmt.Sprintf("line is larger than %d bytes", r.sc.tok.maxCell)}
}

// flush delivers the lines since the last cut.
func (r *linesReader) flush(rows int) error {
	text := r.sc.batch()
	lines := array.NewStringBuilder(r.l.cfg.Allocator)
	defer lines.Release()
	lines.Reserve(rows)
	lines.ReserveData(r.sc.held())
	for _, c := range r.sc.tok.cells {
		line := text[c.off:][:c.size()]
		bad := complaint{part: r.part, offset: r.sc.place(int(c.off))}
		switch zero := bytes.IndexByte(line, 0); {
		case zero >= 0:
			bad.text = fmt.Sprintf("the byte at offset %d is %s", bad.offset+int64(zero), noText)
		case !utf8.Valid(line) && !r.l.cfg.ReplaceInvalidUTF8:
			bad.text = fmt.Sprintf("cannot read %s: %v; or set ReplaceInvalidUTF8 to read U+FFFD in place of such bytes", shorten(line), notUTF8(line, bad.offset))
		case !utf8.Valid(line):
			lines.BinaryBuilder.Append(bytes.ToValidUTF8(line, []byte("\uFFFD")))
			continue
		default:
			lines.BinaryBuilder.Append(line)
			continue
		}
		if r.l.cfg.OnError == Fail {
			return bad.error()
		}
		r.counts.add(bad)
	}
	if lines.Len() == 0 {
		return nil
	}
	return r.deliver(lines)
}

// deliver passes the lines in a builder to emit, as a batch.
func (r *linesReader) deliver(lines *array.StringBuilder) error {
	columns := []arrow.Array{lines.NewArray()}
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	rows := columns[0].Len()
	if r.l.file {
		files := array.NewStringBuilder(r.l.cfg.Allocator)
		defer files.Release()
		files.Reserve(rows)
		files.ReserveData(rows * len(r.part.path))
		for range rows {
			files.Append(r.part.path)
		}
		columns = []arrow.Array{files.NewArray(), columns[0]}
	}
	rec := array.NewRecord(r.l.schema, columns, int64(rows))
	defer rec.Release()
	return r.emit(rec)
}
