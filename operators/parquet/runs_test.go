package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// readsOnce reads the first rows of the first column of a file in memory.
func readsOnce(data []byte) error { return readsColumn(data, 0) }

// readsColumn reads the first rows of a column of a file in memory. It returns a panic as an
// error, as operators.ReadRowFiles does.
func readsColumn(data []byte, column int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	f, err := open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	c, err := f.Rows(0, []int{column}, memory.NewGoAllocator())
	if err != nil {
		return err
	}
	rows, err := c.Next(100)
	if err != nil {
		return err
	}
	rows.Release()
	return c.Close()
}

// TestDamagedPages changes every third bit of the pages of small files, one bit at a time. It
// requires that reading the changed files ends.
func TestDamagedPages(t *testing.T) {
	files, err := filepath.Glob("testdata/levels/*.parquet")
	require.NoError(t, err)
	require.Len(t, files, 6)
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, readsOnce(data), path)
		footer := len(data) - 8 - int(binary.LittleEndian.Uint32(data[len(data)-8:]))
		fewer := 0
		for bit := 0; bit < 8*footer; bit += 3 {
			data[bit/8] ^= 1 << (bit % 8)
			if err := readsOnce(data); err != nil && strings.Contains(err.Error(), "has fewer levels") {
				fewer++
			} else if err != nil {
				require.NotContains(t, err.Error(), "panic")
			}
			data[bit/8] ^= 1 << (bit % 8)
		}
		require.Positive(t, fewer, path)
	}
}

func TestRuns(t *testing.T) {
	for _, c := range []struct {
		runs  []byte
		width int
		n     int
		want  bool
	}{
		{nil, 1, 0, true}, {nil, 1, 1, false},
		{[]byte{20, 1}, 1, 10, true}, {[]byte{20, 1}, 1, 11, false}, {[]byte{20}, 1, 1, false}, // ten equal numbers
		{[]byte{20, 1, 2, 0}, 2, 11, true},
		{[]byte{3, 0xaa}, 1, 8, true}, {[]byte{3, 0xaa}, 1, 9, false}, // a bit-packed group of 8
		{[]byte{5, 0xaa}, 1, 8, false}, // two groups, of which the second is missing
		{[]byte{3, 0xaa, 0xaa}, 2, 8, true}, {[]byte{3, 0xaa}, 2, 4, true}, {[]byte{3, 0xaa}, 2, 5, false}, {[]byte{3}, 2, 1, false},
		{[]byte{0, 1, 20, 1}, 1, 1, false}, {[]byte{1, 20, 1}, 1, 1, false}, // runs without numbers
		{[]byte{0x80}, 1, 1, false}, {[]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 1, 1}, 1, 1, false},
		{[]byte{20}, 0, 10, true}, {[]byte{3}, 0, 8, true}, {[]byte{3}, 0, 9, false}, // width 0
	} {
		r := runs{width: c.width, data: c.runs}
		_, err := r.count(c.n, 3)
		require.Equal(t, c.want, err == nil, c)
		require.Equal(t, c.want, r.read(make([]int32, c.n)) == nil, c)
	}
	r := runs{width: 2, data: []byte{20, 3}}
	_, err := r.count(10, 2)
	require.EqualError(t, err, "a page has a level of 3, where 2 is the highest")
	r = runs{width: 2, data: []byte{3, 0xff, 0xff}}
	_, err = r.count(8, 2)
	require.EqualError(t, err, "a page has a level of 3, where 2 is the highest")
}

// TestAnyRuns reads arbitrary runs in parts of any size, and compares the numbers with the
// original numbers. It also reads numbers of one bit into a bitmap, at any position.
func TestAnyRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		width := rapid.IntRange(1, 32).Draw(rt, "width")
		if rapid.Bool().Draw(rt, "bits") {
			width = 1
		}
		number := rapid.Uint64Range(0, 1<<width-1)
		var want []int32
		var data []byte
		for range rapid.IntRange(0, 5).Draw(rt, "runs") {
			count := rapid.IntRange(1, 40).Draw(rt, "count")
			if rapid.Bool().Draw(rt, "same") {
				v := number.Draw(rt, "number")
				data = binary.AppendUvarint(data, uint64(count)<<1)
				data = append(data, binary.LittleEndian.AppendUint32(nil, uint32(v))[:(width+7)/8]...)
				for range count {
					want = append(want, int32(v))
				}
				continue
			}
			data = binary.AppendUvarint(data, uint64(count)<<1|1)
			group := make([]byte, count*width)
			for i := range 8 * count {
				v := number.Draw(rt, "number")
				want = append(want, int32(v))
				for b := range width {
					group[(i*width+b)/8] |= byte(v>>b&1) << ((i*width + b) % 8)
				}
			}
			data = append(data, group...)
		}
		r := runs{width: width, data: data}
		asBits := r
		got, bits := make([]int32, len(want)), make([]byte, len(want)/8+2)
		ones := 0
		shift := rapid.IntRange(0, 8).Draw(rt, "shift")
		for at := 0; at < len(want); {
			n := rapid.IntRange(1, len(want)-at).Draw(rt, "part")
			require.NoError(rt, r.read(got[at:at+n]))
			if width == 1 {
				k, err := asBits.bits(bits, shift+at, n)
				require.NoError(rt, err)
				ones += k
			}
			at += n
		}
		require.Equal(rt, append([]int32{}, want...), append([]int32{}, got...))
		require.Error(rt, r.read(make([]int32, 1)))
		if width > 1 {
			return
		}
		for i, v := range want {
			require.Equal(rt, v == 1, bits[(shift+i)/8]>>((shift+i)%8)&1 == 1)
			ones -= int(v)
		}
		require.Zero(rt, ones)
	})
}

// TestBitPackedLevels requires that the deprecated encoding BIT_PACKED of levels is refused by
// name, but accepted if there are no levels.
func TestBitPackedLevels(t *testing.T) {
	_, _, err := levels(1, bitPacked, 8, []byte{0xaa, 0})
	require.ErrorContains(t, err, "the encoding BIT_PACKED of the levels of a page is not supported")
	_, rest, err := levels(0, bitPacked, 8, []byte{0xaa, 0})
	require.NoError(t, err)
	require.Len(t, rest, 2)
}
