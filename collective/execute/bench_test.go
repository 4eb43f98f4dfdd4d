package execute

import (
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/program"
)

// benchmark measures an AllReduce of n bytes among p ranks, which are goroutines of this
// process.
func benchmark(b *testing.B, net network, name string, p, n int, opt Options) {
	progs := progsOf(b, program.AllReduce, name, p)
	m := newTeam(b, net(b, p), progs, opt)
	defer m.close()
	ops := make([]*Operation, p)
	for r := range ops {
		ops[r] = sumOf(progs[r], 0, what, n/8)
	}
	run := func(count int) {
		for _, err := range everyone(p, func(r int) error {
			for range count {
				ops[r].Seq++
				if _, err := m.runners[r].Run(ops[r]); err != nil {
					return err
				}
			}
			return nil
		}) {
			require.NoError(b, err)
		}
	}
	run(3)
	b.SetBytes(int64(n))
	b.ReportAllocs()
	b.ResetTimer()
	run(b.N)
}

func BenchmarkAllReduce(b *testing.B) {
	for _, where := range []struct {
		name string
		net  network
	}{{"memory", inMemory}, {"tcp", overTCP}} {
		for _, n := range []int{8, 32 << 10, 1 << 20, 64 << 20} {
			for _, name := range []string{"direct", "recursive-doubling", "halving-doubling", "ring"} {
				for _, p := range []int{2, 4} {
					b.Run(fmt.Sprintf("%s/bytes=%d/%s/p=%d", where.name, n, name, p), func(b *testing.B) {
						benchmark(b, where.net, name, p, n, Options{})
					})
				}
			}
		}
	}
}

// BenchmarkRawTCP is the baseline for an AllReduce of 64 MiB among two ranks over TCP. It sends
// the same bytes as the AllReduce: twice 32 MiB, in both directions at the same time.
func BenchmarkRawTCP(b *testing.B) {
	const n, piece = 64 << 20, 256 << 10
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer func() { _ = l.Close() }()
	ends := make([]net.Conn, 2)
	for _, err := range everyone(2, func(r int) (err error) {
		if r == 0 {
			ends[0], err = l.Accept()
		} else {
			ends[1], err = net.Dial("tcp", l.Addr().String())
		}
		return err
	}) {
		require.NoError(b, err)
	}
	data := make([][]byte, 4)
	for i := range data {
		data[i] = make([]byte, n/2)
	}
	b.SetBytes(n)
	b.ResetTimer()
	for range b.N {
		for _, err := range everyone(4, func(i int) (err error) {
			end := ends[i/2]
			for range 2 {
				for at := 0; at < n/2 && err == nil; at += piece {
					if i%2 == 0 {
						_, err = end.Write(data[i][at : at+piece])
					} else {
						_, err = io.ReadFull(end, data[i][at:at+piece])
					}
				}
			}
			return err
		}) {
			require.NoError(b, err)
		}
	}
	for _, end := range ends {
		require.NoError(b, end.Close())
	}
}
