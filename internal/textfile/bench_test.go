package textfile

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"
)

// numericFile writes a file of ten numeric columns with about size bytes.
func numericFile(b *testing.B, size int, digits int) (path string, written int64) {
	path = filepath.Join(b.TempDir(), "n.csv")
	f, err := os.Create(path)
	require.NoError(b, err)
	w := bufio.NewWriter(f)
	x := uint64(1)
	for written < int64(size) {
		var line []byte
		for j := range 10 {
			if j > 0 {
				line = append(line, ',')
			}
			x = x*6364136223846793005 + 1442695040888963407
			line = strconv.AppendFloat(line, float64(int64(x>>11))/(1<<50)-4, 'g', digits, 64)
		}
		line = append(line, '\n')
		n, err := w.Write(line)
		require.NoError(b, err)
		written += int64(n)
	}
	require.NoError(b, w.Flush())
	require.NoError(b, f.Close())
	return path, written
}

func floatLayout(n int) Layout {
	l := textLayout(n)
	for i := range l.Columns {
		l.Columns[i].Type = "float64"
	}
	return l
}

// BenchmarkNumeric compares this package in one goroutine, including the index, with
// encoding/csv and strconv.
func BenchmarkNumeric(b *testing.B) {
	for _, digits := range []int{6, 17} {
		path, size := numericFile(b, 8<<20, digits)
		b.Run(fmt.Sprintf("digits=%d/ours", digits), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				readAllFloats(b, path, Dialect{})
			}
		})
		b.Run(fmt.Sprintf("digits=%d/unquoted", digits), func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				readAllFloats(b, path, Dialect{Quote: NoByte})
			}
		})
		b.Run(fmt.Sprintf("digits=%d/stdlib", digits), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				stdlibFloats(b, path)
			}
		})
	}
}

func readAllFloats(b *testing.B, path string, d Dialect) {
	c, err := OpenCSV(context.Background(), resolve(b, path), d, floatLayout(10), Config{Shards: 8, Workers: 1})
	require.NoError(b, err)
	sum := 0.0
	for s := range 8 {
		require.NoError(b, c.ReadShard(context.Background(), s, 1024, func(rec arrow.Record) error {
			sum += float64(rec.NumRows())
			return nil
		}))
	}
	require.NoError(b, c.Close())
}

func stdlibFloats(b *testing.B, path string) {
	f, err := os.Open(path)
	require.NoError(b, err)
	r := csv.NewReader(bufio.NewReaderSize(f, 256<<10))
	r.ReuseRecord = true
	cols := make([][]float64, 10)
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(b, err)
		for j, s := range rec {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				b.Fatal(err)
			}
			cols[j] = append(cols[j], v)
		}
		if len(cols[0]) == 1024 {
			for j := range cols {
				cols[j] = cols[j][:0]
			}
		}
	}
	require.NoError(b, f.Close())
}

// BenchmarkScan measures the computation of the index, for text without and with quotes.
func BenchmarkScan(b *testing.B) {
	plain := strings.Repeat("12.5,abc,-7,xyz\n", 64<<10)
	quoted := strings.Repeat("12.5,\"abc\",-7,x\n", 64<<10)
	a := newAutomaton(Dialect{Delimiter: ',', Quote: '"', Comment: NoByte})
	for _, in := range []struct{ name, text string }{{"plain", plain}, {"quoted", quoted}} {
		b.Run(in.name, func(b *testing.B) {
			text := []byte(in.text)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				a.transition(text)
			}
		})
	}
}
