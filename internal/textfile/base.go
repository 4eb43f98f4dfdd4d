package textfile

import (
	"cmp"
	"context"
	"fmt"
	"sync"
)

// base has the common parts of the readers of all text formats: the text, its plan, the index,
// and the counts of skipped records.
type base struct {
	cfg  Config
	text *text
	auto *automaton
	plan *Plan

	// gate is a lock for the computation of the index. It is a channel, so that waiting for it
	// can be cancelled.
	gate    chan struct{}
	index   *Index
	indexed bool

	mu     sync.Mutex
	counts map[int]shardCounts
}

// open opens the text, calls prepare, and plans the cut. prepare may move the beginnings of the
// bodies of files.
func (s *base) open(ctx context.Context, files []File, cfg Config, f form, auto *automaton, prepare func(*text) error) error {
	s.cfg, s.auto = cfg.normal(), auto
	s.gate, s.counts = make(chan struct{}, 1), map[int]shardCounts{}
	if s.cfg.Shards < 1 || s.cfg.Shards > maxShards {
		return fmt.Errorf("the number of shards must be between 1 and %d, not %d", maxShards, s.cfg.Shards)
	}
	t, err := openText(ctx, files, f, s.cfg)
	if err != nil {
		return err
	}
	if err = prepare(t); err == nil {
		s.text = t
		s.plan, err = newPlan(t, s.cfg.Shards)
	}
	if err != nil {
		return also(err, t.close())
	}
	return nil
}

// Plan returns the plan of the cut into shards.
func (s *base) Plan() *Plan { return s.plan }

// Close frees the disk space of unpacked files.
func (s *base) Close() error { return s.text.close() }

// Index scans the text with the configured number of workers, to find where records begin. The
// result is kept for later calls. ReadShard calls Index if needed. If a scan was cancelled or
// failed, the next call repeats it.
func (s *base) Index(ctx context.Context) error {
	_, err := s.needIndex(ctx)
	return err
}

func (s *base) needIndex(ctx context.Context) (*Index, error) {
	select {
	case s.gate <- struct{}{}:
		defer func() { <-s.gate }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.indexed {
		return s.index, nil
	}
	x, err := s.plan.index(ctx, s.auto, s.cfg.Workers)
	if err != nil {
		return nil, err
	}
	s.index, s.indexed = x, true
	return x, nil
}

func (s *base) checkShard(shard int) error {
	if shard < 0 || shard >= s.plan.shards {
		return fmt.Errorf("there is no shard %d among %d", shard, s.plan.shards)
	}
	return nil
}

// batchBytes is the number of bytes of text after which a batch is delivered even if it has few
// rows. So the memory for a batch is bounded even if rows are long.
const batchBytes = 1 << 20

// consumer converts the records in a scanner to batches.
type consumer interface {
	// begin sets the part to which the next records belong.
	begin(p *part)
	// flush delivers the records since the last cut of the scanner. There is at least one
	// record.
	flush(rows int) error
	// malformed returns the complaint about a malformed record. what is the outcome of the
	// tokenizer, and at is the offset of the record in the part.
	malformed(what outcome, at int64) complaint
}

// readShard passes the records of a shard to the consumer. It collects the counts of the shard
// in t, and stores them after the last record.
func (s *base) readShard(ctx context.Context, shard, batchRows int, sc *scanner, to consumer, t *shardCounts) error {
	if err := s.checkShard(shard); err != nil {
		return err
	}
	if batchRows < 1 {
		return fmt.Errorf("a batch must have at least 1 row, not %d", batchRows)
	}
	index, err := s.needIndex(ctx)
	if err != nil {
		return err
	}
	for _, p := range s.plan.pieces(shard) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.readPiece(ctx, p, index, shard, batchRows, sc, to, t); err != nil {
			return err
		}
	}
	s.settle(*t)
	return nil
}

// readPiece passes the records that begin in p to the consumer.
func (s *base) readPiece(ctx context.Context, p piece, index *Index, shard, batchRows int, sc *scanner, to consumer, t *shardCounts) (err error) {
	h, err := p.part.open()
	if err != nil {
		return err
	}
	defer func() { err = also(err, h.close()) }()
	before := stateRecord
	switch {
	case p.atStart():
	case index != nil:
		before = index.before[shard]
	default:
		var last [1]byte
		if _, err := h.ReadAt(last[:], p.from-1); err != nil {
			return p.part.readError(err)
		}
		if last[0] != '\n' {
			before = stateText
		}
	}
	from, ok, err := s.firstRecord(ctx, h, p, before)
	if err != nil || !ok {
		return err
	}
	sc.reset(&section{p.part, h, from}, from, p.to-from+(4<<10))
	to.begin(p.part)
	return s.records(ctx, p, batchRows, sc, to, t)
}

// records passes to the consumer the records that begin at or after the position of the scanner
// and before the end of p.
func (s *base) records(ctx context.Context, p piece, batchRows int, sc *scanner, to consumer, t *shardCounts) error {
	rows := 0
	flush := func() error {
		var err error
		if rows > 0 {
			err = to.flush(rows)
		}
		rows = 0
		sc.cut()
		return err
	}
	for sc.offset() < p.to {
		at := sc.offset()
		what, err := sc.next()
		if err != nil {
			return p.part.readError(err)
		}
		switch what {
		case foundEnd:
			return flush()
		case foundNothing:
		case foundRecord:
			rows++
		default:
			// Errors in the preceding records must be reported first.
			bad := to.malformed(what, at)
			if err := flush(); err != nil {
				return err
			}
			if what.tooLarge() || s.cfg.OnError == Fail {
				return bad.error()
			}
			t.add(bad)
		}
		if rows >= batchRows || sc.held() >= batchBytes {
			if err := flush(); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// firstRecord returns the offset of the first record that begins in p. before is the state of
// the automaton before p. ok is false if no record begins in p.
func (s *base) firstRecord(ctx context.Context, h handle, p piece, before state) (from int64, ok bool, err error) {
	if before == stateRecord {
		return p.from, true, nil
	}
	size := int64(4 << 10)
	var buf []byte
	for at := p.from; at < p.to; {
		if err := ctx.Err(); err != nil {
			return 0, false, err
		}
		// The next record is usually near, so begin with a small block.
		if int64(len(buf)) < size {
			buf = make([]byte, size)
		}
		b := buf[:min(size, p.to-at)]
		if _, err := h.ReadAt(b, at); err != nil {
			return 0, false, p.part.readError(err)
		}
		i, after := s.auto.recordStart(before, b)
		if i >= 0 && at+int64(i) < p.to {
			return at + int64(i), true, nil
		}
		at += int64(len(b))
		before = after
		size = min(2*size, scanChunk)
	}
	return 0, false, nil
}

// complaint is an error about a record whose line number was not determined yet.
type complaint struct {
	part   *part
	offset int64
	text   string
}

// error returns the error with file and line. It reads the file to count lines.
func (c complaint) error() error { return c.part.errorAt(c.offset, "%s", c.text) }

// shardCounts has the counts of a shard, such as the number of skipped records, and the
// complaint about the first skipped record.
type shardCounts struct {
	shard   int
	skipped int64
	first   complaint
	spelled map[Spelled]int64
	rounded []Rounded
}

// Spelled has one of the usual spellings of missing values, and the name of a column in which
// it occurs. The column is not of type utf8.
type Spelled struct{ Column, Word string }

// Compare compares columns, and then words.
func (s Spelled) Compare(t Spelled) int {
	return cmp.Or(cmp.Compare(s.Column, t.Column), cmp.Compare(s.Word, t.Word))
}

// SpelledIn returns, for each column and usual spelling of missing values, the number of cells
// of a shard that have this spelling. The shard must have been read to its end. The caller must
// not modify the result.
func (s *base) SpelledIn(shard int) map[Spelled]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[shard].spelled
}

func (t *shardCounts) add(c complaint) {
	if t.skipped == 0 {
		t.first = c
	}
	t.skipped++
}

// settle stores the counts of a shard. If the shard is read again, its counts are replaced, not
// added.
func (s *base) settle(t shardCounts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[t.shard] = t
}

// Skipped returns the number of records that were skipped in the shards that have been read to
// their end.
func (s *base) Skipped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int64
	for _, t := range s.counts {
		n += t.skipped
	}
	return n
}

// SkippedIn returns the number of records that were skipped in one shard, if it has been read
// to its end.
func (s *base) SkippedIn(shard int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[shard].skipped
}

// FirstSkipped returns the error for the first skipped record, in file order, of all shards
// that have been read to their end. It returns nil if no record was skipped. It may be called
// until Close.
func (s *base) FirstSkipped() error {
	s.mu.Lock()
	var first complaint
	for shard := range s.plan.shards {
		if t := s.counts[shard]; t.skipped > 0 {
			first = t.first
			break
		}
	}
	s.mu.Unlock()
	if first.part == nil {
		return nil
	}
	return first.error()
}
