package jobmanager

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/wire"
)

// A spool is the file with the events of one job: its state changes, and the rows and text that
// it sends to its client. Events are only appended, so that readers, even many slow ones, delay
// neither the writer nor each other.
//
//	frame:  length (4 bytes) | CRC-32C (4 bytes) | wire.Event in msgpack
//
// The checksum also covers the job's ID, so that a reader detects the events of another job.
// The frames have the events in the order of their numbers, beginning with 1. A frame whose
// length has the gap bit replaces all events up to its number, which have been freed
// (freed.go). The last event of a job, its final state, is not in the file; readers get it from
// the history.
//
// A spool is safe for concurrent use. Only its methods append, sync and seal wait for the disk.
type spool struct {
	seed  uint32 // initial value of the checksums
	limit int64  // maximum of the field rows
	open  func() (*os.File, error)

	writing  sync.Mutex // held during a write; locked before mu; guards file, unsynced and buf
	file     *os.File   // nil before the first frame and after seal
	unsynced bool
	buf      []byte

	mu       sync.Mutex // guards the following fields; not held while waiting for the disk
	size     int64      // total size of complete frames in bytes
	events   uint64     // number of the last event
	rows     int64      // number of bytes of collected rows and output
	attempt  int        // number of the job's attempt in the last state
	dropped  int64      // part of rows that belongs to attempts that were lost
	sealed   bool
	progress *wire.Progress
	steps    uint64        // incremented when progress changes
	changed  chan struct{} // closed and replaced whenever any of the fields from size to steps changes
}

// errOverLimit is returned by append if the rows and output exceed the limit.
var errOverLimit = errors.New("the job sends more to its client than the job manager keeps")

// errFormer is returned by appendOf for a piece of a former attempt.
var errFormer = errors.New("the job has another attempt")

// errSealed is returned by append after seal was called.
var errSealed = errors.New("the job has ended")

const (
	frameHead = 8
	gapBit    = 1 << 31 // this bit of the length field marks a gap
)

// spoolSeed returns the initial value of the checksums of a job's frames. It depends on the
// format of the file and the job's ID.
func spoolSeed(id wire.JobID) uint32 {
	return checksum.CRC32C(0, []byte("events 2 of "+string(id)+"\x00"))
}

// frameSum returns the checksum of a frame.
func frameSum(seed uint32, length, payload []byte) uint32 {
	return checksum.CRC32C(checksum.CRC32C(seed, length), payload)
}

// appendFrame appends a frame with event e to b. bit is gapBit or 0, and is set in the length
// field.
func appendFrame(b []byte, seed, bit uint32, e *wire.Event) ([]byte, error) {
	payload, err := wire.Marshal(e)
	if err != nil {
		return b, err
	}
	at := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload))|bit)
	b = binary.LittleEndian.AppendUint32(b, frameSum(seed, b[at:], payload))
	return append(b, payload...), nil
}

// newSpool makes the spool of a new job. It calls open, which opens the file, when the first
// event is written.
func newSpool(id wire.JobID, limit int64, open func() (*os.File, error)) *spool {
	return &spool{seed: spoolSeed(id), limit: limit, open: open, changed: make(chan struct{})}
}

// pastSpool returns the spool of a job that has ended, whose file has the given size. It can
// only be read.
func pastSpool(size int64) *spool {
	return &spool{size: size, sealed: true, changed: make(chan struct{})}
}

// numbersSkipped is the number of event numbers that a restart of the job manager leaves out. If
// the machine crashed, followers may have received events that are not on disk any more. Their
// numbers must not be used again, as followers ignore events that they have received already.
const numbersSkipped = 1 << 32

// resumeSpool opens the spool of a job that had not ended when the former job manager stopped. It
// returns the number of the last event in it. It removes damaged frames from the end of the file,
// and adds a gap, so that new events have new numbers. The spool owns the file, unless there is
// an error.
func resumeSpool(id wire.JobID, limit int64, file *os.File) (s *spool, kept uint64, err error) {
	stat, err := file.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("go on with a job's events: %w", err)
	}
	s = &spool{seed: spoolSeed(id), limit: limit, file: file, changed: make(chan struct{})}
	reader := spoolReader{file: file, seed: s.seed}
	for {
		e, err := reader.next(stat.Size(), 0)
		if err == io.EOF {
			break
		}
		if errors.Is(err, errTorn) {
			if err := file.Truncate(reader.offset); err != nil {
				return nil, 0, fmt.Errorf("cut off an incomplete record of the job's events: %w", err)
			}
			break
		}
		if err != nil {
			return nil, 0, err
		}
		s.count(e)
	}
	s.size, s.events = reader.offset, reader.number
	kept, s.events = s.events, s.events+numbersSkipped
	gap, err := appendGap(nil, s.seed, kept, s.events)
	if err == nil {
		err = s.write(gap, s.size)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("go on with a job's events: %w", err)
	}
	s.size += int64(len(gap))
	return s, kept, nil
}

// count counts the rows and text of an event, and those that a new attempt makes useless. The
// caller holds mu.
func (s *spool) count(e *wire.Event) {
	s.rows += weigh(e)
	if e.State != nil && e.State.Attempt > s.attempt {
		s.attempt = e.State.Attempt
		if e.State.State != wire.JobCommitting { // a resumed commit uses the rows of the former attempt
			s.dropped = s.rows
		}
	}
}

// weigh returns the size of an event's rows and output in bytes.
func weigh(e *wire.Event) int64 {
	switch {
	case e.Collected != nil:
		return int64(len(e.Collected.Rows))
	case e.Output != nil:
		return int64(len(e.Output.Text))
	}
	return 0
}

// appendOf adds an event with rows or text of an attempt, as append does. If the state of a later
// attempt has been added, it returns errFormer, so that followers get no rows of an attempt that
// was lost after those of the next.
func (s *spool) appendOf(attempt int, e *wire.Event) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	former := attempt < s.attempt
	s.mu.Unlock()
	if former {
		return errFormer
	}
	return s.add(e)
}

// append sets the number of event e and adds the event to the spool.
func (s *spool) append(e *wire.Event) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.add(e)
}

// add does what append does. The caller holds writing.
func (s *spool) add(e *wire.Event) error {
	s.mu.Lock()
	sealed, size, rows, dropped, number := s.sealed, s.size, s.rows, s.dropped, s.events+1
	s.mu.Unlock()
	if sealed {
		return errSealed
	}
	weight := weigh(e)
	if total := rows - dropped + weight; total > s.limit {
		return fmt.Errorf("%w: %d bytes, the limit is %d; write large results with a sink such as WriteCSV, or raise --max-result of the job manager",
			errOverLimit, total, s.limit)
	}
	e.Number = number
	frame, err := s.frame(e)
	if err != nil {
		return err
	}
	if err := s.write(frame, size); err != nil {
		return fmt.Errorf("keep what the job sends to its client: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size, s.events = size+int64(len(frame)), number
	s.count(e)
	s.notify()
	return nil
}

// frame encodes an event. The frame is valid until the next call. The caller holds writing.
func (s *spool) frame(e *wire.Event) ([]byte, error) {
	if cap(s.buf) > 1<<20 {
		s.buf = nil
	}
	var err error
	s.buf, err = appendFrame(s.buf[:0], s.seed, 0, e)
	return s.buf, err
}

// write writes a frame at offset end. If the disk is full, it removes the part of the frame
// that was written. The caller holds writing.
func (s *spool) write(frame []byte, end int64) error {
	if s.file == nil {
		f, err := s.open()
		if err != nil {
			return err
		}
		s.file = f
	}
	if _, err := s.file.WriteAt(frame, end); err != nil {
		return errors.Join(err, s.file.Truncate(end))
	}
	s.unsynced = true
	return nil
}

// notify wakes the readers. The caller holds mu.
func (s *spool) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// advance sets the job's progress. Readers get the progress, but it is not written to the file.
func (s *spool) advance(p *wire.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed {
		return
	}
	s.progress = p
	s.steps++
	s.notify()
}

// sync flushes all events so far to the disk, and returns their number.
func (s *spool) sync() (events uint64, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	events = s.events
	s.mu.Unlock()
	if s.file != nil && s.unsynced {
		if err := s.file.Sync(); err != nil {
			return events, fmt.Errorf("keep what the job sent to its client: %w", err)
		}
		s.unsynced = false
	}
	return events, nil
}

// seal flushes all events to the disk and closes the spool: no more events can be added. It
// returns the number of events.
func (s *spool) seal() (events uint64, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	if !s.sealed {
		s.sealed, s.progress = true, nil
		s.notify()
	}
	events = s.events
	s.mu.Unlock()
	if s.file == nil {
		return events, nil
	}
	if s.unsynced {
		err = s.file.Sync()
	}
	err = errors.Join(err, s.file.Close())
	s.file, s.buf = nil, nil
	if err != nil {
		return events, fmt.Errorf("keep what the job sent to its client: %w", err)
	}
	return events, nil
}

// sent returns the size in bytes of the rows and output so far.
func (s *spool) sent() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows
}

// view is a snapshot of the state of a spool.
type view struct {
	size     int64
	sealed   bool
	progress *wire.Progress
	steps    uint64
	changed  <-chan struct{} // closed at the next change
}

func (s *spool) view() view {
	s.mu.Lock()
	defer s.mu.Unlock()
	return view{size: s.size, sealed: s.sealed, progress: s.progress, steps: s.steps, changed: s.changed}
}

// spoolReader reads frames of a spool's file in order.
type spoolReader struct {
	file   io.ReaderAt
	seed   uint32 // spoolSeed of the job
	offset int64
	number uint64 // number of the last event read
	begin  int64  // offset of the last event's frame
}

// errTorn says that a frame was changed after it was written.
var errTorn = errors.New("a record of the job's events is damaged")

// errNotOurs says that an undamaged frame belongs to another job.
var errNotOurs = errors.New("the file of the job's events is not its own")

// next reads the next event in the first size bytes of the file. After the last event it
// returns exactly io.EOF; if the file is shorter than size, it returns another error. It skips
// events whose numbers are less than from without decoding them. After an error the position of
// the reader is unchanged.
func (r *spoolReader) next(size int64, from uint64) (*wire.Event, error) {
	var head [frameHead]byte
	for {
		if r.offset == size {
			return nil, io.EOF
		}
		if size-r.offset < frameHead {
			return nil, fmt.Errorf("%w: it is cut off at byte %d", errTorn, size)
		}
		if err := readFull(r.file, head[:], r.offset); err != nil {
			return nil, err
		}
		length := int64(binary.LittleEndian.Uint32(head[:]) &^ gapBit)
		gap := binary.LittleEndian.Uint32(head[:])&gapBit != 0
		if length > size-r.offset-frameHead {
			return nil, fmt.Errorf("%w: the one at byte %d goes beyond the end", errTorn, r.offset)
		}
		at, number := r.offset+frameHead, r.number+1
		if number < from && !gap {
			r.begin, r.offset, r.number = r.offset, at+length, number
			continue
		}
		payload := make([]byte, length)
		if err := readFull(r.file, payload, at); err != nil {
			return nil, err
		}
		e, err := decodeFrame(r.seed, head, payload)
		switch {
		case err != nil:
			return nil, fmt.Errorf("event %d: %w", number, err)
		case gap && e.Number >= number:
			r.begin, r.offset, r.number = r.offset, at+length, e.Number
			continue
		case e.Number != number:
			return nil, fmt.Errorf("%w: event %d is in the place of event %d", errTorn, e.Number, number)
		}
		r.begin, r.offset, r.number = r.offset, at+length, number
		return e, nil
	}
}

// readFull fills p with the bytes of the file at offset at. They are known to have been
// written, so EOF is an error.
func readFull(file io.ReaderAt, p []byte, at int64) error {
	n, err := file.ReadAt(p, at)
	switch {
	case n == len(p):
		return nil
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read the job's events at byte %d: %w", at, err)
}

func decodeFrame(seed uint32, head [frameHead]byte, payload []byte) (*wire.Event, error) {
	sum := binary.LittleEndian.Uint32(head[4:])
	e := new(wire.Event)
	if frameSum(seed, head[:4], payload) == sum {
		if err := wire.Unmarshal(payload, e); err != nil {
			return nil, fmt.Errorf("%w: %w", errTorn, err)
		}
		return e, nil
	}
	// The first event of a job is a state, which has the job's ID.
	if err := wire.Unmarshal(payload, e); err == nil && e.State != nil && frameSum(spoolSeed(e.State.ID), head[:4], payload) == sum {
		return nil, fmt.Errorf("%w: it is that of job %s", errNotOurs, e.State.ID)
	}
	return nil, fmt.Errorf("%w: it does not have its checksum", errTorn)
}
