package membership

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// damaging is a connection on which, once armed, one byte arrives as another.
type damaging struct {
	net.Conn
	written, read atomic.Int64 // bytes from now to that byte; below 0: none
}

// change flips a bit of b if the byte is in it.
func change(b []byte, at *atomic.Int64) []byte {
	k := at.Load()
	at.Add(-int64(len(b)))
	if k < 0 || k >= int64(len(b)) {
		return b
	}
	b = bytes.Clone(b)
	b[k] ^= 16
	return b
}

func (d *damaging) Write(b []byte) (int, error) { return d.Conn.Write(change(b, &d.written)) }

func (d *damaging) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	copy(b, change(b[:n], &d.read))
	return n, err
}

// damagedDials is a network on which the connection that is dialed is a damaging one.
type damagedDials struct {
	network
	conn *damaging
}

func (d *damagedDials) dial(ctx context.Context, address string) (net.Conn, error) {
	nc, err := d.network.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	d.conn = &damaging{Conn: nc}
	d.conn.written.Store(-1)
	d.conn.read.Store(-1)
	return d.conn, nil
}

// TestDamagedControlMessages: whichever way a control message goes that was damaged in
// transit, all are told that, and of whom; not that somebody closed a connection.
func TestDamagedControlMessages(t *testing.T) {
	for name, c := range map[string]struct {
		byte    int64
		written bool // by process 2, or read
	}{
		"length to process 0":   {0, true},
		"number to process 0":   {4, true},
		"checksum to process 0": {8, true},
		"kind to process 0":     {12, true},
		"tail to process 0":     {14, true},
		"length to process 2":   {0, false},
		"kind to process 2":     {12, false},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			dials := &damagedDials{network: tcp{}}
			group := joinAll(t, 3, func(cfg *Config) {
				cfg.Detection = 800 * time.Millisecond // what is damaged is a sign of life
				if cfg.Process == 2 {
					cfg.network = dials
				}
			})
			defer closeAll(group)
			from, to := 0, 2
			if c.written {
				from, to = 2, 0
				dials.conn.written.Store(c.byte)
			} else {
				dials.conn.read.Store(c.byte)
			}
			err := cause(t, group)
			require.ErrorIs(t, err, ErrDamaged)
			var lost *PeerError
			require.ErrorAs(t, err, &lost)
			require.Contains(t, lost.Reason, "sent a message that was damaged in transit: ")
			require.Equal(t, [2]int{from, to}, [2]int{lost.Rank, lost.Reporter})
		})
	}
}

// TestDamagedProofs: a proof that was damaged in transit is no other secret.
func TestDamagedProofs(t *testing.T) {
	length := int64(stepHead + nonceBytes + stepTail) // of the first step
	for at := range length {
		d, l := socketPair(t)
		bad := &damaging{Conn: d}
		bad.read.Store(-1)
		bad.written.Store(at)
		go func() {
			_, err := Verify(l, secret, "p")
			if at >= int64(len(proofMagic)) { // else it is none
				require.NotErrorIs(t, err, ErrSecret)
			}
			l.Close()
		}()
		err := Prove(bad, secret, "p")
		require.Error(t, err)
		require.NotErrorIs(t, err, ErrSecret)
	}
	for at := range int64(stepHead + stepTail) {
		d, l := socketPair(t)
		bad := &damaging{Conn: d}
		bad.written.Store(-1)
		bad.read.Store(at)
		go Verify(l, secret, "p")
		err := Prove(bad, secret, "p")
		l.Close()
		if at >= int64(len(proofMagic)) {
			require.ErrorIs(t, err, ErrDamaged)
		} else {
			require.Error(t, err)
		}
	}
}
