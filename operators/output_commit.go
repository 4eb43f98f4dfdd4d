package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/filelock"
)

// These are names within the staging directory.
const (
	partsDir  = "parts-" // prefix of the name of the directory for the files of shards; the rest of the name is unique to the run
	goneDir   = "gone"   // new name of the directory for the files of shards before it is removed
	wholeFile = "whole"  // the file that is assembled from the files of shards
	oldDir    = "old"    // the previous file or directory at the output's path
)

// fileOutput is the sink behind WriteFiles. It moves the staged files of the subtasks to the
// output's path, together with the other outputs of the run, or removes them.
type fileOutput struct {
	path     string // path of the output as the user wrote it
	perShard bool
	replace  bool
	format   FileFormat
	schema   *arrow.Schema
	shards   int
	mem      memory.Allocator
	disk     outputDisk
	owner    filelock.Owner // the attempt of the job on a cluster; zero elsewhere

	// Begin sets the following fields.
	target string      // absolute path of the output, with symbolic links resolved
	mode   fs.FileMode // mode of the file that the output replaces; 0 if there is none
	stage  *staging
	parts  string // directory for the files of shards; on workers other than worker 0, Join sets it

	mu    sync.Mutex
	wrote []partFile // files that the subtasks of this process have completed

	// Complete sets the following fields.
	how  engine.Completion
	made *placement // the complete output; nil before the output is complete and after it has been taken back
}

// Begin makes the staging directory. It returns an error if the output exists and must not be
// replaced, or if the output cannot be written.
func (o *fileOutput) Begin() error {
	if err := o.locate(); err != nil {
		return err
	}
	o.how, o.made = engine.Completion{}, nil
	stage, finished, err := newStaging(o.disk, o.target, o.owner)
	if err != nil {
		return o.failed(err)
	}
	// The target is checked only now, while the lock keeps other runs from writing it.
	if o.mode, err = checkTarget(o.path, o.target, o.perShard, o.replace); err == nil {
		if o.parts, err = stage.makeParts(o.partsPrefix()); err == nil {
			o.stage, o.wrote = stage, nil
			return nil
		}
		err = o.failed(err)
	} else if finished {
		err = fmt.Errorf("%w; it is that of an earlier run, which was interrupted while it made its outputs visible and has just been finished", err)
	}
	return errors.Join(err, stage.remove())
}

// locate determines the absolute path of the output and checks the directory that contains it.
func (o *fileOutput) locate() error {
	target, err := filepath.Abs(o.path)
	if err != nil {
		return o.failed(err)
	}
	o.target = target
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

// Overlaps reports whether the next attempt may begin while this one still runs; see staging. That
// is so on a cluster.
func (o *fileOutput) Overlaps() bool { return o.owner.Job != "" }

// Aside returns the staging directory.
func (o *fileOutput) Aside() string { return stagingDir(o.target) }

// Complete assembles the output. It also writes the seal if another process may have to finish
// the commit. Complete does not verify the output; Place does.
func (o *fileOutput) Complete(c engine.Completion) error {
	o.how = c
	if c.Resumed {
		return o.resume()
	}
	return o.complete()
}

func (o *fileOutput) complete() error {
	parts, err := o.partsOf(o.how.Written)
	if err != nil {
		return err
	}
	made := &placement{stage: o.stage.dir, disk: o.disk, completedHere: true, seal: seal{
		Run: filepath.Base(o.parts), Target: o.target, PerShard: o.perShard, Replace: o.replace,
	}}
	if made.Before, err = fileStateAt(o.target); err != nil {
		return o.failed(err)
	}
	if o.perShard {
		for i := range parts {
			parts[i].Name = filepath.Base(o.shardPath(parts[i].Shard))
		}
		made.Files = parts
		err = o.disk.SyncDir(o.parts)
	} else {
		made.Files = make([]partFile, 1)
		made.Files[0], err = o.join(made.from(), parts)
	}
	if err == nil {
		err = o.seal(made)
	}
	if err != nil {
		return o.failed(err)
	}
	o.made = made
	return nil
}

// seal fills in the seal of the complete output, and writes it to disk if another process may
// have to finish the commit.
func (o *fileOutput) seal(made *placement) error {
	info, err := os.Lstat(made.from())
	if err != nil {
		return err
	}
	made.ID = fileID(info)
	if len(o.how.Set) > 0 {
		if err := o.joinSet(made); err != nil {
			return err
		}
	} else if !o.how.Recorded {
		return nil
	}
	err = writeRecord(o.disk, sealCodec, made.stage, filepath.Join(made.stage, sealFile), made.seal)
	if err == nil && o.how.Recorded {
		err = o.disk.SyncDir(made.stage)
	}
	return err
}

// joinSet records in the seal to which set the output belongs. The first output of the set is
// sealed before the others. The name of the set is the unique name of the first output's
// directory of parts.
func (o *fileOutput) joinSet(made *placement) (err error) {
	made.Journal = o.how.Set[0]
	if made.Journal == made.stage {
		made.Set, made.Dirs = made.Run, o.how.Set
		made.First.Target = made.Target
		made.First.Made, err = fileStateAt(made.from())
		return err
	}
	first, err := readRecord(sealCodec, filepath.Join(made.Journal, sealFile))
	if err == nil && (first.Set == "" || first.Set != first.Run) {
		err = fmt.Errorf("%s, which links the outputs of this run, no longer exists: look for what removed it, and run the job again", filepath.Join(made.Journal, sealFile))
	}
	made.Set, made.First = first.Set, first.First
	return err
}

// Decide writes the journal, which records that all outputs of the set must be moved to their
// targets.
func (o *fileOutput) Decide() error { return o.failed(decide(o.disk, o.made.Set, o.how.Set)) }

// Place moves the output to its target.
func (o *fileOutput) Place() error {
	if o.made == nil {
		return nil
	}
	err := o.made.place()
	if err == nil && o.how.Recorded {
		err = o.writeReceipt()
	}
	return o.failed(err)
}

// TakeBack undoes Place. Before that it records in the journal that the set is undone, as no
// output may be taken back without this record. If TakeBack of one output cannot write the
// record, TakeBack of the next output tries again.
func (o *fileOutput) TakeBack() error {
	if o.made == nil {
		return nil
	}
	var err error
	if o.made.Set != "" {
		err = undo(o.disk, o.made.Journal, o.made.Set)
	}
	if err == nil && o.how.Recorded {
		err = o.Settle()
	}
	var left error
	if err == nil {
		left, err = o.made.takeBack()
	}
	if err != nil {
		return o.failed(errors.Join(left, err))
	}
	o.made = nil
	return o.failed(left)
}

// Finish removes the files that TakeBack would have needed.
func (o *fileOutput) Finish() {
	stage := o.stage
	o.stage, o.made = nil, nil
	if set := o.how.Set; len(set) > 0 {
		stage.noted = true
		err := endJournal(o.disk, set[0])
		if err != nil || set[0] == stage.dir && waitsFor(stage.dir, filepath.Base(o.parts)) {
			_ = stage.leave()
			return
		}
	}
	_ = stage.remove()
}

// Commit moves the output to its target. It is called if the run has only this output.
func (o *fileOutput) Commit() error {
	err := o.Complete(engine.Completion{})
	if err == nil {
		err = o.Place()
	}
	if err != nil {
		return errors.Join(err, o.TakeBack())
	}
	o.Finish()
	return nil
}

// Leave releases the lock, and leaves everything else as it is.
func (o *fileOutput) Leave() error {
	if o.stage == nil {
		return nil
	}
	stage := o.stage
	o.stage = nil
	return stage.leave()
}

// Abort removes the staged files. If the output could not be taken back, the staged files and
// the journal remain, and the next run with this output finishes or undoes the commit.
func (o *fileOutput) Abort() error {
	if o.stage == nil {
		return nil
	}
	stage := o.stage
	o.stage = nil
	if o.made != nil {
		return stage.leave()
	}
	if set := o.how.Set; len(set) > 0 {
		stage.noted = isNoted(set[0])
		if set[0] == stage.dir && waitsFor(stage.dir, filepath.Base(o.parts)) {
			return stage.leave()
		}
	}
	return stage.remove()
}

// renameFree moves a file: from is its old path, and to is its new path, at which nothing may
// exist. It is for systems that cannot check and move in one system call.
func renameFree(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}
