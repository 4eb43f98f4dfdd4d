package mesh

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// rawPair returns two connected plain sockets, with which the mesh is compared.
func rawPair(t testing.TB) (a, b net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var g errgroup.Group
	g.Go(func() (err error) {
		b, err = l.Accept()
		return err
	})
	a, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, g.Wait())
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

// rawStream sends count buffers of size bytes from a to b.
func rawStream(a, b net.Conn, size, count int) error {
	var g errgroup.Group
	g.Go(func() error {
		payload := make([]byte, size)
		for range count {
			if _, err := a.Write(payload); err != nil {
				return err
			}
		}
		return nil
	})
	buf := make([]byte, size)
	for range count {
		if _, err := io.ReadFull(b, buf); err != nil {
			return err
		}
	}
	return g.Wait()
}

// rawPingPong sends a buffer of size bytes from a to b and back, count times.
func rawPingPong(a, b net.Conn, size, count int) error {
	var g errgroup.Group
	g.Go(func() error {
		buf := make([]byte, size)
		for range count {
			if _, err := io.ReadFull(b, buf); err != nil {
				return err
			}
			if _, err := b.Write(buf); err != nil {
				return err
			}
		}
		return nil
	})
	buf := make([]byte, size)
	for range count {
		if _, err := a.Write(buf); err != nil {
			return err
		}
		if _, err := io.ReadFull(a, buf); err != nil {
			return err
		}
	}
	return g.Wait()
}

func pingPong(a, b Conn, size, count int) error {
	var g errgroup.Group
	g.Go(func() error { return newPlayer(b, size).play(count, false) })
	if err := newPlayer(a, size).play(count, true); err != nil {
		return err
	}
	return g.Wait()
}

// ratio runs ours and raw alternately, and reports the time of ours divided by the time of raw
// as x-raw. ns/op is the time of one run of ours plus one run of raw.
func ratio(b *testing.B, ours, raw func() error) {
	require.NoError(b, ours())
	require.NoError(b, raw())
	var spent [2]time.Duration
	runs := [2]func() error{ours, raw}
	for turn := 0; b.Loop(); turn++ {
		for k := range runs {
			i := (turn + k) % 2 // ours runs first in every second turn
			began := time.Now()
			require.NoError(b, runs[i]())
			spent[i] += time.Since(began)
		}
	}
	b.ReportMetric(float64(spent[0])/float64(spent[1]), "x-raw")
	b.ReportMetric(float64(spent[0].Microseconds())/float64(b.N), "µs/ours")
}

// BenchmarkTCPStream64MiB sends 64 MiB one way, in segments of several sizes, and compares the
// time with that of plain sockets.
func BenchmarkTCPStream64MiB(b *testing.B) {
	for _, segment := range []int{64 << 10, 256 << 10, 512 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", segment>>10), func(b *testing.B) {
			_, nodes := cluster(b, oneEach(2), nil)
			ca, cb := couple(b, nodes[0], nodes[1], 0)
			ra, rb := rawPair(b)
			count := 64 << 20 / segment
			ratio(b, func() error { return stream(ca, cb, segment, count) }, func() error { return rawStream(ra, rb, segment, count) })
		})
	}
}

// BenchmarkTCPPingPong sends small messages back and forth a thousand times, and compares the
// time with that of plain sockets.
func BenchmarkTCPPingPong(b *testing.B) {
	for _, size := range []int{8, 4 << 10, 32 << 10} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			_, nodes := cluster(b, oneEach(2), nil)
			ca, cb := couple(b, nodes[0], nodes[1], 0)
			ra, rb := rawPair(b)
			ratio(b, func() error { return pingPong(ca, cb, size, 1000) }, func() error { return rawPingPong(ra, rb, size, 1000) })
		})
	}
}

// wide makes every rank open the routes that it needs for a ring and for recursive doubling.
func wide(nodes []Node) error {
	p := len(nodes)
	var g errgroup.Group
	for r, n := range nodes {
		routes := []Route{{(r + 1) % p, 0}, {(r + p - 1) % p, 0}}
		for k := range bits.Len(uint(p)) - 1 {
			if peer := r ^ 1<<k; peer < p {
				routes = append(routes, Route{peer, 1})
			}
		}
		g.Go(func() error {
			_, err := n.Open(context.Background(), routes)
			return err
		})
	}
	return g.Wait()
}

func TestTCPOpensWide(t *testing.T) {
	meshes, nodes := cluster(t, oneEach(16), nil)
	require.NoError(t, wide(nodes))
	for _, m := range meshes {
		require.Len(t, m.slots, 2+4)
	}
}

// BenchmarkTCPOpen256Ranks opens the routes of 256 ranks, which are 1,280 connections. Each
// rank has a separate mesh; all meshes are in this process.
func BenchmarkTCPOpen256Ranks(b *testing.B) {
	for b.Loop() {
		_, nodes := cluster(b, oneEach(256), nil)
		require.NoError(b, wide(nodes))
	}
}
