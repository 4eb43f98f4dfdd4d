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

// The operations of two ranks over plain TCP, named in place of a collective. In an exchange
// both send and receive at the same time, which is the least that an allreduce of two ranks
// must do. In a ping-pong rank 1 answers rank 0.
const (
	exchange = "exchange"
	pingPong = "ping-pong"
)

// The ways in which a rank waits for bytes, named in place of an algorithm: parked by the
// runtime until its poller wakes it, blocked in read, or trying again.
const (
	netpoll  = "netpoll"
	blocking = "blocking"
	polling  = "polling"
)

// The reference rate at the end of the results is an exchange of rawBytes in pieces.
const (
	rawBytes  = 64 << 20
	rawRounds = 5
	rawPiece  = 1 << 20
	rawTag    = 1<<31 - 2
)

// rawRate returns the reference rate: the bytes per second, each way, that ranks 0 and 1
// exchange over a plain TCP connection between the same processes, the best of a few rounds.
// All ranks call it with the host of rank 0. Only rank 0 gets the result.
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
	conn      io.ReadWriteCloser // the same connection, with the chosen way to wait
	waiting   string
	answers   bool // this rank reads before it writes
	sendFirst bool // another goroutine writes while this one reads
	total     int  // bytes each way, sent in pieces of the size of the buffers
	out, in   []byte
	stop      func() bool // stops following the context
}

// fullDuplexFrom is a size that fits into the buffers of any socket: both sides can write it
// before either reads.
const fullDuplexFrom = 64 << 10

// newRawCase connects ranks 0 and 1. The goroutine stays locked to its thread, which may block
// or poll, until it closes the case.
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

// shutdown makes reads and writes of both sides end.
func (x *rawCase) shutdown() {
	_ = x.tcp.CloseRead() // an error means that the connection is closed already
	_ = x.tcp.CloseWrite()
}

func (x *rawCase) close() {
	x.stop()
	if x.waiting != netpoll {
		runtime.UnlockOSThread()
	}
	_ = x.conn.Close() // nothing is in progress
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
			x.shutdown() // the writer need not go on
			return err
		}
	}
	return nil
}

// call performs the operation once.
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

// reset forgets what was received.
func (x *rawCase) reset() { clear(x.in) }

// wrong counts the bytes that differ from those sent.
func (x *rawCase) wrong() int64 {
	wrong := int64(0)
	for i, b := range x.in {
		if b != x.out[i] {
			wrong++
		}
	}
	return wrong
}

// describe says what was measured.
func (x *rawCase) describe(l *benchresult.Line) {
	l.Config, l.Executor, l.Bytes, l.Count, l.Type = x.waiting, "plain TCP", x.total, x.total, "uint8"
}

// rawConnect connects ranks 0 and 1 through the host of rank 0.
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
	// Rank 1 says that it has connected. That wait ends with the group, and Accept then returns
	// at once.
	if err := collective.Recv(c, 1, rawTag, port, with); err != nil {
		return nil, err
	}
	return l.Accept()
}
