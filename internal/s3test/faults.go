package s3test

import (
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// Kind is a kind of fault.
type Kind int

const (
	None       Kind = iota
	Refuse          // the request has no effect, and the answer is an error that passes
	Slow            // the answer comes late
	CutRequest      // the connection ends in the middle of the request's body, which has no effect
	Lose            // the request has its effect, and the connection ends before the answer
	CutAnswer       // the connection ends in the middle of the answer's body
	Truncate        // the answer's body is shorter, and its length agrees
	kinds
)

// faults chooses faults by a seed.
type faults struct {
	random *rand.Rand
	every  int
	slow   time.Duration
	counts [kinds]int
}

// Fail makes one of so many requests fail, by a seed. Slow answers take the given time. every = 0
// ends the faults.
func (s *Server) Fail(seed uint64, every int, slow time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
	if every > 0 {
		s.faults = &faults{random: rand.New(rand.NewPCG(seed, 3)), every: every, slow: slow}
	}
}

// Faults returns how many faults of each kind there were since Fail.
func (s *Server) Faults() map[Kind]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[Kind]int)
	if s.faults != nil {
		for kind, n := range s.faults.counts {
			counts[Kind(kind)] = n
		}
	}
	return counts
}

// fault is the fault of one request.
type fault struct {
	kind Kind
	slow time.Duration
	pick int
}

func (s *Server) nextFault() *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &fault{}
	if s.faults != nil && s.faults.random.IntN(s.faults.every) == 0 {
		f.kind = 1 + Kind(s.faults.random.IntN(int(kinds)-1))
		f.slow, f.pick = s.faults.slow, s.faults.random.IntN(4)
		s.faults.counts[f.kind]++
	}
	return f
}

// refusal returns the error of a request that may be sent again.
func (f *fault) refusal() error {
	return []*failure{
		{500, "InternalError", "We encountered an internal error. Please try again."},
		{503, "SlowDown", "Please reduce your request rate."},
		{409, "ConditionalRequestConflict", "A conflicting operation occurred."},
		{400, "RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period."},
	}[f.pick]
}

// before delays a request or ends its connection.
func (f *fault) before(_ http.ResponseWriter, r *http.Request) {
	switch f.kind {
	case Slow:
		select {
		case <-time.After(f.slow):
		case <-r.Context().Done():
		}
	case CutRequest:
		io.CopyN(io.Discard, r.Body, r.ContentLength/2) //nolint:errcheck // the connection ends anyway
		panic(http.ErrAbortHandler)
	}
}
