package textfile

import (
	"bytes"
	"fmt"
)

// No text has bytes of 0. Where a page of a file was lost, as disks and file systems lose
// them, there are zeros in its place, and a cell with thousands of them takes in the lines that
// were there, so that their rows are gone in silence. So a row that has one, in whatever cell,
// is a bad one.

// zeros returns a fault for each of the rows at hand that has a byte of 0. As a rule that is a
// search for a byte, which costs nothing beside parsing; where there is one the records are read
// again for their cells, with those that nobody asked for.
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
				faults = append(faults, fault{row: row, slot: -1, told: complaint{r.part, offset,
					fmt.Sprintf("column %q: the byte at offset %d is %s", r.c.layout.Names[i], offset, noText)}})
				break
			}
		}
		row++
	}
	return faults
}

// noText says of a byte what is wrong with it.
const noText = "0, which no text has: the file is damaged, or in another encoding, such as utf-16, for which set Encoding"
