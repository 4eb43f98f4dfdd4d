package proctest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// RunProgram runs the program that this test binary tests, in the directory dir or, if dir is "",
// in that of the tests. It returns the exit code and the output of the program.
func RunProgram(t testing.TB, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := ProgramContext(t.Context(), args...)
	var out, errOut bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errOut
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); !exited {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}
