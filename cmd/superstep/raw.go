package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"time"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/internal/benchresult"
)

// These are the operations of two ranks over plain TCP, as values of --collective. In an
// exchange, both ranks send and receive at the same time; an allreduce of two ranks must
// transfer at least as many bytes. In a ping-pong, rank 0 sends first, and rank 1 sends the
// same number of bytes back after it has received the bytes.
const (
	exchange = "exchange"
	pingPong = "ping-pong"
)

// These are the ways in which a rank waits for bytes, as values of --algorithm: with netpoll,
// the goroutine is parked until the poller of the Go runtime wakes it; with blocking, the
// thread blocks in the system call read; with polling, the thread repeats a non-blocking read.
const (
	netpoll  = "netpoll"
	blocking = "blocking"
	polling  = "polling"
)

// The raw rate of TCP is the highest rate of rawRounds exchanges. An exchange transfers
// rawBytes bytes in pieces of rawPiece bytes. rawTag is the tag of the messages by which the
// ranks connect.
const (
	rawBytes  = 64 << 20
	rawRounds = 5
	rawPiece  = 1 << 20
	rawTag    = 1<<31 - 2
)

// rawRate returns the raw rate of TCP: the bytes per second in each direction that ranks 0 and
// 1 exchange over a plain TCP connection between their processes. All ranks must call rawRate
// with the host of rank 0. Only the result on rank 0 is used.
func rawRate(ctx context.Context, c *collective.Comm, host string) (rate float64, err error) {
	if c.Rank() < 2 {
		x, err := newRawCase(ctx, c, host, exchange, netpoll, rawBytes, rawPiece)
		if err == nil {
			defer x.close()
		}
		for round := 0; round < rawRounds && err == nil; round++ {
			start := time.Now()
			err = x.call(ctx)
			rate = max(rate, rawBytes/time.Since(start).Seconds())
		}
		if err != nil {
			return 0, fmt.Errorf("the raw rate of TCP, which --no-raw leaves out: %w", err)
		}
	}
	return rate, c.Barrier(ctx)
}

// rawCase is one end of a plain TCP connection between ranks 0 and 1.
type rawCase struct {
	tcp       *net.TCPConn
	conn      io.ReadWriteCloser // the same socket as tcp, with the chosen way to wait
	waiting   string
	answers   bool // this rank reads before it writes
	sendFirst bool // whether a second goroutine writes while the caller of call reads
	total     int  // number of bytes in each direction; they are sent in pieces of the length of out and in
	out, in   []byte
	stop      func() bool // cancels the registered call of shutdown at the end of the context
}

// fullDuplexFrom is a number of bytes that fits into the buffers of any socket. Both ranks can
// write this many bytes before either of them reads; larger exchanges need a second goroutine.
const fullDuplexFrom = 64 << 10

// newRawCase connects ranks 0 and 1. Unless waiting is netpoll, it locks the calling goroutine
// to its thread, which will block or poll. The same goroutine must call close, which unlocks
// the goroutine.
func newRawCase(ctx context.Context, c *collective.Comm, host, pattern, waiting string, total, piece int) (*rawCase, error) {
	conn, err := rawConnect(ctx, c, host)
	if err != nil {
		return nil, err
	}
	x := &rawCase{
		tcp: conn.(*net.TCPConn), waiting: waiting, answers: pattern == pingPong && c.Rank() == 1,
		sendFirst: pattern == exchange && total > fullDuplexFrom,
		total:     total, out: bytes.Repeat([]byte{0xa5}, piece), in: make([]byte, piece),
	}
	if x.conn, err = waitingBy(waiting, x.tcp); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	x.stop = context.AfterFunc(ctx, x.shutdown)
	if waiting != netpoll {
		runtime.LockOSThread()
	}
	return x, nil
}

// shutdown ends all reads and writes of both ranks.
func (x *rawCase) shutdown() {
	_ = x.tcp.CloseRead() // an error means that the connection is closed already
	_ = x.tcp.CloseWrite()
}

func (x *rawCase) close() {
	x.stop()
	if x.waiting != netpoll {
		runtime.UnlockOSThread()
	}
	_ = x.conn.Close() // errors do not matter, as no read or write is in progress
	_ = x.tcp.Close()
}

func (x *rawCase) write() error {
	for done := 0; done < x.total; done += len(x.out) {
		if _, err := x.conn.Write(x.out); err != nil {
			return err
		}
	}
	return nil
}

func (x *rawCase) read() error {
	for done := 0; done < x.total; done += len(x.in) {
		if _, err := io.ReadFull(x.conn, x.in); err != nil {
			x.shutdown() // ends the write of the second goroutine, if there is one
			return err
		}
	}
	return nil
}

// call runs the operation once.
func (x *rawCase) call(ctx context.Context) error {
	first, second := x.write, x.read
	switch {
	case x.answers:
		first, second = x.read, x.write
	case x.sendFirst:
		written := make(chan error, 1)
		go func() { written <- x.write() }()
		first, second = x.read, func() error { return <-written }
	}
	err := first()
	if err == nil || x.sendFirst {
		err = cmp.Or(err, second())
	}
	return causeOf(ctx, err)
}

// reset clears the receive buffer.
func (x *rawCase) reset() { clear(x.in) }

// wrong returns the number of bytes in the receive buffer that differ from the bytes sent.
func (x *rawCase) wrong() int64 {
	wrong := int64(0)
	for i, b := range x.in {
		if b != x.out[i] {
			wrong++
		}
	}
	return wrong
}

// describe sets the fields of l that describe the operation.
func (x *rawCase) describe(l *benchresult.Line) {
	l.Config, l.Executor, l.Bytes, l.Count, l.Type = x.waiting, "plain TCP", x.total, x.total, "uint8"
}

// rawConnect connects ranks 0 and 1: rank 0 listens at host, and rank 1 dials it. The ranks
// exchange the port by messages of the group c.
func rawConnect(ctx context.Context, c *collective.Comm, host string) (net.Conn, error) {
	port, with := make([]int32, 1), collective.WithContext(ctx)
	if c.Rank() == 1 {
		if err := collective.Recv(c, 0, rawTag, port, with); err != nil {
			return nil, err
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port[0]))))
		if err != nil {
			return nil, err
		}
		if err := collective.Send(c, 0, rawTag, port, with); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	port[0] = int32(l.Addr().(*net.TCPAddr).Port)
	if err := collective.Send(c, 1, rawTag, port, with); err != nil {
		return nil, err
	}
	// Rank 1 sends a message when it has connected. Unlike Accept, Recv also returns when the
	// group fails. After the message, Accept returns at once.
	if err := collective.Recv(c, 1, rawTag, port, with); err != nil {
		return nil, err
	}
	return l.Accept()
}
