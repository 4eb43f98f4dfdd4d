package task

import (
	"fmt"
	"math"
	"sync/atomic"
)

// Budget accounts for bytes held. Budgets form a tree: bytes reserved in a budget count in its
// parent too, and have to fit in both. A nil Budget bounds nothing. It is safe for concurrent
// use.
type Budget struct {
	name   string
	limit  int64
	parent *Budget
	share  float64 // its share of the job's memory, 0 if unknown
	used   atomic.Int64
	kept   atomic.Int64 // of used, see Keep
	rows   atomic.Int64 // of used, see HoldRows
	peak   atomic.Int64
}

// NewBudget returns a budget of limit bytes below parent, which may be nil. The
// name goes into errors.
func NewBudget(name string, limit int64, parent *Budget) *Budget {
	return &Budget{name: name, limit: limit, parent: parent}
}

// BudgetError says that bytes that cannot spill to disk do not fit.
type BudgetError struct {
	Budget            string // its name
	Want, Used, Limit int64  // bytes
	Enough            int64  // memory of the job that would suffice, 0 if unknown
}

// Error writes the sizes and what to do.
func (e *BudgetError) Error() string {
	enough := "a larger memory budget"
	if e.Enough > 0 {
		enough = "more memory, at least --memory " + flagBytes(e.Enough)
	}
	return fmt.Sprintf("out of memory: %s more do not fit in the budget of %s, which is %s with %s in use; give the job %s",
		FormatBytes(e.Want), e.Budget, FormatBytes(e.Limit), FormatBytes(e.Used), enough)
}

// flagBytes writes at least n bytes as the command line reads them, such as "12MiB".
func flagBytes(n int64) string {
	unit, name := int64(1<<10), "KiB"
	if n > 1<<20 {
		unit, name = 1<<20, "MiB"
	}
	return fmt.Sprintf("%d%s", (n-1)/unit+1, name)
}

// ofJob returns the memory that a job needs for n bytes in this budget, or 0 if unknown.
func (b *Budget) ofJob(n int64) int64 {
	if b == nil || b.share == 0 {
		return 0
	}
	return int64(math.Ceil(float64(n) / b.share))
}

// FormatBytes writes a number of bytes for people, such as "1.5 GiB".
func FormatBytes(n int64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/(1<<10), 0
	for v >= 1<<10 && unit < len(units)-1 {
		v, unit = v/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[unit])
}

// TryReserve takes n bytes if they fit.
func (b *Budget) TryReserve(n int64) bool {
	if b == nil {
		return true
	}
	if n > b.limit {
		return false
	}
	used := b.used.Add(n)
	if used > b.limit || !b.parent.TryReserve(n) {
		b.used.Add(-n)
		return false
	}
	b.raise(used)
	return true
}

// Reserve takes n bytes, or returns a *BudgetError if they do not fit. It is for memory that
// cannot spill.
func (b *Budget) Reserve(n int64) error {
	if b.TryReserve(n) {
		return nil
	}
	full := b
	for full.parent != nil && full.used.Load()+n <= full.limit {
		full = full.parent
	}
	used := full.used.Load()
	return full.Refuse(n, used, used+n)
}

// Refuse returns the *BudgetError of n bytes that do not fit beside used bytes. total is the
// number of bytes, n included, that the caller needs in the end. The memory that the error
// advises is always more than the job has.
func (b *Budget) Refuse(n, used, total int64) error {
	return &BudgetError{Budget: b.name, Want: n, Used: used, Limit: b.limit, Enough: b.ofJob(max(total, b.limit+1))}
}

// Release gives back n bytes that were reserved.
func (b *Budget) Release(n int64) {
	for ; b != nil; b = b.parent {
		b.used.Add(-n)
	}
}

// Take counts n bytes whether they fit or not. The caller bounds them by other means.
func (b *Budget) Take(n int64) {
	for ; b != nil; b = b.parent {
		b.raise(b.used.Add(n))
	}
}

// Keep takes n bytes for something that can neither spill nor be given back before it ends,
// such as the rows of a queue. The bytes that others hold now do not matter, because others
// spill them or give them back. Keep reports false if everything that is kept would exceed
// twice the budget. With rows, the rows of HoldRows count as kept.
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

// KeepReserved counts n bytes that were reserved as kept.
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

// HoldRows counts n bytes that were reserved as rows. They stay until they are given up, unless
// their holder moves them to files.
func (b *Budget) HoldRows(n int64) {
	if b != nil {
		b.rows.Add(n)
	}
}

// GiveUpRows releases n bytes of HoldRows.
func (b *Budget) GiveUpRows(n int64) {
	if b != nil {
		b.rows.Add(-n)
		b.Release(n)
	}
}

// Kept returns the bytes that are kept; with rows, it includes those of HoldRows.
func (b *Budget) Kept(rows bool) int64 {
	if b == nil {
		return 0
	}
	if rows {
		return b.kept.Load() + b.rows.Load()
	}
	return b.kept.Load()
}

// raise records a new peak.
func (b *Budget) raise(used int64) {
	for {
		peak := b.peak.Load()
		if used <= peak || b.peak.CompareAndSwap(peak, used) {
			return
		}
	}
}

// Used returns the bytes reserved.
func (b *Budget) Used() int64 { return b.used.Load() }

// Limit returns the bytes that may be reserved.
func (b *Budget) Limit() int64 {
	if b == nil {
		return math.MaxInt64
	}
	return b.limit
}

// Peak returns the most bytes that were reserved at one time.
func (b *Budget) Peak() int64 { return b.peak.Load() }
