package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/superstep-ml/superstep/collective"
)

// What the raw rate is measured with.
const (
	rawBytes  = 64 << 20
	rawRounds = 5
	rawPiece  = 1 << 20
	rawTag    = 1<<31 - 2
)

// rawRate is the yardstick: bytes per second each way that ranks 0 and 1 exchange over
// a plain TCP connection between the same processes, the best of a few rounds. All
// ranks call it, with the host of rank 0; the result is rank 0's.
func rawRate(ctx context.Context, c *collective.Comm, host string) (rate float64, err error) {
	switch c.Rank() {
	case 0:
		rate, err = rawServe(ctx, c, host)
	case 1:
		rate, err = rawDial(ctx, c, host)
	}
	if err != nil {
		return 0, fmt.Errorf("the raw rate of TCP, which --no-raw leaves out: %w", err)
	}
	return rate, c.Barrier(ctx)
}

func rawServe(ctx context.Context, c *collective.Comm, host string) (float64, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	port := []int32{int32(l.Addr().(*net.TCPAddr).Port)}
	if err := collective.Send(c, 1, rawTag, port, collective.WithContext(ctx)); err != nil {
		return 0, err
	}
	type accepted struct {
		conn net.Conn
		err  error
	}
	came := make(chan accepted, 1)
	go func() {
		conn, err := l.Accept()
		came <- accepted{conn, err}
	}()
	// Rank 1 says that it has connected: waiting for that ends with the group, waiting
	// for a connection would not.
	err = collective.Recv(c, 1, rawTag, port, collective.WithContext(ctx))
	if err != nil {
		l.Close()
	}
	a := <-came
	switch {
	case err == nil && a.err == nil:
		return rawExchange(ctx, a.conn)
	case a.err == nil:
		a.conn.Close()
	case err == nil:
		err = a.err
	}
	return 0, err
}

func rawDial(ctx context.Context, c *collective.Comm, host string) (float64, error) {
	port := make([]int32, 1)
	if err := collective.Recv(c, 0, rawTag, port, collective.WithContext(ctx)); err != nil {
		return 0, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port[0]))))
	if err != nil {
		return 0, err
	}
	if err := collective.Send(c, 0, rawTag, port, collective.WithContext(ctx)); err != nil {
		conn.Close()
		return 0, err
	}
	return rawExchange(ctx, conn)
}

// rawExchange sends and receives rawBytes at once, again and again.
func rawExchange(ctx context.Context, conn net.Conn) (float64, error) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	out, in := make([]byte, rawPiece), make([]byte, rawPiece)
	best := 0.0
	for range rawRounds {
		start := time.Now()
		sent := make(chan error, 1)
		go func() {
			for range rawBytes / rawPiece {
				if _, err := conn.Write(out); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		var err error
		for range rawBytes / rawPiece {
			if _, err = io.ReadFull(conn, in); err != nil {
				conn.Close()
				break
			}
		}
		if sendErr := <-sent; err == nil {
			err = sendErr
		}
		if err != nil {
			return 0, err
		}
		best = max(best, rawBytes/time.Since(start).Seconds())
	}
	return best, nil
}
