//go:build !linux

package operators

import "errors"

// renameNew moves a file to a place that must be free.
func renameNew(from, to string) error { return renameFree(from, to) }

// exchange says that directories cannot be swapped in one step.
func exchange(string, string) error { return errors.ErrUnsupported }
