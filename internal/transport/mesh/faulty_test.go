package mesh

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// nth returns the rule for the n-th message from one rank to another on every channel.
func nth(kind FaultKind, from, to int, n uint64) FaultRule {
	return FaultRule{Kind: kind, From: from, To: to, Channel: Any, Message: n}
}

// TestFaultPlansPrint requires that plans have exactly these texts. The text of a rule is part
// of the seed of its random numbers, so a change of the text would change which messages have
// faults.
func TestFaultPlansPrint(t *testing.T) {
	require.Equal(t, "seed 7; drop 0->2 #17; delay 1->* 1/8 20ms; cut 3->0 channel 2 #100; corrupt header *->* every 5", FaultPlan{7, []FaultRule{
		nth(Drop, 0, 2, 17),
		{Kind: Delay, From: 1, To: Any, Channel: Any, Out: 1, Of: 8, Delay: 20 * time.Millisecond},
		{Kind: Cut, From: 3, To: 0, Channel: 2, Message: 100},
		{Kind: Corrupt, Header: true, From: Any, To: Any, Channel: Any, Every: 5},
	}}.String())
}

func TestFaultPlansThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		says string
		rule FaultRule
	}{
		{"rank 1 has no connection to itself", nth(Drop, 1, 1, 1)},
		{"ranks go from 0 to", nth(Drop, 0, 9999999, 1)},
		{"drop concerns whole messages, not headers", FaultRule{Kind: Drop, Header: true, To: 1, Message: 1}},
		{"numbers go from 1 to", nth(Drop, 0, 1, 99999999999999999)},
		{"a probability of 3/2: it must be above 0 and at most 1", FaultRule{Kind: Drop, To: 1, Out: 3, Of: 2}},
		{"drop takes no duration", FaultRule{Kind: Drop, To: 1, Message: 1, Delay: 1}},
		{"channel 1024: channels go from 0 to 1023", FaultRule{Kind: Drop, To: 1, Channel: 1024, Message: 1}},
		{"a delay of -3s: it must be above 0", FaultRule{Kind: Delay, To: 1, Message: 1, Delay: -3 * time.Second}},
		{"at most 1h0m0s", FaultRule{Kind: Delay, To: 1, Message: 1, Delay: 3 * time.Hour}},
	} {
		p := FaultPlan{Rules: []FaultRule{c.rule}}
		require.ErrorContains(t, p.Check(), c.says)
	}
	for _, r := range []FaultRule{
		{}, {Kind: 77, Message: 1, To: 1}, {Kind: Drop, To: 1}, {Kind: Drop, To: 1, Message: 1, Every: 1},
		{Kind: Drop, To: 1, Message: 1, Out: 3}, {Kind: Drop, To: 1, Message: 1, Delay: 1}, {Kind: Drop, From: -2, Message: 1},
	} {
		p := FaultPlan{Rules: []FaultRule{{Kind: Drop, To: 1, Message: 1}, r}}
		require.ErrorContains(t, p.Check(), "rule 2 of the fault plan", "%+v", r)
		require.EqualError(t, p.OnWire(&TCPConfig{}), p.Check().Error())
		_, err := NewFaulty(NewLocal(2).Node(0), p).Open(t.Context(), []Route{{Peer: 1}})
		require.EqualError(t, err, p.Check().Error())
	}
}

// hit returns the numbers of the messages with faults among the first n messages from one rank
// to another on a channel.
func hit(p FaultPlan, from, to, channel, n int) (numbers []int) {
	f := p.of(from, to, channel)
	for i := range n {
		if got := f.next(); got.kind != 0 || got.delay != 0 {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

func TestFaultsAreDrawnByNumber(t *testing.T) {
	some := func(seed uint64, rules ...FaultRule) FaultPlan { return FaultPlan{seed, rules} }
	drop := FaultRule{Kind: Drop, From: Any, To: Any, Channel: Any, Out: 1, Of: 8}
	always := drop
	always.Of = 1
	require.Equal(t, []int{3}, hit(some(0, nth(Drop, 0, 1, 3)), 0, 1, 7, 20))
	require.Equal(t, []int{5, 10, 15, 20}, hit(some(0, FaultRule{Kind: Drop, From: Any, To: 1, Channel: Any, Every: 5}), 0, 1, 0, 20))
	require.Empty(t, hit(some(0, FaultRule{Kind: Drop, From: 0, To: 1, Channel: Any, Out: 1, Of: 1}, FaultRule{Kind: Drop, From: 1, To: 0, Channel: 1, Out: 1, Of: 1}), 1, 0, 0, 20))
	require.Len(t, hit(some(0, always), 1, 0, 0, 20), 20)

	const n = 80_000
	seen := map[string]bool{}
	for _, seed := range []uint64{1, 2} {
		for _, where := range [][3]int{{0, 1, 0}, {1, 0, 0}, {0, 1, 1}, {0, 2, 0}} {
			got := hit(some(seed, drop), where[0], where[1], where[2], n)
			require.InDelta(t, n/8, len(got), 500, "the number of hits must be within five standard deviations, which are 468")
			require.Equal(t, got, hit(some(seed, drop), where[0], where[1], where[2], n))
			late := nth(Delay, Any, Any, 1)
			late.Delay = time.Second
			other := hit(some(seed, drop, nth(Drop, 5, 6, 1), late), where[0], where[1], where[2], n)
			require.Equal(t, got, slices.DeleteFunc(other, func(k int) bool { return k == 1 && got[0] != 1 }),
				"other rules must not change the draws of a rule")
			seen[fmt.Sprint(got)] = true
		}
	}
	require.Len(t, seen, 8, "the draws of all connections and seeds must differ")
}

// faultyPair connects ranks 0 and 1 in memory. The faults of the rules are inserted above the
// mesh.
func faultyPair(t testing.TB, seed uint64, rules ...FaultRule) (nodes [2]Node, ends [2]Conn) {
	local := NewLocal(2)
	for r := range nodes {
		nodes[r] = NewFaulty(local.Node(r), FaultPlan{seed, rules})
		conns, err := nodes[r].Open(t.Context(), []Route{{Peer: 1 - r}})
		require.NoError(t, err)
		again, err := nodes[r].Open(t.Context(), []Route{{Peer: 1 - r}})
		require.NoError(t, err)
		require.Same(t, conns[0], again[0])
		ends[r] = conns[0]
	}
	return nodes, ends
}

// numbered returns the k-th message of a test.
func numbered(k int) (Header, []byte) {
	b := bytes.Repeat([]byte{byte(k)}, 10*k)
	return Header{Seq: uint64(k), Hash: 9, Lane: 2, Step: 3, Segment: 4, Offset: 5, Length: uint32(len(b))}, b
}

// came describes a received message.
type came struct {
	Header
	data []byte
}

// exchange posts the messages 1 to n at ends[0], and receives receive messages at ends[1].
func exchange(t testing.TB, ends [2]Conn, n, receive int) (all []came) {
	for k := 1; k <= n; k++ {
		h, b := numbered(k)
		send := ends[0].Post
		if k%2 == 0 {
			send = ends[0].Send
		}
		require.NoError(t, send(&h, b))
	}
	for range receive {
		var m came
		require.NoError(t, ends[1].Next(&m.Header))
		m.data = make([]byte, m.Length)
		require.NoError(t, ends[1].Read(m.data))
		all = append(all, m)
	}
	return all
}

// flipped counts the bits in which two slices of equal lengths differ.
func flipped(a, b []byte) (n int) {
	for i := range a {
		for x := a[i] ^ b[i]; x != 0; x &= x - 1 {
			n++
		}
	}
	return n
}

func TestFaultyConnections(t *testing.T) {
	want := func(k int) came { h, b := numbered(k); return came{h, b} }
	for _, c := range []struct {
		rules []FaultRule
		comes []int
	}{
		{[]FaultRule{{Kind: Drop, From: 1, To: 0, Channel: Any, Out: 1, Of: 1}}, []int{1, 2, 3, 4}},
		{[]FaultRule{{Kind: Drop, From: 0, To: 1, Channel: 1, Out: 1, Of: 1}}, []int{1, 2, 3, 4}},
		{[]FaultRule{nth(Drop, 0, 1, 2)}, []int{1, 3, 4}},
		{[]FaultRule{nth(Duplicate, 0, 1, 2), {Kind: Drop, From: 0, To: 1, Channel: Any, Every: 4}}, []int{1, 2, 2, 3}},
		{[]FaultRule{nth(Duplicate, 0, 1, 2), nth(Drop, 0, 1, 2)}, []int{1, 2, 2, 3, 4}}, // only the first rule is used
	} {
		_, ends := faultyPair(t, 0, c.rules...)
		for i, m := range exchange(t, ends, 4, len(c.comes)) {
			require.Equal(t, want(c.comes[i]), m, c.rules)
		}
	}
	cuts, bits := map[uint32]bool{}, map[string]bool{}
	header := nth(Corrupt, 0, 1, 4)
	header.Header = true
	for seed := range uint64(50) {
		_, ends := faultyPair(t, seed, nth(Truncate, 0, 1, 2), nth(Corrupt, 0, 1, 3), header)
		m := exchange(t, ends, 4, 4)
		require.Equal(t, want(1), m[0])

		require.Less(t, m[1].Length, uint32(20))
		require.Equal(t, want(2).data[:m[1].Length], m[1].data)
		cuts[m[1].Length] = true

		require.Equal(t, want(3).Header, m[2].Header)
		require.Equal(t, 1, flipped(want(3).data, m[2].data))
		bits[string(m[2].data)] = true

		require.Equal(t, want(4).data, m[3].data)
		require.NotEqual(t, want(4).Header, m[3].Header)
		require.Equal(t, want(4).Length, m[3].Length)
	}
	require.Greater(t, len(cuts), 10)
	require.Greater(t, len(bits), 30)
}

func TestFaultsLeaveCallersMemoryAlone(t *testing.T) {
	header := nth(Corrupt, 0, 1, 2)
	header.Header = true
	_, ends := faultyPair(t, 0, nth(Corrupt, 0, 1, 1), header, nth(Truncate, 0, 1, 3))
	for k := 1; k <= 3; k++ {
		h, b := numbered(k)
		require.NoError(t, ends[0].Send(&h, b))
		wantHeader, want := numbered(k)
		require.Equal(t, wantHeader, h)
		require.Equal(t, want, b)
	}
}

func TestCutEndsTheGroup(t *testing.T) {
	nodes, ends := faultyPair(t, 0, nth(Cut, 0, 1, 2))
	nodes[0].Begin(5, &Operation{Hash: 1, Text: "Barrier"})
	exchange(t, ends, 1, 1)
	h, b := numbered(2)
	err := ends[0].Send(&h, b)
	var lost *membership.PeerError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, 1, lost.Rank)
	require.Equal(t, 0, lost.Reporter)
	require.ErrorContains(t, err, "rank 1 was cut off at message 2 (fault plan: cut 0->1 #2), noticed by rank 0 in ")
	require.ErrorContains(t, err, "Barrier")
	require.Equal(t, err, ends[1].Next(&h))
	require.Equal(t, err, ends[0].Post(&h, b))
	require.Equal(t, err, nodes[1].Err())
}

func TestDelayKeepsOrderAndEndsWithTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, ends := faultyPair(t, 0,
			FaultRule{Kind: Delay, From: 0, To: 1, Channel: Any, Message: 2, Delay: time.Second},
			FaultRule{Kind: Delay, From: Any, To: 1, Channel: Any, Message: 2, Delay: 500 * time.Millisecond},
			FaultRule{Kind: Delay, From: 0, To: 1, Channel: Any, Message: 3, Delay: time.Hour},
			nth(Cut, 0, 1, 3))
		began := time.Now()
		m := exchange(t, ends, 2, 2)
		require.Equal(t, 1500*time.Millisecond, time.Since(began))
		require.Equal(t, uint64(1), m[0].Seq)
		require.Equal(t, uint64(2), m[1].Seq)

		cause := errors.New("enough")
		time.AfterFunc(time.Second, func() { nodes[1].Fail(cause) })
		h, b := numbered(3)
		require.Equal(t, cause, ends[0].Send(&h, b))
		require.Equal(t, 2500*time.Millisecond, time.Since(began))
	})
}

func TestMisuseIsNoMessage(t *testing.T) {
	_, ends := faultyPair(t, 0, nth(Drop, 0, 1, 1))
	require.ErrorContains(t, ends[0].Send(&Header{Length: 3}, nil), "announces 3 bytes")
	h, b := numbered(1)
	require.NoError(t, ends[0].Send(&h, b))
	require.NoError(t, ends[0].Post(&h, b))
	require.NoError(t, ends[1].Next(&h))
	require.Implements(t, (*Borrower)(nil), ends[1])
	lent, err := ends[1].(Borrower).Borrow(10)
	require.NoError(t, err)
	require.Equal(t, b, lent)
	ends[1].(Borrower).Return()
}
