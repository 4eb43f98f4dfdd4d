// Package proctest starts programs for tests. None of them outlives the process
// that started it: on Linux the system kills a program when the test process
// ends, also where it panics, reaches go test's limit or is killed, when no
// cleanup of a test runs.
//
//	cmd := proctest.Command(path, "--listen", "127.0.0.1:0")
//	require.NoError(t, cmd.Start())
//	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
package proctest
