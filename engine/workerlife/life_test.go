package workerlife

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lifeTable lists the next state and the action of a worker, by state and event, as
// state/action. "-" means that nothing changes and nothing is done.
const lifeTable = `
            deploy           prepare            start            commit              cancel           exit             invalid          done              resolved        failed          unsent           late
awaiting    building/build   ended/refuse       ended/refuse     ended/refuse        ended/end        ended/end        ended/refuse     -                 -               -               ended/end        -
building    stopping/refuse  stopping/refuse    stopping/refuse  stopping/refuse     stopping/stop    stopping/stop    stopping/refuse  ready/answer      ended/end       aborting/abort  stopping/stop    -
ready       aborting/refuse  preparing/prepare  running/run      committing/commit   aborting/abort   aborting/abort   aborting/refuse  -                 -               -               aborting/abort   -
preparing   stopping/refuse  stopping/refuse    stopping/refuse  stopping/refuse     stopping/stop    stopping/stop    stopping/refuse  prepared/answer   -               aborting/abort  stopping/stop    -
prepared    aborting/refuse  aborting/refuse    running/run      aborting/refuse     aborting/abort   aborting/abort   aborting/refuse  -                 -               -               aborting/abort   -
running     stopping/refuse  stopping/refuse    stopping/refuse  stopping/refuse     stopping/stop    stopping/stop    stopping/refuse  finished/answer   -               aborting/abort  stopping/stop    -
finished    aborting/refuse  aborting/refuse    aborting/refuse  committing/commit   aborting/abort   ended/end        aborting/refuse  -                 -               -               aborting/abort   -
committing  sealing/refuse   sealing/refuse     sealing/refuse   sealing/refuse      sealing/nothing  sealing/nothing  sealing/refuse   committed/answer  -               aborting/abort  sealing/nothing  -
sealing     sealing/refuse   sealing/refuse     sealing/refuse   sealing/refuse      sealing/nothing  sealing/nothing  sealing/refuse   ended/end         -               aborting/abort  sealing/nothing  -
committed   aborting/refuse  aborting/refuse    aborting/refuse  aborting/refuse     ended/end        ended/end        aborting/refuse  -                 -               -               ended/end        -
stopping    -                -                  -                -                   -                -                -                aborting/abort    aborting/abort  aborting/abort  -                ended/end
aborting    -                -                  -                -                   -                -                -                ended/end         -               ended/end       -                ended/end
ended       -                -                  -                -                   -                -                -                -                 -               -               -                -
`

func TestWorkerLife(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(lifeTable), "\n")
	names := strings.Fields(lines[0])
	require.Equal(t, names, eventNames[:])
	require.Len(t, lines[1:], states)
	for i, line := range lines[1:] {
		cells := strings.Fields(line)
		s := State(i)
		require.Equal(t, s.String(), cells[0])
		require.Len(t, cells[1:], events)
		for e, want := range cells[1:] {
			got := s.Step(Event(e))
			if want == "-" {
				want = s.String() + "/nothing"
			}
			require.Equal(t, want, fmt.Sprintf("%v/%v", got.To, got.Do), "%v in state %v", Event(e), s)
		}
	}
}

// TestWorkerLifeEnds requires that a worker that is told to end, in whatever state, ends when its
// work ends, and that its sinks have then been aborted or committed.
func TestWorkerLifeEnds(t *testing.T) {
	for i := range states {
		for _, first := range []Event{HearCancel, HearExit, HearInvalid, WorkUnsent} {
			s := State(i)
			undone := s >= Preparing && s <= Sealing // sinks may have begun and not ended
			for n := 0; s != Ended; n++ {
				require.Less(t, n, 4, "after %v in state %v, the worker must end within 4 transitions", first, State(i))
				e := first
				if s.Busy() && n > 0 {
					e = WorkDone
				}
				step := s.Step(e)
				if step.Do == DoAbort || step.To == Aborting || s == Sealing && e == WorkDone || s == Finished && e == HearExit {
					undone = false // the sinks are aborted or committed, or closing the job ends them
				}
				s = step.To
			}
			require.False(t, undone, "after %v in state %v, the sinks must be aborted or committed", first, State(i))
		}
	}
}

func TestWorkerLifeNames(t *testing.T) {
	require.Len(t, actionNames, int(DoEnd)+1)
	require.Equal(t, "State(99)", State(99).String())
	require.Equal(t, "Event(99)", Event(99).String())
	require.Equal(t, "Action(99)", Action(99).String())
}
