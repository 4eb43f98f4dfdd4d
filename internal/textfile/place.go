package textfile

import (
	"context"
	"errors"
	"fmt"
)

// Place returns the position "file:line" at which a row of a shard begins. Rows are counted
// from 0, and lines from 1. All records of the shard count as rows, so the result is wrong for
// readers that skip bad records. Place reads the shard up to the row, and the file up to the
// row to count lines.
func (c *CSV) Place(ctx context.Context, shard int, row int64) (string, error) {
	tok := newTokenizer(c.dialect, c.auto)
	tok.fields = len(c.keep)
	return c.base.place(ctx, shard, row, tok, func([]byte) bool { return true })
}

// Place is CSV.Place for LibSVM lines.
func (s *LibSVM) Place(ctx context.Context, shard int, row int64) (string, error) {
	return s.base.place(ctx, shard, row, lineTokenizer(s.auto), func(line []byte) bool {
		word, _ := nextWord(stripComment(line))
		return len(word) > 0
	})
}

// place returns the position of a row. isRow reports, by the first cell of a record, whether
// the record is a row.
func (s *base) place(ctx context.Context, shard int, row int64, tok *tokenizer, isRow func(cell []byte) bool) (string, error) {
	f := &finder{sc: &scanner{tok: tok}, left: row, isRow: isRow}
	err := s.readShard(ctx, shard, 1, f.sc, f, &shardCounts{shard: shard})
	switch {
	case err == nil:
		return "", fmt.Errorf("shard %d has %d rows", shard, row-f.left)
	case !errors.Is(err, errFound):
		return "", err
	}
	line, err := f.part.lineOf(f.offset)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s:%d", f.part.path, line), nil
}

// errFound stops reading when the row was found.
var errFound = errors.New("found")

// finder is a consumer that finds a row. It counts rows, and needs batches of one record.
type finder struct {
	sc    *scanner
	isRow func(cell []byte) bool
	left  int64 // number of rows between the next record and the row to find
	part  *part
	// offset is the offset of the row's first cell.
	offset int64
}

func (f *finder) begin(p *part) { f.part = p }

func (f *finder) flush(int) error {
	first := f.sc.tok.cells[0]
	if !f.isRow(f.sc.batch()[first.off:][:first.size()]) {
		return nil
	}
	if f.left > 0 {
		f.left--
		return nil
	}
	f.offset = f.sc.place(int(first.off))
	return errFound
}

func (f *finder) malformed(what outcome, at int64) complaint {
	return complaint{f.part, at, fmt.Sprintf("the record cannot be read (%d)", what)}
}
