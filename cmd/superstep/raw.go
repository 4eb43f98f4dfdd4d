package main

import (
	"context"
	"fmt"
	"io"
	"net"
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
// ranks call it; the result is rank 0's.
func rawRate(ctx context.Context, c *collective.Comm) (float64, error) {
	defer c.Barrier(ctx) // whose error the next operation has too
	switch c.Rank() {
	case 0:
		return rawServe(ctx, c)
	case 1:
		return rawDial(ctx, c)
	default:
		return 0, nil
	}
}

func rawServe(ctx context.Context, c *collective.Comm) (float64, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	address := []uint8(l.Addr().String())
	if err := collective.Send(c, 1, rawTag, []int32{int32(len(address))}); err != nil {
		return 0, err
	}
	if err := collective.Send(c, 1, rawTag, address); err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	conn, err := l.Accept()
	if err != nil {
		return 0, err
	}
	return rawExchange(ctx, conn)
}

func rawDial(ctx context.Context, c *collective.Comm) (float64, error) {
	length := make([]int32, 1)
	if err := collective.Recv(c, 0, rawTag, length); err != nil {
		return 0, err
	}
	if length[0] < 1 || length[0] > 256 {
		return 0, fmt.Errorf("an address of %d bytes", length[0])
	}
	address := make([]uint8, length[0])
	if err := collective.Recv(c, 0, rawTag, address); err != nil {
		return 0, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", string(address))
	if err != nil {
		return 0, fmt.Errorf("the raw TCP rate is measured on loopback only: %w", err)
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
