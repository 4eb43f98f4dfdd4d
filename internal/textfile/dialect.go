package textfile

import (
	"fmt"
	"slices"
)

// NoByte disables a field of Dialect, such as Quote. If Quote is NoByte, quotes are text.
const NoByte byte = '\n'

// DefaultMaxCell is the largest size of a cell in bytes, unless Dialect.MaxCell is set.
const DefaultMaxCell = 64 << 20

// Dialect describes the syntax of delimited text. The zero value is a comma-separated file with
// double quotes, no comments and no header; empty cells and the usual spellings are missing
// values.
type Dialect struct {
	// Delimiter separates cells; 0 means a comma.
	Delimiter byte
	// Quote encloses cells that contain delimiters, newlines or quotes. A quote inside such a
	// cell is doubled. 0 means '"'; NoByte means that there is no quoting.
	Quote byte
	// Comment is the first byte of lines that are ignored; 0 means that there are no comments.
	Comment byte
	// Header says that the first record of every file names its columns.
	Header bool
	// TrimSpace says that blanks and tabs around unquoted cells, and around the quotes of
	// quoted cells, are removed. A line of blanks is then an empty line.
	TrimSpace bool
	// NullTokens are the spellings of a missing value, in every column; an empty list means
	// that no value is missing. In a utf8 column only an unquoted cell can be missing, unless
	// QuotedNulls is set. Nil means that an empty cell is missing. In columns of other types,
	// nil also means that the usual spellings, such as NA, N/A, NaN, null and ?, in upper or
	// lower case, are missing.
	NullTokens []string
	// QuotedNulls says that a token of NullTokens, except for the empty cell, means a missing
	// value also in quotes. Files in which every cell is quoted need this.
	QuotedNulls bool
	// SkipLines is the number of lines to skip at the beginning of every file, before the
	// header.
	SkipLines int
	// Encoding is the character encoding; the zero value is UTF-8.
	Encoding Encoding
	// MaxCell is the largest size of a cell in bytes; 0 means DefaultMaxCell. It limits the
	// memory for a quote that is never closed.
	MaxCell int
}

// normal returns the dialect with its defaults set, or an error if it is not valid.
func (d Dialect) normal() (Dialect, error) {
	if d.Delimiter == 0 {
		d.Delimiter = ','
	}
	if d.Quote == 0 {
		d.Quote = '"'
	}
	if d.Comment == 0 {
		d.Comment = NoByte
	}
	if d.MaxCell == 0 {
		d.MaxCell = DefaultMaxCell
	}
	var err error
	if d.Encoding, err = d.Encoding.normal(); err != nil {
		return d, err
	}
	if d.SkipLines < 0 {
		return d, fmt.Errorf("the number of lines to skip must not be negative, but is %d", d.SkipLines)
	}
	if d.MaxCell < 1 || d.MaxCell >= maxRecord {
		return d, fmt.Errorf("the largest cell must be between 1 and %d bytes, not %d", maxRecord-1, d.MaxCell)
	}
	if d.Delimiter == '\n' || d.Delimiter == '\r' || d.Quote == '\r' || d.Comment == '\r' {
		return d, fmt.Errorf("a line end cannot be the delimiter, the quote or the comment mark")
	}
	if d.Delimiter == d.Quote || d.Delimiter == d.Comment || (d.Quote == d.Comment && d.Quote != NoByte) {
		return d, fmt.Errorf("delimiter %q, quote %q and comment mark %q must differ", d.Delimiter, d.Quote, d.Comment)
	}
	if d.TrimSpace && (isBlank(d.Quote) || isBlank(d.Comment)) {
		return d, fmt.Errorf("with TrimSpace a blank cannot be the quote or the comment mark")
	}
	d.NullTokens = slices.Clone(d.NullTokens)
	return d, nil
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
