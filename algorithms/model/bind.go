package model

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/spelling"
)

// Binder is a Model that computes single rows without an engine.
type Binder interface {
	Model
	// Bind finds the columns that the model reads in a layout, adds those that it computes,
	// and returns the function that computes them. A column that is missing is an error.
	Bind(l *Layout) (Step, error)
}

// Step computes the cells that a model adds to a row of its layout. Any number of goroutines
// may call it, each with a row of its own. It allocates nothing once the row's cells have had
// their largest size. An error names the column; ErrSkip says that the row is to be left out.
type Step func(row []Cell) error

// ErrSkip is what a Step returns for a row that its model leaves out.
var ErrSkip = errors.New("the model leaves the row out")

// Refused is an error of a Step about a value that the Step would take with another setting.
type Refused struct {
	Err    error // names the column
	Cure   engine.Cure
	Advice string // how to change the setting, in the words of the package
}

// Error tells what is wrong, and what can be done.
func (e *Refused) Error() string { return fmt.Sprintf("%v; %s", e.Err, e.Advice) }

// Unwrap returns what is wrong.
func (e *Refused) Unwrap() error { return e.Err }

// RowError turns the error of a Step into an error about a row of a shard.
func RowError(row int, err error) error {
	e := &engine.RowError{Row: int64(row), Err: err}
	if refused, ok := err.(*Refused); ok {
		e.Err, e.Cure, e.Advice = refused.Err, refused.Cure, refused.Advice
	}
	return e
}

// Layout says which column each cell of a row holds. Where several models are bound to it, each
// sees the columns of the models bound before. It is used by one goroutine at a time.
type Layout struct {
	names []string // by cell; "" where a later cell took the name
	read  []bool
}

// NewLayout returns the layout of rows with the given columns. Their cells come first, in this
// order.
func NewLayout(columns ...string) *Layout {
	l := &Layout{}
	for _, name := range columns {
		l.Add(name)
	}
	return l
}

// Find returns the index of the cell of a column, and notes that the cell is read. The error
// suggests similar names.
func (l *Layout) Find(column string) (int, error) {
	if i := l.index(column); i >= 0 {
		l.read[i] = true
		return i, nil
	}
	return 0, fmt.Errorf("the row has no column %q%s", column, spelling.DidYouMean(": ", column, l.names))
}

// Has reports whether there is a column of a name.
func (l *Layout) Has(column string) bool { return l.index(column) >= 0 }

func (l *Layout) index(column string) int {
	for i, name := range l.names {
		if name == column && column != "" {
			return i
		}
	}
	return -1
}

// Add adds a cell for a column and returns its index. If there is a column of that name
// already, its cell stays valid for models that have found it, and the name goes to the new
// cell.
func (l *Layout) Add(column string) int {
	if i := l.index(column); i >= 0 {
		l.names[i] = ""
	}
	l.names, l.read = append(l.names, column), append(l.read, false)
	return len(l.names) - 1
}

// Len returns the number of cells.
func (l *Layout) Len() int { return len(l.names) }

// Reads reports whether a model that was bound to the layout reads a cell.
func (l *Layout) Reads(cell int) bool { return l.read[cell] }

// NewRow returns a row of nulls. Call it after all models are bound.
func (l *Layout) NewRow() []Cell { return make([]Cell, len(l.names)) }

// Columns returns the index of each column's cell.
func (l *Layout) Columns() map[string]int {
	cells := make(map[string]int, len(l.names))
	for i, name := range l.names {
		if name != "" {
			cells[name] = i
		}
	}
	return cells
}
