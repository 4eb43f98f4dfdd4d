package disk

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHeadsThatLie requires a *DamagedError if the checksum of a head is right but the head
// contradicts the Stream kept in memory, for example by a length beyond the end of the stream.
func TestHeadsThatLie(t *testing.T) {
	body := []byte("a body")
	size := int64(headSize + len(body))
	type head struct {
		length       uint64
		rows, number int64
	}
	right := head{uint64(len(body)), 3, 1}
	truth := Stream{Length: 2 * size, Frames: 2, Rows: 6}
	for name, c := range map[string]struct {
		stream Stream
		second head // head of the second frame
		says   string
	}{
		"nothing":               {truth, right, ""},
		"length":                {truth, head{1 << 62, 3, 1}, "which begin block 1, a length of 4611686018427387904 is more than the 6 that follow"},
		"rows fewer":            {truth, head{uint64(len(body)), 2, 1}, "they hold 5 rows where 6 were written"},
		"rows":                  {truth, head{uint64(len(body)), 4, 1}, "they hold 7 rows where 6 were written"},
		"number":                {truth, head{uint64(len(body)), 3, 2}, "which should begin block 1, the checksum is"},
		"bytes behind the last": {Stream{Length: 2*size + 1, Frames: 2, Rows: 6}, right, "the 2 blocks in them end after 60"},
		"one frame fewer":       {Stream{Length: 2 * size, Frames: 1, Rows: 3}, right, "the 1 blocks in them end after 30"},
		"one frame more":        {Stream{Length: 2 * size, Frames: 3, Rows: 6}, right, "only 0 are there"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := OS().OpenFile(filepath.Join(t.TempDir(), "rows"), os.O_CREATE|os.O_RDWR, 0o600)
			require.NoError(t, err)
			defer f.Close()
			for i, h := range []head{{uint64(len(body)), 3, 0}, c.second} {
				b, at := make([]byte, headSize), int64(i)*size
				putHead(b, nameSum(f), at, h.number, h.rows, body)
				binary.LittleEndian.PutUint64(b, h.length)
				binary.LittleEndian.PutUint32(b[20:], headSum(b, nameSum(f), at, h.number))
				_, err = f.Write(append(b, body...))
				require.NoError(t, err)
			}
			r := NewFrameReader(f, c.stream)
			for err == nil {
				_, _, err = r.Next()
			}
			_, _, again := r.Next()
			require.Equal(t, err, again, "Next must return the same error again")
			if c.says == "" {
				require.Equal(t, io.EOF, err)
				return
			}
			var damage *DamagedError
			require.ErrorAs(t, err, &damage)
			require.ErrorContains(t, err, c.says)
			require.NotErrorIs(t, err, io.EOF)
		})
	}
}
