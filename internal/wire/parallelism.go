package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// Parallelism says with how many subtasks of each vertex a job may run. A job for which Min is less
// than Max is elastic: the job manager gives it as many slots as there are, and changes the number
// while the job runs. The zero value says nothing.
type Parallelism struct {
	Min int `msgpack:"min"`
	Max int `msgpack:"max"`
}

// ParseParallelism reads a number such as 4, or a range such as 2:8.
func ParseParallelism(text string) (Parallelism, error) {
	low, high, ranged := strings.Cut(strings.TrimSpace(text), ":")
	if !ranged {
		high = low
	}
	var p Parallelism
	var err, failed error
	p.Min, err = strconv.Atoi(strings.TrimSpace(low))
	p.Max, failed = strconv.Atoi(strings.TrimSpace(high))
	switch {
	case err != nil || failed != nil:
		return Parallelism{}, fmt.Errorf("%.40q is neither a number of subtasks such as 4 nor a range such as 2:8", text)
	case ranged && p.Min < 1:
		return Parallelism{}, fmt.Errorf("%.40q begins below 1: want a range such as 2:8", text)
	case p.Max < p.Min:
		return Parallelism{}, fmt.Errorf("%.40q ends below its beginning: want the smaller number first, as in %d:%d", text, p.Max, p.Min)
	}
	return p, nil
}

// String returns the text that ParseParallelism reads.
func (p Parallelism) String() string {
	if p.Elastic() {
		return fmt.Sprintf("%d:%d", p.Min, p.Max)
	}
	return strconv.Itoa(p.Max)
}

// Elastic reports whether the number of subtasks may change.
func (p Parallelism) Elastic() bool { return p.Min < p.Max }

// Has reports whether a job may run with n subtasks.
func (p Parallelism) Has(n int) bool { return n >= p.Min && n <= p.Max }

// ScaleRequest sets with how many subtasks a job may run. A job that runs with a number that is not
// allowed any more is saved and restarted with another, as soon as it can have the slots.
type ScaleRequest struct {
	Job         JobID       `msgpack:"job"`
	Parallelism Parallelism `msgpack:"parallelism"`
}

// ScaleReply has the job after the request. The job manager has the request on record.
type ScaleReply struct {
	Job JobInfo `msgpack:"job"`
}
