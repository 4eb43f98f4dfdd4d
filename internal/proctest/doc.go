// Package proctest starts programs for tests. None of them outlives the test process: on Linux
// the system kills a program when the process that started it ends. This works even if that
// process panics, is killed or reaches go test's limit, when no cleanup of a test runs.
//
//	cmd := proctest.Command(path, "--listen", "127.0.0.1:0")
//	require.NoError(t, cmd.Start())
//	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
package proctest
