package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/superstep-ml/superstep/shared"
)

// What follows makes fileOutput a task.ResumeSink. A commit of parts takes these steps
// on disk, each of which is durable before the next begins, so that it can be cut off
// after any of them and finished by another process:
//
//  1. The parts are put together to one file; they stay. (Not with one file per shard.)
//  2. The seal is written: a file in the staging directory that names the run and says
//     that what takes the place of the output is complete.
//  3. It takes its place, by one rename or exchange; or, where a directory is replaced
//     and the system cannot exchange, by one that makes room and one that takes it.
//  4. The receipt is written beside the output: a file that names the run.
//  5. The staging directory is removed, the seal first.
//  6. The receipt is removed, once the job manager has put on record that the job has
//     finished, so that nobody will ask (Settle).
//
// Where the receipt names the run, the output has taken its place. Where the seal does,
// step 3 is done if what was sealed is not there any more: nothing but that step takes
// it away while the seal is there. Whoever begins a run with the same output removes
// seal, receipt and parts before anything else, under the lock of the output; so what
// is found has not been followed by another run. Where neither is found nor the parts,
// nobody can tell what became of the output, and that is an error, though it may stand.
//
// An exchange leaves what was replaced where the sealed directory was. The seal has the
// identity of the latter, which tells the two apart.

// seal is the content of the seal, and that of the receipt.
type seal struct {
	Run string `msgpack:"run"` // name of the directory of parts, which is the run's alone
	ID  uint64 `msgpack:"id"`  // of the file or directory that takes the place, 0 if not known
}

var sealCodec = shared.Msgpack[seal]()

// receiptPath is where the receipt of an output is.
func receiptPath(target string) string { return stagingDir(target) + ".done" }

// lockPatience is how long Resume waits for the lock of an output: a worker that is
// being killed holds it until its process is gone.
const lockPatience = 10 * time.Second

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readSeal reads a seal or receipt; one that is not there, or not whole, is zero.
func readSeal(path string) (s seal, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return seal{}, nil
	}
	if err != nil {
		return seal{}, err
	}
	if s, err = sealCodec.Decode(data); err != nil {
		return seal{}, nil
	}
	return s, nil
}

// writeSeal writes a seal or receipt, which is there whole or not at all. It is made in
// the staging directory.
func (o *fileOutput) writeSeal(path string, s seal) error {
	data, err := sealCodec.Append(nil, s)
	if err != nil {
		return err
	}
	made := filepath.Join(o.stage.dir, sealFile+".new")
	file, err := os.OpenFile(made, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(made, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// seal is steps 1 to 5.
func (o *fileOutput) seal() error {
	if err := o.finish(seal{}); err != nil {
		return o.failed(err)
	}
	// The output stands: what cannot be removed now is left to the next run.
	_ = o.stage.remove()
	o.stage = nil
	o.did("remove the staging directory")
	return nil
}

// finish is steps 1 to 4, of which those before and including the second are done where
// sealed is not zero.
func (o *fileOutput) finish(sealed seal) error {
	o.keep = true
	from := o.parts
	if !o.perShard {
		from = filepath.Join(o.stage.dir, wholeFile)
	}
	if sealed.Run == "" {
		var err error
		if sealed, err = o.complete(from); err != nil {
			return err
		}
	}
	placed, err := o.placed(from, sealed)
	if err != nil {
		return err
	}
	if !placed {
		if err := o.place(from); err != nil {
			return err
		}
		o.did("take the place")
	}
	if err := syncDir(filepath.Dir(o.target)); err != nil {
		return err
	}
	err = o.writeSeal(receiptPath(o.target), sealed)
	o.did("write the receipt")
	return err
}

// complete is steps 1 and 2.
func (o *fileOutput) complete(from string) (seal, error) {
	var err error
	if o.perShard {
		err = syncDir(from)
	} else {
		err = o.join(from)
	}
	if err != nil {
		return seal{}, err
	}
	o.did("complete")
	info, err := os.Stat(from)
	if err != nil {
		return seal{}, err
	}
	sealed := seal{Run: filepath.Base(o.parts), ID: fileID(info)}
	err = o.writeSeal(filepath.Join(o.stage.dir, sealFile), sealed)
	o.did("seal")
	return sealed, err
}

// placed reports whether what was sealed has taken its place.
func (o *fileOutput) placed(from string, sealed seal) (bool, error) {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || !o.perShard || !o.replace || sealed.ID == 0 || fileID(info) == sealed.ID {
		return false, err
	}
	info, err = os.Lstat(o.target)
	if err != nil {
		return false, err
	}
	if fileID(info) != sealed.ID {
		return false, fmt.Errorf("neither %s nor %s is the directory that was about to take the place of the output: something else has moved them", from, o.target)
	}
	return true, nil
}

// Resume finishes a commit of parts in another process.
func (o *fileOutput) Resume(written [][]byte) error {
	if len(written) == 0 {
		return o.failed(errors.New("it is not known what was written aside"))
	}
	w, err := writtenCodec.Decode(written[0])
	if err != nil {
		return o.failed(fmt.Errorf("what worker 0 says it wrote: %w", err))
	}
	run := filepath.Base(w.Dir)
	if err := o.locate(); err != nil {
		return err
	}
	stage := &staging{dir: stagingDir(o.target)}
	if stage.lock, err = lockInTime(stage.dir + ".lock"); err != nil {
		return o.failed(err)
	}
	o.stage, o.parts, o.wrote = stage, filepath.Join(stage.dir, run), nil
	ours, err := o.resume(run, written)
	o.stage = nil
	if ours && err == nil {
		_ = stage.remove() // what stays is removed by the next run
		o.did("remove the staging directory")
		return nil
	}
	return errors.Join(err, unlockFile(stage.lock))
}

// resume is Resume with the lock. It reports whether what is left aside is that of this
// run, so that it can be removed.
func (o *fileOutput) resume(run string, written [][]byte) (ours bool, err error) {
	receipt, err := readSeal(receiptPath(o.target))
	if err != nil {
		return false, o.failed(err)
	}
	if receipt.Run == run {
		return true, nil
	}
	sealed, err := readSeal(filepath.Join(o.stage.dir, sealFile))
	if err != nil {
		return false, o.failed(err)
	}
	if sealed.Run == run {
		return true, o.failed(o.finish(sealed))
	}
	if _, err := os.Stat(o.parts); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("what was written aside, %s, is not there any more: another run with this output has begun since, or something else removed it; "+
				"whether the output became visible before is not known", o.parts)
		}
		return false, o.failed(err)
	}
	if err := o.checkTarget(); err != nil {
		return false, err
	}
	if err := o.checkParts(written); err != nil {
		return false, err
	}
	return true, o.failed(o.finish(seal{}))
}

// Settle removes the receipt of this run.
func (o *fileOutput) Settle() error {
	if o.target == "" {
		return nil
	}
	path := receiptPath(o.target)
	receipt, err := readSeal(path)
	if err != nil || receipt.Run == "" || receipt.Run != filepath.Base(o.parts) {
		return err
	}
	return removeIfThere(path)
}

// lockInTime is lockFile that waits for whoever is about to give up the lock.
func lockInTime(path string) (*os.File, error) {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		f, err := lockFile(path)
		if err == nil || !errors.Is(err, errLocked) || time.Since(began) > lockPatience {
			return f, err
		}
	}
}
