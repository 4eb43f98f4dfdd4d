package jobmanager

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"github.com/superstep-ml/superstep/internal/wire"
)

// A spool is the file of what happened to one job: its states as they changed, and
// what it sends to its client. Everything is appended, so that any number of readers
// at any pace hold up neither the writer nor each other.
//
//	frame:  length (4 bytes) | CRC-32C (4 bytes) | wire.Event in msgpack
//
// The checksum covers the job's ID too, so that events of one job cannot pass for another's.
// The frames are the events from number 1 on. A frame whose length has the gap bit stands for
// all events up to its number, which were freed (freed.go). The last event of a job, its final
// state, is not in the file: it is in the history, and readers add it.
//
// A spool is safe for concurrent use. Only append and seal wait for the disk.
type spool struct {
	seed  uint32 // of the checksums
	limit int64  // bytes of collected rows and output
	open  func() (*os.File, error)

	writing  sync.Mutex // held during a write, taken before mu; guards the next three
	file     *os.File   // nil before the first frame, and once sealed
	unsynced bool
	buf      []byte

	mu       sync.Mutex // guards what follows; never held while the disk is waited for
	size     int64      // of whole frames
	events   uint64     // frames
	rows     int64      // bytes of collected rows and output
	sealed   bool
	progress *wire.Progress
	steps    uint64        // grows when progress changes
	changed  chan struct{} // closed, and made anew, whenever anything above changes
}

// errOverLimit is the error of append for rows and output beyond the limit.
var errOverLimit = errors.New("the job sends more to its client than the job manager keeps")

// errSealed is the error of append after the job has ended.
var errSealed = errors.New("the job has ended")

const (
	frameHead = 8
	gapBit    = 1 << 31 // of the length
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// spoolSeed returns the initial value of the checksums of a job's frames. It covers the format
// of the file and the job's ID.
func spoolSeed(id wire.JobID) uint32 {
	return crc32.Checksum([]byte("events 2 of "+string(id)+"\x00"), castagnoli)
}

// frameSum is the checksum of a frame.
func frameSum(seed uint32, length, payload []byte) uint32 {
	return crc32.Update(crc32.Update(seed, castagnoli, length), castagnoli, payload)
}

// appendFrame appends a frame to b. bit is set in the frame's length.
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

// newSpool makes the spool of a new job. The file is opened for the first event.
func newSpool(id wire.JobID, limit int64, open func() (*os.File, error)) *spool {
	return &spool{seed: spoolSeed(id), limit: limit, open: open, changed: make(chan struct{})}
}

// pastSpool stands for the spool of a job that has ended, of the given size.
func pastSpool(size int64) *spool {
	return &spool{size: size, sealed: true, changed: make(chan struct{})}
}

// resumeSpool goes on with the spool of a job that had not ended when the job manager did. An
// incomplete record at the end is cut off. The spool owns the file.
func resumeSpool(id wire.JobID, limit int64, file *os.File) (*spool, error) {
	stat, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("go on with a job's events: %w", err)
	}
	s := &spool{seed: spoolSeed(id), limit: limit, file: file, changed: make(chan struct{})}
	reader := spoolReader{file: file, seed: s.seed}
	for {
		e, err := reader.next(stat.Size(), 0)
		switch {
		case err == io.EOF:
			return s, nil
		case errors.Is(err, errTorn):
			if err := file.Truncate(s.size); err != nil {
				return nil, fmt.Errorf("cut off an incomplete record of the job's events: %w", err)
			}
			return s, nil
		case err != nil:
			return nil, err
		}
		s.size, s.events, s.rows = reader.offset, reader.number, s.rows+weigh(e)
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

// append adds an event, and gives it its number.
func (s *spool) append(e *wire.Event) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	sealed, size, rows, number := s.sealed, s.size, s.rows, s.events+1
	s.mu.Unlock()
	if sealed {
		return errSealed
	}
	weight := weigh(e)
	if rows+weight > s.limit {
		return fmt.Errorf("%w: %d bytes, the limit is %d; write large results with a sink such as WriteCSV, or raise --max-result of the job manager",
			errOverLimit, rows+weight, s.limit)
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
	s.size, s.rows, s.events = size+int64(len(frame)), rows+weight, number
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

// write adds a whole frame at the end or, if the disk is full, nothing. The caller
// holds writing.
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

// advance sets the job's progress, which is not written to the file.
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

// sync writes all events so far to the disk, and returns their number.
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

// seal ends the spool: when it returns, all events are on disk, and no more can be added. It
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

// sent returns the bytes of rows and output so far.
func (s *spool) sent() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows
}

// view is the state of a spool at one moment.
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
	seed   uint32 // of the job
	offset int64
	number uint64 // number of the last event read
	begin  int64  // offset of its frame
}

// errTorn says that a frame was changed since it was written.
var errTorn = errors.New("a record of the job's events is damaged")

// errNotOurs says that a file is undamaged, but of another job.
var errNotOurs = errors.New("the file of the job's events is not its own")

// next reads the next event in the first size bytes. After the last one it returns io.EOF
// itself; a file that is shorter than size is another error. Events before number from are
// skipped without being decoded. After an error the reader keeps its position.
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

// readFull reads bytes that are known to have been written.
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
	// The first event of a job is a state, which names it.
	if err := wire.Unmarshal(payload, e); err == nil && e.State != nil && frameSum(spoolSeed(e.State.ID), head[:4], payload) == sum {
		return nil, fmt.Errorf("%w: it is that of job %s", errNotOurs, e.State.ID)
	}
	return nil, fmt.Errorf("%w: it does not have its checksum", errTorn)
}
