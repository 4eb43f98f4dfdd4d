package core

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// printLife returns the transition table as text, with a row for each trigger and a column for
// each state.
func printLife() string {
	table := LifeTable()
	var out strings.Builder
	fmt.Fprintf(&out, "%-13s", "")
	for s := range States {
		fmt.Fprintf(&out, " %-24s", State(s))
	}
	for h := range Triggers {
		fmt.Fprintf(&out, "\n%-13s", Trigger(h))
		for s := range States {
			m := table[s][h]
			cell := "."
			switch {
			case m.To != State(s):
				cell = m.To.String() + " (" + m.Do.String() + ")"
			case m.Do != None:
				cell = "(" + m.Do.String() + ")"
			}
			fmt.Fprintf(&out, " %-24s", cell)
		}
	}
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestLifeTable compares the whole transition table with the reviewed table in testdata.
func TestLifeTable(t *testing.T) {
	const path = "testdata/life.txt"
	if os.Getenv("REWRITE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(printLife()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), printLife(), "the table must equal the reviewed table; to change that, run with REWRITE=1 and review the difference")
}

// TestLifeRules checks properties that all entries of the transition table must have.
func TestLifeRules(t *testing.T) {
	table := LifeTable()
	for s := range State(States) {
		for h := range Trigger(Triggers) {
			m := table[s][h]
			at := fmt.Sprintf("%s, %s: %s (%s)", s, h, m.To, m.Do)
			if s == Gone {
				require.Equal(t, Move{Gone, None}, m, "%s: no trigger may change the state gone", at)
			}
			require.Equal(t, m.Do == End || m.Do == Keep, s != Gone && m.To == Gone, "%s: the actions end and keep belong to moves into gone, and only to them", at)
			require.Equal(t, m.Do == Keep, s == Failed && h == SaidKept, "%s: only a worker that has said why it failed may keep its process", at)
			require.Equal(t, m.Do == Kill || m.Do == GiveUp, s != Killed && m.To == Killed, "%s: the actions kill and give up belong to moves into killed, and only to them", at)
			if m.Do == GiveUp {
				require.Equal(t, Fetching, s, at)
			}
			if m.Do == Kill || m.Do == Keep || m.Do == Relay || m.Do == Ask || m.Do == Drop || m.Do == Report || m.Do == Deliver {
				require.NotContains(t, []State{Fetching, Killed, Gone}, s, "%s: the action needs a process, and in this state there is none", at)
			}
			if m.Do == Launch || m.Do == Redeploy {
				require.Equal(t, Fetching, s, at)
			}
			if m.Do == Relay || m.Do == Drop {
				require.True(t, h >= ToldPrepare && h <= ToldExit, at)
				require.NotEqual(t, s, m.To, "%s: a move that relays a command must change the state, so that a repeated command is not relayed", at)
			}
			if m.Do == Ask {
				require.Equal(t, ToldSave, h, at)
			}
			if m.Do == Report || m.Do == Deliver {
				require.True(t, h >= SaidBeat && h <= SaidFailed, at)
			}
		}
	}
	// In every state except gone, the job manager must be able to kill a worker.
	for s := range Gone {
		m := table[s][ToldKill]
		require.Contains(t, []State{Killed}, m.To, "%s", s)
		require.Contains(t, []State{s, Killed}, table[s][Stopped].To)
		if s != Fetching {
			require.Equal(t, Gone, table[s][Exited].To, "%s", s)
		} else {
			require.Equal(t, Gone, table[s][Unstarted].To)
		}
	}
}

// TestLivesAtRandom applies random triggers to the transition table. The number of messages to
// a worker must fit its queue, and its events must have the order that the job manager expects.
func TestLivesAtRandom(t *testing.T) {
	table := LifeTable()
	rapid.Check(t, func(t *rapid.T) {
		s := Fetching
		relayed, ends := 0, 0
		said := map[Trigger]int{}
		for _, h := range rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Trigger {
			return Trigger(rapid.IntRange(0, Triggers-1).Draw(t, "trigger"))
		}), 1, 60).Draw(t, "life") {
			m := table[s][h]
			switch m.Do {
			case Relay, Drop, Launch, Redeploy:
				relayed++
			case End, Keep:
				ends++
			case Report:
				if said[h]++; said[h] > 1 && h != SaidProgress && h != SaidSaved && h != SaidCheckpointed && s != Cancelling {
					t.Fatalf("event %s was reported twice", h)
				}
				if h == SaidFinished && s != Cancelling && said[SaidReady] == 0 {
					t.Fatalf("Finished was reported before Ready")
				}
			}
			s = m.To
		}
		if relayed > 8 {
			t.Fatalf("%d messages to the worker exceed its queue", relayed)
		}
		if (s == Gone) != (ends == 1) {
			t.Fatalf("in state %s, Ended was reported %d times", s, ends)
		}
	})
}
