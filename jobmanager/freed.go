package jobmanager

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/superstep-ml/superstep/internal/wire"
)

// A job that failed or was cancelled has no results. Its collected rows are removed from disk
// ("freed") once no follower reads them any more. The states of the job are kept, and so are
// the last Config.MaxLog bytes of the text that it printed, which may explain the failure. In
// the file, a gap frame replaces the removed events, so that later events keep their numbers.

// rowsUnneeded reports whether the rows of a job can be freed because the job has ended without
// results. If a later record of the job may be lost, the job may have finished, so its rows are
// not freed. The caller holds mu.
func (m *Manager) rowsUnneeded(id wire.JobID) bool {
	info, ok := m.core.Job(id)
	return ok && m.jobs[id] == nil && m.past[id].Doubt == "" &&
		(info.State == wire.JobFailed || info.State == wire.JobCancelled)
}

// dropFollower decrements the number of followers of a job, and frees the job's rows if they
// are not needed any more.
func (m *Manager) dropFollower(j *job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j.readers--
	if j.readers == 0 && m.jobs[j.id] != j && !m.closed {
		m.tasks.Go(func() { m.freeRows(j.id) })
	}
}

// freeAll frees the rows that are not needed any more, of jobs that had ended before the job
// manager started.
func (m *Manager) freeAll(ids []wire.JobID) {
	for _, id := range ids {
		if m.ctx.Err() != nil {
			return // the rows of the remaining jobs are freed after the next start
		}
		m.freeRows(id)
	}
}

// freeRows frees the rows of a job if they are not needed any more, and updates the size of the
// job's files.
func (m *Manager) freeRows(id wire.JobID) {
	m.mu.Lock()
	useless := m.rowsUnneeded(id)
	m.mu.Unlock()
	if !useless {
		return
	}
	freed, err := m.dropRows(id)
	if err != nil && m.ctx.Err() == nil {
		m.log.Error("the rows of a job that did not finish cannot be freed", "job", id, "error", err)
	}
	if freed > 0 {
		m.log.Info("the rows of a job that did not finish were freed", "job", id, "bytes", freed)
	}
	size := m.sizeOf(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files.sizes[id] > 0 { // otherwise the files were removed in the meantime
		m.retain(id, size)
	}
}

// dropRows replaces the file of a job's events by a file without rows, and returns the number
// of bytes that this frees. Readers that have the old file open keep it.
func (m *Manager) dropRows(id wire.JobID) (freed int64, err error) {
	file, err := m.root.OpenFile(spoolName(id), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	stat, err := file.Stat()
	if err != nil {
		return 0, err
	}
	kept, dropped, err := m.withoutRows(id, file, stat.Size())
	if err != nil || !dropped {
		return 0, err
	}
	freed = stat.Size() - int64(len(kept))
	fresh := spoolName(id) + ".new"
	err = m.writeFresh(fresh, kept)
	if err == nil {
		err = m.root.Rename(fresh, spoolName(id))
	}
	if err == nil {
		return freed, nil
	}
	// The disk may be full, perhaps because of these rows. Then the existing file is
	// overwritten. If the machine crashes meanwhile, the events are lost, but the job has no
	// results.
	if e := m.root.Remove(fresh); e != nil && !errors.Is(e, fs.ErrNotExist) {
		m.log.Warn("a file that is of no use cannot be removed", "path", fresh, "error", e)
	}
	if e := file.Truncate(0); e != nil {
		return 0, errors.Join(err, e)
	}
	_, err = file.WriteAt(kept, 0)
	return freed, errors.Join(err, file.Sync())
}

// writeFresh writes data to a new file with the given name, which the caller then renames.
func (m *Manager) writeFresh(name string, data []byte) (err error) {
	file, err := m.root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// withoutRows returns the events in a file except for rows. It keeps the last Config.MaxLog
// bytes of printed text. It also leaves out damaged events, which followers could not read in
// any case. dropped reports whether it left out any event.
func (m *Manager) withoutRows(id wire.JobID, file io.ReaderAt, size int64) (kept []byte, dropped bool, err error) {
	reader := spoolReader{file: file, seed: spoolSeed(id)}
	var events []*wire.Event
	var printed int64
	first := 0 // index in events of the first event that may be printed text
	for {
		e, err := reader.next(size, 0)
		if err == io.EOF {
			break
		}
		if errors.Is(err, errTorn) {
			dropped = true
			break
		}
		if err = errors.Join(err, m.ctx.Err()); err != nil {
			return nil, false, fmt.Errorf("read what is to stay: %w", err)
		}
		if e.Collected != nil {
			dropped = true
			continue
		}
		events = append(events, e)
		if e.Output == nil {
			continue
		}
		for printed += weigh(e); printed > m.config.MaxLog; first++ {
			if old := events[first]; old != nil && old.Output != nil {
				printed -= weigh(old)
				events[first], dropped = nil, true
			}
		}
	}
	seed, number := reader.seed, uint64(0)
	for _, e := range events {
		if e == nil {
			continue
		}
		if kept, err = appendGap(kept, seed, number, e.Number-1); err != nil {
			return nil, false, err
		}
		if kept, err = appendFrame(kept, seed, 0, e); err != nil {
			return nil, false, err
		}
		number = e.Number
	}
	kept, err = appendGap(kept, seed, number, reader.number)
	return kept, dropped, err
}

// appendGap appends a gap frame that replaces the events with numbers behind+1 to last, if
// there are any.
func appendGap(b []byte, seed uint32, behind, last uint64) ([]byte, error) {
	if behind == last {
		return b, nil
	}
	return appendFrame(b, seed, gapBit, &wire.Event{Number: last})
}
