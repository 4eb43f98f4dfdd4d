// Package filelock locks directories and files against other processes, by lock files. The
// operating system releases the lock of a process that ends, however it ends.
package filelock

import "errors"

// ErrHeld is the error of Make if another process, or another part of this process, holds the
// lock.
var ErrHeld = errors.New("it is in use")
