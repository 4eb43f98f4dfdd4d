package shared

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// The causes of an AccessError, for errors.Is.
var (
	// ErrMissing: the subtask has no object under the key, or no object for the shard. It was
	// never put, or it was removed.
	ErrMissing = errors.New("never put")
	// ErrMismatch: the name belongs to a key of another type or kind.
	ErrMismatch = errors.New("the name belongs to another key")
	// ErrClosed: the session was closed, which removed its objects; or Regroup replaced the
	// subtask; or the Holder has no Objects.
	ErrClosed = errors.New("the session is closed")
	// ErrRestored: the object was restored from bytes that its key cannot decode.
	ErrRestored = errors.New("the restored bytes cannot be decoded")
	// ErrRefused: objects of the key's kind must not be put at this time; see Objects.Refuse.
	ErrRefused = errors.New("not now")
	// ErrKey: the key itself is unusable (see Key.Err), or the shard does not exist or belongs
	// to another subtask.
	ErrKey = errors.New("unusable key")
)

// AccessError says why an access to an object failed. Get, Put and the other methods of keys
// panic with an *AccessError, because a stage can do nothing better than fail the subtask. The
// engine, which calls user code, recovers it and returns it as the subtask's error. The error
// is not a fault of the engine, so it is reported without a stack.
type AccessError struct {
	Op      string       // what was attempted: "get", "put", ...
	Key     string       // name of the key
	Kind    Kind         // kind of the key
	Type    reflect.Type // type of the key's objects; nil for a zero Key or ShardKey
	Session string       // name of the session, "" if there is none
	Subtask int          // number of the subtask, -1 if there are no Objects
	Shard   int          // number of the shard, -1 unless the key is per-shard
	Detail  string       // details of the cause, may be empty
	Near    []string     // names of objects of the same subtask that are spelled similarly
	Unused  []string     // names of restored objects of the same subtask that no key has used; for ErrMissing
	Err     error        // one of the causes above
}

// Error returns what was attempted, where, and why it failed.
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
		fmt.Fprintf(&b, "; did you mean %s?", quoted(e.Near, " or "))
	}
	if n := len(e.Unused); n > 0 {
		more := ""
		if n > maxUnused {
			more = fmt.Sprintf(" and %d more", n-maxUnused)
		}
		fmt.Fprintf(&b, "; the state from which the queue continues has %s%s, which no key has used so far", quoted(e.Unused[:min(n, maxUnused)], ", "), more)
	}
	return b.String()
}

// Unwrap returns e.Err.
func (e *AccessError) Unwrap() error { return e.Err }

// maxUnused is the largest number of restored objects that an error names.
const maxUnused = 5

// quoted writes names in quotes, with a separator between them.
func quoted(names []string, separator string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = strconv.Quote(name)
	}
	return strings.Join(parts, separator)
}
