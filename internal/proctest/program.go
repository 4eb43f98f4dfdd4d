package proctest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// programEnv is set where a test binary runs the program that it tests.
const programEnv = "SUPERSTEP_TEST_COMMAND"

// Main is the TestMain of a program's package. The test binary runs its tests, or program if
// ProgramContext started it.
func Main(tests interface{ Run() int }, program func()) {
	if os.Getenv(programEnv) != "" {
		program()
		return
	}
	os.Exit(tests.Run())
}

// ProgramContext is a command that runs this test binary as the program that it tests. Tests
// then need not link the program a second time.
func ProgramContext(ctx context.Context, args ...string) *Cmd {
	self, err := os.Executable()
	c := CommandContext(ctx, self, args...)
	if err != nil {
		c.Err = err
	}
	c.Args[0] = strings.TrimSuffix(filepath.Base(self), ".test") // what the program takes for its name
	c.Env = append(os.Environ(), programEnv+"=1")
	return c
}
