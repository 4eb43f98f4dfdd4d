package operators

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/textfile"
)

// TextOptions describes how lines of text are read. The zero value reads UTF-8.
type TextOptions struct {
	// File adds a first column, file (utf8), with the path of the file that has the line.
	File bool
	// SkipLines is the number of lines to skip at the beginning of every file.
	SkipLines int
	// Encoding is the character encoding, as in CSVOptions.
	Encoding string
	// MaxLine is the largest number of bytes of a line. It may be at most 512 MiB; 0 means 64
	// MiB. A longer line is an error, whatever the value of OnError.
	MaxLine int
	// OnError determines what to do with lines that cannot be read: lines with zero bytes,
	// which text cannot have, or with bytes that are not UTF-8.
	OnError OnError
	// ReplaceInvalidUTF8 replaces bytes that are not UTF-8 by U+FFFD.
	ReplaceInvalidUTF8 bool
	// FS, if set, is the file system that holds the files, such as one embedded in
	// the program.
	FS fs.FS
}

// ReadText reads lines of text as rows with one column "value" of type utf8. Functions read the
// column as a string: Map(lines, func(line string) Row { … }). Lines end in "\n" or "\r\n",
// which are not part of the row; the last line of a file need not end in either. An empty line
// is a row. An "\r" elsewhere is part of the text. Files are found, unpacked, divided into
// shards and checked as by ReadCSV: rows are in the order of paths and lines, and a line
// belongs to the shard of its first byte.
func ReadText(b *engine.Builder, path string, o TextOptions) *engine.Dataset {
	const op = "ReadText"
	needBuilder(op, b)
	fail := func(err error) *engine.Dataset {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	lines := textfile.LinesOptions{File: o.File, SkipLines: o.SkipLines, Encoding: textfile.Encoding(o.Encoding), MaxLine: o.MaxLine}
	if err := lines.Validate(); err != nil {
		return fail(err)
	}
	in, err := ResolveInput(b, o.FS, path)
	if err != nil {
		return fail(err)
	}
	cfg := textfile.Config{OnError: textfile.OnError(o.OnError), ReplaceInvalidUTF8: o.ReplaceInvalidUTF8}
	return addText(b, op, in, append(in.attrs(path), o.attrs()...), lines.Schema(), cfg,
		func(ctx context.Context, cfg textfile.Config) (textReader, error) {
			return textfile.OpenLines(ctx, in.files, lines, cfg)
		})
}

// attrs returns the options that the plan shows: those that differ from the default and do not
// follow from the columns.
func (o TextOptions) attrs() (attrs []engine.Attr) {
	show := func(is bool, key, value string) {
		if is {
			attrs = append(attrs, engine.Attr{Key: key, Value: value})
		}
	}
	show(o.SkipLines != 0, "skip lines", strconv.Itoa(o.SkipLines))
	show(o.Encoding != "", "encoding", o.Encoding)
	show(o.MaxLine != 0, "largest line", strconv.Itoa(o.MaxLine))
	show(o.OnError != Fail, "on error", fmt.Sprint(o.OnError))
	show(o.ReplaceInvalidUTF8, "replace invalid UTF-8", "true")
	return attrs
}
