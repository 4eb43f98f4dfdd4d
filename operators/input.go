package operators

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/textfile"
)

// InputFiles identifies the files that a source reads and records their state when the job was
// built. It is for packages that add sources for other file formats.
type InputFiles struct {
	fsys  fs.FS
	files []textfile.File
	id    string
}

// ResolveInput returns the files that path names, sorted by the bytes of their paths. path is a
// file, a directory (its files, without those of subdirectories) or a glob. Files whose names
// begin with a dot or an underscore are left out. If fsys is not nil, path is within it, and a
// hash of the files' content becomes part of the graph. Otherwise the list of files, with sizes
// and times, becomes a fact of the job.
func ResolveInput(b *engine.Builder, fsys fs.FS, path string) (InputFiles, error) {
	in := InputFiles{fsys: fsys, id: path}
	var err error
	if fsys != nil {
		// The files are part of the program, and are read in every build: the path cannot be
		// the name of a fact, as two file systems may both have a file of this name.
		if in.files, err = textfile.ResolveIn(fsys, path); err != nil {
			return in, err
		}
		in.id += " " + in.content()
		return in, nil
	}
	err = factOf(b, "files of "+path, &in.files, func() (any, error) { return textfile.Resolve(path) })
	return in, err
}

// factOf resolves the fact name of the job and decodes it into value. resolve computes the
// fact, which is recorded as text.
func factOf(b *engine.Builder, name string, value any, resolve func() (any, error)) error {
	text, err := b.Fact(name, func() (string, error) {
		v, err := resolve()
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(v)
		return string(text), err
	})
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), value); err != nil {
		return fmt.Errorf("fact %q cannot be read: %w", name, err)
	}
	return nil
}

// content returns the hashes of the files' content, joined to one text.
func (in InputFiles) content() string {
	hashes := make([]string, len(in.files))
	for i, f := range in.files {
		hashes[i] = f.Hash
	}
	return strings.Join(hashes, "+")
}

// Paths returns the paths in the order in which the files are read.
func (in InputFiles) Paths() []string {
	paths := make([]string, len(in.files))
	for i, f := range in.files {
		paths[i] = f.Path
	}
	return paths
}

// Verify checks the files again and returns an error for the first one that has changed since
// the job was built.
func (in InputFiles) Verify() error { return in.local(textfile.VerifyIn(in.fsys, in.files)) }

// local adds a hint to err if it says that a file has changed since the job was built or does
// not exist: on a cluster, the file may be on another machine.
func (in InputFiles) local(err error) error {
	if in.fsys != nil || len(in.files) == 0 || !errors.Is(err, textfile.ErrChanged) {
		return err
	}
	return &engine.LocalPathError{Path: in.files[0].Path, Err: err}
}

// attrs returns the attributes that every source of files has in the plan.
func (in InputFiles) attrs(path string) []engine.Attr {
	attrs := []engine.Attr{{Key: "path", Value: path}}
	if in.fsys != nil {
		attrs = append(attrs, engine.Attr{Key: "content", Value: in.content()})
	}
	return attrs
}

// sharedReader is a reader that the subtasks of a process share. The first subtask that
// acquires it opens it, and the last one that releases it closes it. A subtask that acquires it
// after that opens it again.
type sharedReader[T io.Closer] struct {
	mu    sync.Mutex
	users int
	value T
}

// acquire returns the reader. If it is not open, acquire calls open. The caller must call
// release once for each acquire that succeeds.
func (s *sharedReader[T]) acquire(open func() (T, error)) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		v, err := open()
		if err != nil {
			var none T
			return none, err
		}
		s.value = v
	}
	s.users++
	return s.value, nil
}

// release ends one use of the reader. If it was the last use, release calls last and closes the
// reader.
func (s *sharedReader[T]) release(last func(T)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	v := s.value
	var none T
	s.value = none
	if last != nil {
		last(v)
	}
	return v.Close()
}

// OnError determines what a source does with a row that cannot be read.
type OnError int

const (
	// Fail ends the job with an error that names file, line, column and value.
	Fail OnError = iota
	// Skip leaves the row out. The run's report counts such rows as "skipped rows" of the
	// source, and a warning shows the first of them.
	Skip
)

// String returns "fail" or "skip".
func (o OnError) String() string { return textfile.OnError(o).String() }

// skippedRows is the name of the counter of rows that Skip has left out.
const skippedRows = "skipped rows"

// A source counts the cells that it has read as missing because of their text, in counters such
// as `cells read as missing: "NA" in column "age"`. CellsMissing is the prefix of the counters'
// names.
const CellsMissing = "cells read as missing: "

// textReader reads the shards of a text format.
type textReader interface {
	ReadShard(ctx context.Context, shard, batchRows int, emit func(arrow.Record) error) error
	Place(ctx context.Context, shard int, row int64) (string, error)
	SkippedIn(shard int) int64
	SpelledIn(shard int) map[textfile.Spelled]int64
	RoundedIn(shard int) []textfile.Rounded
	Skipped() int64
	FirstSkipped() error
	io.Closer
}

// textSource is the source behind ReadCSV, ReadLibSVM and ReadText.
type textSource struct {
	in      InputFiles
	readers *sharedReader[textReader]
	open    func(ctx context.Context, cfg textfile.Config) (textReader, error)
	config  textfile.Config
	reader  textReader
	c       *engine.Context
	rounded map[string]string // column name -> name of its counter
}

func (s *textSource) Open(c *engine.Context) (err error) {
	s.c = c
	s.reader, err = s.readers.acquire(func() (textReader, error) {
		cfg := s.config
		cfg.Shards, cfg.SpoolDir, cfg.Disk, cfg.Allocator, cfg.Workers = c.Shards, c.SpillDir, c.Disk, c.Allocator, c.Parallelism
		return s.open(c, cfg)
	})
	if err != nil {
		s.reader = nil
	}
	return s.in.local(err)
}

func (s *textSource) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	err := s.reader.ReadShard(c, shard, c.BatchRows, func(rows arrow.Record) error { return out.Emit(shard, arrowrows.Batch(rows)) })
	if err == nil && s.config.OnError == textfile.Skip {
		c.Count(skippedRows, s.reader.SkippedIn(shard))
	}
	if err == nil {
		cells := s.reader.SpelledIn(shard)
		for _, at := range slices.SortedFunc(maps.Keys(cells), textfile.Spelled.Compare) {
			c.Count(fmt.Sprintf("%s%q in column %q", CellsMissing, at.Word, at.Column), cells[at])
		}
		err = s.countRounded(c, shard)
	}
	return s.in.local(err)
}

// countRounded counts the whole numbers of a shard that float64 cannot represent. It computes
// the name of a column's counter only once: the name contains a line number, for which the file
// must be read.
func (s *textSource) countRounded(c *engine.Context, shard int) error {
	for _, r := range s.reader.RoundedIn(shard) {
		if s.rounded[r.Column] == "" {
			line, err := r.Line()
			if err != nil {
				return err
			}
			if s.rounded == nil {
				s.rounded = map[string]string{}
			}
			s.rounded[r.Column] = RoundedCells{Column: r.Column, Path: r.Path, Line: line, Value: r.Value}.counter()
		}
		c.Count(s.rounded[r.Column], r.Numbers)
	}
	return nil
}

// Locate returns the file and line of a row. It returns "" if rows may have been left out, as
// the numbers of later rows then differ from the numbers of their records in the file.
func (s *textSource) Locate(c *engine.Context, shard int, row int64) (place string, err error) {
	if s.config.OnError == textfile.Skip {
		return "", nil
	}
	cfg := s.config
	cfg.Shards, cfg.SpoolDir, cfg.Disk, cfg.Allocator, cfg.Workers = c.Shards, c.SpillDir, c.Disk, c.Allocator, 1
	r, err := s.open(c, cfg)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.Place(c, shard, row)
}

func (s *textSource) Close() error {
	if s.reader == nil {
		return nil
	}
	return s.readers.release(func(r textReader) {
		if n := r.Skipped(); n > 0 && s.c.Err() == nil {
			s.c.Logger.Warn("rows were skipped", "operator", s.c.Node.Op, "rows", n, "first", r.FirstSkipped())
		}
	})
}

// addText adds a source of a text format.
func addText(b *engine.Builder, op string, in InputFiles, attrs []engine.Attr, schema *arrow.Schema, cfg textfile.Config,
	open func(ctx context.Context, cfg textfile.Config) (textReader, error)) *engine.Dataset {
	readers := &sharedReader[textReader]{}
	cfg.FS = in.fsys
	return b.Add(engine.Spec{
		Op:     op,
		Attrs:  attrs,
		Schema: arrowrows.Schema(schema),
		Source: func() engine.Source { return &textSource{in: in, readers: readers, open: open, config: cfg} },
	})
}
