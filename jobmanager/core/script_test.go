package core

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestStories runs the scripts in testdata. A script is a list of blocks of lines. Each line is
// an event. After each block, the effects of all its events are printed. A block begins with
// "play", or with "start", which creates a new core. "start" has options, such as detection=2s
// or policy=spread. resume=(JOB,...) lists the jobs that can be taken up again, resume=all means
// all of them. fresh means that there are no records. rows-lost=(JOB,...) lists those of them whose rows are lost.
//
//	register CONN NAME [slots= inc= id= platform= version= memory= running=JOB/ATTEMPT/WORKER,... leaving=REASON within=]
//	beat CONN [running= ailing=]  default of running: the workers that were deployed there and have not ended
//	submit JOB [slots= parallelism= wait= artifact= resident= platform= resolve restart= attempts= delay= window= checkpoints=DIR]  default of restart: none
//	say JOB/ATTEMPT/WORKER REPORT [conn=]
//	all JOB REPORT             reports for every worker of the job that has not ended, in order
//	cordon NAME [REASON] | uncordon NAME | drain NAME [within=]
//	save JOB REQUEST [PLACE]   a client asks for a checkpoint; "say REF saved REQUEST [failure=]" answers,
//	                           with step= and ended= of the only queue
//	scale JOB PARALLELISM
//	cancel JOB REASON | compiled JOB slots= | compiled JOB error=REASON
//	persisted JOB [attempt= error=REASON]  default of attempt: that of the record
//	hold | free                records of deployments are written only after "free"; until then "persisted" writes one
//	announce CONN REASON [within=]  a task manager announces that it leaves; default of within: 30s
//	leave CONN REASON | cut CONN REASON
//	process-ended NAME [inc=]  the process of a task manager has ended
//	wait TIME [silent=CONN,...]  time passes with ticks and heartbeats of the connected task managers
//	sleep TIME                 time passes without a tick
//	jobs | job JOB | taskmanagers | overview | counters
//
// Reports: ready [fp= at= overlaps=yes], resolved, prepared, progress ROWS [STEP], checkpointed WRITTEN FAILED [ERROR], finished,
// committed, failed KIND MESSAGE [| OUTPUTS], ended [KIND EXITCODE|SIGNAL MESSAGE] [crashed=no].
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s *scenario
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if s == nil || d.Cmd == "start" {
				config := Config{Cluster: "c", Build: "v1", Started: storyBegin,
					Heartbeat: 500 * time.Millisecond, Detection: 4 * time.Second, Reconnect: 2 * time.Second, Lease: 8 * time.Second}
				if d.HasArg("fresh") {
					s = nil
				}
				if s != nil {
					config.History, config.Cordons = s.stored(), s.cordons
				}
				for _, a := range d.CmdArgs {
					switch a.Key {
					case "fresh":
						continue
					case "resume":
						config.Resume = s.resumable(a.Vals)
						continue
					case "rows-lost":
						for _, id := range a.Vals {
							r := config.Resume[wire.JobID(id)]
							r.RowsLost = "2 of 5 events are left"
							config.Resume[wire.JobID(id)] = r
						}
						continue
					}
					require.NoError(t, configure(&config, a.Key, a.Vals))
				}
				records := s.restart()
				before := s
				s = newStory(t, config)
				maps.Copy(s.records, records)
				maps.Copy(s.cordons, config.Cordons)
				if before != nil {
					maps.Copy(s.kept, before.kept)
				}
				if d.Cmd == "start" {
					return s.text(s.core.Recover()) + s.play(d.Input)
				}
			}
			if d.Cmd != "play" {
				t.Fatalf("unknown command %s", d.Cmd)
			}
			return s.play(d.Input)
		})
	})
}

var storyBegin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func configure(c *Config, key string, vals []string) error {
	var err error
	switch key {
	case "policy":
		c.Policy, err = ParsePolicy(vals[0])
	case "keep":
		c.Keep, err = strconv.Atoi(vals[0])
	case "deploy":
		c.DeployTimeout, err = time.ParseDuration(vals[0])
	case "wait":
		c.ResumeTimeout, err = time.ParseDuration(vals[0])
	case "lease":
		c.Lease, err = time.ParseDuration(vals[0])
	default:
		err = fmt.Errorf("unknown option %s", key)
	}
	return err
}

// scenario is a core with simulated connections, task managers and records.
type scenario struct {
	t        *testing.T
	core     *Core
	now      time.Duration
	on       map[wire.WorkerRef]int // for each process, the connection of its task manager
	open     map[int]bool           // open connections
	records  map[wire.JobID]wire.JobInfo
	kept     map[wire.JobID]Resumable // what was stored with the records
	held     bool                     // records of deployments are not written
	cordons  map[string]wire.Cordon   // recorded cordons
	beats    uint64
	muteAcks bool
}

func newStory(t *testing.T, c Config) *scenario {
	return &scenario{t: t, core: New(c), on: map[wire.WorkerRef]int{}, open: map[int]bool{}, records: map[wire.JobID]wire.JobInfo{}, kept: map[wire.JobID]Resumable{}, cordons: map[string]wire.Cordon{}}
}

// restart returns the recorded jobs, which are passed to the core that replaces the core of s.
func (s *scenario) restart() map[wire.JobID]wire.JobInfo {
	if s == nil {
		return nil
	}
	return s.records
}

// resumable returns the data with which recorded jobs can be taken up again.
func (s *scenario) resumable(ids []string) map[wire.JobID]Resumable {
	all := map[wire.JobID]Resumable{}
	if slices.Equal(ids, []string{"all"}) {
		maps.Copy(all, s.kept)
		return all
	}
	for _, text := range ids {
		id := wire.JobID(text)
		kept, ok := s.kept[id]
		require.True(s.t, ok, "job %s has no specification on record", id)
		all[id] = kept
	}
	return all
}

func (s *scenario) stored() []wire.JobInfo {
	return slices.Collect(maps.Values(s.records))
}

func (s *scenario) play(input string) string {
	var b strings.Builder
	for line := range strings.Lines(input) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fmt.Fprintf(&b, "> %s\n%s", line, s.line(line))
	}
	return b.String()
}

// line passes the event of one line to the core, and returns the effects as text.
func (s *scenario) line(line string) string {
	words := strings.Fields(line)
	options := map[string]string{}
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			options[k] = v
		}
	}
	words = slices.DeleteFunc(words, func(w string) bool { return strings.Contains(w, "=") })
	rest := func(n int) string { return strings.Join(words[n:], " ") }
	switch words[0] {
	case "register":
		return s.register(number(s.t, words[1]), words[2], options)
	case "beat":
		conn := number(s.t, words[1])
		s.beats++
		return s.step(Heartbeat{Conn: conn, Heartbeat: wire.Heartbeat{Number: s.beats, Running: s.running(conn, options), Ailing: strings.ReplaceAll(options["ailing"], "-", " ")}})
	case "submit":
		return s.submit(wire.JobID(words[1]), options)
	case "say":
		ref := parseRef(s.t, words[1])
		conn := s.on[ref]
		if o := options["conn"]; o != "" {
			conn = number(s.t, o)
		}
		return s.report(conn, ref, words[2:], options)
	case "all":
		var b strings.Builder
		for _, ref := range slices.SortedFunc(maps.Keys(s.on), compareRefs) {
			if ref.Job == wire.JobID(words[1]) {
				b.WriteString(s.report(s.on[ref], ref, words[2:], options))
			}
		}
		return b.String()
	case "cordon":
		s.cordons[words[1]] = s.core.NextCordon(words[1], rest(2), storyBegin.Add(s.now))
		return s.step(Cordoned{TaskManager: words[1], Cordon: s.cordons[words[1]]})
	case "drain":
		e := Drained{TaskManager: words[1]}
		if d := options["within"]; d != "" {
			var err error
			e.Within, err = time.ParseDuration(d)
			require.NoError(s.t, err)
		}
		return s.step(e)
	case "save":
		return s.step(SaveAsked{ID: wire.JobID(words[1]), Request: number(s.t, words[2]), Place: rest(3)})
	case "scale":
		e := Scaled{ID: wire.JobID(words[1])}
		var err error
		e.Allowed, err = wire.ParseParallelism(words[2])
		require.NoError(s.t, err)
		if err := s.core.CanScale(e.ID, e.Allowed); err != nil {
			return fmt.Sprintf("  refused: %v\n", err)
		}
		return s.step(e)
	case "uncordon":
		delete(s.cordons, words[1])
		return s.step(Uncordoned{TaskManager: words[1]})
	case "cancel":
		return s.step(CancelAsked{ID: wire.JobID(words[1]), Reason: rest(2)})
	case "compiled":
		slots, _ := strconv.Atoi(options["slots"])
		return s.step(Compiled{ID: wire.JobID(words[1]), Graph: []byte("graph"), Slots: slots, Err: failure(options["error"])})
	case "persisted":
		id := wire.JobID(words[1])
		e := Persisted{ID: id, Attempt: s.records[id].Attempt, Err: failure(options["error"])}
		if a := options["attempt"]; a != "" {
			e.Attempt = number(s.t, a)
		}
		return s.step(e)
	case "hold", "free":
		s.held = words[0] == "hold"
		return ""
	case "announce":
		return s.step(LeaveAnnounced{Conn: number(s.t, words[1]), Leaving: s.leaving(rest(2), options)})
	case "leave":
		delete(s.open, number(s.t, words[1]))
		return s.step(Left{Conn: number(s.t, words[1]), Reason: rest(2)})
	case "cut":
		delete(s.open, number(s.t, words[1]))
		return s.step(Disconnected{Conn: number(s.t, words[1]), Reason: rest(2)})
	case "process-ended":
		return s.step(ProcessEnded{ID: "id-" + words[1], Incarnation: cmp.Or(options["inc"], "i1")})
	case "wait":
		return s.wait(words[1], options["silent"])
	case "sleep":
		d, err := time.ParseDuration(words[1])
		require.NoError(s.t, err)
		s.now += d
		return ""
	default:
		return s.show(words)
	}
}

func (s *scenario) step(e Event) string {
	return s.text(s.core.Step(s.now, e))
}

func number(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func failure(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func parseRef(t *testing.T, text string) wire.WorkerRef {
	parts := strings.Split(text, "/")
	require.Len(t, parts, 3)
	return wire.WorkerRef{Job: wire.JobID(parts[0]), Attempt: number(t, parts[1]), Worker: number(t, parts[2])}
}
