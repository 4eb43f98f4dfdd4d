package checkpoint

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/zeebo/xxh3"
)

// kind is the kind of a blob in a store.
type kind string

const (
	// manifestKind: the manifest of a checkpoint.
	manifestKind kind = "checkpoint"
	// partKind: the list of the pieces of a state that one process has written.
	partKind kind = "part"
	// runKind: the mark of a run of several processes; see Announce.
	runKind kind = "run"
	// stateKind: a piece of the state of a queue.
	stateKind kind = "state"
)

// blobName is the name of a blob. Each run, and each attempt of a run, has a generation: a number
// greater than all numbers in the names that the store had before. So the blobs of two runs never
// have the same name. Attempts of a job on a cluster, which can overlap, also publish the mark of
// their generation before they write anything else, so that no two of them choose the same.
type blobName struct {
	kind      kind
	number    int    // number of the checkpoint, for manifestKind; the generation for all other kinds
	queue     string // hash of the queue's name, for partKind and stateKind; see queueHash
	superstep int    // for partKind and stateKind
	index     int    // number of the process, for partKind; number of the piece, for stateKind
}

var names = regexp.MustCompile(`^(?:(checkpoint|run)-(\d{8,18})|(part|state)-(\d{8,18})-([0-9a-f]{16})-(\d{1,18})-(\d{1,18}))$`)

// maxNumber is the largest number that is accepted in the names of a store to which a run writes. Its own
// names have greater numbers, with at most as many digits as parseName accepts.
const maxNumber = 1_000_000_000_000

// parseName returns the parts of a name. It returns false if no blob of this package has it.
func parseName(text string) (n blobName, ok bool) {
	m := names.FindStringSubmatch(text)
	switch {
	case m == nil:
		return n, false
	case m[1] != "":
		n.kind = kind(m[1])
		n.number, _ = strconv.Atoi(m[2]) // 18 digits always fit
	default:
		n.kind, n.queue = kind(m[3]), m[5]
		n.number, _ = strconv.Atoi(m[4])
		n.superstep, _ = strconv.Atoi(m[6])
		n.index, _ = strconv.Atoi(m[7])
	}
	return n, n.number > 0
}

func (n blobName) String() string {
	if n.kind == manifestKind || n.kind == runKind {
		return fmt.Sprintf("%s-%08d", n.kind, n.number)
	}
	return fmt.Sprintf("%s-%08d-%s-%d-%d", n.kind, n.number, n.queue, n.superstep, n.index)
}

func manifestName(number int) string {
	return blobName{kind: manifestKind, number: number}.String()
}

// manifestNumber returns the number of the checkpoint whose manifest has the name.
func manifestNumber(name string) (int, bool) {
	n, ok := parseName(name)
	return n.number, ok && n.kind == manifestKind
}

// queueHash returns what stands for a queue in the names of blobs, as its own name may have any
// characters.
func queueHash(queue string) string { return fmt.Sprintf("%016x", xxh3.HashString(queue)) }
