package jobmanager

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
)

// job is the state of a job in the job manager, in addition to the state in the core. It exists
// from the submission until the job has ended and the last output of its workers is stored.
// Manager.mu guards the fields that are marked "guarded". The other fields are either never
// modified, or set once before the channel that their comment names is closed.
type job struct {
	id    wire.JobID
	spec  wire.JobSpec // specification without arguments and graph
	size  int64        // size of arguments and graph in bytes
	spool *spool
	logs  *joblogs

	plan           []byte        // plan in JSON, until it is on disk (guarded)
	graph          []byte        // graph in JSON if a worker resolved it, until it is on disk (guarded)
	recorded       chan struct{} // closed when the job has been recorded or could not be recorded
	unsaved        error         // why the job could not be recorded; set before recorded is closed
	kept           chan struct{} // closed when the final state has been recorded
	finalWriteDone chan struct{} // closed when the final state has been recorded, or the first attempt to record it has failed
	done           chan struct{} // closed after finalWriteDone, when the final state may be sent to followers
	past           record        // the job's record without Info; set before done is closed
	doubt          string        // Doubt of the job's record when the job manager started
	final          *wire.JobInfo // final state, set when the job has ended (guarded; may be read without the lock after done is closed)
	over           chan struct{} // closed when no more output of the job's workers will be stored

	saving    bool    // the job's first record is being written (guarded)
	forgotten bool    // the job must be forgotten when over is closed (guarded)
	last      *record // the job's last record, until it commits (guarded)
	confirmed uint64  // number of events that are on disk for certain, according to the record (guarded)
	confirms  confirms
	missing   uint64 // number of events that the job's spool had lost before the job manager started

	shown        shown         // what followers were sent last (guarded)
	dirty        bool          // there is progress that has not been sent to followers (guarded)
	progressSent time.Time     // when progress was last sent to followers (guarded)
	readers      int           // number of followers; while it is not 0, rows are not freed (guarded)
	attached     int           // number of streams of the client to which the job is attached (guarded)
	unattached   time.Duration // how long attached has been 0 while this process ran (guarded)
	abandoned    bool          // the job was cancelled because its client was disconnected (guarded)
	credits      *attempt      // credentials of the current attempt (guarded)
}

// shown has the parts of a job's state whose changes are sent to followers.
type shown struct {
	state   wire.JobState
	detail  string
	attempt int
}

func newJob(root *os.Root, id wire.JobID, spec wire.JobSpec, plan []byte, c *Config) *job {
	spec.Args, spec.Graph = nil, nil
	j := &job{
		id: id, spec: spec, plan: plan,
		recorded: make(chan struct{}), kept: make(chan struct{}), finalWriteDone: make(chan struct{}), done: make(chan struct{}), over: make(chan struct{}),
		shown: shown{state: -1},
		// attached is 0 at first, because the client opens its stream after the submission.
	}
	j.spool = newSpool(id, c.MaxResult, func() (*os.File, error) {
		if err := root.MkdirAll(jobDir(id), 0o700); err != nil {
			return nil, err
		}
		return root.OpenFile(spoolName(id), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	})
	j.logs = newJoblogs(root, jobDir(id), c.MaxLog)
	return j
}

// jobsDir, under the work directory, has a directory for each job.
const jobsDir = "jobs"

func jobDir(id wire.JobID) string { return jobsDir + "/" + string(id) }

func spoolName(id wire.JobID) string { return jobDir(id) + "/events" }

// attempt has the credentials of an attempt of a job.
type attempt struct {
	number    int
	secret    []byte
	authority *security.Authority // nil if the data plane has no TLS
}

func newAttempt(number int, tls bool) (*attempt, error) {
	a := &attempt{number: number}
	var err error
	if a.secret, err = security.NewSecret(); err != nil {
		return nil, err
	}
	if tls {
		if a.authority, err = security.NewAuthority(); err != nil {
			return nil, fmt.Errorf("make certificates for the data plane of the attempt: %w", err)
		}
	}
	return a, nil
}

// credential makes the credentials of one worker of the attempt. hosts are the names and
// addresses of the machine on which the worker runs.
func (a *attempt) credential(hosts []string) (wire.Credential, error) {
	c := wire.Credential{Secret: a.secret}
	if a.authority == nil {
		return c, nil
	}
	var err error
	if c.Certificate, c.Key, err = a.authority.Issue(hosts); err != nil {
		return c, fmt.Errorf("make a certificate for a worker: %w", err)
	}
	c.Authority = a.authority.PEM()
	return c, nil
}

// newID makes the ID of a job from the time of its submission, its name and a few random
// digits. The ID can be used as a file name.
func newID(name string, at time.Time) wire.JobID {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLower(r) || unicode.IsDigit(r)):
			return r
		case r < unicode.MaxASCII && unicode.IsUpper(r):
			return unicode.ToLower(r)
		}
		return '-'
	}, name)
	safe = strings.Trim(safe[:min(len(safe), 40)], "-")
	var digits [2]byte
	rand.Read(digits[:])
	return wire.JobID(fmt.Sprintf("%s-%s-%x", at.UTC().Format("20060102-150405"), safe, digits))
}

// joblogs has the logs of a job's workers. It is safe for concurrent use.
type joblogs struct {
	root  *os.Root
	dir   string
	bound int64

	mu      sync.Mutex
	workers map[int]*worklog
	closed  bool
	changed chan struct{} // closed and replaced when a log changes
}

func newJoblogs(root *os.Root, dir string, bound int64) *joblogs {
	return &joblogs{root: root, dir: dir, bound: bound, workers: make(map[int]*worklog), changed: make(chan struct{})}
}

// write adds text to the log of a worker.
func (l *joblogs) write(worker int, text []byte) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return errSealed
	}
	w := l.workers[worker]
	if w == nil {
		_ = l.root.MkdirAll(l.dir, 0o700) // if this fails, worklog.write fails too and the error is logged
		w = newWorklog(l.root, logPrefix(l.dir, worker), l.bound)
		l.workers[worker] = w
	}
	l.mu.Unlock()
	err := w.write(text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		w.close()
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return err
}

// now returns the logs that exist, whether they are complete, and a channel that is closed when
// more text has been written.
func (l *joblogs) now() (workers map[int]*worklog, closed bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	workers = make(map[int]*worklog, len(l.workers))
	for n, w := range l.workers {
		workers[n] = w
	}
	return workers, l.closed, l.changed
}

// close closes all logs for writing. They can still be read.
func (l *joblogs) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	for _, w := range l.workers {
		w.close()
	}
	close(l.changed)
	l.changed = make(chan struct{})
}
