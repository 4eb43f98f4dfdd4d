package textfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/superstep-ml/superstep/internal/humanize"
)

// maxRecord is the largest size of a record in bytes. It ensures that the offset of a cell fits
// in 32 bits.
const maxRecord = 1 << 30

// cell is the position of the text of a cell: its offset from the start of the batch, and its
// length n. The top bits of n say how the cell was written.
type cell struct{ off, n uint32 }

const (
	cellQuoted  uint32 = 1 << 31 // enclosed in quotes, which are not part of the text
	cellEscaped uint32 = 1 << 30 // has doubled quotes or CR LF, which must be replaced
	cellLength  uint32 = cellEscaped - 1
)

func (c cell) quoted() bool  { return c.n&cellQuoted != 0 }
func (c cell) escaped() bool { return c.n&cellEscaped != 0 }
func (c cell) size() int     { return int(c.n & cellLength) }

// outcome says what the tokenizer found at a position.
type outcome uint8

const (
	foundRecord  outcome = iota // a record; its cells were appended
	foundNothing                // an empty line that is not a record, or a comment
	foundEnd                    // the end of the file; only a scanner returns it
	needMore                    // the bytes end inside a record
	badFields                   // a record with a wrong number of cells
	badQuote                    // a record with text after a closing quote
	badUnclosed                 // a quote that is not closed before the end of the file
	badSize                     // a cell beyond the limit
	badLength                   // a record larger than maxRecord
)

// tooLarge reports whether the end of the record was not found within the limits, so that the
// next record cannot be read.
func (o outcome) tooLarge() bool { return o == badSize || o == badLength }

// tokenizer splits bytes into records and cells by the rules of encoding/csv
// (RFC 4180 with either line end), except that a quote inside an unquoted cell
// is text. It ends every record exactly where the automaton does.
type tokenizer struct {
	auto      *automaton
	delimiter byte
	quote     byte
	comment   byte
	quoting   bool
	trim      bool
	whole     bool // every line is a record of one cell, even an empty line at the end
	maxCell   int
	maxRecord int

	// fields is the number of cells a record must have; 0 accepts any.
	fields int
	// keep says which cells of a record are wanted; nil means all. Its length is fields.
	keep []bool
	// cells has the wanted cells of the records that were read since the last cut.
	cells []cell

	// found and at describe a bad record: found is its number of cells, and at is the index of
	// the error in buf.
	found int
	at    int
}

func newTokenizer(d Dialect, a *automaton) *tokenizer {
	return &tokenizer{
		auto: a, delimiter: d.Delimiter, quote: d.Quote, comment: d.Comment,
		quoting: a.quoting, trim: d.TrimSpace, maxCell: d.MaxCell, maxRecord: maxRecord,
	}
}

// problem returns the message about the last bad record.
func (t *tokenizer) problem(what outcome, header bool) string {
	switch what {
	case badFields:
		whose := "the first row has"
		if header {
			whose = "the header has"
		}
		return fmt.Sprintf("row has %s, %s %d", humanize.Count(t.found, "field"), whose, t.fields)
	case badQuote:
		return fmt.Sprintf("field %d: text follows the closing quote; a quote inside quotes must be doubled", t.found+1)
	case badUnclosed:
		return fmt.Sprintf("field %d: the quote opened here is never closed", t.found+1)
	case badLength:
		return fmt.Sprintf("row is larger than %d bytes", t.maxRecord)
	}
	return fmt.Sprintf("field %d is larger than %d bytes; a quote opened here that is never closed?", t.found+1, t.maxCell)
}

// next reads the record, empty line or comment at buf[pos], where pos < len(buf), and returns
// the position after it. final says that the file ends with buf. For needMore and for bad
// records, no cells are appended to t.cells.
func (t *tokenizer) next(buf []byte, pos int, final bool) (int, outcome) {
	mark := len(t.cells)
	end, what := t.line(buf, pos, final)
	if what == foundRecord && t.fields != 0 && t.found != t.fields {
		what, t.at = badFields, pos
	}
	if what == badQuote {
		// The end of a malformed record is defined only by the automaton.
		i, _ := t.auto.recordStart(t.auto.next[stateRecord][buf[pos]], buf[pos+1:])
		switch {
		case i >= 0:
			end = pos + 1 + i
		case final:
			end = len(buf)
		default:
			what = needMore
		}
	}
	if what != foundRecord {
		t.cells = t.cells[:mark]
	}
	if what == needMore && len(buf)-pos > t.maxRecord {
		what, t.at = badLength, pos
	}
	return end, what
}

// line does the work of next, except for the handling of bad records.
func (t *tokenizer) line(buf []byte, pos int, final bool) (int, outcome) {
	if t.whole {
		return t.wholeLine(buf, pos, final)
	}
	if c := buf[pos]; c == '\n' {
		return t.emptyLine(buf, pos, pos+1, final)
	} else if c == t.comment {
		if j := bytes.IndexByte(buf[pos:], '\n'); j >= 0 {
			return pos + j + 1, foundNothing
		}
		return t.short(buf, pos, pos, final)
	} else if c == '\r' {
		if pos+1 == len(buf) {
			return t.short(buf, pos, pos, final)
		}
		if buf[pos+1] == '\n' {
			return t.emptyLine(buf, pos, pos+2, final)
		}
	}
	i := pos
	for t.found = 0; ; {
		start := i
		if t.trim {
			for i < len(buf) && isBlank(buf[i]) && buf[i] != t.delimiter {
				i++
			}
		}
		var c cell
		if t.quoting && i < len(buf) && buf[i] == t.quote {
			var what outcome
			if c, i, what = t.quotedCell(buf, i, final); what != foundRecord {
				return i, what
			}
		} else {
			first := i
			i = t.unquotedEnd(buf, i)
			if i == len(buf) && !final {
				return t.short(buf, pos, first, final)
			}
			if i-first > t.maxCell {
				t.at = first
				return i, badSize
			}
			c = t.plainCell(buf, first, i)
			if t.trim && t.found == 0 && c.n == 0 && i > start && (i == len(buf) || buf[i] == '\n') {
				return t.emptyLine(buf, pos, min(i+1, len(buf)), final)
			}
		}
		if t.keep == nil || (t.found < len(t.keep) && t.keep[t.found]) {
			t.cells = append(t.cells, c)
		}
		t.found++
		if i == len(buf) {
			return i, foundRecord
		}
		i++
		if buf[i-1] == '\n' {
			return i, foundRecord
		}
	}
}

// wholeLine does the work of line if t.whole is set.
func (t *tokenizer) wholeLine(buf []byte, pos int, final bool) (int, outcome) {
	size, end := len(buf)-pos, len(buf)
	if j := bytes.IndexByte(buf[pos:], '\n'); j >= 0 {
		size, end = j, pos+j+1
	} else if !final {
		return t.short(buf, pos, pos, final)
	}
	c := t.plainCell(buf, pos, pos+size)
	if c.size() > t.maxCell {
		t.at = pos
		return end, badSize
	}
	t.found, t.cells = 1, append(t.cells, c)
	return end, foundRecord
}

// emptyLine returns the outcome for an empty line that ends before position end. If records
// have one cell, the line is a record with an empty cell, unless it is the last line of the
// file.
func (t *tokenizer) emptyLine(buf []byte, pos, end int, final bool) (int, outcome) {
	switch {
	case t.fields != 1 || final && end == len(buf):
		return end, foundNothing
	case end == len(buf):
		return pos, needMore
	}
	if t.found = 1; t.keep == nil || t.keep[0] {
		t.cells = append(t.cells, cell{off: uint32(pos)})
	}
	return end, foundRecord
}

// short returns the outcome if buf ends inside a cell that began at start.
func (t *tokenizer) short(buf []byte, pos, start int, final bool) (int, outcome) {
	switch {
	case final:
		return len(buf), foundNothing
	case len(buf)-start > t.maxCell:
		t.at = start
		return len(buf), badSize
	}
	return pos, needMore
}

// unquotedEnd returns the index of the first delimiter or newline at or after i, or len(buf).
// It examines eight bytes at a time. In x, the bytes that equal the wanted byte are zero.
// (x−0x01…)&^x&0x80… marks the lowest zero byte exactly (Mycroft's test); it may also mark
// higher bytes, which does not matter.
func (t *tokenizer) unquotedEnd(buf []byte, i int) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	d := low * uint64(t.delimiter)
	for ; i+8 <= len(buf); i += 8 {
		w := binary.LittleEndian.Uint64(buf[i:])
		x, y := w^d, w^(low*'\n')
		if m := ((x-low)&^x | (y-low)&^y) & high; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(buf); i++ {
		if c := buf[i]; c == t.delimiter || c == '\n' {
			break
		}
	}
	return i
}

// plainCell returns the unquoted cell buf[start:end], without the CR of a line end and, with
// the option TrimSpace, without blanks around it.
func (t *tokenizer) plainCell(buf []byte, start, end int) cell {
	if (end == len(buf) || buf[end] == '\n') && end > start && buf[end-1] == '\r' {
		end--
	}
	if t.trim {
		for end > start && isBlank(buf[end-1]) {
			end--
		}
	}
	return cell{uint32(start), uint32(end - start)}
}

// quotedCell reads the cell whose opening quote is buf[open]. It returns the cell, and the
// index of the delimiter or newline after it, or len(buf) at the end of the file.
func (t *tokenizer) quotedCell(buf []byte, open int, final bool) (cell, int, outcome) {
	i, escaped := open+1, false
	for {
		j := bytes.IndexByte(buf[i:], t.quote)
		if j < 0 {
			switch {
			case len(buf)-open > t.maxCell:
				t.at = open
				return cell{}, len(buf), badSize
			case final:
				t.at = open
				return cell{}, len(buf), badUnclosed
			}
			return cell{}, open, needMore
		}
		i += j + 1
		if i == len(buf) {
			if !final {
				return cell{}, open, needMore
			}
			break
		}
		if buf[i] != t.quote {
			break
		}
		escaped = true
		i++
	}
	inside := buf[open+1 : i-1]
	if len(inside) > t.maxCell {
		t.at = open
		return cell{}, i, badSize
	}
	c := cell{uint32(open + 1), uint32(len(inside)) | cellQuoted}
	if escaped || hasCRLF(inside) {
		c.n |= cellEscaped
	}
	i, what := t.afterQuote(buf, i, final)
	if what == badQuote {
		t.at = open
	}
	return c, i, what
}

// afterQuote checks that a closing quote is followed by the end of the cell.
func (t *tokenizer) afterQuote(buf []byte, i int, final bool) (int, outcome) {
	if t.trim {
		for i < len(buf) && isBlank(buf[i]) && buf[i] != t.delimiter {
			i++
		}
	}
	if i < len(buf) && buf[i] == '\r' && (i+1 == len(buf) || buf[i+1] == '\n') {
		i++
	}
	switch {
	case i == len(buf) && final:
		return i, foundRecord
	case i == len(buf):
		return i, needMore
	case buf[i] == t.delimiter || buf[i] == '\n':
		return i, foundRecord
	}
	return i, badQuote
}

// hasCRLF reports whether b has a CR LF.
func hasCRLF(b []byte) bool {
	for {
		i := bytes.IndexByte(b, '\r')
		if i < 0 || i+1 == len(b) {
			return false
		}
		if b[i+1] == '\n' {
			return true
		}
		b = b[i+1:]
	}
}

// unescape appends the text of the escaped cell b to dst. It replaces every doubled quote by
// one quote, and every CR LF by a newline.
func unescape(dst, b []byte, quote byte) []byte {
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c == '\r' && i+1 < len(b) && b[i+1] == '\n' {
			continue
		}
		dst = append(dst, c)
		if c == quote {
			i++
		}
	}
	return dst
}
