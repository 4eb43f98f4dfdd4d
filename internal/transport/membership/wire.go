package membership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// Messages are sent over the control connection in frames. A frame has a head of twelve bytes,
// a kind of one byte, a body, and a CRC-32C of all of these. The head has, in little endian,
//
//	0  length of kind and body
//	4  number of the frame in its direction of the connection, from 0
//	8  CRC-32C of the eight bytes before
//
// so that no damaged length is used, and lost frames are detected. Numbers in bodies are
// unsigned varints unless stated otherwise. Texts and lists are preceded by their lengths. If
// the length in a head exceeds maxFrame, the frame is refused before its body is read. A
// decoded message may take about sixty times the memory of its frame.
const (
	frameHead = 12
	frameTail = 4

	maxFrame = 1 << 20 // bytes of kind and body
	maxText  = 16 << 10
	maxDoing = 2 << 10 // bytes of the description of an operation
	maxRanks = 1 << 19 // ranks of a group; the numbers of ranks are less than maxRanks
	maxProcs = 1 << 14 // processes of a group
	maxGroup = 1 << 8  // bytes of a group's name
	maxHost  = 512     // bytes of an address
)

// kind is the first byte of a frame.
type kind uint8

// These are the kinds of frames. The first frame of a process is a hello, which is sent only
// once. The comment of each kind begins with the side that sends it: the member (a process
// other than the coordinator), the coordinator, or both.
const (
	kindHello   kind = 1 + iota // member: identifies the process and describes its configuration of the group
	kindRefuse                  // coordinator: the process cannot join; has the reason
	kindWaiting                 // coordinator: the process has joined, but others are missing
	kindWelcome                 // coordinator: all processes have joined; has the table of processes
	kindBeat                    // both: heartbeat
	kindState                   // member: states of its ranks
	kindAsk                     // coordinator: asks for the current states
	kindReport                  // member: reports a failure
	kindAbort                   // coordinator: the group has failed; has the cause
	kindGoodbye                 // member: the process leaves
	kindBye                     // coordinator: confirms that the process has left
)

// message is the content of one frame.
type message interface {
	kind() kind
	// fields writes the fields of the message to c, or reads them from c. It returns the
	// message with these fields.
	fields(c *coder) message
}

type (
	// hello identifies a process and has its configuration of the group.
	hello struct {
		process   int
		processes int
		size      int
		ranks     []int // ranks of the process, in ascending order
		address   string
	}

	// refuse says that the receiving process cannot join.
	refuse struct{ cause error }

	// waiting says to a joined process which processes are missing.
	waiting struct{ missing string }

	// welcome completes a join. The detection time of the coordinator applies to all processes.
	welcome struct {
		table     []Peer
		detection int64 // detection time in nanoseconds
	}

	beat struct{}

	// state has those ranks of a process whose states have changed since the process's last
	// state message; it may have no ranks. An answer to ask has all ranks, in one or several
	// state messages; answer is set in the last of them.
	state struct {
		answer bool
		ranks  []rankState
	}

	// rankState is the encoding of the State of a rank. The text of an operation is sent only
	// with the first state that has the operation's hash: see texts.
	rankState struct {
		rank     int
		seq      uint64
		left     bool // the rank begins no more operations
		inside   bool // the rank is in an operation; otherwise hash and text are not used
		hash     uint64
		text     string // text of the operation; "" if the text was sent earlier with this hash
		progress uint64
		begun    [RecentOps]pastOp // begun operations that were not sent earlier, ordered by number, followed by zeros
	}

	// pastOp is the encoding of a Begun.
	pastOp struct {
		seq, hash uint64 // neither is 0
		text      string
	}

	ask struct{ rank int }

	// report has a failure that the process found. If the failure is a mismatch, seq is the
	// operation number in the other rank's message, or 0 if it is not known.
	report struct {
		cause error
		seq   uint64
	}

	abort struct{ cause error }

	// goodbye says that the process leaves. The process sends its last state before the
	// goodbye. final is set only by the coordinator's own process, if it does not wait for the
	// others; the group ends then.
	goodbye struct{ final bool }

	bye struct{}
)

func (hello) kind() kind   { return kindHello }
func (refuse) kind() kind  { return kindRefuse }
func (waiting) kind() kind { return kindWaiting }
func (welcome) kind() kind { return kindWelcome }
func (beat) kind() kind    { return kindBeat }
func (state) kind() kind   { return kindState }
func (ask) kind() kind     { return kindAsk }
func (report) kind() kind  { return kindReport }
func (abort) kind() kind   { return kindAbort }
func (goodbye) kind() kind { return kindGoodbye }
func (bye) kind() kind     { return kindBye }

// empty has a zero message of each kind.
var empty = [...]message{
	kindHello: hello{}, kindRefuse: refuse{}, kindWaiting: waiting{}, kindWelcome: welcome{}, kindBeat: beat{}, kindState: state{},
	kindAsk: ask{}, kindReport: report{}, kindAbort: abort{}, kindGoodbye: goodbye{}, kindBye: bye{},
}

func (m hello) fields(c *coder) message {
	num(c, &m.process, maxRanks)
	num(c, &m.processes, maxRanks)
	num(c, &m.size, maxRanks)
	c.ranks(&m.ranks)
	c.text(&m.address, maxHost)
	return m
}

func (m refuse) fields(c *coder) message { return refuse{c.cause(m.cause)} }

func (m waiting) fields(c *coder) message {
	c.text(&m.missing, maxText)
	return m
}

func (m welcome) fields(c *coder) message {
	num(c, &m.detection, math.MaxInt64)
	items(c, &m.table, "processes", maxProcs, func(p *Peer) {
		c.ranks(&p.Ranks)
		c.text(&p.Address, maxHost)
	})
	return m
}

func (m beat) fields(*coder) message { return m }

func (m state) fields(c *coder) message {
	c.flag(&m.answer)
	items(c, &m.ranks, "ranks", maxRanks, func(r *rankState) {
		num(c, &r.rank, maxRanks)
		num(c, &r.seq, math.MaxUint64)
		num(c, &r.progress, math.MaxUint64)
		c.flag(&r.left)
		c.flag(&r.inside)
		if r.inside {
			c.fixed(&r.hash)
			c.text(&r.text, maxDoing)
		}
		n := 0
		for n < len(r.begun) && r.begun[n].seq != 0 {
			n++
		}
		num(c, &n, RecentOps)
		for i := range n {
			b := &r.begun[i]
			num(c, &b.seq, math.MaxUint64)
			c.fixed(&b.hash)
			c.text(&b.text, maxDoing)
			if c.reading && c.err == nil && (b.seq == 0 || b.hash == 0) {
				c.fail("operation %d of %x was begun", b.seq, b.hash)
			}
		}
	})
	return m
}

func (m ask) fields(c *coder) message {
	num(c, &m.rank, maxRanks)
	return m
}

func (m report) fields(c *coder) message {
	num(c, &m.seq, math.MaxUint64)
	m.cause = c.cause(m.cause)
	return m
}

func (m abort) fields(c *coder) message { return abort{c.cause(m.cause)} }

func (m goodbye) fields(c *coder) message {
	c.flag(&m.final)
	return m
}

func (m bye) fields(*coder) message { return m }

// errFrame is wrapped by errors that say that bytes are not a frame of this protocol.
var errFrame = errors.New("bad control message")

// decodeBody returns the message of kind k with the given body.
func decodeBody(k kind, body []byte) (message, error) {
	if int(k) >= len(empty) || empty[k] == nil {
		return nil, fmt.Errorf("%w: kind %d", errFrame, k)
	}
	c := &coder{buf: body, reading: true}
	m := empty[k].fields(c)
	if c.err == nil && len(c.buf) > 0 {
		c.fail("%d bytes too many", len(c.buf))
	}
	if c.err != nil {
		return nil, fmt.Errorf("%w of kind %d: %w", errFrame, k, c.err)
	}
	return m, nil
}

// appendFrame appends to buf the frame of m with the given number. It returns an error if the
// frame is too long.
func appendFrame(buf []byte, number uint32, m message) ([]byte, error) {
	start := len(buf)
	c := coder{buf: append(append(buf, make([]byte, frameHead)...), byte(m.kind()))}
	m.fields(&c)
	n := len(c.buf) - start - frameHead
	if n > maxFrame {
		return buf, fmt.Errorf("control message of kind %d has %d bytes, more than %d", m.kind(), n, maxFrame)
	}
	le, head := binary.LittleEndian, c.buf[start:]
	le.PutUint32(head, uint32(n))
	le.PutUint32(head[4:], number)
	le.PutUint32(head[8:], checksum.CRC32C(0, head[:8]))
	return le.AppendUint32(c.buf, checksum.CRC32C(0, head)), nil
}

// readFrame reads the next frame, which must have the given number, and returns its message. It
// uses scratch as its buffer, and replaces scratch by a longer buffer if necessary; messages do
// not refer to scratch. The error is io.EOF only if the connection ends between two frames.
func readFrame(r io.Reader, number uint32, scratch *[]byte) (message, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	n, got := le.Uint32(head[:]), le.Uint32(head[4:])
	switch {
	case le.Uint32(head[8:]) != checksum.CRC32C(0, head[:8]):
		return nil, fmt.Errorf("%w: the head of control message %d has a wrong checksum (or is of another build: run the same everywhere)", ErrDamaged, number)
	case got != number:
		return nil, fmt.Errorf("%w: control message %d came in the place of %d: messages were lost, repeated or reordered", ErrDamaged, got, number)
	case n < 1 || n > maxFrame:
		return nil, fmt.Errorf("%w: length %d is not in 1..%d", errFrame, n, maxFrame)
	}
	if uint32(cap(*scratch)) < n+frameTail {
		*scratch = make([]byte, n+frameTail)
	}
	body := (*scratch)[:n+frameTail]
	if _, err := io.ReadFull(r, body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	body, sum := body[:n], le.Uint32(body[n:])
	if checksum.CRC32C(checksum.CRC32C(0, head[:]), body) != sum {
		return nil, fmt.Errorf("%w: control message %d of %d bytes has a wrong checksum", ErrDamaged, number, n)
	}
	return decodeBody(kind(body[0]), body[1:])
}
