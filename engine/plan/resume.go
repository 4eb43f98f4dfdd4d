package plan

import (
	"fmt"
	"slices"
)

// Resumes says where a queue can continue from a saved state.
type Resumes int

const (
	// AtAnyParallelism means that the queue continues with any number of subtasks.
	AtAnyParallelism Resumes = iota
	// AtItsParallelism means that the queue continues only with the number of subtasks that it had.
	AtItsParallelism
	// FromTheBeginning means that the state of the queue cannot be saved, so that it begins at
	// superstep 1 again.
	FromTheBeginning
)

var resumesNames = [...]string{"any-parallelism", "same-parallelism", "never"}

// Resumption says of a queue where it can continue, and which stage is the reason if that is not
// everywhere. It follows from the nodes of the queue. A codec that does not restore what it encodes,
// and replicated objects that differ between subtasks, are found only when the queue runs.
type Resumption struct {
	Queue   string  `json:"queue"`
	Resumes Resumes `json:"resumes"`
	Because string  `json:"because,omitempty"` // title of the stage
}

// ResumptionOf returns the Resumption of a queue with the given nodes, of which the others are ignored.
func ResumptionOf(nodes []Node, queue string) Resumption {
	of := Resumption{Queue: queue}
	for i := range nodes {
		n := &nodes[i]
		if n.Queue != queue || n.resumes() <= of.Resumes {
			continue
		}
		of.Resumes, of.Because = n.resumes(), n.Title()
	}
	return of
}

// resumes returns where a queue with the node can continue, as far as the node decides.
func (n *Node) resumes() Resumes {
	switch {
	case n.Unkept:
		return FromTheBeginning
	case n.bound():
		return AtItsParallelism
	}
	return AtAnyParallelism
}

// InstanceAttr is the attribute of a stage that has the type of its instances.
const InstanceAttr = "instance"

// Unkept returns an error for the first stage whose state cannot be saved, or nil if there is none.
// It says what to do.
func Unkept(nodes []Node) error {
	i := slices.IndexFunc(nodes, func(n Node) bool { return n.Unkept })
	if i < 0 {
		return nil
	}
	n := &nodes[i]
	what := n.Title()
	if n.Site != "" {
		what += " (" + n.Site + ")"
	}
	for _, a := range n.Attrs {
		if a.Key == InstanceAttr {
			what += ", of type " + clip(a.Value, 60) + ","
		}
	}
	return fmt.Errorf("queue %q would begin at superstep 1 again: the instances of %s have fields, which AddNew does not keep. Implement comqueue.Snapshotter, or add the stage with Do and keep the fields under keys of package shared", clip(n.Queue, 60), what)
}

// text returns the words with which a plan at the given parallelism says where the queue continues.
func (r *Resumption) text(parallelism int) string {
	switch r.Resumes {
	case AtItsParallelism:
		return fmt.Sprintf("continues at parallelism %d only, because of %s", parallelism, plain(r.Because))
	case FromTheBeginning:
		return fmt.Sprintf("begins at superstep 1 again, because %s has fields and no snapshot", plain(r.Because))
	}
	return "continues at any parallelism"
}

// String returns the name, such as "any-parallelism".
func (r Resumes) String() string { return enumName("resumption", resumesNames[:], int(r)) }

// MarshalText writes the name; an unknown value is an error.
func (r Resumes) MarshalText() ([]byte, error) {
	return enumText("resumption", resumesNames[:], int(r))
}

// UnmarshalText reads a name; an unknown name is an error.
func (r *Resumes) UnmarshalText(text []byte) error {
	v, err := enumValue("resumption", resumesNames[:], text)
	if err == nil {
		*r = Resumes(v)
	}
	return err
}
