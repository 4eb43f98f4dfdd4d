package membership

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// sentLink is a link that records the sent messages.
type sentLink struct {
	link
	sent []message
}

func (l *sentLink) send(m message) { l.sent = append(l.sent, m) }

// TestTheCoordinatorHearsOfEveryOperation samples a rank at irregular intervals. The rank runs
// operations of more kinds than the tables texts can hold. The coordinator must know the text
// of each of the rank's latest operations.
func TestTheCoordinatorHearsOfEveryOperation(t *testing.T) {
	const kinds = 3 * RecentOps
	op := func(seq uint64) *Operation {
		k := seq * seq % kinds // some kinds occur more often than others
		return &Operation{Hash: k + 1, Text: fmt.Sprint("operation of kind ", k)}
	}
	now := State{Rank: 3}
	l := &sentLink{}
	s := newSampler(Config{Ranks: []int{3}, State: func() []State { return []State{now} }}, l, 1)
	var r rankView
	heard := map[uint64]string{}
	told := 0
	for seq := uint64(1); seq < 1000; seq++ {
		now.Seq, now.Op = seq, op(seq)
		now.Begun[seq%RecentOps] = Begun{seq, now.Op}
		if seq%3 == 0 {
			now.Op = nil // between operations
		}
		if seq%(1+seq/100) != 0 {
			continue // the sampler does not sample this state
		}
		s.send(seq%7 == 0)
		m := l.sent[len(l.sent)-1].(state)
		require.Len(t, m.ranks, 1)
		n := m.ranks[0]
		for _, b := range n.begun {
			if b.seq == 0 {
				break
			}
			told += len(b.text)
			heard[b.seq] = r.resolveText(b.hash, b.text)
			require.Equal(t, op(b.seq).Hash, b.hash)
		}
		if n.inside {
			heard[n.seq] = r.resolveText(n.hash, n.text)
		}
		for past := seq; past > 0 && past+RecentOps > seq; past-- {
			require.Equal(t, op(past).Text, heard[past], "at %d", seq)
		}
	}
	s.send(false)
	s.send(false)
	require.Empty(t, l.sent[len(l.sent)-1].(state).ranks, "a second state message must not repeat anything")
	require.Less(t, told, 15_000, "texts must not be sent again with every state message")
}
