package operators

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
)

// Names within the directory that an output is written aside in.
const (
	partsDir  = "parts-" // the files of shards; what follows is of the run alone
	goneDir   = "gone"   // these, when they are given up
	wholeFile = "whole"  // the file they are put together to
	oldDir    = "old"    // the directory that was replaced
	sealFile  = "seal"   // says that what takes the place is complete (output_resume.go)
)

// fileOutput is the sink behind WriteFiles: what the subtasks wrote aside takes
// its place, or is removed.
type fileOutput struct {
	path     string // as the user wrote it
	perShard bool
	replace  bool
	format   FileFormat
	schema   *arrow.Schema
	shards   int
	mem      memory.Allocator

	// Known from Begin on.
	target string      // where the output goes, links followed
	mode   fs.FileMode // of the file it replaces, 0 if there is none
	stage  *staging
	parts  string // directory for the files of shards; from Join on elsewhere

	mu    sync.Mutex
	wrote []partFile // by the subtasks of this process

	// keep has parts stay until all of them are put together, so that a commit that was
	// cut off can begin again.
	keep bool
	// step is called after each step on disk of a commit that can be resumed, where a
	// test wants to cut it off; nil is nothing.
	step func(name string)
	// swap is exchange where it is nil; a test has one that the system lacks.
	swap func(a, b string) error
}

// Begin refuses an output that exists or cannot be written, and makes the
// directory to write aside in.
func (o *fileOutput) Begin() error {
	if err := o.locate(); err != nil {
		return err
	}
	stage, err := newStaging(o.target)
	if err != nil {
		return o.failed(err)
	}
	// Only now that no other run writes here does it count whether it is free.
	if err = o.checkTarget(); err == nil {
		if o.parts, err = stage.makeParts(); err == nil {
			o.stage, o.wrote = stage, nil
			return nil
		}
		err = o.failed(err)
	}
	return errors.Join(err, stage.remove())
}

// locate finds the place of the output and checks the directory it lies in.
func (o *fileOutput) locate() error {
	o.target = filepath.Clean(o.path)
	if info, err := os.Lstat(o.target); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if o.target, err = filepath.EvalSymlinks(o.target); err != nil {
			return fmt.Errorf("output %s is a link that leads nowhere: %w", o.path, err)
		}
	}
	dir := filepath.Dir(o.target)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot write output %s: the directory %s does not exist; make it first", o.path, dir)
	case err != nil:
		return o.failed(err)
	case !info.IsDir():
		return fmt.Errorf("cannot write output %s: %s is not a directory", o.path, dir)
	}
	return nil
}

// checkTarget says whether the output may take its place, as far as can be known
// now.
func (o *fileOutput) checkTarget() error {
	info, err := os.Lstat(o.target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return o.failed(err)
	case o.perShard:
		return o.checkDir(info)
	case info.IsDir():
		return fmt.Errorf("output %s is a directory; give the path of a file, or ask for one file per shard", o.path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("output %s is not a regular file (%s), which cannot be replaced", o.path, info.Mode().Type())
	case !o.replace:
		return o.exists()
	}
	o.mode = info.Mode().Perm()
	return nil
}

func (o *fileOutput) exists() error {
	return fmt.Errorf("output %s exists: choose another path, or replace it with --if-exists replace (engine.IfExists(engine.Replace))", o.path)
}

// checkDir refuses to replace a directory that holds anything but an output like
// this one. An empty directory is as good as none.
func (o *fileOutput) checkDir(info fs.FileInfo) error {
	if !info.IsDir() {
		return fmt.Errorf("output %s is a file, and one file per shard needs a directory; remove it or choose another path", o.path)
	}
	entries, err := os.ReadDir(o.target)
	if err != nil {
		return o.failed(err)
	}
	if len(entries) > 0 && !o.replace {
		return o.exists()
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "part-") || !e.Type().IsRegular() {
			return fmt.Errorf("output directory %s is not replaced, as it holds more than the files of an output, such as %s; remove it or choose another path", o.path, e.Name())
		}
	}
	return nil
}

// Commit makes the output visible, all at once.
func (o *fileOutput) Commit() error {
	if err := o.commit(); err != nil {
		return o.failed(err)
	}
	// The output stands: what cannot be removed now is left to the next run.
	_ = o.stage.remove()
	o.stage = nil
	return nil
}

func (o *fileOutput) commit() error {
	from := o.parts
	if !o.perShard {
		from = filepath.Join(o.stage.dir, wholeFile)
		if err := o.join(from); err != nil {
			return err
		}
	} else if err := syncDir(from); err != nil {
		return err
	}
	if err := o.place(from); err != nil {
		return err
	}
	return syncDir(filepath.Dir(o.target))
}

// place moves what is complete to where it belongs.
func (o *fileOutput) place(from string) error {
	if o.perShard {
		return o.placeDir(from)
	}
	if o.replace {
		return os.Rename(from, o.target)
	}
	err := renameNew(from, o.target)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("something else made %s while the job ran: %w", o.target, err)
	}
	return err
}

// placeDir is place of one file per shard.
func (o *fileOutput) placeDir(from string) error {
	if !o.replace {
		return renameDir(from, o.target, func() { o.did("make room") })
	}
	swap := exchange
	if o.swap != nil {
		swap = o.swap
	}
	return placeDir(from, o.target, filepath.Join(o.stage.dir, oldDir), swap, func() { o.did("make room") })
}

// did notes a step of a commit.
func (o *fileOutput) did(step string) {
	if o.step != nil {
		o.step(step)
	}
}

// placeDir moves a directory to target. A directory that stands there goes to
// old: in one step where the system can exchange the two, otherwise in a first
// one, which newStaging takes back if the second did not happen;
// moved is called between the two.
func placeDir(from, target, old string, swap func(a, b string) error, moved func()) error {
	if swap(from, target) == nil {
		return nil
	}
	if err := os.Rename(target, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	moved()
	if err := os.Rename(from, target); err != nil {
		if back := os.Rename(old, target); back != nil && !errors.Is(back, fs.ErrNotExist) {
			return errors.Join(err, back)
		}
		return err
	}
	return nil
}

// renameDir moves a directory to a place where none or an empty one stands.
func renameDir(from, target string, moved func()) error {
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("something else wrote to %s while the job ran: %w", target, err)
	}
	moved()
	return os.Rename(from, target)
}

// join puts the parts of all shards together to one file.
func (o *fileOutput) join(path string) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	if o.mode != 0 {
		if err := file.Chmod(o.mode); err != nil {
			return err
		}
	}
	if o.format.Rows != nil {
		err = o.joinText(file)
	} else {
		err = o.joinRows(file)
	}
	if err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	done := file
	file = nil
	return done.Close()
}

// joinText appends the text of one shard after another. Each part is removed when
// it has been copied, so that the output needs the space of one part twice only,
// unless the parts are kept.
func (o *fileOutput) joinText(file *os.File) error {
	if o.format.Head != nil {
		if err := o.format.Head(file); err != nil {
			return err
		}
	}
	return o.eachPart(func(part *os.File) error {
		_, err := io.Copy(file, part)
		return err
	})
}

// joinRows reads the rows of one shard after another and writes them as one file.
func (o *fileOutput) joinRows(file *os.File) error {
	buf := bufio.NewWriterSize(file, 1<<20)
	w, err := o.format.File(buf, o.schema, o.mem)
	if err != nil {
		return err
	}
	chunks := chunker{mem: o.mem, rows: fileChunkRows, size: fileChunkBytes, emit: w.Write}
	defer chunks.release()
	err = o.eachPart(func(part *os.File) error { return o.readPart(part, &chunks) })
	if err == nil {
		err = chunks.flush()
	}
	if err != nil {
		buf.Reset(io.Discard)
		_ = w.Close() // for the memory it holds
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return buf.Flush()
}

func (o *fileOutput) readPart(part *os.File, chunks *chunker) error {
	r, err := batch.NewStreamReader(part, o.mem)
	if err != nil {
		return err
	}
	defer r.Release()
	for {
		rows, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = chunks.push(rows)
		rows.Release()
		if err != nil {
			return err
		}
	}
}

// eachPart opens the parts of the shards that have rows, in order, and removes
// them when they have been used, unless they are kept.
func (o *fileOutput) eachPart(use func(part *os.File) error) error {
	for shard := range o.shards {
		part, err := os.Open(o.shardPath(shard))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = errors.Join(use(part), part.Close())
		if err == nil && !o.keep {
			err = os.Remove(part.Name())
		}
		if err != nil {
			return err
		}
		o.did("join a part")
	}
	return nil
}

// Abort removes what was written.
func (o *fileOutput) Abort() error {
	if o.stage == nil {
		return nil
	}
	stage := o.stage
	o.stage = nil
	return stage.remove()
}

// renameFree moves a file to a place that is free, where the system cannot check
// and move in one step.
func renameFree(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}
