package task

// Verdict is the decision about a superstep that all subtasks of a queue learn after its stages. Subtask
// 0 makes it and broadcasts it, so that all subtasks save their states after the same superstep.
type Verdict struct {
	Stop        bool     // the criterion has ended the queue
	Save        Purposes // for what the subtasks save their state; 0 if they do not
	Next        int      // supersteps until the next verdict, if subtasks need not wait for others before
	Parallelism int      // the parallelism of the next gang; 0 if the queue is not cut
}

// Decide adds the decision of a Checkpointer.
func (v *Verdict) Decide(d Decision) {
	v.Save, v.Next = d.Purposes&allPurposes, min(max(d.Next, 1), longestStride)
}

// Word encodes the verdict for the broadcast.
func (v Verdict) Word() int64 {
	w := int64(v.Parallelism)<<32 | int64(v.Next)<<8 | int64(v.Save)<<1
	if v.Stop {
		w |= 1
	}
	return w
}

// VerdictOf decodes what Word has encoded.
func VerdictOf(word int64) Verdict {
	return Verdict{Stop: word&1 != 0, Save: Purposes(word>>1) & allPurposes, Next: int(word >> 8 & (1<<24 - 1)), Parallelism: int(word >> 32)}
}

// Boundary says after which supersteps a subtask waits for the verdict. All subtasks of a queue have the
// same settings and have agreed on the same verdicts, so that they wait after the same supersteps.
//
// If all subtasks are in one process, they wait after each superstep: Loop.After relies on this, as it
// reads the results of other subtasks. If there is a criterion, the broadcast of its verdict
// synchronizes them. Without a criterion there is nothing to broadcast, and no code relies on a
// synchronization between processes: Loop.After uses only the results of its own collectives, and stages
// that communicate synchronize the subtasks themselves. So subtasks continue at once, and may be in
// different supersteps if their stages are independent. If the queue may be saved, they wait after the
// first superstep, then as often as each verdict says, and after the last superstep, whose number is
// known: a state is saved only when all subtasks have saved the state before. If the queue may be cut,
// they always wait.
type Boundary struct {
	Several   bool // the subtasks are in several processes
	Criterion bool // the queue has a criterion
	Cut       bool // the queue may be cut
	Saved     bool // the states of the queue may be saved

	meet int // superstep after which the subtask waits again
}

// Meets reports whether the subtask waits for the verdict after a superstep. last says that the
// superstep has the largest number that the queue allows.
func (b *Boundary) Meets(step int, last bool) bool {
	if !b.Several || b.Criterion || b.Cut {
		return true
	}
	return b.Saved && (step >= b.meet || last)
}

// Agreed notes the verdict about a superstep.
func (b *Boundary) Agreed(step int, v Verdict) { b.meet = step + v.Next }
