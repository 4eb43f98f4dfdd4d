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

// Column is a column of a file: its name, its type in text form, such as "float64", "utf8",
// "timestamp[us]" or "vector[4]", and whether values may be missing. A timestamp whose type has
// no time zone must have none in the text either. If the type has one, as in "timestamp[us,
// UTC]", the time is UTC unless the text names another zone.
type Column = engine.Column

// NoQuote, as CSVOptions.Quote, means that quotes are ordinary text.
const NoQuote = textfile.NoByte

// CSVOptions describes the format of delimited text and what to read of it. The zero value is
// comma-separated text without a header, whose columns are named c0, c1 and so on and whose
// types are inferred.
type CSVOptions struct {
	// Header says that the first record of every file names the columns. The
	// headers of all files must be the same.
	Header bool
	// Names names the columns in the order of the file, instead of the header if there is one.
	Names []string
	// Columns is the schema, if nothing is to be inferred: with a header (or
	// Names) the columns to read, in this order; without, all columns of the file.
	Columns []Column
	// Types gives the types of some columns; those of the others are inferred.
	// A column typed here may have missing values. Not together with Columns.
	Types map[string]string
	// OrBool names columns of Types that are bool instead if all values in the sample are true
	// or false.
	OrBool []string `json:",omitempty"`
	// Others is the type of the columns that neither Types nor Infer names; "" infers it. With
	// "utf8" their text is unchanged.
	Others string `json:",omitempty"`
	// Infer names columns whose types are inferred even if Others is set. The columns need not
	// exist.
	Infer []string `json:",omitempty"`
	// Select names the columns to read, in this order; nil means all.
	Select []string
	// SampleRows is the number of rows that types are inferred from; 0 means 10,000. A column
	// has the first of the types bool, int64, float64 and utf8 that fits all its values. Whole
	// numbers are utf8 if some are beyond int64 and float64 would change them, as they are
	// identifiers then. A column without a value in these rows is inferred from as many rows
	// beginning with its first value. A later value that does not fit is an error, which names
	// file, line and column.
	SampleRows int
	// Delimiter separates cells; 0 means a comma.
	Delimiter byte
	// Quote encloses cells that contain delimiters, newlines or quotes; quotes within it are
	// doubled. 0 means '"', NoQuote means that there is none.
	Quote byte
	// Comment begins a line to skip; 0 means that there are no comments.
	Comment byte
	// SkipLines is the number of lines to skip at the beginning of every file, before the
	// header.
	SkipLines int `json:",omitempty"`
	// Encoding is the character encoding: "utf-8" or "" (the same), "utf-16", "latin1" or
	// "windows-1252". The byte order of UTF-16 is that of the byte order mark, or is guessed
	// from the first characters. Text that is not UTF-8 is converted before it is cut into
	// shards, as archives are unpacked.
	Encoding string `json:",omitempty"`
	// TrimSpace removes blanks and tabs around cells.
	TrimSpace bool
	// Nulls are the spellings of a missing value in every column; an empty list says that
	// nothing is missing. In text, only an unquoted cell can be missing, unless QuotedNulls is
	// set. Nil means the empty cell and, in columns that are not text, the usual spellings: NA,
	// N/A, #N/A, <NA>, NaN, null, none, nil, ? and similar ones, in upper or lower case; the
	// run's report counts them. NaN is a number in floating-point columns that are declared
	// without missing values, and with a list in all of them.
	Nulls []string
	// QuotedNulls says that the spellings of Nulls, except the empty cell, mean missing within
	// quotes too, also in text. It is for files that quote every cell.
	QuotedNulls bool `json:",omitempty"`
	// OnError says what to do with rows that cannot be read.
	OnError OnError
	// ReplaceInvalidUTF8 puts U+FFFD in place of bytes that are not UTF-8, which
	// are an error otherwise.
	ReplaceInvalidUTF8 bool
	// MaxCell bounds the bytes of a cell, against a quote that is never closed; 0
	// means 64 MiB.
	MaxCell int
	// NeedRows reports an error when the job is built if there is no row to infer types from.
	// Otherwise columns without rows are text.
	NeedRows bool `json:",omitempty"`
	// FS, if set, is the file system that holds the files, such as one embedded in
	// the program.
	FS fs.FS `json:"-"`
}

// ReadCSV reads delimited text: a file, the files of a directory, or those a glob names, one
// after another in the order of their paths; gzip and zstd archives are unpacked. Records are
// those of RFC 4180 with either line end; cells may hold newlines within quotes, where "\r\n"
// reads as "\n". Lines that end in "\r" alone are an error. Empty lines are skipped. In files
// of one column, however, an empty line after the header is a row with an empty cell, unless it
// is the last line of its file.
//
// The files are cut into shards of equal bytes, and a row belongs to the shard of its first
// byte. Properties of the files that are read while building (sizes, times, columns) are facts
// of the job; a file that has changed since is an error when reading begins. ReadCSVAs infers
// nothing; use it for rows of a struct.
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

// MixedColumn is the key under which the plan shows a column that ReadCSV takes for text
// because a few of its values are no numbers, or whole numbers are too long. It shows the first
// such value.
const MixedColumn = "text for a few"

// NumberHeader is the key under which the plan shows a header that consists of numbers only.
const NumberHeader = "header of numbers"

// numberHeader returns a warning about a header that consists of numbers only, as a row does;
// "" for others.
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

// TextColumn says why ReadCSV takes a column for text although it has numbers: a few of its
// values are no numbers or, if Long is set, its whole numbers are too long.
type TextColumn struct {
	Why  string
	Long bool
}

// MixedColumns returns, by name, the columns that ReadCSV with these options takes for text
// although all or nearly all of their values are numbers.
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

// EmptyColumns returns which of the given columns have no value in any row of the files that
// ReadCSV reads with these options. It looks beyond the sample only if far is set, and reads
// until each column has shown a value. It is for messages: it ignores rows that cannot be read,
// and names that the files do not have.
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

// withoutValue reads columns until each has shown a value, and returns those that have none.
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

// layoutOf returns the columns to read, which are a fact of the job.
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

// attrs returns the options that the plan shows: those that are not the default and do not show
// in the columns.
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
