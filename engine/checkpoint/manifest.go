package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/zeebo/xxh3"
)

// format is the version of the format that this program writes, and the newest that it reads.
const format = 1

// maxManifest is the largest size in bytes of a manifest.
const maxManifest = 64 << 20

// Run identifies a run. A run can continue only from its own checkpoints, and from those of a run
// with the same Run.
type Run struct {
	Job       string `json:"job"`
	Program   string `json:"program"`   // SHA-256 of the executable
	Arguments []byte `json:"arguments"` // of the job, as MessagePack
	Facts     []Fact `json:"facts"`     // what the job learned from outside, such as the files of an input
	Graph     string `json:"graph"`     // fingerprint of the graph with its facts
	Shards    int    `json:"shards"`
	Seed      uint64 `json:"seed"`
	// Queues has the stages of all queues, for savepoints.
	Queues []Stages `json:"queues"`
}

// Fact is the hash of a fact of a graph.
type Fact struct {
	Name string `json:"name"`
	Hash uint64 `json:"hash"`
}

// difference names what differs between the run of a checkpoint and the run that is to continue
// from it, or returns "".
func (r Run) difference(now Run) string {
	switch {
	case r.Job != now.Job:
		return fmt.Sprintf("it is of job %q, and this is job %q", r.Job, now.Job)
	case r.Program != now.Program:
		return "it was written by another build of the program"
	case r.Shards != now.Shards:
		return fmt.Sprintf("its run had %d shards, and this run has %d", r.Shards, now.Shards)
	case r.Seed != now.Seed:
		return fmt.Sprintf("its run had the seed %d, and this run has %d", r.Seed, now.Seed)
	}
	if names := argumentsDiffer(r.Arguments, now.Arguments); len(names) > 0 {
		return "its run had other arguments: " + strings.Join(names, ", ")
	}
	if r.Graph == now.Graph {
		return ""
	}
	for i, f := range r.Facts {
		if i < len(now.Facts) && f != now.Facts[i] {
			return fmt.Sprintf("an input has changed since (%s)", f.Name)
		}
	}
	return "the graph of its job differs, as by other files, or because the function of the job depends on more than its arguments"
}

// argumentsDiffer returns the names of the arguments that differ, sorted. It compares decoded
// values, as the order of a map in the encoding differs from run to run.
func argumentsDiffer(a, b []byte) (names []string) {
	before, after := make(map[string]any), make(map[string]any)
	if !flatten("", a, before) || !flatten("", b, after) {
		if bytes.Equal(a, b) {
			return nil
		}
		return []string{"all"}
	}
	for name, v := range after {
		if was, there := before[name]; !there || !reflect.DeepEqual(was, v) {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// flatten adds the fields of an encoded struct to the map into. The names of fields of nested
// structs begin with the name of the struct. It returns false if data is not an encoded struct.
func flatten(prefix string, data []byte, into map[string]any) bool {
	var fields map[string]any
	if len(data) > 0 && msgpack.Unmarshal(data, &fields) != nil {
		return false
	}
	flattenMap(prefix, fields, into)
	return true
}

func flattenMap(prefix string, fields, into map[string]any) {
	for name, v := range fields {
		if nested, ok := v.(map[string]any); ok {
			flattenMap(prefix+name+".", nested, into)
		} else {
			into[prefix+name] = v
		}
	}
}

// Manifest describes a checkpoint.
type Manifest struct {
	Format  int       `json:"format"`
	Number  int       `json:"number"` // number of the checkpoint, from 1
	Run     Run       `json:"run"`
	Written time.Time `json:"written"`
	Queues  []Queue   `json:"queues"` // sorted by name
	// Savepoint is the place of a savepoint whose states the run has adopted, unless it had newer ones; "" if
	// there is none.
	Savepoint string `json:"savepoint,omitempty"`
}

// Queue describes the state of one queue in a checkpoint.
type Queue struct {
	Name      string `json:"name"`
	Superstep int    `json:"superstep"` // the last superstep that was done
	Ended     bool   `json:"ended"`     // no superstep follows
	Blobs     []Blob `json:"blobs"`     // of the state's pieces, in order
}

// Blob describes a blob with one piece of a state.
type Blob struct {
	Name  string `json:"name"`
	Size  int64  `json:"size"`  // bytes in the store
	Bytes int64  `json:"bytes"` // bytes of the piece
	Sum   string `json:"sum"`   // XXH3 of the bytes in the store, in hexadecimal
}

// generation returns the latest generation of the blobs of the checkpoint.
func (m *Manifest) generation() (latest int) {
	for _, q := range m.Queues {
		for _, b := range q.Blobs {
			n, _ := parseName(b.Name)
			latest = max(latest, n.number)
		}
	}
	return latest
}

// Size returns the number of bytes of all blobs of the checkpoint.
func (m *Manifest) Size() (sum int64) {
	for _, q := range m.Queues {
		sum += q.Size()
	}
	return sum
}

// Size returns the number of bytes of all blobs of the state.
func (q *Queue) Size() (sum int64) {
	for _, b := range q.Blobs {
		sum += b.Size
	}
	return sum
}

func checksum(data []byte) string { return fmt.Sprintf("%016x", xxh3.Hash(data)) }

// encode returns the bytes of the manifest.
func (m *Manifest) encode() ([]byte, error) { return sealed(m) }

// sealed returns v as a line of JSON and a line with its checksum.
func sealed(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(append(append(line, '\n'), checksum(line)...), '\n'), nil
}

// unseal decodes what sealed returned. It believes nothing before the checksum is verified.
func unseal(data []byte, v any) error {
	line, sum, found := bytes.Cut(data, []byte("\n"))
	if !found || string(sum) != checksum(line)+"\n" {
		return errors.New("it is damaged: its checksum is wrong")
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("it is of another program: %w", err)
	}
	return nil
}

// newerError is the error of a manifest that a newer program wrote.
type newerError struct{ format int }

func (e *newerError) Error() string {
	return fmt.Sprintf("it has format %d, and this program reads formats up to %d: use the program that wrote it, or a newer one", e.format, format)
}

// decodeManifest decodes what encode returned.
func decodeManifest(data []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := unseal(data, m); err != nil {
		return nil, err
	}
	if m.Format > format {
		return nil, &newerError{m.Format}
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// check returns an error if this package cannot have written the manifest.
func (m *Manifest) check() error {
	if m.Format < 1 || m.Number < 1 || m.Written.IsZero() {
		return fmt.Errorf("it is no manifest: format %d, number %d, written at %v", m.Format, m.Number, m.Written)
	}
	for i, q := range m.Queues {
		if q.Superstep < 1 || len(q.Blobs) == 0 || i > 0 && q.Name <= m.Queues[i-1].Name {
			return fmt.Errorf("it is no manifest: queue %q, superstep %d, %d blobs", q.Name, q.Superstep, len(q.Blobs))
		}
		if err := checkBlobs(q.Blobs); err != nil {
			return fmt.Errorf("it is no manifest: queue %q: %w", q.Name, err)
		}
	}
	return nil
}

// checkBlobs returns an error if this package cannot have written the descriptions of blobs.
func checkBlobs(blobs []Blob) error {
	for _, b := range blobs {
		if n, ok := parseName(b.Name); !ok || n.kind != stateKind || b.Size < 0 || b.Bytes < 0 {
			return fmt.Errorf("there is a blob %q of %d bytes", b.Name, b.Size)
		}
	}
	return nil
}
