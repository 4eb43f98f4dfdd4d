package membership

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// samples returns messages of all kinds. The keys are the names of the messages' seeds in the
// fuzz corpus.
func samples() map[string]message {
	peer := &PeerError{Rank: 3, Address: "10.0.0.3:7", Reporter: 1, During: "Barrier #4", Reason: "left the group", Kind: ErrLeft}
	mismatch := &MismatchError{Rank: 1, Doing: "Barrier #4", Other: 2, OtherDoing: "AllReduce #4"}
	return map[string]message{
		"hello":   hello{2, 4, 9, []int{0, 5, 8}, "[::1]:7"},
		"refuse":  refuse{&textError{"process 1 has joined before", nil}},
		"waiting": waiting{"waiting for process 2 of 4: have they started?"},
		"welcome": welcome{[]Peer{{[]int{0, 2}, "10.0.0.1:7"}, {[]int{1}, ""}}, 4e9},
		"beat":    beat{},
		"state": state{true, []rankState{
			{rank: 0, seq: 17, inside: true, hash: 0xdeadbeef, text: "AllReduce", progress: 1 << 40},
			{rank: 5, seq: 16, left: true, progress: math.MaxUint64, begun: [RecentOps]pastOp{{15, 0xfeed, "Barrier"}, {16, 0xdeadbeef, ""}}}}},
		"state empty":    state{},
		"ask":            ask{5},
		"report text":    report{cause: &textError{"the disk is full", nil}},
		"report peer":    report{cause: peer},
		"abort mismatch": abort{mismatch},
		"report unknown": report{&MismatchError{Rank: 1, Doing: "Barrier #4", Other: 2}, 4},
		"abort wrapped":  abort{&textError{"epoch 3: " + peer.Error(), peer}},
		"abort both":     abort{&textError{"epoch 3: " + mismatch.Error(), mismatch}},
		"abort lost":     abort{&textError{"rank 1 was cancelled: worker 2 was silent for 4s", lostPeer{}}},
		"abort stalled":  abort{&textError{"no rank has made progress for 4s", ErrTimeout}},
		"goodbye":        goodbye{true},
		"bye":            bye{},
	}
}

func TestMessagesComeBackAsTheyWent(t *testing.T) {
	seen := map[kind]bool{}
	for name, m := range samples() {
		frame, err := appendFrame([]byte("before"), 7, m)
		require.NoError(t, err)
		var scratch []byte
		back, err := readFrame(bytes.NewReader(frame[6:]), 7, &scratch)
		require.NoError(t, err, name)
		require.Equal(t, m, back, name)
		seen[m.kind()] = true
	}
	for k := kindHello; k <= kindBye; k++ {
		require.True(t, seen[k], "kind %d must have a sample", k)
	}
}

func TestFramesAreBoundedBeforeTheyAreRead(t *testing.T) {
	for _, n := range []uint32{0, maxFrame + 1, math.MaxUint32} {
		head := append(binary.LittleEndian.AppendUint32(nil, n), make([]byte, frameHead-4)...)
		resum(head)
		var scratch []byte
		_, err := readFrame(bytes.NewReader(head), 0, &scratch)
		require.ErrorIs(t, err, errFrame)
		require.Nil(t, scratch)
	}
	table := welcome{make([]Peer, maxProcs), 1}
	for i := range table.table {
		table.table[i].Address = strings.Repeat("x", maxHost)
	}
	_, err := appendFrame(nil, 0, table)
	require.ErrorContains(t, err, "more than")
}

func TestBrokenFrames(t *testing.T) {
	whole, err := appendFrame(nil, 0, samples()["report peer"])
	require.NoError(t, err)
	for n := range whole {
		var scratch []byte
		_, err := readFrame(bytes.NewReader(whole[:n]), 0, &scratch)
		if n == 0 {
			require.Equal(t, io.EOF, err)
		} else {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		}
	}
	for bit := range 8 * len(whole) {
		damaged := bytes.Clone(whole)
		damaged[bit/8] ^= 1 << (bit % 8)
		var scratch []byte
		_, err := readFrame(bytes.NewReader(damaged), 0, &scratch)
		require.ErrorIs(t, err, ErrDamaged)
	}
	for _, c := range []struct{ sent, due uint32 }{{0, 1}, {2, 1}, {1 << 16, 0}, {0, math.MaxUint32}, {math.MaxUint32, 0}} {
		frame, err := appendFrame(nil, c.sent, samples()["report peer"])
		require.NoError(t, err)
		var scratch []byte
		_, err = readFrame(bytes.NewReader(frame), c.due, &scratch)
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, fmt.Sprintf("control message %d came in the place of %d: messages were lost, repeated or reordered", c.sent, c.due))
	}
	for name, frame := range map[string][]byte{
		"kind 77":                 {77},
		"1 bytes too many":        {byte(kindBeat), 0},
		"a flag is 2":             {byte(kindGoodbye), 2},
		"ends 3 bytes early":      {byte(kindWaiting), 3},
		"not UTF-8":               {byte(kindWaiting), 1, 0xff},
		"a number does not end":   {byte(kindAsk), 0x80},
		"is more than":            {byte(kindState), 0, 0xff, 0xff, 0x7f},
		"processes are more than": append([]byte{byte(kindWelcome), 1, 0x81, 0x80, 0x01}, make([]byte, 1<<15)...),
	} {
		_, err := decodeBody(kind(frame[0]), frame[1:])
		require.ErrorIs(t, err, errFrame)
		require.ErrorContains(t, err, name)
	}
}

func TestCausesKeepWhatProgramsAskFor(t *testing.T) {
	peer := &PeerError{Rank: 2, Address: "a:1", Reporter: 1, During: "Barrier #4", Reason: "was silent", Kind: ErrTimeout}
	mismatch := &MismatchError{Rank: 1, Doing: "Barrier", Other: 2, OtherDoing: "Reduce"}
	for _, err := range []error{
		errors.New("the disk is full"), peer, mismatch,
		fmt.Errorf("epoch 3: %w", peer), fmt.Errorf("epoch 3: %w", mismatch),
		fmt.Errorf("waited: %w", ErrLeft), fmt.Errorf("waited: %w", context.DeadlineExceeded),
		fmt.Errorf("stopped: %w", context.Canceled),
	} {
		got := afterTransfer(err)
		require.Equal(t, err.Error(), got.Error())
		for _, kind := range kinds[1:] {
			require.Equal(t, errors.Is(err, kind), errors.Is(got, kind), "%v: %v", err, kind)
		}
		var p, gotPeer *PeerError
		require.Equal(t, errors.As(err, &p), errors.As(got, &gotPeer))
		require.Equal(t, p, gotPeer)
		var m, gotMismatch *MismatchError
		require.Equal(t, errors.As(err, &m), errors.As(got, &gotMismatch))
		require.Equal(t, m, gotMismatch)
		require.Equal(t, got, afterTransfer(got), "sending a received cause again must not change it")
	}
	odd := afterTransfer(&PeerError{Rank: -1, Reporter: math.MaxInt, Reason: strings.Repeat("é", maxText), Kind: io.EOF})
	var p *PeerError
	require.ErrorAs(t, odd, &p)
	require.Equal(t, 0, p.Rank)
	require.NoError(t, p.Kind)
	require.LessOrEqual(t, len(p.Reason), maxText)
	require.True(t, strings.HasSuffix(p.Reason, "é…"))
}

// resum corrects the checksums of a frame, so that readFrame accepts them and decodes the body.
func resum(b []byte) {
	if len(b) < frameHead {
		return
	}
	le := binary.LittleEndian
	le.PutUint32(b[8:], checksum.CRC32C(0, b[:8]))
	if n := frameHead + uint64(le.Uint32(b)); uint64(len(b)) >= n+frameTail {
		le.PutUint32(b[n:], checksum.CRC32C(0, b[:n]))
	}
}

// FuzzReadFrame requires that a message that readFrame accepts can be encoded, and that the
// encoding decodes to an equal message. The seeds under testdata are frames of all kinds.
func FuzzReadFrame(f *testing.F) {
	f.Add(make([]byte, frameHead), true)
	f.Fuzz(func(t *testing.T, data []byte, repair bool) {
		var scratch []byte
		if repair {
			resum(data)
		}
		m, err := readFrame(bytes.NewReader(data), 0, &scratch)
		if err != nil {
			require.Nil(t, m)
			return
		}
		frame, err := appendFrame(nil, 0, m)
		require.NoError(t, err)
		back, err := readFrame(bytes.NewReader(frame), 0, &scratch)
		require.NoError(t, err)
		require.Equal(t, m, back)
	})
}

// TestFuzzSeedsAreComplete requires that the seeds of the fuzz test are the frames of the
// samples. With UPDATE_SEEDS=1, it writes the seeds.
func TestFuzzSeedsAreComplete(t *testing.T) {
	dir := filepath.Join("testdata", "fuzz", "FuzzReadFrame")
	for name, m := range samples() {
		frame, err := appendFrame(nil, 0, m)
		require.NoError(t, err)
		want := fmt.Sprintf("go test fuzz v1\n[]byte(%q)\nbool(true)\n", frame)
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if os.Getenv("UPDATE_SEEDS") != "" {
			require.NoError(t, os.MkdirAll(dir, 0o777))
			require.NoError(t, os.WriteFile(path, []byte(want), 0o666))
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(got), name)
	}
}
