package collective_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// listeners returns the TCP addresses on which this process listens.
func listeners(t *testing.T) map[string]bool {
	t.Helper()
	own := map[string]bool{} // set of the inodes of the process's sockets
	links, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, "socket:[") {
			own[strings.Trim(to, "socket:[]")] = true
		}
	}
	table, err := os.ReadFile("/proc/self/net/tcp")
	require.NoError(t, err)
	found := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		const listening = "0A"
		if len(f) < 10 || f[3] != listening || !own[f[9]] {
			continue
		}
		var ip, port uint32
		_, err := fmt.Sscanf(f[1], "%08X:%04X", &ip, &port)
		require.NoError(t, err)
		at := make(net.IP, 4)
		binary.NativeEndian.PutUint32(at, ip)
		found[net.JoinHostPort(at.String(), fmt.Sprint(port))] = true
	}
	return found
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The kinds of connections, as encoded in the first message.
const (
	control = 1
	lane    = 2
)

// hello returns the first message on a connection of the given kind.
func hello(kind byte, group string, attempt, from, to, size, channel uint32) []byte {
	le := binary.LittleEndian
	b := append([]byte("SSPL"), 1, 0, kind, 0)
	if kind == lane {
		b[7] = 1 // flag: messages have checksums
	}
	for _, v := range []uint32{attempt, from, to, size, channel, 1} {
		b = le.AppendUint32(b, v)
	}
	job, scope := sha256.Sum256(nil), sha256.Sum256([]byte(group))
	b = append(append(b, job[:16]...), scope[:16]...)
	b = append(b, make([]byte, 32)...)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// dataHello returns the first message on a data connection.
func dataHello(group string, attempt, from, to, channel uint32) []byte {
	return hello(lane, group, attempt, from, to, 3, channel)
}

// dataMessage returns the header of a message that announces data of the given length. The data
// are never sent.
func dataMessage(group string, attempt, length uint32) []byte {
	b := make([]byte, 64)
	le := binary.LittleEndian
	copy(b, "SM\x00\x02") // flag: the message has a checksum
	b[2] = mesh.WireVersion
	le.PutUint32(b[8:], attempt)
	le.PutUint64(b[16:], xxh3.HashString(group))
	le.PutUint64(b[24:], 1)
	le.PutUint32(b[52:], length)
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

// controlFrame returns a frame of a control connection.
func controlFrame(kind byte, body ...byte) []byte {
	le := binary.LittleEndian
	b := controlHead(uint32(1 + len(body)))
	b = append(append(b, kind), body...)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// controlHead returns the header of the first frame on a control connection.
func controlHead(length uint32) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(le.AppendUint32(nil, length), 0)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// The kinds of control frames that an attack may send.
const (
	frameHello, frameState, frameReport, frameAbort, frameGoodbye = 1, 6, 8, 9, 10
)

// controlHello returns the first bytes that a process with one rank sends to process 0: the
// result of hello and the first control frame.
func controlHello(group string, attempt uint32, process, processes uint64) []byte {
	var b []byte
	num := func(v uint64) { b = binary.AppendUvarint(b, v) }
	for _, v := range []uint64{process, processes, processes, 1, process} {
		num(v)
	}
	address := "127.0.0.1:9"
	num(uint64(len(address)))
	b = append(b, address...)
	return append(hello(control, group, attempt, 1, 0, 3, 0), controlFrame(frameHello, b...)...)
}

// attack has bytes that a process that is not a member sends to any port of the group.
type attack struct {
	name string
	says []byte
	asks bool // the bytes are well-formed, so a port of the right kind answers
	slow bool // the message is shorter than announced, so the receiver waits for the rest until silenceLimit
}

// attacks returns the attacks on a group of p processes with one rank each, in attempt 2.
func attacks(group string, p uint64) []attack {
	in := hello(control, group, 2, 1, 0, 3, 0) // the group has no secret, so it authenticates no sender
	inside := func(frame ...byte) []byte { return append(bytes.Clone(in), frame...) }
	damaged := dataHello(group, 2, 0, 1, 3)
	damaged[21] ^= 1
	there := controlHello(group, 2, 1, p)
	return []attack{
		{"nothing", nil, false, true},
		{"garbage", bytes.Repeat([]byte("rubbish "), 1<<12), false, false},
		{"zeros", make([]byte, 1<<12), false, false},
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), false, false},
		{"TLS", []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), false, false},
		{"half a hello", in[:20], false, true},
		{"a damaged data hello", damaged, false, false},
		{"a data hello of an old attempt", dataHello(group, 1, 0, 1, 0), true, false},
		{"and its messages", append(dataHello(group, 1, 0, 1, 0), dataMessage(group, 1, 1<<20)...), true, false},
		{"a data hello of another group", dataHello("another", 2, 0, 1, 0), true, false},
		{"a data hello of a rank that is not", dataHello(group, 2, 99, 100, 0), true, false},
		{"a data hello downwards", dataHello(group, 2, 2, 0, 0), true, false},
		{"a data hello to a rank that is elsewhere", dataHello(group, 2, 1, 1<<32-1, 0), true, false},
		{"a data hello of a channel beyond all", dataHello(group, 2, 0, 1, 1<<31), true, false},
		{"messages without a hello", dataMessage(group, 2, 1<<32-1), false, false},
		{"a hello of no kind", hello(77, group, 2, 0, 1, 3, 0), true, false},
		{"half a control hello", there[:len(there)-5], true, true},
		{"a control frame without end", inside(append(controlHead(1<<32-1), 1)...), true, false},
		{"a long control frame that does not come", inside(append(controlHead(1<<20), 1, 2, 3)...), true, true},
		{"a control hello of an old attempt", controlHello(group, 1, 1, p), true, false},
		{"a control hello of another group", controlHello("another", 2, 1, p), true, false},
		{"a control hello of a process that is there", there, true, false},
		{"a control hello of a process that is not", controlHello(group, 2, 77, p), true, false},
		{"a control hello of another size", controlHello(group, 2, 1, p+1), true, false},
		{"a control hello of a group without end", controlHello(group, 2, 1<<40, 1<<40), true, false},
		{"a report without a hello", inside(controlFrame(frameReport, make([]byte, 40)...)...), true, false},
		{"the end without a hello", inside(controlFrame(frameAbort, make([]byte, 40)...)...), true, false},
		{"a good-bye without a hello", inside(controlFrame(frameGoodbye, 1)...), true, false},
		{"a standing without a hello", inside(controlFrame(frameState, 1, 0)...), true, false},
		{"a frame of no kind", inside(controlFrame(200, 1, 2, 3)...), true, false},
	}
}

// attackPort connects to a port, sends the attack, and waits until the connection is closed. It
// returns the answer, and an error if the group accepts the connection as a connection of a
// member.
func attackPort(address string, a attack) (answer []byte, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	// If the group closed the connection early, writing the remaining bytes and reading the
	// reason fail.
	if _, err := conn.Write(a.says); err != nil {
		return nil, nil
	}
	answer, err = io.ReadAll(conn)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return answer, fmt.Errorf("%s at %s: the connection is kept", a.name, address)
	}
	const yes, welcome = 1, 4
	let := len(answer) > 4 && bytes.HasPrefix(answer, []byte("SSPA")) && answer[4] == yes
	switch {
	case let && a.says[6] == lane,
		let && len(answer) > 24 && answer[24] == welcome,
		len(answer) > 0 && !a.asks:
		return answer, fmt.Errorf("%s at %s is answered by %q", a.name, address, answer)
	}
	return answer, nil
}

// TestAttacksOnThePorts attacks every port of a group while the group computes. It is not
// parallel, so that it can determine the ports of the group and how much memory is allocated.
func TestAttacksOnThePorts(t *testing.T) {
	const p = 3
	before := listeners(t)
	w := overTCP(t, p, nil, func(cfg *collective.TCPConfig) {
		cfg.Attempt, cfg.JoinTimeout = 2, 2*time.Second
	})
	var doors []string
	for address := range listeners(t) {
		if !before[address] {
			doors = append(doors, address)
		}
	}
	require.Len(t, doors, p, "each process must have one port")

	var over atomic.Bool
	worked := make(chan []error, 1)
	var rounds atomic.Int64
	go func() {
		worked <- w.outcomes(func(c *collective.Comm) error {
			pace := time.NewTicker(2 * time.Millisecond)
			defer pace.Stop()
			for k := 0; ; k++ {
				if c.Rank() == 0 {
					<-pace.C // leave processor time to the attacks
				}
				x := allReduceCase{n: k % 2000, operator: k % 4}
				if err := allReduceOf[float32](c, &x); err != nil {
					return fmt.Errorf("round %d: %w", k, err)
				}
				// Rank 0 decides, so that all ranks stop in the same round.
				stop, err := c.BroadcastBool(context.Background(), 0, over.Load())
				if err != nil || stop {
					return err
				}
				rounds.Store(int64(k))
			}
		})
	}()

	// A port accepts only a limited number of unauthenticated connections at once, so slow
	// attacks are made separately.
	var asking, wrong, slow []attack
	for _, a := range attacks(t.Name(), p) {
		switch {
		case a.asks:
			asking = append(asking, a)
		case a.slow:
			slow = append(slow, a)
		default:
			wrong = append(wrong, a)
		}
	}
	answered := map[string]bool{}
	repeat := 1
	if testsize.Soak {
		repeat = 10
	}
	// If a length field of an attack were trusted, gigabytes would be allocated.
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	for range repeat {
		attackAll(t, doors, asking, answered)
		attackAll(t, doors, wrong, answered)
	}
	runtime.ReadMemStats(&end)
	require.Less(t, end.TotalAlloc-start.TotalAlloc, uint64(repeat)<<28)
	t.Parallel()
	attackAll(t, doors, slow, answered)
	for _, want := range []string{
		"attempt 1 of the lane of group", "nobody here expects such a lane: this is group", "in a group of 3 ranks",
		"is over: this is attempt 2", "nobody here expects such a control connection: this is group", "process 1 has joined before", "there is no process 77",
		"nobody here expects a connection of kind 77",
	} {
		require.True(t, contains(answered, want), "an attack must be answered with %q: %q", want, answered)
	}

	over.Store(true)
	for r, err := range <-worked {
		require.NoError(t, err, "rank %d must not notice the attacks", r)
	}
	require.Positive(t, rounds.Load())
	w.close(t)
}

// attackAll makes all attacks on all ports concurrently, and records the answers in answered.
func attackAll(t *testing.T, doors []string, all []attack, answered map[string]bool) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	for _, door := range doors {
		for _, a := range all {
			wg.Go(func() {
				answer, err := attackPort(door, a)
				mu.Lock()
				defer mu.Unlock()
				answered[string(answer)] = true
				failed = append(failed, err)
			})
		}
	}
	wg.Wait()
	require.NoError(t, errors.Join(failed...))
}

func contains(answers map[string]bool, text string) bool {
	for a := range answers {
		if strings.Contains(a, text) {
			return true
		}
	}
	return false
}

// fixedStore is a store that has the same address for every attempt.
type fixedStore struct {
	collective.Store
	address string
}

func (s fixedStore) Get(context.Context, string) ([]byte, error) { return []byte(s.address), nil }

// TestProcessesOfOtherAttemptsStayOutside requires that a group refuses processes of an earlier
// attempt, of a later attempt and of another group that try to join it while it forms and while
// it computes. The test is not parallel, because some of these processes wait only for a short
// time.
func TestProcessesOfOtherAttemptsStayOutside(t *testing.T) {
	store := newTestStore()
	join := func(rank int, group string, attempt uint32, at collective.Store, wait time.Duration) (*collective.TCPGroup, error) {
		return collective.NewTCPGroup(t.Context(), rank, collective.TCPConfig{
			Store: at, Size: 2, Group: group, Attempt: attempt, JoinTimeout: wait,
		})
	}
	w := &testGroup{name: "attempt 2", p: 2, tcp: make([]*collective.TCPGroup, 2)}
	w.end = func(rank int) *collective.Comm { return w.tcp[rank].Rank(rank) }
	first := make(chan error, 1)
	go func() {
		var err error
		w.tcp[0], err = join(0, t.Name(), 2, store, killLimit)
		first <- err
	}()
	_, err := store.Get(t.Context(), fmt.Sprintf("superstep/%s/2/coordinator", t.Name()))
	require.NoError(t, err)
	door := fixedStore{store, store.only(t)}
	stray := func() {
		strays := []struct {
			group   string
			attempt uint32
			wait    time.Duration
			want    string
		}{
			{t.Name(), 1, killLimit, "is over: this is attempt 2"},
			{t.Name(), 3, 800 * time.Millisecond, "still attempt 2"},
			{"another", 2, 800 * time.Millisecond, "nobody here expects such a control connection: this is group"},
		}
		errs := make([]error, len(strays))
		var wg sync.WaitGroup
		for i, x := range strays {
			wg.Go(func() {
				for wait := x.wait; ; wait *= 2 { // a refusal that is not final is reported only after wait
					g, err := join(1, x.group, x.attempt, door, wait)
					if errs[i] = err; err == nil {
						g.Close()
					}
					if err == nil || strings.Contains(err.Error(), x.want) || wait > killLimit {
						return
					}
				}
			})
		}
		wg.Wait()
		for i, x := range strays {
			require.ErrorContains(t, errs[i], "rank 1 cannot join the group")
			require.ErrorContains(t, errs[i], x.want)
		}
	}
	stray()
	w.tcp[1], err = join(1, t.Name(), 2, store, killLimit)
	require.NoError(t, err)
	require.NoError(t, <-first)
	work := func(c *collective.Comm) error { return allReduceOf[int64](c, &allReduceCase{n: 1000}) }
	w.run(t, work)
	stray()
	w.run(t, work)
	w.close(t)
}
