package batch

import (
	"fmt"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
)

// TextError is the error of a column with text that is not UTF-8. Other programs that read
// Arrow, Parquet or CSV files could not read such text.
type TextError struct {
	Column string
	Row    int // row number in the batch
	Text   string
}

// Error shows the text, with its column and row, and says how to correct it.
func (e *TextError) Error() string {
	return fmt.Sprintf("column %q, row %d of the batch: %v", e.Column, e.Row, e.Why())
}

// Why returns the error without column and row, for callers that know a more useful position
// than the row number in the batch.
func (e *TextError) Why() error { return notText(e.Text) }

// longestText bounds the number of bytes of a text that messages show.
const longestText = 60

// notText returns the error for a text that is not UTF-8.
func notText(s string) error {
	return fmt.Errorf("%s is not UTF-8: make it so (strings.ToValidUTF8), or keep bytes that are no text in a column of bytes ([]byte)", quote(s))
}

// quote returns a text in quotes for messages, cut if it is long. Texts such as names of
// columns may come from files and have any length.
func quote[T string | []byte](s T) string {
	if len(s) > longestText {
		return strconv.Quote(string(s[:longestText])) + "…"
	}
	return strconv.Quote(string(s))
}

// cutText returns s, cut after about longestText bytes if it is longer.
func cutText(s string) string {
	if len(s) <= longestText {
		return s
	}
	end := longestText
	for end > longestText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// isASCII reports whether a text has no byte of 0x80 or above. Most texts have none, and for
// them this check is faster than the check of package utf8. It checks eight bytes at a time;
// the last eight may include bytes that were already checked.
func isASCII(s string) bool {
	const high = 0x8080808080808080
	p, n := unsafe.Pointer(unsafe.StringData(s)), len(s)
	if n < 8 {
		all := byte(0)
		for i := range n {
			all |= s[i]
		}
		return all < utf8.RuneSelf
	}
	all := *(*uint64)(unsafe.Add(p, n-8))
	for i := 0; i < n-8; i += 8 {
		all |= *(*uint64)(unsafe.Add(p, i))
	}
	return all&high == 0
}

// ValidateText returns a *TextError if a batch has text that is not UTF-8, for the first such
// row of the first such column. The batch must have passed Validate.
func ValidateText(rec arrow.Record) error {
	for i, col := range rec.Columns() {
		if kindOf(col.DataType()) != kindString {
			continue
		}
		if row, text := invalidText(col.Data()); row >= 0 {
			return &TextError{Column: rec.ColumnName(i), Row: row, Text: string(text)}
		}
	}
	return nil
}

// invalidText returns the first row of the text column d whose text is not UTF-8, and that
// text. If all text is UTF-8, it returns -1. It checks the text of all rows together, which is
// fast, and then the boundaries of rows: where a row ends within a character, the rows are
// invalid although their concatenation is valid. The bytes of null rows do not matter.
func invalidText(d arrow.ArrayData) (int, []byte) {
	n, offs, text := d.Len(), offsetsOf(d), bufferBytes(d, 2)
	if lo, hi := offs[0], offs[n]; utf8.Valid(text[lo:hi]) {
		whole := true
		for _, at := range offs[:n] {
			whole = whole && (at == hi || utf8.RuneStart(text[at]))
		}
		if whole {
			return -1, nil
		}
	}
	valid := validBits(d)
	for i := range n {
		row := text[offs[i]:offs[i+1]]
		if (valid == nil || bitutil.BitIsSet(valid, d.Offset()+i)) && !utf8.Valid(row) {
			return i, row
		}
	}
	return -1, nil
}
