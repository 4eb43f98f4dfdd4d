//go:build !linux

package operators

import "errors"

// renameNew moves a file to a path that must be free.
func renameNew(from, to string) error { return renameFree(from, to) }

// exchange fails: these systems cannot swap directories in one step.
func exchange(string, string) error { return errors.ErrUnsupported }
