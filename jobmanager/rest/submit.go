package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Submission is a request to run a job that is built into the job manager's own executable. The
// job's workers run the same executable.
type Submission struct {
	Name                 string         `json:"name" doc:"of the built-in job, such as kmeans"`
	Args                 map[string]any `json:"args,omitempty" doc:"arguments by the names that the job's program gives their fields, such as Input; paths are paths on the machines of the task managers"`
	Parallelism          int            `json:"parallelism,omitempty" doc:"default 1"`
	MinParallelism       int            `json:"min_parallelism,omitempty" doc:"if the job may run with fewer subtasks: the least; default parallelism"`
	Shards               int            `json:"shards,omitempty" doc:"a power of two, on which results may depend; default 128"`
	Seed                 uint64         `json:"seed,omitempty"`
	Dir                  string         `json:"dir,omitempty" doc:"absolute path that relative paths begin at; default: where the task managers start workers"`
	Priority             int            `json:"priority,omitempty" doc:"from -5 to 5: of the jobs that wait for slots, higher ones come first; default 0"`
	WaitTimeout          string         `json:"wait_timeout,omitempty" doc:"how long to wait for slots, such as 90s or 1h30m; default: for ever"`
	Restart              string         `json:"restart,omitempty" enum:"restart" doc:"when the job begins again after the loss of a worker; default exponential-delay"`
	RestartAttempts      int            `json:"restart_attempts,omitempty" doc:"most restarts, within restart_window for failure-rate; 0: 3, or no limit for exponential-delay"`
	RestartDelay         string         `json:"restart_delay,omitempty" doc:"from the loss to the next attempt, such as 5s; exponential-delay doubles it every time, up to a minute; default 100ms with exponential-delay, otherwise 1s"`
	RestartWindow        string         `json:"restart_window,omitempty" doc:"period of failure-rate; for exponential-delay, how long an attempt runs before the delay is the first again; default 10m"`
	Copies               int            `json:"copies,omitempty" doc:"number of other workers in whose memory each worker keeps copies of the states of queues, up to 3; 0: 1, -1: none"`
	Checkpoint           string         `json:"checkpoint,omitempty" enum:"checkpoint" doc:"what to do with a queue that cannot continue from a saved state: allow it, so that it begins at superstep 1 again after a loss, or require that every queue can; default allow"`
	CheckpointDir        string         `json:"checkpoint_dir,omitempty" doc:"where the states of queues are saved while the job runs: a directory that the task managers share, or s3://BUCKET/PREFIX"`
	CheckpointEvery      string         `json:"checkpoint_every,omitempty" doc:"how often, such as 30s, which is the default, or auto: chosen from what a checkpoint costs and from mtbf"`
	CheckpointSupersteps int            `json:"checkpoint_supersteps,omitempty" doc:"how often, in supersteps, in place of checkpoint_every"`
	MTBF                 string         `json:"mtbf,omitempty" doc:"mean time between failures of the job, all machines together, for checkpoint_every auto; default 24h"`
	CheckpointFailAfter  string         `json:"checkpoint_fail_after,omitempty" doc:"fail if they could not be saved for this long; default: go on"`
	Resume               bool           `json:"resume,omitempty" doc:"whether the job continues from the newest checkpoint that is there already"`
	BatchRows            int            `json:"batch_rows,omitempty" doc:"rows per batch; 0: the default"`
	Memory               int64          `json:"memory,omitempty" doc:"budget of exchanges per slot, in bytes; 0: the task manager's share"`
	IfExists             string         `json:"if_exists,omitempty" enum:"exists" doc:"what to do where a result is there already; default fail"`
	CheckBroadcasts      bool           `json:"check_broadcasts,omitempty" doc:"whether to check that every subtask sees the same broadcast rows"`
	LogLevel             string         `json:"log_level,omitempty" enum:"level" doc:"of the workers"`
}

// Cancellation says why a job is cancelled.
type Cancellation struct {
	Reason string `json:"reason,omitempty" doc:"for people; one line of at most 500 bytes"`
}

const (
	defaultShards = 128
	maxReason     = 500
	maxDepth      = 64 // maximum nesting of lists and objects in arguments
)

var (
	checkpointRules   = []string{"allow", "require"}
	ifExists          = []string{"fail", "replace"}
	restartStrategies = []string{"exponential-delay", "fixed-delay", "failure-rate", "none"}
	logLevels         = []string{"trace", "debug", "info", "warn", "error", "off"}
)

func (s *Server) submit(w http.ResponseWriter, r *http.Request) error {
	var body Submission
	if err := readJSON(r, &body); err != nil {
		return err
	}
	spec, err := body.spec()
	if err != nil {
		return err
	}
	reply, err := s.config.Manager.Submit(r.Context(), &wire.SubmitRequest{Spec: spec})
	if err != nil {
		return err
	}
	s.log.Info("a job was submitted by HTTP", "job", reply.Job, "from", r.RemoteAddr)
	w.Header().Set("Location", base+"/jobs/"+url.PathEscape(string(reply.Job)))
	return s.sendJSON(w, http.StatusCreated, Submitted{ID: string(reply.Job)})
}

// spec returns the job specification for the submission b. The job manager checks the fields
// that spec does not check.
func (b *Submission) spec() (wire.JobSpec, error) {
	spec := wire.JobSpec{
		Name: b.Name, Parallelism: b.Parallelism, MinParallelism: b.MinParallelism, Shards: b.Shards, Seed: b.Seed, Priority: b.Priority, Dir: b.Dir, Version: wire.Version,
		Run: wire.RunOptions{BatchRows: b.BatchRows, Memory: b.Memory, IfExists: b.IfExists, CheckBroadcasts: b.CheckBroadcasts, LogLevel: b.LogLevel, Copies: b.Copies, RequireCheckpoints: b.Checkpoint == "require"},
	}
	if spec.Parallelism == 0 {
		spec.Parallelism = 1
	}
	if spec.Shards == 0 {
		spec.Shards = defaultShards
	}
	if spec.Run.IfExists == "" {
		spec.Run.IfExists = ifExists[0]
	}
	if b.Name == "" {
		return spec, badRequest(`such as {"name": "kmeans", "args": {…}}`, "the job has no name")
	}
	if b.Dir != "" && !filepath.IsAbs(b.Dir) {
		return spec, badRequest("give a path that begins at the root, and is there on every task manager", "dir %q is not an absolute path", clip(b.Dir))
	}
	if !oneOf(b.LogLevel, logLevels) {
		return spec, badRequest("want one of "+strings.Join(logLevels, ", "), "unknown log_level %q", clip(b.LogLevel))
	}
	if !oneOf(b.IfExists, ifExists) {
		return spec, badRequest("want one of "+strings.Join(ifExists, ", "), "unknown if_exists %q", clip(b.IfExists))
	}
	if !oneOf(b.Checkpoint, checkpointRules) {
		return spec, badRequest("want one of "+strings.Join(checkpointRules, ", "), "unknown checkpoint %q", clip(b.Checkpoint))
	}
	if !oneOf(b.Restart, restartStrategies) {
		return spec, badRequest("want one of "+strings.Join(restartStrategies, ", "), "unknown restart strategy %q", clip(b.Restart))
	}
	if b.Restart != "" {
		spec.Restart.Strategy, _ = wire.ParseRestartStrategy(b.Restart)
	}
	spec.Restart.Attempts = b.RestartAttempts
	saved := wire.Checkpoints{Dir: b.CheckpointDir, Supersteps: b.CheckpointSupersteps, Resume: b.Resume}
	if err := b.interval(&saved); err != nil {
		return spec, err
	}
	for _, d := range []struct {
		field, text string
		into        *time.Duration
	}{
		{"wait_timeout", b.WaitTimeout, &spec.WaitTimeout},
		{"restart_delay", b.RestartDelay, &spec.Restart.Delay},
		{"restart_window", b.RestartWindow, &spec.Restart.Window},
		{"checkpoint_fail_after", b.CheckpointFailAfter, &saved.FailAfter},
	} {
		var err error
		if *d.into, err = duration(d.field, d.text); err != nil {
			return spec, err
		}
	}
	if saved != (wire.Checkpoints{}) {
		if err := saved.Check(); err != nil {
			return spec, badRequest("checkpoint_dir says where the states are saved", "checkpoints: %v", err)
		}
		spec.Run.Checkpoints = &saved
	}
	var err error
	spec.Args, err = encodeArgs(b.Args)
	return spec, err
}

// interval sets the interval of checkpoints that the submission gives.
func (b *Submission) interval(saved *wire.Checkpoints) (err error) {
	switch {
	case b.CheckpointEvery != "auto" && b.MTBF != "":
		return badRequest(`give "checkpoint_every": "auto" too`, "mtbf is given, and checkpoint_every is not auto")
	case b.CheckpointEvery != "auto":
		saved.Every, err = duration("checkpoint_every", b.CheckpointEvery)
	case b.MTBF == "":
		saved.MTBF = wire.DefaultMTBF
	default:
		if saved.MTBF, err = duration("mtbf", b.MTBF); err == nil && saved.MTBF == 0 {
			err = badRequest("give a positive time, or leave it out", "mtbf is %s", clip(b.MTBF))
		}
	}
	return err
}

// duration returns the duration in a field, or 0 if the field is empty.
func duration(field, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	given, err := time.ParseDuration(text)
	if err != nil || given < 0 {
		return 0, badRequest("give a number with a unit, such as 90s", "%s %q is not a duration", field, clip(text))
	}
	return given, nil
}

// oneOf reports whether text is "" or equals one of words.
func oneOf(text string, words []string) bool {
	for _, w := range words {
		if text == w {
			return true
		}
	}
	return text == ""
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request) error {
	var body Cancellation
	if r.ContentLength != 0 {
		if err := readJSON(r, &body); err != nil {
			return err
		}
	}
	if len(body.Reason) > maxReason || strings.ContainsFunc(body.Reason, unicode.IsControl) {
		return badRequest("shorten it", "the reason is not one line of at most %d bytes", maxReason)
	}
	if body.Reason == "" {
		body.Reason = "asked for by HTTP"
	}
	reply, err := s.config.Manager.Cancel(r.Context(), &wire.CancelRequest{Job: wire.JobID(r.PathValue("id")), Reason: body.Reason})
	if err != nil {
		return err
	}
	return s.sendJSON(w, http.StatusOK, jobOf(&reply.Job))
}

// readJSON decodes the request's body, which must be one JSON object with only known fields.
// Numbers in fields of type any are decoded as json.Number, which keeps their digits.
func readJSON(r *http.Request, into any) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != mediaJSON {
		return &problem{code: http.StatusUnsupportedMediaType, text: fmt.Sprintf("the body is of type %q", clip(r.Header.Get("Content-Type"))),
			hint: "send JSON, and the header Content-Type: " + mediaJSON}
	}
	data, err := io.ReadAll(r.Body) // the size is bounded by MaxBytesReader
	if err != nil {
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			return errTooLarge
		}
		return badRequest("send it again", "the body could not be read: %v", err)
	}
	const hint = "GET " + base + "/openapi.json says what the body may have"
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' {
		return badRequest(hint, "the body is no JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return badRequest(hint, "the body is no JSON that fits: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return badRequest(hint, "the body goes on after its JSON object, at byte %d", dec.InputOffset())
	}
	return nil
}

// encodeArgs encodes arguments for the workers as a MessagePack map. The job's program decodes
// the map into a struct, by the names of the fields.
func encodeArgs(args map[string]any) ([]byte, error) {
	plain, err := plainMap(args, 1)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := msgpack.NewEncoder(&b)
	enc.SetSortMapKeys(true)
	enc.UseCompactInts(true)
	if err := enc.Encode(plain); err != nil {
		return nil, fmt.Errorf("the arguments cannot travel to workers: %w", err)
	}
	return b.Bytes(), nil
}

func plainMap(m map[string]any, depth int) (map[string]any, error) {
	out := make(map[string]any, len(m))
	for key, v := range m {
		value, err := plainValue(v, depth)
		if err != nil {
			return nil, err
		}
		out[key] = value
	}
	return out, nil
}

// plainValue converts a value of JSON to a value whose MessagePack encoding can be decoded into
// the type of the struct's field. A whole number becomes an integer, even if it is written as
// 3.0 or 3e0, because integers can be decoded into both integer and float fields.
func plainValue(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, badRequest("flatten them", "the arguments are more than %d levels deep", maxDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		return plainMap(v, depth+1)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			value, err := plainValue(v[i], depth+1)
			if err != nil {
				return nil, err
			}
			out[i] = value
		}
		return out, nil
	case json.Number:
		return plainNumber(v.String())
	}
	return v, nil
}

func plainNumber(text string) (any, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && text != "-0" {
		return n, nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, badRequest("numbers have at most 64 bits", "%s is too large a number", clip(text))
	}
	if f == math.Trunc(f) && math.Abs(f) <= 1<<53 && !(f == 0 && math.Signbit(f)) {
		return int64(f), nil
	}
	return f, nil
}
