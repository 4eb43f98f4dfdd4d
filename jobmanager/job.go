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

// job is what the job manager holds of a job besides the state in the core. It lives from the
// submission until the job has ended and the last output of its workers is kept. Fields without
// a remark are not modified; the manager's lock guards the others.
type job struct {
	id    wire.JobID
	spec  wire.JobSpec // without arguments and graph
	size  int64        // size of arguments and graph
	spool *spool
	logs  *joblogs

	plan           []byte        // in JSON, until it is on disk (guarded)
	graph          []byte        // likewise, where a worker resolved it (guarded)
	recorded       chan struct{} // closed when the job is on record, or could not be
	unsaved        error         // why it could not be; before recorded is closed
	kept           chan struct{} // closed when the final state is on record
	finalWriteDone chan struct{} // closed when the final state is on record, or when the first write of it failed
	done           chan struct{} // closed after finalWriteDone, when followers may hear of the end
	past           record        // all but Info; before done is closed
	doubt          string        // its record's Doubt when the job manager started
	final          *wire.JobInfo // set once it has ended (guarded, readable once done is closed)
	over           chan struct{} // closed when nothing more of its workers is kept

	saving    bool   // its first record is on its way to disk (guarded)
	forgotten bool   // it is to be forgotten once it is over (guarded)
	missing   uint64 // events that its spool lost when a job manager ended before

	shown        shown         // (guarded)
	dirty        bool          // there is progress that followers have not seen (guarded)
	progressSent time.Time     // when progress was last sent (guarded)
	readers      int           // followers, who find events where they were written (guarded)
	attached     int           // streams of the client to which it is attached (guarded)
	unattached   time.Duration // how long there has been none while this process ran (guarded)
	abandoned    bool          // it was cancelled because its client was away (guarded)
	credits      *attempt      // credentials of the current attempt (guarded)
}

// shown is the part of a state whose changes are told to followers.
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
		// The client is away at first: it opens its stream after the submission.
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
	authority *security.Authority // nil where the data plane has no TLS
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

// credential makes the credentials of one worker of the attempt, which runs on the given hosts.
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
// digits. It is safe as a file name.
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

// joblogs are the logs of a job's workers. It is safe for concurrent use.
type joblogs struct {
	root  *os.Root
	dir   string
	bound int64

	mu      sync.Mutex
	workers map[int]*worklog
	closed  bool
	changed chan struct{} // closed, and made anew, when something was written
}

func newJoblogs(root *os.Root, dir string, bound int64) *joblogs {
	return &joblogs{root: root, dir: dir, bound: bound, workers: make(map[int]*worklog), changed: make(chan struct{})}
}

// write adds what a worker wrote.
func (l *joblogs) write(worker int, text []byte) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return errSealed
	}
	w := l.workers[worker]
	if w == nil {
		_ = l.root.MkdirAll(l.dir, 0o700) // else the log says what is lost
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

// now returns the logs so far, whether they are complete, and a channel that is closed when
// there is more.
func (l *joblogs) now() (workers map[int]*worklog, closed bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	workers = make(map[int]*worklog, len(l.workers))
	for n, w := range l.workers {
		workers[n] = w
	}
	return workers, l.closed, l.changed
}

// close ends all logs. What was written can still be read.
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
