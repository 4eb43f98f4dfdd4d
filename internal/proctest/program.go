package proctest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// programEnv is the environment variable that makes a test binary run the program that it tests.
const programEnv = "SUPERSTEP_TEST_COMMAND"

// Main is called by TestMain in the package of a program. It runs the tests, or it runs program if
// ProgramContext started the test binary.
func Main(tests interface{ Run() int }, program func()) {
	if os.Getenv(programEnv) != "" {
		program()
		return
	}
	os.Exit(tests.Run())
}

// ProgramContext returns a command that runs this test binary as the program that it tests. So
// tests need not link the program a second time.
func ProgramContext(ctx context.Context, args ...string) *Cmd {
	self, err := os.Executable()
	c := CommandContext(ctx, self, args...)
	if err != nil {
		c.Err = err
	}
	c.Args[0] = strings.TrimSuffix(filepath.Base(self), ".test") // the program's own name
	c.Env = append(os.Environ(), programEnv+"=1")
	return c
}
