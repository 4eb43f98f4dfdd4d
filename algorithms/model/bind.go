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
	// Bind finds the columns that the model reads in the layout l, adds the columns that the
	// model computes to l, and returns the Step that computes these columns. A missing column
	// is an error.
	Bind(l *Layout) (Step, error)
}

// Step computes the cells that a model adds to a row of its layout. Any number of goroutines
// may call it, each with its own row. It allocates no memory if the row was used before for
// values of the same size. An error names the column. ErrSkip means that the row is to be left
// out.
type Step func(row []Cell) error

// ErrSkip is returned by a Step for a row that its model leaves out.
var ErrSkip = errors.New("the model leaves the row out")

// Refused is an error of a Step about a value that the Step would accept with another setting.
type Refused struct {
	Err    error // the error, which names the column
	Cure   engine.Cure
	Advice string // which setting to change, by its name in the algorithm's package
}

// Error returns the text of Err and the advice.
func (e *Refused) Error() string { return fmt.Sprintf("%v; %s", e.Err, e.Advice) }

// Unwrap returns Err.
func (e *Refused) Unwrap() error { return e.Err }

// RowError adds the number of a row within its shard to err, which is the error of a Step for
// this row.
func RowError(row int, err error) error {
	e := &engine.RowError{Row: int64(row), Err: err}
	if refused, ok := err.(*Refused); ok {
		e.Err, e.Cure, e.Advice = refused.Err, refused.Cure, refused.Advice
	}
	return e
}

// Layout says which column each cell of a row holds. If several models are bound to a layout,
// each can read the columns of the models that were bound before it. Only one goroutine at a
// time may use a Layout.
type Layout struct {
	names []string // cell -> column name; "" if a later cell has that name
	read  []bool
}

// NewLayout returns the layout of rows with the given columns. The cells of these columns come
// first, in the given order.
func NewLayout(columns ...string) *Layout {
	l := &Layout{}
	for _, name := range columns {
		l.Add(name)
	}
	return l
}

// Find returns the index of the cell of a column, and records that the cell is read. The error
// for an unknown column suggests similar names.
func (l *Layout) Find(column string) (int, error) {
	if i := l.index(column); i >= 0 {
		l.read[i] = true
		return i, nil
	}
	return 0, fmt.Errorf("the row has no column %q%s", column, spelling.DidYouMean(": ", column, l.names))
}

// Has reports whether there is a column with the given name.
func (l *Layout) Has(column string) bool { return l.index(column) >= 0 }

func (l *Layout) index(column string) int {
	for i, name := range l.names {
		if name == column && column != "" {
			return i
		}
	}
	return -1
}

// Add adds a cell for a column and returns the index of the cell. If there is already a column
// of that name, its cell remains valid for models that have found it, and later calls of Find
// return the new cell.
func (l *Layout) Add(column string) int {
	if i := l.index(column); i >= 0 {
		l.names[i] = ""
	}
	l.names, l.read = append(l.names, column), append(l.read, false)
	return len(l.names) - 1
}

// Len returns the number of cells.
func (l *Layout) Len() int { return len(l.names) }

// Reads reports whether a model that is bound to the layout reads a cell.
func (l *Layout) Reads(cell int) bool { return l.read[cell] }

// NewRow returns a row whose cells are null. It must be called after all models are bound.
func (l *Layout) NewRow() []Cell { return make([]Cell, len(l.names)) }

// Columns returns the index of the cell of each column.
func (l *Layout) Columns() map[string]int {
	cells := make(map[string]int, len(l.names))
	for i, name := range l.names {
		if name != "" {
			cells[name] = i
		}
	}
	return cells
}
