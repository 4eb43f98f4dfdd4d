package collective

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/shared"
)

// TestPayloadsOfAnyLength reduces objects that fit into the head of a packet, fill it exactly,
// or do not fit, among ranks in several processes. Some ranks have no object.
func TestPayloadsOfAnyLength(t *testing.T) {
	lengths := []int{0, 1, 100, headBytes - 20, headBytes - 8, headBytes, 5000, 1 << 18}
	executors(t, func(t *testing.T, of ends) {
		for k := range lengths {
			for _, err := range callOn(t, of, func(c *Comm) error {
				text := func(rank int) string {
					return strings.Repeat(string(rune('a'+rank)), lengths[(k+rank)%len(lengths)])
				}
				r := &ObjectReduction[string]{
					Name: "text", Codec: shared.Msgpack[string](), Merge: func(a, b string) string { return a + b },
				}
				want := ""
				for rank := range c.Size() {
					if rank != 1 {
						want += text(rank)
					}
				}
				if mine := text(c.Rank()); c.Rank() != 1 {
					r.Value = &mine
				}
				got, any, err := AllReduceObject(c, r)
				if err == nil && (!any || got != want) {
					err = fmt.Errorf("any is %t, and the result has %d bytes, want %d", any, len(got), len(want))
				}
				return err
			}) {
				require.NoError(t, err, "case %d", k)
			}
		}
	})
}

// FuzzOpenPacket calls openPacket with arbitrary packets. It also requires that openPacket
// returns the payloads from which a valid packet was made.
func FuzzOpenPacket(f *testing.F) {
	f.Add([]byte{0, 0, 0}, 3)
	f.Add([]byte{1, 'a', 2, 'b', 'c'}, 2)
	f.Add([]byte{5, 'a'}, 1)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 1)
	f.Fuzz(func(t *testing.T, packet []byte, n int) {
		n &= 7
		ranks := make([]int, n)
		for i := range ranks {
			ranks[i] = i
		}
		payloads := make([][]byte, n)
		if openPacket(packet, ranks, payloads) == nil && len(slices.Concat(payloads...)) > len(packet) {
			t.Fatal("the payloads must not have more bytes than the packet")
		}
		payload := packet[:min(len(packet), 100)]
		two := make([][]byte, 2)
		err := openPacket(slices.Concat([]byte{byte(len(payload))}, payload, []byte{0}), []int{1, 0}, two)
		if err != nil || len(two[0]) != 0 || !bytes.Equal(two[1], payload) {
			t.Fatalf("the payloads must be those of the packet: %v, error %v", two, err)
		}
	})
}

// TestPayloadsWithinOneProcess requires that objects can be reduced in a TCP group with all its
// ranks in one process.
func TestPayloadsWithinOneProcess(t *testing.T) {
	groups := tcpGroups(t, 3, [][]int{{0, 1, 2}})
	for _, err := range outcomesOf(groups, 3, func(c *Comm) error {
		mine := fmt.Sprint(c.Rank())
		got, _, err := AllReduceObject(c, &ObjectReduction[string]{
			Name: "text", Codec: shared.Msgpack[string](), Merge: func(a, b string) string { return a + b }, Value: &mine,
		})
		if err == nil && got != "012" {
			err = fmt.Errorf("%q", got)
		}
		return err
	}) {
		require.NoError(t, err)
	}
	closeAll(t, groups)
}
