//go:build !linux

package operators

import "errors"

// renameNew moves a file from the path from to the path to, and fails if anything exists there.
func renameNew(from, to string) error { return renameFree(from, to) }

// exchange returns an error, as these systems cannot swap two files or directories atomically.
func exchange(string, string) error { return errors.ErrUnsupported }
