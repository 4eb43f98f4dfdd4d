package builtin_test

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
)

// startCluster runs `superstep dev` with two task managers and returns its address.
func startCluster(t *testing.T, w *testDir) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	token := filepath.Join(w.dir, "token")
	cmd := proctest.Command(self, "dev", "--taskmanagers", "2", "--slots", "1", "--memory", "256MiB",
		"--listen", "127.0.0.1:0", "--http", "off", "--log-level", "warn", "--token-file", token, "--dir", filepath.Join(w.dir, "dev"))
	cmd.Env = append(os.Environ(), "SUPERSTEP_TEST_COMMAND=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	m := regexp.MustCompile(`cluster at (\S+):`).FindStringSubmatch(line)
	require.NotNil(t, m, line)
	w.env = append(w.env, "SUPERSTEP_TOKEN_FILE="+token)
	return m[1]
}

// TestACluster requires that train and predict write the same files on a cluster with two
// workers as in a local run, and that evaluate prints the same measures.
func TestACluster(t *testing.T) {
	w := newTestDir(t)
	const train = "train logistic --input titanic.csv --label survived --features age,fare,sex --encode --missing fill --test titanic.csv"
	here := w.ok(train + " --model here.json")
	on := " --cluster " + startCluster(t, w)
	there := w.ok(train + " --model there.json --plot there.png" + on)
	require.Equal(t, w.read("here.json"), w.read("there.json"))
	require.Equal(t, strings.Count(here, "\n")+1, strings.Count(there, "\n"), "on the cluster, train must print one more line, for the plot")
	w.picture("there.png")

	w.ok("predict --model here.json --input titanic.csv --output here.csv")
	w.ok("predict --model there.json --input titanic.csv --output there.csv" + on)
	require.Equal(t, w.read("here.csv"), w.read("there.csv"))
	require.Equal(t, w.ok("evaluate --model here.json --input titanic.csv --label survived"), w.ok("evaluate --model there.json --input titanic.csv --label survived"+on))

	// The client writes the model file after the job has ended, so --detach is an error.
	w.fails(2, train+" --model left.json --detach"+on, "--detach")
}
