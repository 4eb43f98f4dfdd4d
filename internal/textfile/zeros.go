package textfile

import (
	"bytes"
	"fmt"
)

// Text has no bytes of 0. If a disk or file system has lost a page of a file, the page is read
// as zeros. The zeros, and the incomplete lines around them, would be read as one row with a
// cell of thousands of zeros, and the rows of the lost lines would be missing without an error.
// So a row with a byte of 0 in any cell is bad.

// zeros returns a fault for each of the current rows that has a byte of 0. If no row has such a
// byte, it only searches the text for the byte, which takes a negligible time compared with
// parsing. Otherwise the records are split again into all their cells, including those that are
// not wanted.
func (r *csvReader) zeros() (faults []fault) {
	text := r.sc.since(0)
	if bytes.IndexByte(text, 0) < 0 {
		return nil
	}
	tok := newTokenizer(r.c.dialect, r.c.auto)
	tok.fields = len(r.c.keep)
	for pos, row := 0, 0; pos < len(text) && row < r.in.rows; tok.cells = tok.cells[:0] {
		end, what := tok.next(text, pos, true)
		pos = end
		if what != foundRecord {
			continue
		}
		for i, c := range tok.cells {
			if at := bytes.IndexByte(text[c.off:][:c.size()], 0); at >= 0 {
				offset := r.sc.place(int(c.off) + at)
				faults = append(faults, fault{row: row, slot: -1, complaint: complaint{r.part, offset,
					fmt.Sprintf("column %q: the byte at offset %d is %s", r.c.layout.Names[i], offset, noText)}})
				break
			}
		}
		row++
	}
	return faults
}

// noText is the end of messages about a byte of 0.
const noText = "0, which no text has: the file is damaged, or in another encoding, such as utf-16, for which set Encoding"
