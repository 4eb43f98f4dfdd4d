//go:build !linux

package operators

import "errors"

// renameNew moves a file to a path at which nothing may exist.
func renameNew(from, to string) error { return renameFree(from, to) }

// exchange returns an error, as these systems cannot swap two files or directories in one step.
func exchange(string, string) error { return errors.ErrUnsupported }
