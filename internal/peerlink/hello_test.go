package peerlink

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// anyHello returns a hello with a different value in every field.
func anyHello() *greeting {
	return &greeting{
		Hello:  Hello{Kind: Lane, Epoch: 4, From: 1, To: 2, Size: 3, Channel: 5, Try: 6, Sums: true},
		secret: true, job: nameOf("job"), scope: nameOf("group"), nonce: [nonceBytes]byte{9},
	}
}

// resum corrects the checksum at the end of b, and returns b.
func resum(b []byte) []byte {
	n := len(b) - sumBytes
	binary.LittleEndian.PutUint32(b[n:], checksum.CRC32C(0, b[:n]))
	return b
}

// TestEveryBitOfAHello requires an error for a hello with any flipped bit, and for a hello that
// is cut off anywhere. The error must not be final, as another try may succeed.
func TestEveryBitOfAHello(t *testing.T) {
	want := anyHello()
	good := want.encode()
	got, sent, err := readGreeting(bytes.NewReader(good))
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, good, sent)
	for bit := range 8 * helloBytes {
		b := bytes.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		got, _, err := readGreeting(bytes.NewReader(b))
		require.Error(t, err, "a hello with bit %d flipped must be an error", bit)
		require.Nil(t, got)
		require.False(t, IsFinal(err), "the error for bit %d must not be final: %v", bit, err)
		if bit/8 >= 6 { // the bit is after magic and version
			require.ErrorIs(t, err, ErrDamaged, "bit %d must be reported as damage", bit)
		}
	}
	for n := range good {
		_, _, err := readGreeting(bytes.NewReader(good[:n]))
		require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "a hello cut to %d bytes must be an early end: %v", n, err)
	}
}

// TestHellosOfOthers requires that bytes that are not a valid hello of this build get a Refusal
// only if they begin with the magic of hellos.
func TestHellosOfOthers(t *testing.T) {
	with := func(at int, to byte) []byte {
		b := anyHello().encode()
		b[at] = to
		return resum(b)
	}
	for says, b := range map[string][]byte{
		"version 9 of the protocol does not go with version 1: run the same build everywhere": with(4, 9),
		"its hello is of kind 0 with flags 0x03":                                              with(6, 0),
		"its hello is of kind 2 with flags 0x83":                                              with(7, 0x83),
		`it begins with "GET / HT", which is no hello`:                                        []byte("GET / HTTP/1.1\r\n\r\n"),
		"it begins with TLS, which this process does not use":                                 []byte("\x16\x03\x01\x02\x00\x01\x00\x01"),
	} {
		_, _, err := readGreeting(bytes.NewReader(b))
		require.ErrorContains(t, err, says)
		require.Equal(t, b[0] == 'S', errors.Is(err, ErrRefused))
	}
}

// TestEveryBitOfAnAnswer requires that an answer with any flipped bit, and an answer that is
// cut off anywhere, is taken neither for a yes nor for a refusal, and that follows is not
// changed.
func TestEveryBitOfAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		refused error
		follows []byte
	}{
		"yes":           {nil, []byte("what follows a yes")},
		"a mere yes":    {nil, []byte{}},
		"no":            {errors.New("because"), nil},
		"a no at most":  {errors.New(strings.Repeat("x", maxReason+1)), nil},
		"later":         {RefuseLater("not yet"), nil},
		"other secrets": {refuseFor(ErrSecret, ""), nil},
		"no secret":     {refuseFor(ErrNoSecret, "the side that connects sends no proof of the secret"), nil},
	} {
		var w bytes.Buffer
		require.NoError(t, answer(&w, c.refused, c.follows))
		good, follows := w.Bytes(), make([]byte, len(c.follows))
		err := readAnswer(bytes.NewReader(good), follows)
		if c.refused == nil {
			require.NoError(t, err)
			require.Equal(t, c.follows, follows)
		} else {
			var r *Refusal
			require.ErrorAs(t, err, &r)
			require.ErrorIs(t, err, ErrRefused)
			require.Equal(t, Clip(c.refused.Error(), maxReason), err.Error())
			require.True(t, r.Theirs)
			require.Equal(t, name != "later", IsFinal(err))
			require.Equal(t, errors.Is(c.refused, ErrSecret), errors.Is(err, ErrSecret))
			require.Equal(t, errors.Is(c.refused, ErrNoSecret), errors.Is(err, ErrNoSecret))
		}
		clear(follows)
		for bit := range 8 * len(good) {
			b := bytes.Clone(good)
			b[bit/8] ^= 1 << (bit % 8)
			err := readAnswer(bytes.NewReader(b), follows)
			require.Error(t, err, "the answer %s with bit %d flipped must be an error", name, bit)
			require.NotErrorIs(t, err, ErrRefused, "the answer %s with bit %d flipped must not be a refusal", name, bit)
			require.Equal(t, make([]byte, len(c.follows)), follows)
		}
		for n := range good {
			err := readAnswer(bytes.NewReader(good[:n]), follows)
			require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "the answer %s cut to %d bytes must be an early end: %v", name, n, err)
		}
	}
}

// TestAnswersOfOthers requires that an answer that no listener sends is an error even if its
// checksum is correct.
func TestAnswersOfOthers(t *testing.T) {
	for name, head := range map[string][answerHead]byte{
		"no verdict":             {'S', 'S', 'P', 'A', 0},
		"another verdict":        {'S', 'S', 'P', 'A', byte(verdicts)},
		"what has no meaning":    {'S', 'S', 'P', 'A', byte(no), 1},
		"a reason of 1025 bytes": {'S', 'S', 'P', 'A', byte(no), 0, 1, 4},
		"a yes with a reason":    {'S', 'S', 'P', 'A', byte(yes), 0, 4},
	} {
		b := append(head[:], make([]byte, int(binary.LittleEndian.Uint16(head[6:]))+sumBytes)...)
		err := readAnswer(bytes.NewReader(resum(b)), nil)
		require.ErrorIs(t, err, ErrDamaged, name)
		require.ErrorContains(t, err, "its answer begins with", name)
	}
	for says, b := range map[string]string{
		`its answer begins with "HTTP/1.1": another program listens there`: "HTTP/1.1 400 Bad Request\r\n\r\n",
		"it answers with TLS": "\x15\x03\x01\x00\x02\x02\x46xxxx",
	} {
		err := readAnswer(strings.NewReader(b), nil)
		require.ErrorIs(t, err, ErrProtocol)
		require.ErrorContains(t, err, says)
	}
	bad := append([]byte{'S', 'S', 'P', 'A', byte(no), 0, 2, 0}, "\xff\xfe\x00\x00\x00\x00"...)
	require.ErrorContains(t, readAnswer(bytes.NewReader(resum(bad)), nil), "a reason that is not UTF-8")
}

// FuzzHello requires that every hello that readGreeting accepts encodes to the same bytes.
func FuzzHello(f *testing.F) {
	f.Add(anyHello().encode(), false)
	f.Add((&greeting{Hello: Hello{Kind: Control}}).encode(), false)
	for at := range preludeBytes {
		b := anyHello().encode()
		b[at]++
		f.Add(b, true)
	}
	f.Add([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), false)
	f.Fuzz(func(t *testing.T, b []byte, repair bool) {
		if repair && len(b) >= helloBytes {
			b = resum(bytes.Clone(b[:helloBytes]))
		}
		if g, _, err := readGreeting(bytes.NewReader(b)); err == nil {
			require.Equal(t, b[:helloBytes], g.encode())
		}
	})
}

// FuzzAnswer requires that every answer that readAnswer accepts encodes to the same bytes.
func FuzzAnswer(f *testing.F) {
	for _, refused := range []error{nil, errors.New("because"), RefuseLater("not yet"), refuseFor(ErrSecret, "x")} {
		var b bytes.Buffer
		require.NoError(f, answer(&b, refused, nil))
		f.Add(b.Bytes())
		f.Add(b.Bytes()[:b.Len()-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := readAnswer(bytes.NewReader(b), nil)
		if err != nil && !errors.Is(err, ErrRefused) {
			return
		}
		var back bytes.Buffer
		require.NoError(t, answer(&back, err, nil))
		require.Equal(t, back.Bytes(), b[:back.Len()])
	})
}

// FuzzUnauthenticatedHello requires that a handshake fails whatever bytes a dialer without the
// secret sends.
func FuzzUnauthenticatedHello(f *testing.F) {
	f.Add(anyHello().encode())
	var yes bytes.Buffer
	require.NoError(f, answer(&yes, nil, make([]byte, proofBytes)))
	f.Add(append(anyHello().encode(), yes.Bytes()...))
	f.Add([]byte("GET /"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &Port{cfg: Config{Secret: testSecret}, job: nameOf("job")}
		near, far := net.Pipe()
		defer near.Close()
		go func() { defer far.Close(); far.Write(b) }()
		go io.Copy(io.Discard, far)
		if _, _, err := p.greet(near); err == nil {
			t.Fatal("the handshake must fail without the secret")
		}
	})
}
