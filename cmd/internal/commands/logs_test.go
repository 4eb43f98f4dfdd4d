package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// output records the output of a command. It may be read while the command runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *output) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *output) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(strings.TrimSuffix(s.text.String(), "\n"), "\n")
}

// value waits for a log line in JSON with the given message, and returns its value for key.
func (s *output) value(t *testing.T, message, key string) (value any) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, line := range s.lines() {
			entry := map[string]any{}
			if line != "" && json.Unmarshal([]byte(line), &entry) == nil && entry["@message"] == message {
				value = entry[key]
				return true
			}
		}
		return false
	}, 20*time.Second, time.Millisecond, "no line has the message %q: %s", message, s.lines())
	return value
}

// command starts a command. out records its standard output and standard error. end interrupts
// the command and returns its exit code.
func command(t *testing.T, cli any, args ...string) (out *output, end func() int) {
	t.Helper()
	out = &output{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		lookup := func(string) (string, bool) { return "", false }
		ended <- Main(ctx, "test", "", cli, args, &Streams{Out: out, Err: out, Lookup: lookup})
	}()
	return out, func() int {
		cancel()
		return <-ended
	}
}

// TestAllIsJSON requires that with --log-json every line that a job manager or task manager
// prints is JSON, including warnings and the error that ends the process.
func TestAllIsJSON(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(file("config.yaml"), nil, 0o600))
	cli := func() any {
		return &struct {
			Jobmanager  JobManagerCommand  `cmd:""`
			Taskmanager TaskManagerCommand `cmd:""`
		}{}
	}
	manager := func(listen string) []string {
		return []string{"jobmanager", "--config", file("config.yaml"), "--log-json", "--insecure", "--listen", listen, "--http", "127.0.0.1:0", "--probes", "127.0.0.1:0", "--dir", file(listen), "--token-file", file("token")}
	}
	whole := func(s *output) {
		t.Helper()
		for _, line := range s.lines() {
			require.True(t, json.Valid([]byte(line)), "%q", line)
		}
	}
	jobs, endJobs := command(t, cli(), manager("127.0.0.1:0")...)
	jobs.value(t, "HTTP is served", "url")
	address := jobs.value(t, "job manager serves", "address").(string)

	late, endLate := command(t, cli(), manager(address)...)
	require.Contains(t, late.value(t, "ended", "error"), "choose another address with --listen")
	require.Equal(t, exitFailed, endLate())
	whole(late)

	task := func(token, address string) []string {
		return []string{"taskmanager", "--config", file("config.yaml"), "--log-json", "--insecure", "--jobmanager", address, "--name", "tm", "--slots", "1", "--dir", file("taskmanager"), "--token-file", file(token)}
	}
	tasks, endTasks := command(t, cli(), task("token", address)...)
	require.Equal(t, "tm", tasks.value(t, "registered", "name"))
	require.Zero(t, endTasks())
	whole(tasks)
	waits, endWaits := command(t, cli(), task("none", address)...)
	waits.value(t, "waiting for the token", "error")
	require.Equal(t, exitFailed, endWaits())
	whole(waits)
	usage, endUsage := command(t, cli(), task("token", "a:b:c")...)
	usage.value(t, "ended", "error")
	require.Equal(t, exitUsage, endUsage())
	whole(usage)
	require.Zero(t, endJobs())
	whole(jobs)
}

// TestLinesAsJSON requires that the writer of asJSON logs lines that are not JSON, such as the
// lines of a panic, and writes lines of JSON unchanged.
func TestLinesAsJSON(t *testing.T) {
	var out bytes.Buffer
	w := &lineWriter{out: &out}
	log := hclog.New(&hclog.LoggerOptions{Output: w, JSONFormat: true})
	own := w.asJSON(log.ResetNamed("taskmanager-1"))
	_, err := own.Write([]byte("{\"a\":1}\npanic: no\n"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	require.Equal(t, `{"a":1}`, lines[0])
	entry := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &entry))
	require.Equal(t, "panic: no", entry["@message"])
	require.Equal(t, "taskmanager-1", entry["@module"])
}
