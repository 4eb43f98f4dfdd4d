package task

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/superstep-ml/superstep/internal/humanize"
)

// Budget counts bytes of memory against a limit. Budgets form a tree: bytes reserved in a budget
// are also reserved in its parent, and must fit in both. A nil Budget has no limit. The methods
// are safe for concurrent use.
type Budget struct {
	name   string
	limit  int64
	parent *Budget
	share  float64 // limit as a fraction of the job's memory; 0 if unknown
	used   atomic.Int64
	kept   atomic.Int64 // the part of used that is kept; see Keep
	rows   atomic.Int64 // the part of used that is rows; see HoldRows
	peak   atomic.Int64

	beside func() int64 // bytes that others hold; see Beside. nil means none

	ahead       atomic.Int64     // bytes of rows for the next run; see HoldAhead
	aheadYields func(most int64) // releases some of them until at most so many bytes are left; set before the budget is used
}

// NewBudget returns a budget of limit bytes whose parent is parent, which may be nil.
// name appears in errors.
func NewBudget(name string, limit int64, parent *Budget) *Budget {
	return &Budget{name: name, limit: limit, parent: parent}
}

// BudgetError is the error of memory that does not fit in a budget and cannot be spilled to disk.
type BudgetError struct {
	Budget            string // name of the budget
	Want, Used, Limit int64  // bytes
	Enough            int64  // bytes of memory for the whole job that would suffice; 0 if unknown
}

// Error returns the sizes and says what to do.
func (e *BudgetError) Error() string {
	enough := "a larger memory budget"
	if e.Enough > 0 {
		enough = "more memory, at least --memory " + flagBytes(e.Enough)
	}
	return fmt.Sprintf("out of memory: %s more do not fit in the budget of %s, which is %s with %s in use; give the job %s",
		humanize.Bytes(e.Want), e.Budget, humanize.Bytes(e.Limit), humanize.Bytes(e.Used), enough)
}

// flagBytes returns n bytes, rounded up to KiB or MiB, as the command line reads them, such as
// "12MiB".
func flagBytes(n int64) string {
	unit, name := int64(1<<10), "KiB"
	if n > 1<<20 {
		unit, name = 1<<20, "MiB"
	}
	return fmt.Sprintf("%d%s", (n-1)/unit+1, name)
}

// ofJob returns the number of bytes that the whole job must have so that this budget has n
// bytes, or 0 if unknown.
func (b *Budget) ofJob(n int64) int64 {
	if b == nil || b.share == 0 {
		return 0
	}
	return int64(math.Ceil(float64(n) / b.share))
}

// TryReserve reserves n bytes if they fit, and reports whether they do.
//
// What others hold beside the budget counts against the limit (Beside), as the caller can do without the bytes.
func (b *Budget) TryReserve(n int64) bool { return b.reserve(n, true) }

// reserve is TryReserve, if beside is true. Otherwise it ignores what others hold.
func (b *Budget) reserve(n int64, beside bool) bool {
	if b == nil {
		return true
	}
	if n > b.limit {
		return false
	}
	used, others := b.used.Add(n), int64(0)
	if beside {
		others = b.besides() + b.ahead.Load()
	}
	if used > b.limit-others || !b.parent.reserve(n, beside) {
		b.used.Add(-n)
		return false
	}
	b.raise(used)
	return true
}

// Reserve reserves n bytes, or returns a *BudgetError if they do not fit. It is for memory that
// cannot be spilled, so what others hold beside the budget does not prevent it.
func (b *Budget) Reserve(n int64) error {
	if b.reserve(n, false) {
		b.makeWay()
		return nil
	}
	full := b
	for full.parent != nil && full.used.Load()+n <= full.limit {
		full = full.parent
	}
	used := full.used.Load()
	return full.Refuse(n, used, used+n)
}

// Refuse returns the *BudgetError for n more bytes that do not fit while used bytes are in use.
// total is the number of bytes, including n, that the caller will need altogether. The error
// always advises more memory than the job has.
func (b *Budget) Refuse(n, used, total int64) error {
	return &BudgetError{Budget: b.name, Want: n, Used: used, Limit: b.limit, Enough: b.ofJob(max(total, b.limit+1))}
}

// Release releases n bytes that were reserved.
func (b *Budget) Release(n int64) {
	for ; b != nil; b = b.parent {
		b.used.Add(-n)
	}
}

// Take reserves n bytes even if they do not fit. The caller must limit them by other means.
func (b *Budget) Take(n int64) {
	for at := b; at != nil; at = at.parent {
		at.raise(at.used.Add(n))
	}
	b.makeWay()
}

// Keep reserves n bytes that can neither be spilled nor released before their owner ends, such
// as the rows of a queue. These bytes are called kept. Keep returns false if all kept bytes
// together would exceed twice the limit. Other reserved bytes are not counted for this, because
// their owners spill or release them. If rows is true, the bytes of HoldRows count as kept.
func (b *Budget) Keep(n int64, rows bool) bool {
	if b == nil {
		return true
	}
	if n/2 > b.limit {
		return false
	}
	kept := b.kept.Add(n)
	if rows {
		kept += b.rows.Load()
	}
	if kept/2 > b.limit {
		b.kept.Add(-n)
		return false
	}
	b.Take(n)
	return true
}

// KeepReserved marks n bytes that are already reserved as kept.
func (b *Budget) KeepReserved(n int64) {
	if b != nil {
		b.kept.Add(n)
	}
}

// GiveUp releases n bytes that were kept.
func (b *Budget) GiveUp(n int64) {
	if b != nil {
		b.kept.Add(-n)
		b.Release(n)
	}
}

// HoldRows marks n bytes that are already reserved as bytes of rows. They stay reserved until
// GiveUpRows is called. Their owner may move the rows to files before that.
func (b *Budget) HoldRows(n int64) {
	if b != nil {
		b.rows.Add(n)
	}
}

// GiveUpRows releases n bytes that HoldRows has marked.
func (b *Budget) GiveUpRows(n int64) {
	if b != nil {
		b.rows.Add(-n)
		b.Release(n)
	}
}

// Kept returns the number of kept bytes. If rows is true, the bytes of HoldRows are included.
func (b *Budget) Kept(rows bool) int64 {
	if b == nil {
		return 0
	}
	if rows {
		return b.kept.Load() + b.rows.Load()
	}
	return b.kept.Load()
}

// raise sets the peak to used if used is higher.
func (b *Budget) raise(used int64) {
	for {
		peak := b.peak.Load()
		if used <= peak || b.peak.CompareAndSwap(peak, used) {
			return
		}
	}
}

// Beside makes what others hold count against the budget, such as copies of states: bytes says how much that
// is. It must be called before the budget is used, and bytes may be called from any goroutine. The others ask
// RoomBeside before they take more.
func (b *Budget) Beside(bytes func() int64) { b.beside = bytes }

// besideShare is the part of the limit that others may hold in any case, as rows may fill the rest.
const besideShare = 8

// RoomBeside reports whether others may hold n more bytes: if these bytes are free, or if all that they would
// hold together is at most an eighth of the limit.
func (b *Budget) RoomBeside(n int64) bool {
	return b.beside() <= max(b.limit/besideShare, b.limit-b.used.Load()-b.ahead.Load())-n
}

// besides returns the bytes that others hold.
func (b *Budget) besides() int64 {
	if b.beside == nil {
		return 0
	}
	return b.beside()
}

// HoldAhead reserves n bytes for rows of the next run if they are free, and reports whether they are. An eighth of
// the limit is left to what others hold beside the budget. The bytes count for TryReserve. They give way to
// memory that cannot be spilled.
func (b *Budget) HoldAhead(n int64) bool {
	if n > b.limit {
		return false
	}
	ahead := b.ahead.Add(n)
	if ahead > b.limit-max(b.limit/besideShare, b.besides())-b.used.Load() {
		b.ahead.Add(-n)
		return false
	}
	return true
}

// GiveUpAhead releases n bytes that HoldAhead has reserved.
func (b *Budget) GiveUpAhead(n int64) { b.ahead.Add(-n) }

// makeWay has bytes for the next run released that exceed what is free. Bytes that are reserved for rows which are
// still on their way are released when these have come.
func (b *Budget) makeWay() {
	if b == nil {
		return
	}
	for b.parent != nil {
		b = b.parent
	}
	if ahead := b.ahead.Load(); ahead > 0 && b.aheadYields != nil {
		if free := max(b.limit-b.besides()-b.used.Load(), 0); ahead > free {
			b.aheadYields(free)
		}
	}
}

// Used returns the number of bytes reserved.
func (b *Budget) Used() int64 { return b.used.Load() }

// Limit returns the number of bytes that may be reserved.
func (b *Budget) Limit() int64 {
	if b == nil {
		return math.MaxInt64
	}
	return b.limit
}

// Peak returns the largest number of bytes that were reserved at one time.
func (b *Budget) Peak() int64 { return b.peak.Load() }
