package shared

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// The causes of an AccessError, for errors.Is.
var (
	// ErrMissing: no object was put under the key, in this subtask or for this
	// shard, or it was removed.
	ErrMissing = errors.New("never put")
	// ErrMismatch: the name belongs to a key of another type or kind.
	ErrMismatch = errors.New("the name belongs to another key")
	// ErrClosed: the session has ended and its objects are gone.
	ErrClosed = errors.New("the session is closed")
	// ErrKey: the key itself is unusable; see Key.Err.
	ErrKey = errors.New("unusable key")
)

// AccessError tells why an object could not be reached. Get, Put and the other
// methods of keys panic with an *AccessError, because within a stage there is
// nothing better to do than to fail the subtask: whoever calls user code
// recovers it and returns it as the subtask's error. It is not a fault of the
// engine and needs no stack.
type AccessError struct {
	Op      string       // what was attempted: "get", "put", ...
	Key     string       // name of the key
	Kind    Kind         // its kind
	Type    reflect.Type // its type; nil for a key that was not made
	Session string       // the session, empty where there is none
	Subtask int          // the subtask, -1 where there is none
	Shard   int          // the shard, -1 for a key that is not per shard
	Detail  string       // more about the cause, may be empty
	Near    []string     // names in the same subtask that are spelt alike
	Err     error        // ErrMissing, ErrMismatch, ErrClosed or ErrKey
}

// Error says what was attempted, where, and why it failed.
func (e *AccessError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "shared: %s of %v key %q", e.Op, e.Kind, e.Key)
	if e.Type != nil {
		fmt.Fprintf(&b, " (%v)", e.Type)
	}
	if e.Session != "" {
		fmt.Fprintf(&b, " in session %q", e.Session)
	}
	if e.Subtask >= 0 {
		fmt.Fprintf(&b, ", subtask %d", e.Subtask)
	}
	if e.Shard >= 0 {
		fmt.Fprintf(&b, ", shard %d", e.Shard)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	if len(e.Near) > 0 {
		fmt.Fprintf(&b, "; did you mean %s?", strings.Join(e.Near, " or "))
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *AccessError) Unwrap() error { return e.Err }

// nearNames returns up to three quoted names spelt like name, nearest first.
func nearNames(name string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	limit := max(2, len(name)/3)
	for _, n := range names {
		d := editDistance(strings.ToLower(n), strings.ToLower(name), limit)
		if d <= limit {
			found = append(found, candidate{n, d})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		return strings.Compare(a.name, b.name)
	})
	var near []string
	for _, c := range found[:min(len(found), 3)] {
		near = append(near, fmt.Sprintf("%q", c.name))
	}
	return near
}

// editDistance returns the number of bytes to insert, delete or replace to turn
// a into b (Levenshtein), or limit+1 where that is more than limit.
func editDistance(a, b string, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], limit+1)
}
