package textfile

import (
	"bytes"
	"fmt"
)

// No text has bytes of 0. If a disk or file system has lost a page of a file, there are zeros
// in its place. They become one cell with thousands of zeros in place of the lost lines, whose
// rows would be missing silently. So a row with a byte of 0 in any cell is bad.

// zeros returns a fault for each of the current rows that has a byte of 0. Mostly this is a
// search for a byte, whose cost is negligible beside parsing. If there is one, the records are
// read again for all their cells, including those that are not wanted.
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

// noText says in an error what is wrong with a byte.
const noText = "0, which no text has: the file is damaged, or in another encoding, such as utf-16, for which set Encoding"
