package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"time"
)

// rawTask is what the two sides are to do.
type rawTask struct {
	Pattern string
	Waiting string
	Bytes   int64
	Address string
}

// listen opens the port that the other side dials and notes it in the task.
func (t *rawTask) listen() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		t.Address = l.Addr().String()
	}
	return l, err
}

func (t rawTask) accept(l net.Listener) (*side, error) {
	if l, ok := l.(*net.TCPListener); ok {
		if err := l.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			return nil, err
		}
	}
	c, err := l.Accept()
	if err != nil {
		return nil, err
	}
	return t.side(c)
}

func (t rawTask) dial() (*side, error) {
	c, err := net.DialTimeout("tcp", t.Address, 30*time.Second)
	if err != nil {
		return nil, err
	}
	return t.side(c)
}

// side is one of the two processes.
type side struct {
	conn     io.ReadWriteCloser
	pingPong bool
	locked   bool // to its thread
	out, in  []byte

	// A message beyond what sockets hold is written by a goroutine of its own while
	// this one reads.
	apart   bool
	send    chan struct{}
	written chan error
}

// apartFrom is a size that fits into the buffers of any socket.
const apartFrom = 64 << 10

// side sets up one end. Both wait in the same way.
func (t rawTask) side(c net.Conn) (*side, error) {
	conn, err := waitingBy(t.Waiting, c)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	s := &side{conn: conn, pingPong: t.Pattern == "pingpong", out: bytes.Repeat([]byte{0xa5}, int(t.Bytes)), in: make([]byte, t.Bytes)}
	s.apart = t.Bytes > apartFrom && !s.pingPong
	s.locked = t.Waiting != netpoll && !s.apart
	if s.apart {
		s.send, s.written = make(chan struct{}), make(chan error)
		go func() {
			for range s.send {
				_, err := s.conn.Write(s.out)
				s.written <- err
			}
		}()
	}
	return s, nil
}

func (s *side) close() {
	if s.apart {
		close(s.send)
	}
	_ = s.conn.Close() // nothing is under way
}

// run does the pattern so often and times each; first says which side begins a
// ping-pong. It checks that the last bytes arrived as sent.
func (s *side) run(n int, first bool) ([]time.Duration, error) {
	if s.locked { // a thread that blocks or polls is not to be handed about
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	clear(s.in)
	times := make([]time.Duration, n)
	for i := range times {
		began := time.Now()
		err := s.once(first)
		times[i] = time.Since(began)
		if err != nil {
			return nil, err
		}
	}
	if !bytes.Equal(s.in, s.out) {
		return nil, errors.New("other bytes arrived than were sent")
	}
	return times, nil
}

// once is one operation.
func (s *side) once(first bool) error {
	switch {
	case s.apart:
		s.send <- struct{}{}
		_, err := io.ReadFull(s.conn, s.in)
		return errors.Join(err, <-s.written)
	case s.pingPong && !first:
		if _, err := io.ReadFull(s.conn, s.in); err != nil {
			return err
		}
		_, err := s.conn.Write(s.out)
		return err
	}
	if _, err := s.conn.Write(s.out); err != nil {
		return err
	}
	_, err := io.ReadFull(s.conn, s.in)
	return err
}

func (s *side) writeNumber(n int) error {
	return binary.Write(s.conn, binary.LittleEndian, int64(n))
}

// readNumber returns io.EOF when the other side is done.
func (s *side) readNumber() (int, error) {
	var n int64
	if err := binary.Read(s.conn, binary.LittleEndian, &n); err != nil {
		return 0, err
	}
	if n < 1 || n > 1<<24 {
		return 0, fmt.Errorf("asked to run %d times", n)
	}
	return int(n), nil
}

func (s *side) writeTimes(times []time.Duration) error {
	return binary.Write(s.conn, binary.LittleEndian, times)
}

func (s *side) readTimes(n int) ([]time.Duration, error) {
	times := make([]time.Duration, n)
	return times, binary.Read(s.conn, binary.LittleEndian, times)
}
