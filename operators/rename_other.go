//go:build !linux

package operators

import "errors"

// renameNew moves a file: from is its old path, and to is its new path. It fails if anything
// exists at the new path.
func renameNew(from, to string) error { return renameFree(from, to) }

// exchange returns an error, as these systems cannot swap two files or directories atomically.
func exchange(string, string) error { return errors.ErrUnsupported }
