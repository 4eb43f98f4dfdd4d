package remote

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/transport"
)

// BenchmarkRows sends batches of 1024 rows of 8 float64 columns from one network to another.
// For comparison, it sends the same number of bytes over a plain TCP connection. Both
// connections use the loopback interface.
func BenchmarkRows(b *testing.B) {
	rec := wide(1024, 8)
	defer rec.Release()
	size := batch.Size(rec)
	b.Run("network", func(b *testing.B) { benchNetwork(b, rec, size, 1) })
	b.Run("network, 4 senders", func(b *testing.B) { benchNetwork(b, rec, size, 4) })
	b.Run("tcp", func(b *testing.B) { benchTCP(b, size) })
}

func wide(rows, columns int) arrow.Record {
	var fields []arrow.Field
	for i := range columns {
		fields = append(fields, arrow.Field{Name: string(rune('a' + i)), Type: arrow.PrimitiveTypes.Float64})
	}
	build := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema(fields, nil))
	defer build.Release()
	for c := range columns {
		for i := range rows {
			build.Field(c).(*array.Float64Builder).Append(float64(i))
		}
	}
	return build.NewRecord()
}

func benchNetwork(b *testing.B, rec arrow.Record, size int64, senders int) {
	var nets []*Network
	var addresses []string
	for w := range 2 {
		n, err := New(Config{Worker: w, Workers: 2, Port: newPort(b, nil)})
		require.NoError(b, err)
		defer n.Close()
		nets, addresses = append(nets, n), append(addresses, n.Address())
	}
	var got sync.WaitGroup
	got.Add(b.N)
	for i := range senders {
		require.NoError(b, nets[1].Listen(at(0, i, 1), receive(func(m transport.Message) { m.Release(); got.Done() })))
	}
	for _, n := range nets {
		require.NoError(b, n.Connect(addresses))
	}
	b.SetBytes(size)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range senders {
		s, err := nets[0].Dial(at(0, i, 1))
		require.NoError(b, err)
		go func() {
			for range (b.N + i) / senders {
				rec.Retain()
				if err := s.Send(context.Background(), transport.Message{Rows: rec}); err != nil {
					b.Error(err)
				}
			}
		}()
	}
	got.Wait()
	b.StopTimer()
}

func benchTCP(b *testing.B, size int64) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer listener.Close()
	out, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(b, err)
	defer out.Close()
	in, err := listener.Accept()
	require.NoError(b, err)
	defer in.Close()
	b.SetBytes(size)
	b.ResetTimer()
	go func() {
		data := make([]byte, size)
		for range b.N {
			if _, err := out.Write(data); err != nil {
				b.Error(err)
			}
		}
	}()
	data := make([]byte, size)
	for range b.N {
		_, err := io.ReadFull(in, data)
		require.NoError(b, err)
	}
}
