package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// framed returns the concatenated frames of messages.
func framed(t testing.TB, messages ...*FromWorker) []byte {
	var out bytes.Buffer
	w := NewWriter[FromWorker](&out)
	for _, m := range messages {
		require.NoError(t, w.Write(m))
	}
	return out.Bytes()
}

func TestFramesComeAsTheyWent(t *testing.T) {
	sent := []*FromWorker{
		{Ready: &Ready{Address: "127.0.0.1:1", Fingerprint: "f"}},
		{Beat: &Beat{}},
		{Output: &Output{Text: bytes.Repeat([]byte("long "), 1<<20)}},
		{Finished: &Finished{Outcome: []byte{1}}},
	}
	data := framed(t, sent...)
	for name, from := range map[string]io.Reader{
		"at once": bytes.NewReader(data), "halves": iotest.HalfReader(bytes.NewReader(data)), "with EOF": iotest.DataErrReader(bytes.NewReader(data)),
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader[FromWorker](from)
			for _, want := range sent {
				got, err := r.Next()
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			for range 2 {
				_, err := r.Next()
				require.Equal(t, io.EOF, err)
			}
		})
	}
}

func TestFrameIsAsDocumented(t *testing.T) {
	require.Equal(t, "\x00\x00\x00\x07\x81\xa4beat\x80", string(framed(t, &FromWorker{Beat: &Beat{}})))
}

func TestFramesCutAnywhere(t *testing.T) {
	data := framed(t, &FromWorker{Ready: &Ready{Address: "127.0.0.1:1"}})
	for n := 1; n < len(data); n++ {
		r := NewReader[FromWorker](iotest.OneByteReader(bytes.NewReader(data[:n])))
		_, err := r.Next()
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "after %d bytes", n)
		_, again := r.Next()
		require.Equal(t, err, again)
	}
}

func TestFramesOfGarbage(t *testing.T) {
	claims := func(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }
	for name, c := range map[string]struct{ data, why string }{
		"text":             {"panic: runtime error\n", `bytes "pani"`},
		"empty":            {claims(0), "a length of 0 bytes"},
		"one too many":     {claims(MaxFrame + 1), "is none that a frame has"},
		"4 GB":             {claims(1<<32 - 1), "is none that a frame has"},
		"64 MB of nothing": {claims(MaxFrame) + "abc", "after 3 of 67108864 bytes: unexpected EOF"},
		"no message":       {claims(3) + "abc", "message FromWorker does not decode"},
		"two messages":     {claims(2) + "\x80\x80", "bytes follow its end"},
	} {
		t.Run(name, func(t *testing.T) {
			taken := allocated(func() {
				_, err := NewReader[FromWorker](strings.NewReader(c.data)).Next()
				require.ErrorContains(t, err, c.why)
			})
			require.Less(t, taken, uint64(1<<20))
		})
	}
}

func TestErrorsOfReading(t *testing.T) {
	gone := errors.New("gone")
	data := framed(t, &FromWorker{Beat: &Beat{}})
	for _, n := range []int{0, 2, 4, 6} {
		_, err := NewReader[FromWorker](io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(gone))).Next()
		require.ErrorIs(t, err, gone)
	}
}

func TestErrorsOfWriting(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter[FromWorker](&out)
	require.ErrorContains(t, w.Write(&FromWorker{Output: &Output{Text: make([]byte, MaxFrame)}}), "larger than the limit")
	require.ErrorContains(t, w.Write(nil), "no message")
	require.Zero(t, out.Len())
	require.NoError(t, w.Write(&FromWorker{Beat: &Beat{}}), "a write must succeed after messages that could not be encoded")

	r, pipe := io.Pipe()
	require.NoError(t, r.Close())
	broken := NewWriter[FromWorker](pipe)
	err := broken.Write(&FromWorker{Beat: &Beat{}})
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.Equal(t, err, broken.Write(&FromWorker{Beat: &Beat{}}))
}

func TestWritersDoNotMixFrames(t *testing.T) {
	r, pipe := io.Pipe()
	w := NewWriter[FromWorker](pipe)
	const writers, each = 8, 50
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range each {
				if err := w.Write(&FromWorker{Output: &Output{Text: fmt.Appendf(nil, "%d %d %s", i, n, strings.Repeat("x", 1000*i))}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { wg.Wait(); pipe.Close() }()
	frames, next := NewReader[FromWorker](r), [writers]int{}
	for {
		m, err := frames.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		var i, n int
		_, err = fmt.Sscan(string(m.Output.Text), &i, &n)
		require.NoError(t, err)
		require.Equal(t, next[i], n)
		next[i]++
	}
	for _, n := range next {
		require.Equal(t, each, n)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(framed(f, &FromWorker{Beat: &Beat{}}, &FromWorker{Ready: &Ready{Address: "a"}}))
	f.Add([]byte("\x00\x00\x00\x01\x80\x00"))
	f.Add([]byte("goroutine 1 [running]:\n"))
	f.Add([]byte("\x04\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewReader[FromWorker](bytes.NewReader(data))
		for n := 0; ; n++ {
			m, err := r.Next()
			if err != nil {
				return
			}
			require.NotNil(t, m)
			require.LessOrEqual(t, n, len(data)/5)
		}
	})
}
