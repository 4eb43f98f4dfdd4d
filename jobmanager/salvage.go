package jobmanager

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"

	"github.com/superstep-ml/superstep/internal/boltfile"
	"github.com/superstep-ml/superstep/internal/wire"
)

// A job manager starts even if its history is damaged. It renames the damaged file, to a name
// that says that the file is damaged, and copies every value with a correct checksum to a new
// file. If only the ID or only the files of a job are left, the job is recorded as failed, so
// that no job disappears silently.

// stored is a value of the history, with the value's bucket and key.
type stored struct {
	bucket, key, value []byte // value does not include the checksum
}

// inspection is the result of examining a file.
type inspection struct {
	values []stored
	lost   []wire.JobID // jobs whose records are damaged
	// lostCordons has the names of task managers whose cordons are damaged.
	lostCordons []string
	count       uint64 // the number of values before the damage; 0 if that is unknown
	wrong       []error
}

// is reports whether i.wrong has an error that matches what, by errors.Is.
func (i *inspection) is(what error) bool { return errors.Is(errors.Join(i.wrong...), what) }

// missing returns text that says how many values are lost.
func (i *inspection) missing() string {
	kept := uint64(len(i.values))
	switch {
	case i.count < kept || i.count == 0:
		return "unknown how many"
	case i.is(boltfile.ErrBehind):
		return strconv.FormatUint(i.count-kept, 10) + ", besides what its last change may have written"
	}
	return strconv.FormatUint(i.count-kept, 10)
}

// announce returns the log message about the damage that was found.
func (i *inspection) announce() string {
	const damaged = "THE HISTORY OF JOBS WAS DAMAGED"
	switch {
	case i.is(boltfile.ErrNoBeginning):
		return damaged + ", in the pages that say where its current contents begin, so that NOTHING OF IT COULD BE KEPT. It is set aside; jobs of which there are files are shown as failed"
	case i.is(boltfile.ErrBehind):
		return damaged + ", and its last change may be lost. It is set aside, and what could be read is kept; jobs whose records are lost are shown as failed, and those that are not on record as ended may have come further"
	}
	return damaged + ". It is set aside, and what could be read is kept; jobs whose records are lost are shown as failed"
}

// inspect examines the file before bbolt opens it, and salvages a damaged file. It holds the
// lock of the file, so that no other job manager writes to the file.
func (h *history) inspect(root *os.Root, log hclog.Logger) error {
	file, err := holdFile(root)
	if file == nil || err != nil {
		return err
	}
	defer file.Close()
	found, err := examine(root, file)
	if err != nil || len(found.wrong) == 0 {
		return err
	}
	if h.damaged, err = salvage(root, found); err != nil {
		return fmt.Errorf("the history of jobs, %s in %s, is damaged (%w), and what can be read cannot be kept: %w; make room, or move the file away to begin a new one", historyName, root.Name(), found.wrong[0], err)
	}
	h.lost, h.lostCordons, h.behind = found.lost, found.lostCordons, found.is(boltfile.ErrBehind)
	log.Error(found.announce(),
		"file", h.damaged, "values kept", len(found.values), "values lost", found.missing(), "damage", errors.Join(found.wrong...).Error())
	return nil
}

// holdFile opens the history's file and locks it. It returns nil if the file does not exist.
func holdFile(root *os.Root) (*os.File, error) {
	for end := time.Now().Add(lockWait); ; time.Sleep(lockWait / 20) {
		file, err := root.OpenFile(historyName, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("open the history of jobs in %s: %w", root.Name(), err)
		}
		ours, err := lockFile(file)
		if err == nil && ours {
			mine, e1 := file.Stat()
			there, e2 := root.Stat(historyName)
			if errors.Join(e1, e2) == nil && os.SameFile(mine, there) { // otherwise the file was renamed meanwhile
				return file, nil
			}
		}
		if e := file.Close(); err != nil || e != nil {
			return nil, fmt.Errorf("lock the history of jobs in %s: %w", root.Name(), errors.Join(err, e))
		}
		if time.Now().After(end) {
			return nil, errOccupied(root)
		}
	}
}

// examine reads the whole file and returns its values and its damage.
func examine(root *os.Root, file *os.File) (found inspection, err error) {
	info, err := file.Stat()
	if err != nil {
		return found, fmt.Errorf("look at the history of jobs: %w", err)
	}
	if info.Size() == 0 {
		if jobs, err := fs.ReadDir(root.FS(), jobsDir); err == nil && len(jobs) > 0 {
			found.wrong = append(found.wrong, errors.New("the file is empty"))
		}
		return found, nil
	}
	var format, held []byte
	var sum contentSum
	var values []stored // values with their checksums
	buckets := map[string]bool{}
	found.wrong = boltfile.Read(file, info.Size(), func(bucket, key, value []byte) {
		buckets[string(bucket)] = true
		switch {
		case bytes.Equal(bucket, metaBucket) && bytes.Equal(key, formatKey):
			format = value
		case bytes.Equal(bucket, metaBucket) && bytes.Equal(key, contentSumKey):
			held = value
		case slices.ContainsFunc(dataBuckets, func(b []byte) bool { return bytes.Equal(b, bucket) }):
			values = append(values, stored{bucket, key, value})
		}
	})
	if len(found.wrong) == 0 && held == nil {
		if format == nil && len(values) == 0 {
			return found, nil // the file was created, but nothing was written to it
		}
		if format != nil && string(format) != historyFormat {
			return found, nil // the file has another format; openHistory returns the error
		}
	}
	for _, s := range values {
		value, err := unseal(s.bucket, s.key, s.value)
		if err != nil {
			found.wrong = append(found.wrong, fmt.Errorf("%s of %s: %w", s.key, s.bucket, err))
			if bytes.Equal(s.bucket, jobsBucket) && strings.Trim(string(s.key), "abcdefghijklmnopqrstuvwxyz0123456789-") == "" {
				found.lost = append(found.lost, wire.JobID(s.key))
			}
			if bytes.Equal(s.bucket, cordonsBucket) && utf8.Valid(s.key) {
				found.lostCordons = append(found.lostCordons, string(s.key))
			}
			continue
		}
		sum.enter(s.value)
		found.values = append(found.values, stored{s.bucket, s.key, value})
	}
	counted, err := unseal(metaBucket, contentSumKey, held)
	if c, e := decodeContentSum(counted); err == nil && e == nil {
		found.count = c.count
	}
	switch {
	case err != nil:
		found.wrong = append(found.wrong, fmt.Errorf("the number of values: %w", err))
	case string(format) != historyFormat:
		found.wrong = append(found.wrong, fmt.Errorf("the format is %q", format))
	case !bytes.Equal(counted, sum.encode()):
		found.wrong = append(found.wrong, errors.New("values are missing, or older than they should be"))
	}
	return found, nil
}

// salvage writes a new file with the values in found, and renames the damaged file. aside is
// the new name of the damaged file.
func salvage(root *os.Root, found inspection) (aside string, err error) {
	const fresh = historyName + ".new"
	if err := root.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	options := *bbolt.DefaultOptions
	options.OpenFile = root.OpenFile
	db, err := bbolt.Open(fresh, 0o600, &options)
	if err != nil {
		return "", err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if err := prepare(tx); err != nil {
			return err
		}
		var all contentSum
		for _, s := range found.values {
			sealed := seal(s.bucket, s.key, s.value)
			all.enter(sealed)
			if err := tx.Bucket(s.bucket).Put(s.key, sealed); err != nil {
				return err
			}
		}
		return finish(tx, all)
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		aside = fmt.Sprintf("%s.damaged-%d", historyName, n)
		err := root.Link(historyName, aside)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil { // the file system may not support hard links
			err = root.Rename(historyName, aside)
		}
		if err == nil {
			err = root.Rename(fresh, historyName)
		}
		return aside, err
	}
}

// If the last change of the history may be lost, doubt sets Doubt in the records of jobs that
// are not recorded as ended, because these jobs may have progressed further than their records
// say. Doubt stays until the end of the job.
func (h *history) doubt(records []record) {
	if !h.behind {
		return
	}
	for i := range records {
		if !records[i].Info.State.Ended() {
			records[i].Doubt = h.mayBeFurther("its last change may be lost")
		}
	}
}

// mayBeFurther returns the explanation that a job may have come further than its record says, for
// the given reason.
func (h *history) mayBeFurther(reason string) string {
	return fmt.Sprintf("the history of jobs was damaged (%s) and %s, so that the job may have come further, to its end even: all, some or none of its results may be visible", h.damaged, reason)
}

// doubtOutdated sets Doubt in the records of jobs that have not ended, if their events have a later
// attempt or show that they have begun to commit. A damaged history may have old values in place of
// new ones, and a job that has made its results visible must not begin again. In a history that is
// not damaged, an event may be slightly ahead of the record.
func (h *history) doubtOutdated(root *os.Root, records []record) {
	for i := range records {
		r := &records[i]
		if r.Info.State.Ended() || r.Doubt != "" {
			continue
		}
		attempt, commits := lastAttempt(root, r.Info.ID)
		if attempt > r.Info.Attempt || commits && r.Info.State != wire.JobCommitting {
			r.Doubt = h.mayBeFurther("the job's events are later than its record")
		}
	}
}

// lastAttempt returns the number of a job's last attempt according to its events, and whether the
// job has begun to commit. Events that cannot be read are left out.
func lastAttempt(root *os.Root, id wire.JobID) (attempt int, commits bool) {
	file, err := root.Open(spoolName(id))
	if err != nil {
		return 0, false
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil {
		return 0, false
	}
	reader := spoolReader{file: file, seed: spoolSeed(id)}
	for {
		e, err := reader.next(stat.Size(), 0)
		if err != nil {
			return attempt, commits
		}
		if e.State != nil {
			attempt, commits = max(attempt, e.State.Attempt), commits || e.State.State == wire.JobCommitting
		}
	}
}

// replaceLost returns records for jobs whose records are lost, if their IDs are readable in the
// damaged history or their files exist.
func (h *history) replaceLost(root *os.Root, records []record, now time.Time) (lost []record, err error) {
	ids := h.lost
	if files, err := fs.ReadDir(root.FS(), jobsDir); err == nil {
		for _, f := range files {
			ids = append(ids, wire.JobID(f.Name()))
		}
	}
	slices.Sort(ids)
	var changes []change
	for _, id := range slices.Compact(ids) {
		if slices.ContainsFunc(records, func(r record) bool { return r.Info.ID == id }) {
			continue
		}
		detail := fmt.Sprintf("the history of jobs was damaged (%s): what became of this job is not known, and if it was making its results visible, all, some or none of them may be", h.damaged)
		r := record{Doubt: detail, Info: wire.JobInfo{ID: id, Name: string(id), State: wire.JobFailed, Detail: detail, Submitted: now, Ended: now,
			Failure: &wire.Failure{Kind: wire.ClusterFailure, Message: detail, Worker: -1, ExitCode: -1}}}
		c, err := newChange(r)
		if err != nil {
			return lost, err
		}
		changes, lost = append(changes, c), append(lost, r)
	}
	if len(changes) > 0 {
		err = h.write(changes)
	}
	return lost, err
}
