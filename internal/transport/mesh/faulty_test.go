package mesh

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// somePlan draws any valid plan.
func somePlan(t *rapid.T) FaultPlan {
	p := FaultPlan{Seed: rapid.Uint64().Draw(t, "seed")}
	for range rapid.IntRange(0, 4).Draw(t, "rules") {
		r := FaultRule{
			Kind:    FaultKind(rapid.IntRange(int(Drop), int(Cut)).Draw(t, "kind")),
			From:    rapid.IntRange(Any, 5).Draw(t, "from"),
			To:      rapid.IntRange(Any, 5).Draw(t, "to"),
			Channel: rapid.IntRange(Any, MaxChannels-1).Draw(t, "channel"),
		}
		if r.From == r.To && r.From != Any {
			r.To++
		}
		if r.Kind == Truncate || r.Kind == Corrupt {
			r.Header = rapid.Bool().Draw(t, "header")
		}
		switch rapid.IntRange(0, 2).Draw(t, "when") {
		case 0:
			r.Message = rapid.Uint64Range(1, maxFaultMessage).Draw(t, "message")
		case 1:
			r.Every = rapid.Uint64Range(1, maxFaultMessage).Draw(t, "every")
		default:
			r.Of = rapid.Uint32Min(1).Draw(t, "of")
			r.Out = rapid.Uint32Range(1, r.Of).Draw(t, "out")
		}
		if r.Kind == Delay {
			r.Delay = time.Duration(rapid.Int64Range(1, int64(maxFaultDelay)).Draw(t, "delay"))
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

func TestFaultPlansPrintAndParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := somePlan(t)
		require.NoError(t, p.Check())
		for _, text := range []string{p.String(), strings.ReplaceAll(p.String(), "; ", "\n\t") + " ;\r\n"} {
			back, err := ParseFaultPlan(text)
			require.NoError(t, err)
			require.Equal(t, p, back)
		}
	})
	p, err := ParseFaultPlan("drop 0->2 #17; delay 1->* 1/8 20ms\ncut 3->0 channel 2 #100\ncorrupt header *->* channel * every 5")
	require.NoError(t, err)
	require.Equal(t, FaultPlan{Rules: []FaultRule{
		{Kind: Drop, From: 0, To: 2, Channel: Any, Message: 17},
		{Kind: Delay, From: 1, To: Any, Channel: Any, Out: 1, Of: 8, Delay: 20 * time.Millisecond},
		{Kind: Cut, From: 3, To: 0, Channel: 2, Message: 100},
		{Kind: Corrupt, Header: true, From: Any, To: Any, Channel: Any, Every: 5},
	}}, p)
}

func TestFaultPlansThatCannotBe(t *testing.T) {
	for text, says := range map[string]string{
		"seed":                         "line 1, column 5: a seed is a number of 64 bits, not the end of the rule",
		"seed -1":                      "column 6: a seed",
		"seed 1; seed 2":               "column 9: a second seed",
		"seed 1 2":                     `column 8: "2" where the rule should end`,
		"drop 0->1 #1;\n  lose 0->1":   `line 2, column 3: "lose" is no fault: there are drop, delay, truncate, duplicate, corrupt, cut`,
		"drop":                         "column 5: a route is written like 0->2, 0->* or *->*, not the end of the rule",
		"drop 0-1 #1":                  "column 6: a route",
		"drop 0->-1 #1":                "column 6: a route",
		"drop 1->1 #1":                 "column 1: rank 1 has no connection to itself",
		"drop 0->9999999 #1":           "ranks go from 0 to",
		"drop header 0->1 #1":          "drop concerns whole messages, not headers",
		"drop 0->1":                    "column 10: which messages is written like #17, every 5 or 1/8, not the end of the rule",
		"drop 0->1 17":                 `not "17"`,
		"drop 0->1 #0":                 "numbers begin at 1",
		"drop 0->1 #x":                 "whole numbers are expected",
		"drop 0->1 every":              "column 16: which messages",
		"drop 0->1 #99999999999999999": "numbers go from 1 to",
		"drop 0->1 1/5000000000":       "5000000000 is too large",
		"drop 0->1 3/2":                "a probability of 3/2: it must be above 0 and at most 1",
		"drop 0->1 1/2 20ms":           `"20ms" where the rule should end`,
		"drop 0->1 channel x #1":       "column 19: a channel is a number or *",
		"drop 0->1 channel 1024 #1":    "channel 1024: channels go from 0 to 1023",
		"delay 0->1 1/2":               "column 15: a delay ends with how long, like 20ms, not the end of the rule",
		"delay 0->1 1/2 -3s":           "a delay of -3s: it must be above 0",
		"delay 0->1 1/2 3h":            "at most 1h0m0s",
	} {
		_, err := ParseFaultPlan(text)
		require.ErrorContains(t, err, says, text)
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

func FuzzParseFaultPlan(f *testing.F) {
	f.Add("seed 7; drop 0->2 #17; delay 1->* 1/8 20ms; cut 3->0 #100")
	f.Add("corrupt header *->* channel 3 every 5\ntruncate 1->0 1/1;;duplicate *->1 #1 ")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseFaultPlan(text)
		if err != nil {
			require.ErrorContains(t, err, "fault plan, line ")
			return
		}
		require.NoError(t, p.Check())
		back, err := ParseFaultPlan(p.String())
		require.NoError(t, err)
		require.Equal(t, p, back)
	})
}

// hit lists which of the first n messages of a direction a plan concerns.
func hit(t *testing.T, text string, from, to, channel, n int) (numbers []int) {
	p, err := ParseFaultPlan(text)
	require.NoError(t, err)
	f := p.of(from, to, channel)
	for i := range n {
		if got := f.next(); got.kind != 0 || got.delay != 0 {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

func TestFaultsAreDrawnByNumber(t *testing.T) {
	require.Equal(t, []int{3}, hit(t, "drop 0->1 #3", 0, 1, 7, 20))
	require.Equal(t, []int{5, 10, 15, 20}, hit(t, "drop *->1 every 5", 0, 1, 0, 20))
	require.Empty(t, hit(t, "drop 0->1 1/1; drop 1->0 channel 1 1/1", 1, 0, 0, 20))
	require.Len(t, hit(t, "drop *->* 1/1", 1, 0, 0, 20), 20)

	const n = 80_000
	seen := map[string]bool{}
	for _, seed := range []string{"1", "2"} {
		for _, where := range [][3]int{{0, 1, 0}, {1, 0, 0}, {0, 1, 1}, {0, 2, 0}} {
			text := "seed " + seed + "; drop *->* 1/8"
			got := hit(t, text, where[0], where[1], where[2], n)
			require.InDelta(t, n/8, len(got), 500, "five standard deviations are 468")
			require.Equal(t, got, hit(t, text, where[0], where[1], where[2], n))
			other := hit(t, text+"; drop 5->6 #1; delay *->* #1 1s", where[0], where[1], where[2], n)
			require.Equal(t, got, slices.DeleteFunc(other, func(k int) bool { return k == 1 && got[0] != 1 }),
				"other rules change nothing")
			seen[fmt.Sprint(got)] = true
		}
	}
	require.Len(t, seen, 8, "all connections and seeds differ")
}

// faultyPair connects ranks 0 and 1 in memory, with the plan carried out.
func faultyPair(t testing.TB, plan string) (nodes [2]Node, ends [2]Conn) {
	p, err := ParseFaultPlan(plan)
	require.NoError(t, err)
	local := NewLocal(2)
	for r := range nodes {
		nodes[r] = NewFaulty(local.Node(r), p)
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

// came is a message that was received.
type came struct {
	Header
	data []byte
}

// exchange posts messages 1 to n and receives the given number of them.
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
		plan  string
		comes []int
	}{
		{"drop 1->0 1/1", []int{1, 2, 3, 4}},
		{"drop 0->1 channel 1 1/1", []int{1, 2, 3, 4}},
		{"drop 0->1 #2", []int{1, 3, 4}},
		{"duplicate 0->1 #2; drop 0->1 every 4", []int{1, 2, 2, 3}},
		{"duplicate 0->1 #2; drop 0->1 #2", []int{1, 2, 2, 3, 4}}, // the first counts
	} {
		_, ends := faultyPair(t, c.plan)
		for i, m := range exchange(t, ends, 4, len(c.comes)) {
			require.Equal(t, want(c.comes[i]), m, c.plan)
		}
	}
	cuts, bits := map[uint32]bool{}, map[string]bool{}
	for seed := range 50 {
		_, ends := faultyPair(t, fmt.Sprintf("seed %d; truncate 0->1 #2; corrupt 0->1 #3; corrupt header 0->1 #4", seed))
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
	_, ends := faultyPair(t, "corrupt 0->1 #1; corrupt header 0->1 #2; truncate 0->1 #3")
	for k := 1; k <= 3; k++ {
		h, b := numbered(k)
		require.NoError(t, ends[0].Send(&h, b))
		wantHeader, want := numbered(k)
		require.Equal(t, wantHeader, h)
		require.Equal(t, want, b)
	}
}

func TestCutEndsTheGroup(t *testing.T) {
	nodes, ends := faultyPair(t, "cut 0->1 #2")
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
		nodes, ends := faultyPair(t, "delay 0->1 #2 1s; delay *->1 #2 500ms; delay 0->1 #3 1h; cut 0->1 #3")
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
	_, ends := faultyPair(t, "drop 0->1 #1")
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
