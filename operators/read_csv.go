package operators

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/textfile"
)

// Column describes a column of a file: its name, its type as text, such as "float64", "utf8",
// "timestamp[us]" or "vector[4]", and whether values may be missing. If a timestamp type has no
// time zone, the text of values must not have one either. If the type has a time zone, as in
// "timestamp[us, UTC]", a time without a zone in its text is in UTC.
type Column = engine.Column

// NoQuote as the value of CSVOptions.Quote means that quotes are ordinary text.
const NoQuote = textfile.NoByte

// CSVOptions describes the format of delimited text and what to read of it. The zero value
// means comma-separated text without a header, with columns named c0, c1 and so on, whose types
// are inferred.
type CSVOptions struct {
	// Header says that the first record of every file names the columns. The
	// headers of all files must be the same.
	Header bool
	// Names names the columns in the order of the file, instead of the header if there is one.
	Names []string
	// Columns is the schema; if it is set, no types are inferred. If there is a header or
	// Names, Columns has the columns to read, in this order. Otherwise it must have all columns
	// of the file in the order of the file.
	Columns []Column
	// Types maps the names of some columns to their types; the types of other columns are
	// inferred. Columns in Types may have missing values. Types must not be used together with
	// Columns.
	Types map[string]string
	// OrBool names columns in Types that get the type bool instead if all their values in the
	// sample are true or false.
	OrBool []string `json:",omitempty"`
	// Others is the type of the columns that neither Types nor Infer names. If it is "", their
	// types are inferred. If it is "utf8", their text is not changed.
	Others string `json:",omitempty"`
	// Infer names columns whose types are inferred even if Others is set. The columns need not
	// exist.
	Infer []string `json:",omitempty"`
	// Select names the columns to read, in this order; nil means all.
	Select []string
	// SampleRows is the number of rows from which types are inferred; 0 means 10,000. A column
	// gets the first of the types bool, int64, float64 and utf8 that fits all its values. A
	// column of whole numbers gets the type utf8 if some of them are outside of the range of
	// int64 and float64 cannot represent them, as they are probably identifiers. If a column
	// has no value in the first SampleRows rows, its type is inferred from SampleRows rows that
	// begin with its first value. If a later value does not fit, the job fails with an error
	// that names file, line and column.
	SampleRows int
	// Delimiter separates cells; 0 means a comma.
	Delimiter byte
	// Quote encloses cells that contain delimiters, newlines or quotes; a quote within such a
	// cell is doubled. 0 means '"'; NoQuote means that cells are not quoted.
	Quote byte
	// Comment is the first byte of lines to skip; 0 means that there are no comments.
	Comment byte
	// SkipLines is the number of lines to skip at the beginning of every file, before the
	// header.
	SkipLines int `json:",omitempty"`
	// Encoding is the character encoding: "utf-8" or "" (which mean the same), "utf-16",
	// "latin1" or "windows-1252". The byte order of UTF-16 is given by the byte order mark, or
	// is guessed from the first characters. Files in another encoding than UTF-8 are converted,
	// and archives are unpacked, before they are divided into shards.
	Encoding string `json:",omitempty"`
	// TrimSpace removes spaces and tabs around cells.
	TrimSpace bool
	// Nulls has the spellings of a missing value, for all columns; an empty list means that no
	// value is missing. In text columns, only an unquoted cell can be missing, unless
	// QuotedNulls is set. Nil means the empty cell and, in columns that are not text, the usual
	// spellings: NA, N/A, #N/A, <NA>, NaN, null, none, nil, ? and similar ones, in upper or
	// lower case. The run's report counts the cells with such a spelling. If Nulls is nil, NaN
	// is a number only in floating-point columns that are declared without missing values. If
	// Nulls is not nil, NaN is a number in all floating-point columns.
	Nulls []string
	// With QuotedNulls, a quoted cell with a spelling of Nulls, except the empty one, is
	// missing too, even in text columns. It is for files in which every cell is quoted.
	QuotedNulls bool `json:",omitempty"`
	// OnError determines what to do with rows that cannot be read.
	OnError OnError
	// ReplaceInvalidUTF8 replaces bytes that are not UTF-8 by U+FFFD. Without it, such bytes
	// are an error.
	ReplaceInvalidUTF8 bool
	// MaxCell is the largest number of bytes of a cell; 0 means 64 MiB. The limit detects a
	// quote that is never closed.
	MaxCell int
	// With NeedRows, the build of the job fails if types must be inferred and the files have no
	// rows. Without it, the columns of files without rows have type utf8.
	NeedRows bool `json:",omitempty"`
	// FS, if set, is the file system that holds the files, such as one embedded in
	// the program.
	FS fs.FS `json:"-"`
}

// ReadCSV reads delimited text: a file, the files of a directory, or the files that match a
// glob, one after another in the order of their paths; gzip and zstd archives are unpacked.
// Records have the format of RFC 4180; lines may end in "\r\n" or "\n". Quoted cells may
// contain newlines, where "\r\n" is read as "\n". Lines that end in "\r" alone are an error.
// Empty lines are skipped, except in files of one column. In these files, an empty line after
// the header is a row with an empty cell, unless it is the last line of its file.
//
// The files are divided into shards with equal numbers of bytes, and a row belongs to the shard
// of its first byte. The properties of the files that are determined while the job is built
// (sizes, times, columns) are facts of the job; it is an error if a file has changed when
// reading begins. To read rows as a struct, use ReadCSVAs, which infers nothing.
func ReadCSV(b *engine.Builder, path string, o CSVOptions) *engine.Dataset {
	const op = "ReadCSV"
	needBuilder(op, b)
	fail := func(err error) *engine.Dataset {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	in, err := ResolveInput(b, o.FS, path)
	if err != nil {
		return fail(err)
	}
	dialect := o.dialect()
	layout, err := o.layoutOf(b, in)
	if err != nil {
		return fail(err)
	}
	if o.NeedRows && layout.SampleRows == 0 && len(layout.Inferred) > 0 {
		if layout.Trouble != "" {
			return fail(fmt.Errorf("input %s has no row that can be read, so that the types of its columns are not known; the first row of %s", path, layout.Trouble))
		}
		return fail(fmt.Errorf("input %s has a header and no rows, so that the types of its columns are not known", path))
	}
	schema, err := batch.Schema(layout.Columns)
	if err != nil {
		return fail(err)
	}
	cfg := textfile.Config{OnError: textfile.OnError(o.OnError), ReplaceInvalidUTF8: o.ReplaceInvalidUTF8}
	attrs := append(in.attrs(path), o.attrs()...)
	for _, m := range layout.Mixed {
		attrs = append(attrs, engine.Attr{Key: MixedColumn, Value: m.String()})
	}
	if told := numberHeader(path, layout.Header); told != "" && o.Names == nil {
		attrs = append(attrs, engine.Attr{Key: NumberHeader, Value: told})
	}
	return addText(b, op, in, attrs, schema, cfg,
		func(ctx context.Context, cfg textfile.Config) (textReader, error) {
			return textfile.OpenCSV(ctx, in.files, dialect, layout, cfg)
		})
}

// MixedColumn is the key under which the plan shows that ReadCSV reads a column as text because
// a few of its values are not numbers, or are whole numbers that are too long. The plan shows
// the first such value.
const MixedColumn = "text for a few"

// NumberHeader is the key under which the plan shows a header that consists of numbers only.
const NumberHeader = "header of numbers"

// numberHeader returns a warning if the header consists of numbers only, as it is then probably
// a row. Otherwise it returns "".
func numberHeader(path string, names []string) string {
	for _, name := range names {
		if _, err := batch.ParseFloat([]byte(name), 64); err != nil {
			return ""
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the header of %s has numbers alone, as a row has: %s", path, strings.Join(names[:min(len(names), 5)], ", "))
}

// TextColumn says why ReadCSV reads a column as text although most of its values are numbers: a
// few values are not numbers or, if Long is set, some whole numbers are too long for int64 and
// float64.
type TextColumn struct {
	Why  string
	Long bool
}

// MixedColumns returns the columns that ReadCSV with these options reads as text although all
// or nearly all of their values are numbers. The keys are the names of the columns.
func MixedColumns(b *engine.Builder, path string, o CSVOptions) (map[string]TextColumn, error) {
	in, err := ResolveInput(b, o.FS, path)
	if err != nil {
		return nil, err
	}
	layout, err := o.layoutOf(b, in)
	told := map[string]TextColumn{}
	for _, m := range layout.Mixed {
		told[m.Column] = TextColumn{m.String(), m.Long}
	}
	return told, err
}

// EmptyColumns returns which of columns have no value in the files that ReadCSV reads with
// these options. If far is set, it reads until it has found a value of each column; otherwise
// it examines only the sample. It is meant for messages, so it ignores rows that cannot be
// read, and names of columns that the files do not have.
func EmptyColumns(b *engine.Builder, path string, o CSVOptions, far bool, columns ...string) (empty []string, err error) {
	in, err := ResolveInput(b, o.FS, path)
	if err != nil {
		return nil, err
	}
	layout, err := o.layoutOf(b, in)
	if err != nil || !far && layout.SampleRows >= cmp.Or(o.SampleRows, textfile.DefaultSampleRows) {
		return nil, err
	}
	var asked []string
	for _, c := range layout.Columns {
		if _, late := layout.Later[c.Name]; slices.Contains(columns, c.Name) && c.Nullable && !late {
			asked = append(asked, c.Name)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	options, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	err = factOf(b, fmt.Sprintf("columns without a value of %s among %q read with %s", in.id, asked, options), &empty, func() (any, error) {
		return o.withoutValue(in, layout, asked)
	})
	return empty, err
}

// withoutValue reads columns until it has found a value of each, and returns the columns
// without a value.
func (o CSVOptions) withoutValue(in InputFiles, layout textfile.Layout, columns []string) (empty []string, err error) {
	if layout, err = layout.Select(columns...); err != nil {
		return nil, err
	}
	ctx := context.Background()
	r, err := textfile.OpenCSV(ctx, in.files, o.dialect(), layout, textfile.Config{Shards: 1, OnError: textfile.Skip, ReplaceInvalidUTF8: true, FS: in.fsys})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	empty = columns
	enough := errors.New("all columns have a value")
	err = r.ReadShard(ctx, 0, 1024, func(rows arrow.Record) error {
		empty = slices.DeleteFunc(slices.Clone(empty), func(name string) bool {
			values := rows.Column(rows.Schema().FieldIndices(name)[0])
			return values.NullN() < values.Len()
		})
		if len(empty) == 0 {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return empty, err
}

// layoutOf returns the columns to read, which are recorded as a fact of the job.
func (o CSVOptions) layoutOf(b *engine.Builder, in InputFiles) (layout textfile.Layout, err error) {
	options, err := json.Marshal(o)
	if err != nil {
		return layout, err
	}
	err = factOf(b, fmt.Sprintf("columns of %s read with %s", in.id, options), &layout, func() (any, error) {
		return o.layout(in.files, o.dialect())
	})
	return layout, err
}

func (o CSVOptions) dialect() textfile.Dialect {
	return textfile.Dialect{
		Delimiter: o.Delimiter, Quote: o.Quote, Comment: o.Comment, Header: o.Header,
		TrimSpace: o.TrimSpace, NullTokens: o.Nulls, QuotedNulls: o.QuotedNulls, MaxCell: o.MaxCell,
		SkipLines: o.SkipLines, Encoding: textfile.Encoding(o.Encoding),
	}
}

// layout determines the columns to read.
func (o CSVOptions) layout(files []textfile.File, d textfile.Dialect) (textfile.Layout, error) {
	infer := textfile.InferOptions{SampleRows: o.SampleRows, Names: o.Names, Types: o.Types, OrBool: o.OrBool, Others: o.Others, Infer: o.Infer, FS: o.FS}
	for _, c := range o.Columns {
		infer.Columns = append(infer.Columns, batch.Column(c))
	}
	layout, err := textfile.InferCSV(context.Background(), files, d, infer)
	if err != nil || o.Select == nil {
		return layout, err
	}
	return layout.Select(o.Select...)
}

// attrs returns the options that the plan shows: those that differ from the default and do not
// follow from the columns.
func (o CSVOptions) attrs() []engine.Attr {
	attrs := []engine.Attr{{Key: "header", Value: fmt.Sprint(o.Header)}}
	char := func(key string, c byte) {
		if c != 0 {
			attrs = append(attrs, engine.Attr{Key: key, Value: fmt.Sprintf("%q", c)})
		}
	}
	char("delimiter", o.Delimiter)
	char("quote", o.Quote)
	char("comment", o.Comment)
	if o.SkipLines != 0 {
		attrs = append(attrs, engine.Attr{Key: "skip lines", Value: fmt.Sprint(o.SkipLines)})
	}
	if o.Encoding != "" {
		attrs = append(attrs, engine.Attr{Key: "encoding", Value: o.Encoding})
	}
	if o.OnError != Fail {
		attrs = append(attrs, engine.Attr{Key: "on error", Value: o.OnError.String()})
	}
	return attrs
}
