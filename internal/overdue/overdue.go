// Package overdue is for tests that wait for others: what does not come ends the test
// program soon, with what was waited for and the stacks of all goroutines, and not when
// its time is up.
//
//	defer overdue.Watch("every rank of the group")()
package overdue

import (
	"fmt"
	"runtime"
	"time"
)

// Watch ends the program with a panic unless stop is called in time, which is longer than
// anything takes on a machine that is busy.
func Watch(what string) (stop func()) {
	t := time.AfterFunc(limit, func() { panic(message(what)) })
	return func() { t.Stop() }
}

// message says what was waited for, and where everybody is.
func message(what string) string {
	stacks := make([]byte, 4<<20)
	return fmt.Sprintf("the test has waited for %v for %s\n\n%s", limit, what, stacks[:runtime.Stack(stacks, true)])
}
