package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/superstep-ml/superstep/engine"
)

// The functions of this file are used by another process to finish the commit of a fileOutput,
// if the caller has recorded that the commit must be finished (task.Completion.Recorded). The
// commit has the following steps. Each is durable before the next begins, so that another
// process can finish the commit after an interruption at any point:
//
//  1. The parts are assembled into one file; the parts are not removed yet. (Outputs with one
//     file per shard do not need this step.)
//  2. The seal is written: a file in the staging directory that names the run and records that
//     the output is complete. The other outputs of the run reach this step before step 3.
//  3. The output is moved to its target; see placement.
//  4. The receipt is written beside the output: a file that names the run. The other outputs of
//     the run reach this step before step 5.
//  5. The staging directory is removed, the seal first.
//  6. Settle removes the receipt when it is recorded that the job has finished, so that no
//     process will resume the commit.
//
// If the receipt names the run, steps 1 to 4 are done. If the seal names the run, step 3 is
// done if the sealed output is not in the staging directory but complete at its target. If the
// sealed output is at neither path, something else has removed it, which is an error. A later
// run with the same output first removes the seal, the receipt and the parts, while it holds
// the lock of the output. So if the seal, the receipt or the parts are found, no later run has
// begun. If none of them is found, the state of the output is unknown. That is an error,
// although the output may be at its target.
//
// An exchange puts the replaced output at the staged path of the sealed output. The two are
// distinguished by the file ID of the sealed output, which is in the seal.

// writeReceipt performs step 4.
func (o *fileOutput) writeReceipt() error {
	path := receiptPath(o.stage.dir)
	if err := writeRecord(o.disk, sealCodec, o.stage.dir, path, seal{Run: o.made.Run}); err != nil {
		return err
	}
	return o.disk.SyncDir(filepath.Dir(path))
}

// resume continues a commit that another process began, whatever the last step of that process
// was, up to the last step that Complete performs. It returns with the lock held; Finish or
// Leave releases the lock.
func (o *fileOutput) resume() error {
	if len(o.how.Written) == 0 {
		return o.failed(errors.New("it is not known what was written aside"))
	}
	w, err := writtenCodec.Decode(o.how.Written[0])
	if err != nil {
		return o.failed(fmt.Errorf("what worker 0 says it wrote: %w", err))
	}
	if err := o.locate(); err != nil {
		return err
	}
	if o.stage, err = holdStaging(o.disk, stagingDir(o.target), o.owner); err != nil {
		return o.failed(err)
	}
	run := filepath.Base(w.Dir)
	o.parts, o.wrote, o.made = filepath.Join(o.stage.dir, run), nil, nil
	sealed, err := readRecord(sealCodec, filepath.Join(o.stage.dir, sealFile))
	if err != nil {
		return o.failed(err)
	}
	if sealed.Run == run {
		sealed.Target = o.target // the machine that wrote the seal may see the output at another path
		o.made = &placement{seal: sealed, stage: o.stage.dir, disk: o.disk}
		return nil
	}
	receipt, err := readRecord(sealCodec, receiptPath(o.stage.dir))
	if err != nil || receipt.Run == run {
		return o.failed(err)
	}
	if _, err := os.Stat(o.parts); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("what was written aside, %s, no longer exists: another run with this output has begun since, or something else removed it; "+
				"whether the output became visible before is not known", o.parts)
		}
		return o.failed(err)
	}
	if o.mode, err = checkTarget(o.path, o.target, o.perShard, o.replace); err != nil {
		return err
	}
	return o.complete()
}

// Settle removes the receipt of this run.
func (o *fileOutput) Settle() error {
	if o.target == "" {
		return nil
	}
	path := receiptPath(stagingDir(o.target))
	receipt, err := readRecord(sealCodec, path)
	if err != nil || receipt.Run == "" || receipt.Run != filepath.Base(o.parts) {
		return err
	}
	return removeIfThere(o.disk, path)
}

var (
	_ engine.JointSink   = (*fileOutput)(nil)
	_ engine.OverlapSink = (*fileOutput)(nil)
)
