// Package overdue is for tests that wait for other goroutines or processes. If a wait takes too
// long, it ends the test program before the time limit of go test does. The message says what the
// test waited for, and has the stacks of all goroutines.
//
//	defer overdue.Watch("every rank of the group")()
package overdue

import (
	"fmt"
	"runtime"
	"time"
)

// Watch ends the program with a panic unless stop is called within a time limit. The limit is
// longer than any correct wait takes on a busy machine. what names the event that the caller
// waits for.
func Watch(what string) (stop func()) {
	t := time.AfterFunc(limit, func() { panic(message(what)) })
	return func() { t.Stop() }
}

// message returns the message of the panic, with the stacks of all goroutines.
func message(what string) string {
	stacks := make([]byte, 4<<20)
	return fmt.Sprintf("the test has waited for %v for %s\n\n%s", limit, what, stacks[:runtime.Stack(stacks, true)])
}
