package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

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
		e.Ready = &wire.Ready{Address: at, Fingerprint: fp, Overlaps: overlaps}
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
	case "checkpointed":
		e.Checkpointed = checkpointedReport(number(s.t, words[1]), number(s.t, words[2]), strings.Join(words[3:], " "))
	case "finished":
		e.Finished = &wire.Finished{Outcome: []byte(fmt.Sprintf("outcome-%d", ref.Worker))}
	case "committed":
		e.Committed = &wire.Committed{}
	case "failed":
		message, outputs, _ := strings.Cut(strings.Join(words[2:], " "), " | ")
		e.Failed = &wire.Failure{Kind: kinds[words[1]], Message: message, Outputs: outputs, Retry: options["retry"] != ""}
	case "ended":
		e.Ended = &wire.Ended{}
		if len(words) > 1 {
			f := &wire.Failure{Kind: kinds[words[1]], Message: strings.Join(words[3:], " "), LastLines: []string{"last words"}}
			if code, err := strconv.Atoi(words[2]); err == nil {
				f.ExitCode = code
			} else {
				f.ExitCode, f.Signal = -1, words[2]
			}
			e.Ended.Failure, e.Ended.Crashed = f, options["crashed"] != "no"
		}
		delete(s.on, ref)
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
					note(s.step(Heartbeat{Conn: conn, Heartbeat: wire.Heartbeat{Running: s.running(conn, nil)}}))
				}
			}
		}
		note(s.step(Tick{}))
	}
	return b.String()
}
