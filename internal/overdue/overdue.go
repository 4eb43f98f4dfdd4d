// Package overdue is for tests that wait for other goroutines or processes. A wait that takes too
// long ends the test program early, not only at the time limit of the tests. The message says
// what was waited for, and has the stacks of all goroutines.
//
//	defer overdue.Watch("every rank of the group")()
package overdue

import (
	"fmt"
	"runtime"
	"time"
)

// Watch ends the program with a panic unless stop is called in time. The limit is longer than
// anything takes on a busy machine.
func Watch(what string) (stop func()) {
	t := time.AfterFunc(limit, func() { panic(message(what)) })
	return func() { t.Stop() }
}

// message says what was waited for, and adds the stacks of all goroutines.
func message(what string) string {
	stacks := make([]byte, 4<<20)
	return fmt.Sprintf("the test has waited for %v for %s\n\n%s", limit, what, stacks[:runtime.Stack(stacks, true)])
}
