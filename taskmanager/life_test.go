package taskmanager

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
	table := lifeTable()
	var out strings.Builder
	fmt.Fprintf(&out, "%-13s", "")
	for s := range states {
		fmt.Fprintf(&out, " %-24s", state(s))
	}
	for h := range triggers {
		fmt.Fprintf(&out, "\n%-13s", trigger(h))
		for s := range states {
			m := table[s][h]
			cell := "."
			switch {
			case m.to != state(s):
				cell = m.to.String() + " (" + m.do.String() + ")"
			case m.do != none:
				cell = "(" + m.do.String() + ")"
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
	table := lifeTable()
	for s := range state(states) {
		for h := range trigger(triggers) {
			m := table[s][h]
			at := fmt.Sprintf("%s, %s: %s (%s)", s, h, m.to, m.do)
			if s == gone {
				require.Equal(t, move{gone, none}, m, "%s: no trigger may change the state gone", at)
			}
			require.Equal(t, m.do == end || m.do == keep, s != gone && m.to == gone, "%s: the actions end and keep belong to moves into gone, and only to them", at)
			require.Equal(t, m.do == keep, s == failed && h == saidKept, "%s: only a worker that has said why it failed may keep its process", at)
			require.Equal(t, m.do == kill || m.do == giveUp, s != killed && m.to == killed, "%s: the actions kill and give up belong to moves into killed, and only to them", at)
			if m.do == giveUp {
				require.Equal(t, fetching, s, at)
			}
			if m.do == kill || m.do == keep || m.do == relay || m.do == ask || m.do == drop || m.do == report || m.do == deliver {
				require.NotContains(t, []state{fetching, killed, gone}, s, "%s: the action needs a process, and in this state there is none", at)
			}
			if m.do == launch || m.do == redeploy {
				require.Equal(t, fetching, s, at)
			}
			if m.do == relay || m.do == drop {
				require.True(t, h >= toldPrepare && h <= toldExit, at)
				require.NotEqual(t, s, m.to, "%s: a move that relays a command must change the state, so that a repeated command is not relayed", at)
			}
			if m.do == ask {
				require.Equal(t, toldSave, h, at)
			}
			if m.do == report || m.do == deliver {
				require.True(t, h >= saidBeat && h <= saidFailed, at)
			}
		}
	}
	// In every state except gone, the job manager must be able to kill a worker.
	for s := range gone {
		m := table[s][toldKill]
		require.Contains(t, []state{killed}, m.to, "%s", s)
		require.Contains(t, []state{s, killed}, table[s][stopped].to)
		if s != fetching {
			require.Equal(t, gone, table[s][exited].to, "%s", s)
		} else {
			require.Equal(t, gone, table[s][unstarted].to)
		}
	}
}

// TestLivesAtRandom applies random triggers to the transition table. The number of messages to
// a worker must fit its queue, and its events must have the order that the job manager expects.
func TestLivesAtRandom(t *testing.T) {
	table := lifeTable()
	rapid.Check(t, func(t *rapid.T) {
		s := fetching
		relayed, ends := 0, 0
		said := map[trigger]int{}
		for _, h := range rapid.SliceOfN(rapid.Custom(func(t *rapid.T) trigger {
			return trigger(rapid.IntRange(0, triggers-1).Draw(t, "trigger"))
		}), 1, 60).Draw(t, "life") {
			m := table[s][h]
			switch m.do {
			case relay, drop, launch, redeploy:
				relayed++
			case end, keep:
				ends++
			case report:
				if said[h]++; said[h] > 1 && h != saidProgress && h != saidSaved && h != saidCheckpointed && s != cancelling {
					t.Fatalf("event %s was reported twice", h)
				}
				if h == saidFinished && s != cancelling && said[saidReady] == 0 {
					t.Fatalf("Finished was reported before Ready")
				}
			}
			s = m.to
		}
		if relayed > 8 {
			t.Fatalf("%d messages to the worker exceed its queue", relayed)
		}
		if (s == gone) != (ends == 1) {
			t.Fatalf("in state %s, Ended was reported %d times", s, ends)
		}
	})
}
