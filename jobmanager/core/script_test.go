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
//	register CONN NAME [slots= inc= id= platform= version= memory= running=JOB/ATTEMPT/WORKER,... kept=JOB/ATTEMPT/WORKER,... leaving=REASON within=]
//	beat CONN [running= ailing= states=JOB,...]  default of running: the workers that were deployed there and have not ended
//	submit JOB [slots= parallelism= priority= wait= artifact= resident= platform= resolve restart= attempts= delay= window= checkpoints=DIR]  default of restart: none
//	say JOB/ATTEMPT/WORKER REPORT [conn=]
//	all JOB REPORT             reports for every worker of the job that has not ended, in order
//	cordon NAME [REASON] | uncordon NAME | drain NAME [within=]
//	save JOB REQUEST [PLACE]   a client asks for a checkpoint; "say REF saved REQUEST [failure=]" answers,
//	                           with step= and ended= of the only queue
//	scale JOB PARALLELISM
//	cancel JOB REASON | compiled JOB slots= | compiled JOB error=REASON
//	persisted JOB [attempt= state= error=REASON]  default of attempt and state: those of the record
//	hold | free                records of deployments and givers are written only after "free"; until then "persisted" writes one
//	announce CONN REASON [within=]  a task manager announces that it leaves; default of within: 30s
//	leave CONN REASON | cut CONN REASON
//	process-ended NAME [inc=]  the process of a task manager has ended
//	wait TIME [silent=CONN,...]  time passes with ticks and heartbeats of the connected task managers
//	sleep TIME                 time passes without a tick
//	jobs | job JOB | taskmanagers | overview | counters
//
// Reports: ready [fp= at= overlaps=yes held= held-bytes=], ended kept, lapsed (its kept process has ended, which is no report), resolved, prepared, progress ROWS [STEP opened=yes resumed=], checkpointed WRITTEN FAILED [ERROR], finished,
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
	case "ageing":
		c.Ageing, err = time.ParseDuration(vals[0])
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
	waiting  map[wire.WorkerRef]int   // for each kept process, the connection of its task manager
	beats    uint64
	muteAcks bool
}

func newStory(t *testing.T, c Config) *scenario {
	return &scenario{t: t, core: New(c), on: map[wire.WorkerRef]int{}, open: map[int]bool{}, records: map[wire.JobID]wire.JobInfo{}, kept: map[wire.JobID]Resumable{}, cordons: map[string]wire.Cordon{}, waiting: map[wire.WorkerRef]int{}}
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
		beat := wire.Heartbeat{Number: s.beats, Running: s.running(conn, options), Kept: s.listed(conn), Ailing: strings.ReplaceAll(options["ailing"], "-", " ")}
		for id := range strings.SplitSeq(options["states"], ",") {
			if id != "" {
				beat.States = append(beat.States, wire.JobID(id))
			}
		}
		return s.step(Heartbeat{Conn: conn, Heartbeat: beat})
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
		within := time.Duration(0)
		if d := options["within"]; d != "" {
			var err error
			within, err = time.ParseDuration(d)
			require.NoError(s.t, err)
		}
		s.cordons[words[1]] = s.core.NextDrain(words[1], "", within, storyBegin.Add(s.now))
		return s.step(Cordoned{TaskManager: words[1], Cordon: s.cordons[words[1]]}) + s.step(Drained{TaskManager: words[1]})
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
		e := Persisted{ID: id, Attempt: s.records[id].Attempt, State: s.records[id].State, Err: failure(options["error"])}
		if a := options["attempt"]; a != "" {
			e.Attempt = number(s.t, a)
		}
		if text := options["state"]; text != "" {
			var err error
			e.State, err = wire.ParseJobState(text)
			require.NoError(s.t, err)
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

func (s *scenario) register(conn int, name string, options map[string]string) string {
	get := func(key, fallback string) string {
		if v, ok := options[key]; ok {
			return v
		}
		return fallback
	}
	goos, arch, _ := strings.Cut(get("platform", "linux/amd64"), "/")
	r := wire.Register{
		Version: number(s.t, get("version", strconv.Itoa(wire.Version))), Build: "v1",
		ID: get("id", "id-"+name), Incarnation: get("inc", "i1"), Name: name, Host: "host-" + name, PID: 7,
		Slots: number(s.t, get("slots", "2")), Memory: int64(number(s.t, get("memory", "1000"))),
		Platform:   wire.Platform{OS: goos, Arch: arch},
		Executable: strings.Repeat(get("executable", "1"), 64), Ailing: strings.ReplaceAll(options["ailing"], "-", " "),
	}
	if why, ok := options["leaving"]; ok {
		l := s.leaving(why, options)
		r.Leaving = &l
	}
	r.Broke = strings.ReplaceAll(options["broke"], "-", " ")
	if _, ok := options["running"]; ok {
		r.Running = s.running(conn, options)
	}
	for _, ref := range s.running(conn, map[string]string{"running": options["kept"]}) {
		s.waiting[ref] = conn
	}
	r.Kept = s.listed(conn)
	s.open[conn] = true
	for _, ref := range r.Running {
		s.on[ref] = conn
	}
	return s.step(Registered{Conn: conn, Register: r})
}

// leaving returns the announcement of a task manager that it leaves.
func (s *scenario) leaving(why string, options map[string]string) wire.Leaving {
	l := wire.Leaving{Reason: why, Within: 30 * time.Second}
	if d := options["within"]; d != "" {
		var err error
		l.Within, err = time.ParseDuration(d)
		require.NoError(s.t, err)
	}
	return l
}

func (s *scenario) submit(id wire.JobID, options map[string]string) string {
	spec := wire.JobSpec{Name: "job-" + string(id), Parallelism: 1, Artifact: options["artifact"]}
	if e := options["resident"]; e != "" {
		spec.Artifact, spec.Resident = strings.Repeat(e, 64), true
	}
	slots, _ := strconv.Atoi(options["slots"])
	if p := options["parallelism"]; p != "" {
		allowed, err := wire.ParseParallelism(p)
		require.NoError(s.t, err)
		spec.Parallelism, spec.MinParallelism, spec.Shards, spec.Graph = allowed.Max, allowed.Min, 128, []byte("graph")
	}
	if p := options["priority"]; p != "" {
		spec.Priority = number(s.t, p)
	}
	if w := options["wait"]; w != "" {
		d, err := time.ParseDuration(w)
		require.NoError(s.t, err)
		spec.WaitTimeout = d
	}
	if p := options["platform"]; p != "" {
		spec.Platform.OS, spec.Platform.Arch, _ = strings.Cut(p, "/")
	}
	if dir := options["checkpoints"]; dir != "" {
		spec.Run.Checkpoints = &wire.Checkpoints{Dir: dir}
	}
	spec.Restart = wire.Restart{Strategy: wire.RestartNone}
	if dir := options["checkpoints"]; dir != "" {
		spec.Run.Checkpoints = &wire.Checkpoints{Dir: dir}
	}
	if name := options["restart"]; name != "" {
		var err error
		spec.Restart.Strategy, err = wire.ParseRestartStrategy(name)
		require.NoError(s.t, err)
	}
	if n := options["attempts"]; n != "" {
		spec.Restart.Attempts = number(s.t, n)
	}
	for key, setting := range map[string]*time.Duration{"delay": &spec.Restart.Delay, "window": &spec.Restart.Window} {
		if d := options[key]; d != "" {
			var err error
			*setting, err = time.ParseDuration(d)
			require.NoError(s.t, err)
		}
	}
	return s.step(Submitted{ID: id, Spec: spec, Slots: slots, At: storyBegin.Add(s.now)})
}

// running returns the workers that a task manager reports as running.
func (s *scenario) running(conn int, options map[string]string) []wire.WorkerRef {
	var all []wire.WorkerRef
	text, given := options["running"]
	if given {
		for _, ref := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
			all = append(all, parseRef(s.t, ref))
		}
		return all
	}
	for _, ref := range slices.SortedFunc(maps.Keys(s.on), compareRefs) {
		if s.on[ref] == conn {
			all = append(all, ref)
		}
	}
	return all
}

// listed returns the workers whose processes wait on the task manager of a connection.
func (s *scenario) listed(conn int) (all []wire.WorkerRef) {
	for _, ref := range slices.SortedFunc(maps.Keys(s.waiting), compareRefs) {
		if s.waiting[ref] == conn {
			all = append(all, ref)
		}
	}
	return all
}

// orders carries out what a message means for the kept processes of a task manager.
func (s *scenario) orders(conn int, m wire.ToTaskManager) {
	if d := m.Deploy; d != nil && d.Mode == wire.RunMode {
		maps.DeleteFunc(s.waiting, func(ref wire.WorkerRef, on int) bool { return ref.Job == d.Job && on == conn })
	}
	if w := m.Worker; w != nil && s.waiting[w.WorkerRef] == conn && (w.Exit != nil || w.Kill != nil || w.Cancel != nil && !w.Cancel.Keep) {
		delete(s.waiting, w.WorkerRef)
	}
}

var kinds = map[string]wire.FailureKind{
	"user": wire.UserFailure, "lost": wire.LostFailure, "peer": wire.PeerFailure, "misuse": wire.MisuseFailure, "cluster": wire.ClusterFailure, "unheard": wire.UnheardFailure,
}

func (s *scenario) report(conn int, ref wire.WorkerRef, words []string, options map[string]string) string {
	e := wire.WorkerEvent{WorkerRef: ref}
	switch words[0] {
	case "ready":
		fp, at := options["fp"], options["at"]
		_, overlaps := options["overlaps"]
		if fp == "" {
			fp = "fp"
		}
		if at == "" {
			at = fmt.Sprintf("w%d:1", ref.Worker)
		}
		e.Ready = &wire.Ready{Address: at, Fingerprint: fp, Overlaps: overlaps, Held: []byte(options["held"])}
		if n := options["held-bytes"]; n != "" {
			e.Ready.Held = make([]byte, number(s.t, n))
		}
	case "resolved":
		e.Resolved = &wire.Resolved{Graph: []byte("graph")}
	case "prepared":
		e.Prepared = &wire.Prepared{}
		if from := options["from"]; from != "" {
			e.Prepared.Origin = &wire.Origin{Generation: 1, Number: number(s.t, from), Written: storyBegin, Queues: []wire.OriginQueue{{Name: "q", Superstep: 9}}}
		}
	case "saved":
		e.Saved = &wire.Saved{Request: firstSave(storyBegin) + number(s.t, words[1]), Checkpoint: wire.Origin{Number: 5}, Failure: options["failure"]}
		if _, ended := options["ended"]; e.Saved.Failure == "" {
			e.Saved.Checkpoint.Queues = []wire.OriginQueue{{Name: "q", Superstep: number(s.t, cmp.Or(options["step"], "10")), Ended: ended}}
		}
	case "progress":
		rows := number(s.t, words[1])
		e.Progress = &wire.Progress{Vertices: []wire.VertexProgress{{Rows: int64(rows), ShardsDone: 1}}}
		if len(words) > 2 {
			e.Progress.Queues = []wire.QueueProgress{{Superstep: number(s.t, words[2])}}
		}
		_, e.Progress.Opened = options["opened"]
		if n := options["resumed"]; n != "" {
			e.Progress.Resumed = number(s.t, n)
		}
	case "checkpointed":
		e.Checkpointed = checkpointedReport(number(s.t, words[1]), number(s.t, words[2]), strings.Join(words[3:], " "))
		if ref.Worker != 0 {
			e.Checkpointed.Unwritten = []wire.OriginQueue{{Name: "q", Superstep: 30}}
		}
	case "finished":
		e.Finished = &wire.Finished{Outcome: []byte(fmt.Sprintf("outcome-%d", ref.Worker))}
	case "committed":
		e.Committed = &wire.Committed{}
	case "failed":
		message, outputs, _ := strings.Cut(strings.Join(words[2:], " "), " | ")
		e.Failed = &wire.Failure{Kind: kinds[words[1]], Message: message, Outputs: outputs, Retry: options["retry"] != ""}
	case "ended":
		e.Ended = &wire.Ended{Kept: len(words) > 1 && words[1] == "kept"}
		if len(words) > 1 && !e.Ended.Kept {
			f := &wire.Failure{Kind: kinds[words[1]], Message: strings.Join(words[3:], " "), LastLines: []string{"last words"}}
			if code, err := strconv.Atoi(words[2]); err == nil {
				f.ExitCode = code
			} else {
				f.ExitCode, f.Signal = -1, words[2]
			}
			e.Ended.Failure, e.Ended.Crashed = f, options["crashed"] != "no"
		}
		if e.Ended.Kept {
			s.waiting[ref] = conn
		}
		delete(s.on, ref)
	case "lapsed":
		delete(s.waiting, ref)
		return ""
	default:
		s.t.Fatalf("unknown report %q", words[0])
	}
	return s.step(Reported{Conn: conn, WorkerEvent: e})
}

func (s *scenario) wait(text, silent string) string {
	d, err := time.ParseDuration(text)
	require.NoError(s.t, err)
	mute := map[int]bool{}
	for _, c := range strings.FieldsFunc(silent, func(r rune) bool { return r == ',' }) {
		mute[number(s.t, c)] = true
	}
	var b strings.Builder
	s.muteAcks = true
	defer func() { s.muteAcks = false }()
	note := func(out string) {
		if out != "" {
			fmt.Fprintf(&b, "  at %s:\n%s", s.now, out)
		}
	}
	for end := s.now + d; s.now < end; {
		s.now += TickEvery
		if s.now%(500*time.Millisecond) == 0 {
			for _, conn := range slices.Sorted(maps.Keys(s.open)) {
				if !mute[conn] {
					note(s.step(Heartbeat{Conn: conn, Heartbeat: wire.Heartbeat{Running: s.running(conn, nil), Kept: s.listed(conn)}}))
				}
			}
		}
		note(s.step(Tick{}))
	}
	return b.String()
}

func (s *scenario) step(e Event) string {
	return s.text(s.core.Step(s.now, e))
}

// text returns effects as text, and performs them in the simulated world.
func (s *scenario) text(effects []Effect) string {
	var b strings.Builder
	var recorded []Persisted
	for _, e := range effects {
		switch e := e.(type) {
		case Send:
			if s.muteAcks && e.Message.Ack != nil {
				continue
			}
			fmt.Fprintf(&b, "  to %d: %s\n", e.Conn, messageText(e.Message))
			s.orders(e.Conn, e.Message)
			if d := e.Message.Deploy; d != nil {
				s.on[d.WorkerRef] = e.Conn
			}
		case Disconnect:
			fmt.Fprintf(&b, "  disconnect %d\n", e.Conn)
			delete(s.open, e.Conn)
		case Persist:
			s.records[e.Job.ID] = e.Job
			s.keep(e)
			if e.Retry && !s.held {
				recorded = append(recorded, Persisted{ID: e.Job.ID, Attempt: e.Job.Attempt, State: e.Job.State})
			}
			plan := ""
			if e.Graph != nil {
				plan = fmt.Sprintf(" with the plan at parallelism %d", e.Job.Parallelism)
			}
			fmt.Fprintf(&b, "  persist %s%s%s%s\n", e.Job.ID, plan, map[bool]string{true: ", and say so"}[e.Barrier], outcomesText(e.Job.Outcomes))
		case Changed:
			fmt.Fprintf(&b, "  %s\n", jobText(e.Job))
		case Compile:
			fmt.Fprintf(&b, "  compile %s: %s\n", e.ID, e.Graph)
		case SaveAnswered:
			fmt.Fprintf(&b, "  answer request %d: checkpoint %d, failure %q\n", e.Request, e.Saved.Checkpoint.Number, e.Saved.Failure)
		case Progressed:
			fmt.Fprintf(&b, "  progressed %s\n", e.ID)
		case Forget:
			delete(s.records, e.ID)
			delete(s.kept, e.ID)
			fmt.Fprintf(&b, "  forget %s\n", e.ID)
		}
	}
	for _, e := range recorded {
		b.WriteString(s.step(e))
	}
	return b.String()
}

// keep stores what a record has for a restart of the job manager.
func (s *scenario) keep(e Persist) {
	require.Equal(s.t, e.Job.State.Ended(), e.Continuation == nil)
	if e.Job.State.Ended() {
		delete(s.kept, e.Job.ID)
		return
	}
	kept := s.kept[e.Job.ID]
	if e.Spec != nil {
		kept.Spec = *e.Spec
	}
	require.NotEmpty(s.t, kept.Spec.Name, "job %s has no specification on record", e.Job.ID)
	kept.Continuation, kept.Outcomes = *e.Continuation, e.Job.Outcomes
	s.kept[e.Job.ID] = kept
}

func messageText(m wire.ToTaskManager) string {
	switch {
	case m.Registered != nil:
		return fmt.Sprintf("registered with cluster %s, heartbeat %s, lease %s", m.Registered.Cluster, m.Registered.Heartbeat, m.Registered.Lease)
	case m.Ack != nil && len(m.Ack.Over) > 0:
		return fmt.Sprintf("ack %d, over: %v", m.Ack.Number, m.Ack.Over)
	case m.Ack != nil:
		return fmt.Sprintf("ack %d", m.Ack.Number)
	case m.Refused != nil:
		return fmt.Sprintf("refused%s: %s", map[bool]string{true: " for good"}[m.Refused.Final], m.Refused.Reason)
	case m.Deploy != nil:
		d := m.Deploy
		if d.Silence <= 0 {
			return fmt.Sprintf("deploy %s, which may be silent for %s", d.WorkerRef, d.Silence)
		}
		holds := ""
		if d.Holds > 0 {
			holds = fmt.Sprintf(", holds %d", d.Holds)
		}
		return fmt.Sprintf("deploy %s on %s%s, slots %v%s, memory %d, listens on %s%s%s", d.WorkerRef, d.TaskManager,
			map[wire.WorkerMode]string{wire.ResolveMode: " to resolve", wire.CommitMode: " to commit"}[d.Mode], d.Slots, holds, d.Memory, d.Listen,
			map[bool]string{true: ", resumes"}[d.Resume], map[bool]string{true: ", may be kept"}[d.Keep])
	}
	w := m.Worker
	switch {
	case w.Prepare != nil:
		return fmt.Sprintf("%s prepare%s", w.WorkerRef, heldText(w.Prepare.Held))
	case w.Start != nil:
		if o := w.Start.Origin; o != nil {
			return fmt.Sprintf("%s start %v from checkpoint %d%s", w.WorkerRef, w.Start.Addresses, o.Number, heldText(w.Start.Held))
		}
		return fmt.Sprintf("%s start %v%s", w.WorkerRef, w.Start.Addresses, heldText(w.Start.Held))
	case w.Commit != nil:
		return fmt.Sprintf("%s commit%s", w.WorkerRef, outcomesText(w.Commit.Outcomes))
	case w.Save != nil:
		text := fmt.Sprintf("%s save, request %d, place %q", w.WorkerRef, w.Save.Request-firstSave(storyBegin), w.Save.Place)
		if p := w.Save.Precopy; p != nil {
			text += fmt.Sprintf(", rows for %d slots within %s:", p.Of, p.Within)
			for _, to := range p.To {
				text += fmt.Sprintf(" %d%s has %d to %d", to.Worker, to.Address, to.Slots.Lo, to.Slots.Hi)
			}
		}
		return text
	case w.Unwritten != nil:
		return fmt.Sprintf("%s told that worker %d could not write %v: %s", w.WorkerRef, w.Unwritten.Worker, w.Unwritten.Queues, w.Unwritten.Error)
	case w.Cancel != nil:
		return fmt.Sprintf("%s cancel%s: %s", w.WorkerRef, map[bool]string{true: " and keep"}[w.Cancel.Keep], w.Cancel.Reason)
	case w.Exit != nil:
		return fmt.Sprintf("%s exit", w.WorkerRef)
	default:
		return fmt.Sprintf("%s kill", w.WorkerRef)
	}
}

// heldText returns what workers have kept, as text.
func heldText(held [][]byte) string {
	if held == nil {
		return ""
	}
	return fmt.Sprintf(", held %q", held)
}

func outcomesText(outcomes [][]byte) string {
	if outcomes == nil {
		return ""
	}
	return fmt.Sprintf(" with %s", outcomes)
}

func jobText(j wire.JobInfo) string {
	text := fmt.Sprintf("%s is %s", j.ID, j.State)
	if j.Detail != "" {
		text += ": " + j.Detail
	}
	if f := j.Failure; f != nil && j.State.Ended() {
		text += fmt.Sprintf(" {worker %d, code %d, signal %q, lines %q}", f.Worker, f.ExitCode, f.Signal, f.LastLines)
	}
	return text
}

// show returns the result of a line that calls an accessor of the core, as text.
func (s *scenario) show(words []string) string {
	var b strings.Builder
	switch words[0] {
	case "jobs":
		for _, j := range s.core.Jobs() {
			fmt.Fprintf(&b, "  %s\n", jobText(j))
		}
	case "job":
		j, ok := s.core.Job(wire.JobID(words[1]))
		if !ok {
			return "  none\n"
		}
		fmt.Fprintf(&b, "  %s\n  attempt %d, %d slots, fingerprint %q, submitted +%s", jobText(j), j.Attempt, j.Slots, j.Fingerprint, j.Submitted.Sub(storyBegin))
		if !j.Started.IsZero() {
			fmt.Fprintf(&b, ", started +%s", j.Started.Sub(storyBegin))
		}
		if !j.Ended.IsZero() {
			fmt.Fprintf(&b, ", ended +%s", j.Ended.Sub(storyBegin))
		}
		fmt.Fprintf(&b, "\n  workers %v\n", workersText(j.Workers))
		for _, a := range j.Lost {
			fmt.Fprintf(&b, "  attempt %d, +%s to +%s: %s\n", a.Number, a.Began.Sub(storyBegin), a.Ended.Sub(storyBegin), a.Cause)
			b.WriteString(recoveryText(&a.Recovery))
		}
		b.WriteString(checkpointsText(&j, s.core.CheckpointAges(s.now)))
		if j.Progress != nil {
			fmt.Fprintf(&b, "  progress %+v\n", *j.Progress)
		}
	case "taskmanagers":
		for _, n := range s.core.TaskManagers(s.now) {
			fmt.Fprintf(&b, "  %s %s: %d of %d free, heard %s ago, workers %v", n.Name, n.State, n.Free, n.Slots, n.HeardAgo, n.Workers)
			if n.Cordon != nil {
				fmt.Fprintf(&b, ", cordoned since +%s: %s", n.Cordon.Since.Sub(storyBegin), n.Cordon.Reason)
			}
			if n.Avoided != nil {
				fmt.Fprintf(&b, ", avoided until +%s, as %d workers died there", n.Avoided.Until.Sub(storyBegin), n.Avoided.Died)
			}
			b.WriteString("\n")
		}
	case "overview":
		o := s.core.Overview()
		fmt.Fprintf(&b, "  %d task managers, %d of %d slots free, jobs %v, platforms %v", o.TaskManagers, o.Free, o.Slots, o.Jobs, o.Platforms)
		if o.Cordoned > 0 {
			fmt.Fprintf(&b, ", %d slots cordoned", o.Cordoned)
		}
		b.WriteString("\n")
	case "counters":
		n := s.core.Counters()
		fmt.Fprintf(&b, "  %d checkpoints, %d failed, %d bytes, %.1fs, %d restarts, %d moves, lost %v\n", n.Checkpoints, n.FailedCheckpoints, n.CheckpointBytes, n.CheckpointSeconds, n.Restarts, n.Moves, n.Lost)
		for p, d := range n.Recovery {
			if d.Count > 0 {
				fmt.Fprintf(&b, "  %s: %d, %.2fs, buckets %v\n", wire.RecoveryPhase(p), d.Count, d.Seconds, d.Buckets)
			}
		}
	default:
		s.t.Fatalf("unknown line %q", words[0])
	}
	return b.String()
}

// recoveryText returns the phases of a recovery that have ended, as times since the loss was detected.
func recoveryText(r *wire.Recovery) string {
	text := fmt.Sprintf("    detected +%s", r.Detected.Sub(storyBegin))
	for p := range wire.RecoveryPhase(wire.RecoveryPhases) {
		if at := *r.End(p); !at.IsZero() {
			text += fmt.Sprintf(", %s %s later", p, at.Sub(r.Detected))
		}
	}
	if r.Superstep > 0 {
		text += fmt.Sprintf(", at superstep %d", r.Superstep)
	}
	return text + "\n"
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

// workersText returns text about each worker of a job.
func workersText(all []wire.Placed) (texts []string) {
	for _, p := range all {
		text := fmt.Sprintf("{%s %v %s}", p.TaskManager, p.Slots, p.Address)
		if p.Left {
			text += " left"
		}
		texts = append(texts, text)
	}
	return texts
}
