package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/superstep-ml/superstep/engine"
)

// What follows lets another process finish the commit of a fileOutput of which somebody
// else has on record that it is to be finished (task.Completion.Recorded). It takes these
// steps on disk, each of which is durable before the next begins, so that it can be cut
// off after any of them and finished by another process:
//
//  1. The parts are put together to one file; they stay. (Not with one file per shard.)
//  2. The seal is written: a file in the staging directory that names the run and says
//     that what takes the place of the output is complete. Now the other outputs of the
//     run come as far.
//  3. It takes its place; see placement.
//  4. The receipt is written beside the output: a file that names the run. Now the other
//     outputs of the run come as far.
//  5. The staging directory is removed, the seal first.
//  6. The receipt is removed, once it is on record that the job has finished, so that
//     nobody will ask (Settle).
//
// Where the receipt names the run, the output has taken its place. Where the seal does,
// step 3 is done if what was sealed is not there any more and its place holds it, whole: if
// neither does, something else took it away, which is an error. Whoever begins a run with the same output removes
// seal, receipt and parts before anything else, under the lock of the output; so what
// is found has not been followed by another run. Where neither is found nor the parts,
// nobody can tell what became of the output, and that is an error, though it may stand.
//
// An exchange leaves what was replaced where that which was sealed had been. The seal has
// the identity of the latter, which tells the two apart.

// writeReceipt is step 4.
func (o *fileOutput) writeReceipt() error {
	path := receiptPath(o.stage.dir)
	if err := writeRecord(o.disk, sealCodec, o.stage.dir, path, seal{Run: o.made.Run}); err != nil {
		return err
	}
	return o.disk.SyncDir(filepath.Dir(path))
}

// resume is Complete in another process, from whatever step it had come to. The lock is
// held when it returns, and given up by Finish or Leave.
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
	if o.stage, err = holdStaging(o.disk, stagingDir(o.target)); err != nil {
		return o.failed(err)
	}
	run := filepath.Base(w.Dir)
	o.parts, o.wrote, o.made = filepath.Join(o.stage.dir, run), nil, nil
	sealed, err := readRecord(sealCodec, filepath.Join(o.stage.dir, sealFile))
	if err != nil {
		return o.failed(err)
	}
	if sealed.Run == run {
		sealed.Target = o.target // which another machine may see at another path
		o.made = &placement{seal: sealed, stage: o.stage.dir, disk: o.disk}
		return nil
	}
	receipt, err := readRecord(sealCodec, receiptPath(o.stage.dir))
	if err != nil || receipt.Run == run {
		return o.failed(err)
	}
	if _, err := os.Stat(o.parts); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("what was written aside, %s, is not there any more: another run with this output has begun since, or something else removed it; "+
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

var _ engine.JointSink = (*fileOutput)(nil)
