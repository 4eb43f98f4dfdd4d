package comqueue

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// traces are the fingerprints of the replicated objects after every stage. They serve to find
// the stage after which the objects differ. As they take several times as long as checks, they
// are made only in a second run, after a run has failed.
//
// A subtask stores only its own fingerprints, by the parity of the superstep. In check, subtask
// 0 reads the fingerprints of the previous superstep while the other subtasks wait.
type traces struct {
	stages   []engine.StageSpec       // of the queue, as in the plan
	byParity [][2][]stageFingerprints // by subtask, parity and stage
}

// stageFingerprints are the fingerprints after a stage. For a stage in an inner loop they are the
// fingerprints after the last round.
type stageFingerprints struct {
	ran     bool
	objects []shared.Fingerprint
}

func newTraces(stages []engine.StageSpec, subtasks int) *traces {
	t := &traces{stages: stages, byParity: make([][2][]stageFingerprints, subtasks)}
	for i := range t.byParity {
		for half := range t.byParity[i] {
			t.byParity[i][half] = make([]stageFingerprints, len(stages))
		}
	}
	return t
}

// begin drops the subtask's fingerprints of the superstep before the previous one, which has
// the same parity.
func (t *traces) begin(subtask, step int) { clear(t.byParity[subtask][step&1]) }

// follow makes the stages of a subtask take the fingerprints after each run.
func (b *body) follow(stages []engine.Stage) {
	for i := range stages {
		s := &stages[i]
		if s.Repeat != nil {
			b.follow(s.Repeat.Stages)
		}
		if s.Run == nil {
			continue
		}
		run, at := s.Run, slices.Index(b.nodes, s.Node)
		s.Run = func() error {
			if err := run(); err != nil {
				return err
			}
			held, err := b.context.objects.Fingerprints(nil, b.checks.isBroadcast)
			b.checks.traces.byParity[b.subtask][b.context.step&1][at] = stageFingerprints{true, held}
			return err
		}
	}
}

// stageHash is the fingerprint of an object after a stage on one subtask.
type stageHash struct {
	Stage int
	There bool
	Hash  uint64
}

// hashes returns the fingerprints of the object under key after the stages of a superstep, in the
// order of stages.
func (t *traces) hashes(subtask, step int, key string) []stageHash {
	var hashes []stageHash
	for i, s := range t.byParity[subtask][step&1] {
		if !s.ran {
			continue
		}
		h := stageHash{Stage: i}
		for _, f := range s.objects {
			if f.Name == key {
				h.There, h.Hash = true, f.Hash
			}
		}
		hashes = append(hashes, h)
	}
	return hashes
}

// firstDifference returns the name of the first stage after which an object differed and
// remained different until the end of the superstep. Differences that later stages have
// removed, such as by a broadcast, do not count.
func (t *traces) firstDifference(first, other []stageHash) string {
	behind := "what follows the stages, the criterion for one"
	for i := len(first) - 1; i >= 0; i-- {
		at := slices.IndexFunc(other, func(h stageHash) bool { return h.Stage == first[i].Stage })
		if at < 0 {
			continue // the stage is in a While that had no round on the other subtask
		}
		if first[i] == other[at] {
			break
		}
		behind = stageTitle(&t.stages[first[i].Stage])
	}
	return behind
}

// stageTitle returns how messages name a stage, with the line where its function begins.
func stageTitle(s *engine.StageSpec) string {
	title := fmt.Sprintf("the stage %q", s.Name)
	switch s.Kind {
	case engine.StageSend, engine.StageSum, engine.StageRecv:
		title = fmt.Sprintf("the AllReduce of %q", s.Name)
	case engine.StageCommunicate:
		title = fmt.Sprintf("the %s of %q", s.Op, s.Name)
	}
	if at := functionLine(s.Func); at != "" {
		title += " (" + at + ")"
	}
	return title
}

// functionLine returns where a function begins, such as "main.go:31". It returns "" for
// functions that are in no source file, such as method values.
func functionLine(f any) string {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Func || v.IsNil() {
		return ""
	}
	fn := runtime.FuncForPC(v.Pointer())
	if fn == nil {
		return ""
	}
	file, line := fn.FileLine(fn.Entry())
	if file == "" || strings.HasPrefix(file, "<") {
		return ""
	}
	return fmt.Sprintf("%s:%d", filepath.Base(file), line)
}

// subtaskHashes has the fingerprints of an object after the stages of one subtask.
type subtaskHashes struct {
	Subtask int
	Hashes  []stageHash
}

// compareTraces returns the name of the stage after which the object key differs between
// subtask 0 and the given subtask, if the subtasks are in several processes. All subtasks call
// it, after all have found this difference.
func (b *body) compareTraces(step, subtask int, key string) (string, error) {
	var mine []subtaskHashes
	if b.subtask == 0 || b.subtask == subtask {
		mine = []subtaskHashes{{b.subtask, b.checks.traces.hashes(b.subtask, step, key)}}
	}
	all, _, err := collective.AllReduceObject(b.comm, &collective.ObjectReduction[[]subtaskHashes]{
		Name: "objects behind stages", Codec: shared.Msgpack[[]subtaskHashes](), Value: &mine, Context: b.context.Context(),
		Merge: func(left, right []subtaskHashes) []subtaskHashes { return append(left, right...) },
	})
	if err != nil {
		return "", err
	}
	var first, other []stageHash
	for _, h := range all {
		if h.Subtask == 0 {
			first = h.Hashes
		} else {
			other = h.Hashes
		}
	}
	for _, h := range append(slices.Clone(first), other...) {
		if h.Stage < 0 || h.Stage >= len(b.checks.traces.stages) {
			return "", fmt.Errorf("queue %q: objects behind stage %d, of %d", b.queue.name, h.Stage, len(b.checks.traces.stages))
		}
	}
	return b.checks.traces.firstDifference(first, other), nil
}
