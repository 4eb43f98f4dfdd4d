package textfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"golang.org/x/sync/errgroup"

	"github.com/superstep-ml/superstep/internal/batch"
)

// The names of the columns of LibSVM files.
const (
	LabelColumn    = "label"
	QueryColumn    = "qid"
	FeaturesColumn = "features"
)

// LibSVMOptions describes the syntax of LibSVM lines:
//
//	label [qid:n] index:value index:value ... # comment
//
// with ascending indices. Empty lines, and lines with only a comment, are not rows.
type LibSVMOptions struct {
	// ZeroBased says that indices count from 0. By default they count from 1, as in the data
	// sets of LIBSVM, and index 0 is an error. This option is necessary because a part of the
	// data does not show from which number the indices count.
	ZeroBased bool
	// Size is the number of components of a row; 0 means one more than the largest (zero-based)
	// index in the data, for which all data must be scanned.
	Size int
}

// LibSVMLayout describes the contents of LibSVM files. It is plain data. It depends on the
// contents of the files, so it is a fact of the job.
type LibSVMLayout struct {
	// ZeroBased says that indices count from 0 instead of 1.
	ZeroBased bool
	// Size is the number of components of a row.
	Size int
	// Query says that every line has a query id.
	Query bool
}

// Schema returns the columns: label float64, qid int64 if there are query ids,
// and features sparse[size]. None of them is ever null.
func (l LibSVMLayout) Schema() (*arrow.Schema, error) {
	features, err := batch.SparseType(l.Size)
	if err != nil {
		return nil, err
	}
	fields := []arrow.Field{{Name: LabelColumn, Type: arrow.PrimitiveTypes.Float64}}
	if l.Query {
		fields = append(fields, arrow.Field{Name: QueryColumn, Type: arrow.PrimitiveTypes.Int64})
	}
	return arrow.NewSchema(append(fields, arrow.Field{Name: FeaturesColumn, Type: features}), nil), nil
}

// ScanLibSVM returns the layout of LibSVM files. The first line decides whether there are query
// ids. If opt has no size, ScanLibSVM reads all lines with cfg.Workers goroutines to determine
// it; a bad line is then an error or is skipped, according to cfg. If opt has a size, indices
// are checked only when the lines are read.
func ScanLibSVM(ctx context.Context, files []File, opt LibSVMOptions, cfg Config) (_ LibSVMLayout, err error) {
	if opt.Size < 0 || opt.Size > batch.MaxDim {
		return LibSVMLayout{}, fmt.Errorf("the size %d is not between 0 and %d", opt.Size, batch.MaxDim)
	}
	l := LibSVMLayout{ZeroBased: opt.ZeroBased, Size: opt.Size}
	var found bool
	if l.Query, found, err = firstLine(ctx, tree{cfg.FS}, files); err != nil {
		return LibSVMLayout{}, err
	}
	if !found {
		return LibSVMLayout{}, emptyInput(files, false)
	}
	if l.Size > 0 {
		return l, nil
	}
	l.Size = batch.MaxDim
	s, err := OpenLibSVM(ctx, files, l, cfg)
	if err != nil {
		return LibSVMLayout{}, err
	}
	defer func() { err = also(err, s.Close()) }()
	if l.Size, err = s.size(ctx); err != nil {
		return LibSVMLayout{}, err
	}
	return l, nil
}

// firstLine reports whether the first row of the files has a query id; found is false if there
// is no row.
func firstLine(ctx context.Context, d tree, files []File) (query, found bool, err error) {
	sc := &scanner{tok: lineTokenizer(newLineAutomaton())}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return false, false, err
		}
		if query, found, err = firstLineOf(sc, d, f.Path); err != nil || found {
			return query, found, err
		}
	}
	return false, false, nil
}

func firstLineOf(sc *scanner, d tree, path string) (query, found bool, err error) {
	r, err := openPlain(d, UTF8, path)
	if err != nil {
		return false, false, err
	}
	defer func() { err = also(err, r.Close()) }()
	if err := sc.start(r, 4<<10, 0); err != nil {
		return false, false, err
	}
	for {
		what, err := sc.next()
		if err != nil || what == foundEnd {
			return false, false, err
		}
		if what.tooLarge() {
			return false, false, fmt.Errorf("%s: a line is larger than %d bytes", path, sc.tok.maxCell)
		}
		if what == foundRecord {
			c := sc.tok.cells[0]
			label, rest := nextWord(stripComment(sc.batch()[c.off:][:c.size()]))
			if len(label) > 0 {
				second, _ := nextWord(rest)
				return bytes.HasPrefix(second, []byte("qid:")), true, nil
			}
		}
		sc.cut()
	}
}

// newLineAutomaton returns an automaton for text without quotes and comments, in which every
// line is a record.
func newLineAutomaton() *automaton {
	return newAutomaton(Dialect{Delimiter: '\n', Quote: NoByte, Comment: NoByte})
}

// lineTokenizer returns a tokenizer for which every line is a record of one cell.
func lineTokenizer(a *automaton) *tokenizer {
	t := newTokenizer(Dialect{Delimiter: '\n', Quote: NoByte, Comment: NoByte, MaxCell: DefaultMaxCell}, a)
	t.fields = 1
	return t
}

// LibSVM reads LibSVM lines shard by shard. Its methods are safe for concurrent use, except
// Close, which must be the last call.
type LibSVM struct {
	layout LibSVMLayout
	schema *arrow.Schema
	// idle is a pool of *svmReader, whose buffers are reused.
	idle sync.Pool
	base
}

// OpenLibSVM verifies the files, unpacks compressed ones and plans the cut. The caller must
// close the reader.
func OpenLibSVM(ctx context.Context, files []File, l LibSVMLayout, cfg Config) (*LibSVM, error) {
	schema, err := l.Schema()
	if err != nil {
		return nil, err
	}
	s := &LibSVM{layout: l, schema: schema}
	prepare := func(*text) error { return nil }
	if err := s.base.open(ctx, files, cfg, form{}, newLineAutomaton(), prepare); err != nil {
		return nil, err
	}
	return s, nil
}

// Schema returns the schema of the batches.
func (s *LibSVM) Schema() *arrow.Schema { return s.schema }

// ReadShard passes the rows of a shard to emit, like CSV.ReadShard.
func (s *LibSVM) ReadShard(ctx context.Context, shard, batchRows int, emit func(arrow.Record) error) error {
	return s.readShard(ctx, shard, batchRows, func(r *svmReader) error {
		rec, err := r.record()
		if err != nil {
			return err
		}
		defer rec.Release()
		return emit(rec)
	})
}

// readShard reads a shard and calls deliver for each batch of parsed rows.
func (s *LibSVM) readShard(ctx context.Context, shard, batchRows int, deliver func(*svmReader) error) error {
	r, ok := s.idle.Get().(*svmReader)
	if !ok {
		r = &svmReader{s: s, sc: &scanner{tok: lineTokenizer(s.auto)}}
	}
	r.counts, r.deliver = shardCounts{shard: shard}, deliver
	err := s.base.readShard(ctx, shard, batchRows, r.sc, r, &r.counts)
	r.deliver = nil
	r.sc.idle()
	s.idle.Put(r)
	return err
}

// size reads all shards and returns the number of components of a row. If several shards have
// errors, it returns the error of the shard with the lowest number.
func (s *LibSVM) size(ctx context.Context) (int, error) {
	var largest, failed atomic.Int64
	largest.Store(-1)
	failed.Store(math.MaxInt64)
	errs := make([]error, s.plan.shards)
	var g errgroup.Group
	g.SetLimit(s.cfg.Workers)
	for shard := range s.plan.shards {
		g.Go(func() error {
			if int64(shard) > failed.Load() {
				return nil
			}
			errs[shard] = s.readShard(ctx, shard, 1024, func(r *svmReader) error {
				for _, i := range r.indices {
					raise(&largest, int64(i))
				}
				return nil
			})
			if errs[shard] != nil {
				lower(&failed, int64(shard))
			}
			return nil
		})
	}
	_ = g.Wait() // errors are in errs
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return int(largest.Load()) + 1, nil
}

func raise(a *atomic.Int64, v int64) {
	for old := a.Load(); v > old && !a.CompareAndSwap(old, v); old = a.Load() {
	}
}

func lower(a *atomic.Int64, v int64) {
	for old := a.Load(); v < old && !a.CompareAndSwap(old, v); old = a.Load() {
	}
}

// svmReader reads one shard at a time. It collects rows in compressed sparse row form. If a
// line turns out to be bad, the lists are truncated to remove its part.
type svmReader struct {
	s       *LibSVM
	sc      *scanner
	part    *part
	counts  shardCounts
	deliver func(*svmReader) error

	labels  []float64
	queries []int64
	indptr  []int32
	indices []int32
	values  []float64
}

func (r *svmReader) begin(p *part) { r.part = p }

func (r *svmReader) malformed(_ outcome, at int64) complaint {
	return complaint{r.part, at, fmt.Sprintf("line is larger than %d bytes", r.sc.tok.maxCell)}
}

// flush parses the lines since the last cut, and delivers their rows.
func (r *svmReader) flush(int) error {
	r.labels, r.queries, r.indptr = r.labels[:0], r.queries[:0], append(r.indptr[:0], 0)
	r.indices, r.values = r.indices[:0], r.values[:0]
	text := r.sc.batch()
	zeros := bytes.IndexByte(r.sc.since(0), 0) >= 0
	for _, c := range r.sc.tok.cells {
		rows, pairs := len(r.labels), len(r.indices)
		line := text[c.off:][:c.size()]
		var err error
		if zeros && bytes.IndexByte(line, 0) >= 0 { // also in a comment, as the zeros may replace other lines
			err = errors.New("the line has a byte of " + noText)
		} else {
			err = r.line(stripComment(line))
		}
		if err == nil {
			continue
		}
		bad := complaint{r.part, r.sc.place(int(c.off)), err.Error()}
		if r.s.cfg.OnError == Fail {
			return bad.error()
		}
		r.counts.add(bad)
		r.labels, r.queries = r.labels[:rows], r.queries[:min(rows, len(r.queries))]
		r.indices, r.values = r.indices[:pairs], r.values[:pairs]
	}
	if len(r.labels) == 0 {
		return nil
	}
	return r.deliver(r)
}

// line adds the row of a line, if it is not empty. After an error the lists may have a part of
// the row.
func (r *svmReader) line(b []byte) error {
	word, b := nextWord(b)
	if len(word) == 0 {
		return nil
	}
	label, err := parseFloat(word)
	if err != nil {
		return fmt.Errorf("cannot read %s as the label: %w", shorten(word), err)
	}
	r.labels = append(r.labels, label)
	word, rest := nextWord(b)
	if bytes.HasPrefix(word, []byte("qid:")) {
		if !r.s.layout.Query {
			return fmt.Errorf("this line has a query id (%s), but the first line has none", shorten(word))
		}
		id, err := parseInt(word[len("qid:"):])
		if err != nil {
			return fmt.Errorf("cannot read %s as a query id: %w", shorten(word), err)
		}
		r.queries = append(r.queries, id)
		b = rest
	} else if r.s.layout.Query {
		return errors.New("this line has no query id, but the first line has one")
	}
	if err := r.pairs(b); err != nil {
		return err
	}
	r.indptr = append(r.indptr, int32(len(r.indices)))
	return nil
}

// pairs adds the components in b.
func (r *svmReader) pairs(b []byte) error {
	first := int64(1)
	if r.s.layout.ZeroBased {
		first = 0
	}
	last := first - 1
	for {
		var word []byte
		if word, b = nextWord(b); len(word) == 0 {
			return nil
		}
		colon := bytes.IndexByte(word, ':')
		if colon < 0 {
			return fmt.Errorf("%s is not index:value", shorten(word))
		}
		index, err := parseInt(word[:colon])
		if err != nil {
			return fmt.Errorf("cannot read %s as index:value: the index: %w", shorten(word), err)
		}
		value, err := parseFloat(word[colon+1:])
		if err != nil {
			return fmt.Errorf("cannot read %s as index:value: the value: %w", shorten(word), err)
		}
		if index <= last || index-first >= int64(r.s.layout.Size) {
			return r.badIndex(index, first, last)
		}
		if len(r.indices) == math.MaxInt32 {
			return errors.New("more components than a batch can hold")
		}
		r.indices = append(r.indices, int32(index-first))
		r.values = append(r.values, value)
		last = index
	}
}

// badIndex returns the error for an index that is not allowed. first and last are the smallest
// and the largest allowed index.
func (r *svmReader) badIndex(index, first, last int64) error {
	switch {
	case index == 0 && first == 1:
		return errors.New("index 0 in data whose indices count from 1: if they count from 0, set ZeroBased")
	case index < first:
		return fmt.Errorf("index %d is negative", index)
	case index == last:
		return fmt.Errorf("index %d occurs twice", index)
	case index < last:
		return fmt.Errorf("index %d after %d; indices must ascend", index, last)
	}
	return fmt.Errorf("index %d is beyond the size %d (indices count from %d)", index, r.s.layout.Size, first)
}

// record returns the rows as a batch, owned by the caller.
func (r *svmReader) record() (arrow.Record, error) {
	mem, rows := r.s.cfg.Allocator, len(r.labels)
	features, err := batch.NewSparseArray(mem, batch.CSR{Size: r.s.layout.Size, Indptr: r.indptr, Indices: r.indices, Values: r.values})
	if err != nil {
		return nil, err
	}
	columns := make([]arrow.Array, 0, 3)
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	labels := array.NewFloat64Builder(mem)
	defer labels.Release()
	labels.AppendValues(r.labels, nil)
	columns = append(columns, labels.NewArray())
	if r.s.layout.Query {
		queries := array.NewInt64Builder(mem)
		defer queries.Release()
		queries.AppendValues(r.queries, nil)
		columns = append(columns, queries.NewArray())
	}
	columns = append(columns, features)
	return array.NewRecord(r.s.schema, columns, int64(rows)), nil
}

// nextWord returns the first word of b and the rest of b. The word is empty if b has no word.
func nextWord(b []byte) (word, rest []byte) {
	i := 0
	for i < len(b) && isBlank(b[i]) {
		i++
	}
	j := i
	for j < len(b) && !isBlank(b[j]) {
		j++
	}
	return b[i:j], b[j:]
}

// stripComment returns b up to the first '#'.
func stripComment(b []byte) []byte {
	if i := bytes.IndexByte(b, '#'); i >= 0 {
		return b[:i]
	}
	return b
}
