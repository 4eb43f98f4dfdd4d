package plan

import (
	"fmt"
	"strconv"
)

// The names of the values of enumerations, as they appear in text and JSON. The
// index of a name is the value. Changing a name changes what is stored and shown,
// but not fingerprints, which are computed from the values.
var (
	partitionerNames = [...]string{"forward", "rebalance", "hash", "range", "broadcast", "custom", "by-subtask"}
	roleNames        = [...]string{"data", "side", "control", "feedback"}
	stageNames       = [...]string{"none", "queue-init", "compute", "send", "sum", "recv", "criterion", "queue-close", "repeat-begin", "repeat-end", "communicate"}
	reductionNames   = [...]string{"none", "shard-tree", "rank-tree"}
	modeNames        = [...]string{"pipelined", "materialised"}
)

// enumName returns the name of v, or "kind(v)" for a value outside the enumeration.
func enumName(kind string, names []string, v int) string {
	if v < 0 || v >= len(names) {
		return kind + "(" + strconv.Itoa(v) + ")"
	}
	return names[v]
}

// enumText is like enumName, but returns an error for a value outside the
// enumeration, as UnmarshalText could not read its text.
func enumText(kind string, names []string, v int) ([]byte, error) {
	if v < 0 || v >= len(names) {
		return nil, fmt.Errorf("plan: %d is no %s", v, kind)
	}
	return []byte(names[v]), nil
}

// enumValue returns the value that text names.
func enumValue(kind string, names []string, text []byte) (int, error) {
	for i, name := range names {
		if name == string(text) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("plan: %q is no %s: want one of %q", clip(string(text), 40), kind, names)
}

// Valid reports whether p is one of the partitioners.
func (p Partitioner) Valid() bool { return p >= 0 && int(p) < len(partitionerNames) }

// String returns the partitioner's name, such as "hash".
func (p Partitioner) String() string {
	return enumName("partitioner", partitionerNames[:], int(p))
}

// MarshalText writes the partitioner's name; an unknown value is an error.
func (p Partitioner) MarshalText() ([]byte, error) {
	return enumText("partitioner", partitionerNames[:], int(p))
}

// UnmarshalText reads a partitioner's name; an unknown name is an error.
func (p *Partitioner) UnmarshalText(text []byte) error {
	v, err := enumValue("partitioner", partitionerNames[:], text)
	if err == nil {
		*p = Partitioner(v)
	}
	return err
}

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return r >= 0 && int(r) < len(roleNames) }

// String returns the role's name, such as "side".
func (r Role) String() string { return enumName("role", roleNames[:], int(r)) }

// MarshalText writes the role's name; an unknown value is an error.
func (r Role) MarshalText() ([]byte, error) { return enumText("role", roleNames[:], int(r)) }

// UnmarshalText reads a role's name; an unknown name is an error.
func (r *Role) UnmarshalText(text []byte) error {
	v, err := enumValue("role", roleNames[:], text)
	if err == nil {
		*r = Role(v)
	}
	return err
}

// Valid reports whether k is one of the kinds of stage.
func (k StageKind) Valid() bool { return k >= 0 && int(k) < len(stageNames) }

// Exchanges reports whether a stage of the kind receives data from other subtasks.
// A by-subtask edge leads to such a stage.
func (k StageKind) Exchanges() bool { return k == Sum || k == Recv || k == Communicate }

// String returns the name of the kind of stage, such as "queue-init".
func (k StageKind) String() string { return enumName("stage", stageNames[:], int(k)) }

// MarshalText writes the name of the kind of stage; an unknown value is an error.
func (k StageKind) MarshalText() ([]byte, error) { return enumText("stage", stageNames[:], int(k)) }

// UnmarshalText reads the name of a kind of stage; an unknown name is an error.
func (k *StageKind) UnmarshalText(text []byte) error {
	v, err := enumValue("stage", stageNames[:], text)
	if err == nil {
		*k = StageKind(v)
	}
	return err
}

// Valid reports whether r is one of the reductions.
func (r Reduction) Valid() bool { return r >= 0 && int(r) < len(reductionNames) }

// String returns the reduction's name, such as "shard-tree".
func (r Reduction) String() string { return enumName("reduction", reductionNames[:], int(r)) }

// MarshalText writes the reduction's name; an unknown value is an error.
func (r Reduction) MarshalText() ([]byte, error) {
	return enumText("reduction", reductionNames[:], int(r))
}

// UnmarshalText reads a reduction's name; an unknown name is an error.
func (r *Reduction) UnmarshalText(text []byte) error {
	v, err := enumValue("reduction", reductionNames[:], text)
	if err == nil {
		*r = Reduction(v)
	}
	return err
}

// Valid reports whether m is one of the modes.
func (m Mode) Valid() bool { return m >= 0 && int(m) < len(modeNames) }

// String returns the mode's name, such as "pipelined".
func (m Mode) String() string { return enumName("mode", modeNames[:], int(m)) }

// MarshalText writes the mode's name; an unknown value is an error.
func (m Mode) MarshalText() ([]byte, error) { return enumText("mode", modeNames[:], int(m)) }

// UnmarshalText reads a mode's name; an unknown name is an error.
func (m *Mode) UnmarshalText(text []byte) error {
	v, err := enumValue("mode", modeNames[:], text)
	if err == nil {
		*m = Mode(v)
	}
	return err
}
